#include "foretune/cluster/slurm.h"

#include <algorithm>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/formats/json.h"
#include "foretune/workflow/outside_program.h"

namespace foretune::cluster {
namespace {

using formats::Json;

// Seconds between the warning and the end of a task's time: longer than one measurement may take.
constexpr int kWarningS = 30;
constexpr double kIntervalS = 2;

std::string directive(std::string_view option, std::string_view value) {
  return concat("#SBATCH --", option, value.empty() ? "" : "=", value, "\n");
}

class SlurmLauncher final : public Launcher {
 public:
  SlurmLauncher(const RunFolder& run, SlurmOptions options, std::vector<std::string> jobs)
      : run_(run), options_(std::move(options)), jobs_(std::move(jobs)) {}

  Status launch(std::size_t shards) override {
    const std::size_t tasks = std::min(shards, static_cast<std::size_t>(options_.nodes));
    FORETUNE_TRY(const std::string script, slurm_script(run_, options_, tasks));
    const std::filesystem::path file = run_.path() / concat("slurm-", jobs_.size(), ".sh");
    FORETUNE_TRY_STATUS(write_text_file_atomically(file, script));
    FORETUNE_TRY(const std::string printed,
                 workflow::run_program({"sbatch", "--parsable", file.string()}));
    // "17" or "17;cluster".
    const std::string job(trim(split(trim(printed), ';').front()));
    if (!parse_uint(job)) {
      return fail(ErrorCode::kIo, "sbatch printed no number of a job: ", quoted(printed, 80));
    }
    jobs_.push_back(job);
    return write_text_file_atomically(run_.path() / "slurm.json",
                                      Json{{"version", 1}, {"jobs", jobs_}}.dump() + "\n");
  }

  Result<LiveTasks> live() override {
    LiveTasks live;
    for (const std::string& job : jobs_) {
      if (std::find(ended_.begin(), ended_.end(), job) != ended_.end()) {
        continue;
      }
      const Result<std::string> printed = workflow::run_program(
          {"squeue", "--noheader", "--array", "--format=%T", concat("--jobs=", job)});
      // Slurm forgets jobs some minutes after they ended.
      const bool is_forgotten =
          !printed && printed.error().message.find("Invalid job id") != std::string::npos;
      if (!printed && !is_forgotten) {
        return tl::unexpected(printed.error());
      }
      LiveTasks of_job;
      for (const std::string_view line : split(is_forgotten ? std::string() : *printed, '\n')) {
        const std::string_view state = trim(line);
        if (state == "PENDING" || state == "REQUEUED" || state == "REQUEUE_HOLD" ||
            state == "SUSPENDED") {
          ++of_job.waiting;
        } else if (state == "RUNNING" || state == "CONFIGURING" || state == "COMPLETING") {
          ++of_job.running;
        }
      }
      if (of_job.all() == 0) {
        ended_.push_back(job);
      }
      live.waiting += of_job.waiting;
      live.running += of_job.running;
    }
    return live;
  }

  void leave() override {}
  [[nodiscard]] double interval_s() const override { return kIntervalS; }
  [[nodiscard]] std::string last_words() const override {
    return concat("see ", (run_.path() / "tasks").string());
  }

 private:
  const RunFolder& run_;
  SlurmOptions options_;
  std::vector<std::string> jobs_;
  std::vector<std::string> ended_;
};

}  // namespace

std::string quoted_for_shell(const std::string& word) {
  std::string out = "'";
  for (const char letter : word) {
    if (letter == '\'') {
      out += "'\\''";
    } else {
      out += letter;
    }
  }
  return out + "'";
}

Result<std::string> slurm_script(const RunFolder& run, const SlurmOptions& options,
                                 std::size_t tasks) {
  for (const std::string* const value :
       {&options.job_name, &options.partition, &options.time, &options.mail}) {
    if (value->find('\n') != std::string::npos) {
      return fail(ErrorCode::kInvalidArgument, "'", *value, "' has more than one line");
    }
  }
  std::string out = "#!/bin/sh\n";
  out += directive("job-name", options.job_name);
  out += directive("array", concat("0-", std::max<std::size_t>(1, tasks) - 1));
  out += directive("nodes", "1");
  out += directive("ntasks", "1");
  if (options.cpus) {
    out += directive("cpus-per-task", concat(*options.cpus));
  } else if (!options.share_cores) {
    out += directive("exclusive", "");
  }
  if (options.gpus > 0) {
    out += directive("gres", concat("gpu:", options.gpus));
  }
  if (!options.partition.empty()) {
    out += directive("partition", options.partition);
  }
  if (!options.time.empty()) {
    out += directive("time", options.time);
  }
  if (!options.mail.empty()) {
    out += directive("mail-user", options.mail);
    out += directive("mail-type", "END,FAIL");
  }
  out += directive("signal", concat("B:TERM@", kWarningS));
  out += directive("requeue", "");
  out += directive("open-mode", "append");
  out += directive("output", (run.path() / "tasks" / "slurm-%A_%a.log").string());
  std::string shell;
  for (const std::string_view line : split(options.template_text, '\n')) {
    if (line.starts_with("#SBATCH")) {
      out += concat(line, "\n");
    } else if (!line.starts_with("#!") && !trim(line).empty()) {
      shell += concat(line, "\n");
    }
  }
  out += shell;
  // The task replaces the shell, so that Slurm's signals reach it.
  std::string command = "exec";
  for (const std::string& word : options.command) {
    command += concat(" ", quoted_for_shell(word));
  }
  out += concat(command, " ", quoted_for_shell(run.path().string()),
                " --name \"slurm-$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}\"",
                options.share_cores ? " --share-cores" : "", "\n");
  return out;
}

Result<std::unique_ptr<Launcher>> slurm_launcher(const RunFolder& run, SlurmOptions options) {
  std::vector<std::string> jobs;
  const std::filesystem::path file = run.path() / "slurm.json";
  if (std::filesystem::exists(file)) {
    FORETUNE_TRY(const std::string text, read_text_file(file));
    FORETUNE_TRY(const Json document, formats::parse_json(text));
    const Json* const known = formats::member(document, "jobs");
    if (known == nullptr || !known->is_array()) {
      return fail(ErrorCode::kCorrupt, file.string(), " holds no list of jobs");
    }
    for (const Json& job : *known) {
      if (!job.is_string() || !parse_uint(job.get<std::string>())) {
        return fail(ErrorCode::kCorrupt, file.string(), " holds something that is no job");
      }
      jobs.push_back(job.get<std::string>());
    }
  }
  return std::unique_ptr<Launcher>(
      std::make_unique<SlurmLauncher>(run, std::move(options), std::move(jobs)));
}

}  // namespace foretune::cluster
