#include "foretune/cluster/task.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "foretune/base/clock.h"
#include "foretune/base/file.h"
#include "foretune/base/system_error.h"
#include "foretune/base/text.h"
#include "foretune/cluster/lease.h"
#include "foretune/cluster/node_locks.h"
#include "foretune/formats/json.h"

namespace foretune::cluster {
namespace {

using formats::Json;

// Shares of lease_s.
constexpr double kStaysFor = 1.5;
constexpr double kLooksEvery = 0.1;

std::string json_of(const TaskRecord& record) {
  const TaskReport& report = record.report;
  const Json document{{"format", "foretune-task"},   {"version", 1},
                      {"name", record.name},         {"host", record.host},
                      {"pid", record.pid},           {"job", record.job},
                      {"cores", record.cores},       {"machine", record.machine},
                      {"device", record.device},     {"start", record.start},
                      {"end", record.end},           {"exit", record.exit},
                      {"finished", report.finished}, {"taken_over", report.taken_over},
                      {"lost", report.lost},         {"failed", report.failed}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Publishes the first record. A link fails where the name exists, on NFS too.
Status begin_record(const RunFolder& run, const TaskRecord& record) {
  const std::filesystem::path file = run.task_file(record.name);
  const std::filesystem::path draft = concat(file.string(), ".tmp.", record.host, ".", record.pid);
  FORETUNE_TRY_STATUS(write_text_file_atomically(draft, json_of(record)));
  bool linked = ::link(draft.c_str(), file.c_str()) == 0;
  const int number = errno;
  // NFS may ask again for a link that it has made, and then hear that the name exists.
  struct stat status{};
  linked = linked || (::stat(draft.c_str(), &status) == 0 && status.st_nlink > 1);
  ::unlink(draft.c_str());
  if (linked) {
    return {};
  }
  if (number == EEXIST) {
    return fail(ErrorCode::kInvalidArgument, "the run ", run.path().string(),
                " has had a task of the name ", record.name);
  }
  errno = number;
  return fail(ErrorCode::kIo, "cannot create ", file.string(), ": ", last_error());
}

// Reads what the earlier holders of a shard measured of it.
Result<std::optional<Dataset>> measured_before(const RunFolder& run, const Lease& lease) {
  std::optional<Dataset> out;
  for (const std::string& holder : lease.holders()) {
    FORETUNE_TRY(std::optional<Dataset> dataset, run.read_journal(holder));
    if (!dataset) {
      continue;
    }
    if (!out) {
      out = *std::move(dataset);
    } else {
      FORETUNE_TRY_STATUS(out->merge(*dataset));
    }
  }
  return out;
}

class Task {
 public:
  Task(const RunFolder& run, const TaskOptions& options, JournalWriter& journal,
       const ShardWork& work)
      : run_(run), options_(options), journal_(journal), work_(work) {}

  Result<TaskReport> run() {
    const double lease_s = run_.plan().lease_s;
    double idle_since_s = -1;
    while (!wants_stop()) {
      FORETUNE_TRY(std::unique_ptr<Lease> lease, claim_shard(run_, options_.name));
      if (lease != nullptr) {
        idle_since_s = -1;
        FORETUNE_TRY_STATUS(work_on(*lease));
        continue;
      }
      FORETUNE_TRY(const auto leased, run_.names("leased"));
      if (leased.empty()) {
        break;
      }
      if (idle_since_s < 0) {
        idle_since_s = monotonic_s();
      } else if (monotonic_s() - idle_since_s > kStaysFor * lease_s) {
        break;
      }
      std::this_thread::sleep_for(
          std::chrono::duration<double>(std::min(2.0, kLooksEvery * lease_s)));
    }
    report_.was_stopped = wants_stop();
    return report_;
  }

 private:
  [[nodiscard]] bool wants_stop() const { return options_.stop != nullptr && *options_.stop; }

  Status work_on(Lease& lease) {
    report_.taken_over += lease.was_taken_over() ? 1U : 0U;
    FORETUNE_TRY(const std::optional<Dataset> before, measured_before(run_, lease));
    const Status worked = work_({.shard = lease.shard(),
                                 .journal = journal_,
                                 .elsewhere = before ? &*before : nullptr,
                                 .holds = [&lease] { return lease.holds(); },
                                 .stop = options_.stop});
    // The rows of a shard are on disk before anybody reads that it is done.
    FORETUNE_TRY_STATUS(journal_.sync());
    if (worked) {
      FORETUNE_TRY(const bool is_ours, lease.finish());
      ++(is_ours ? report_.finished : report_.lost);
      return {};
    }
    if (worked.error().code == ErrorCode::kCancelled) {
      FORETUNE_TRY(const bool is_ours, lease.give_back());
      report_.lost += is_ours ? 0U : 1U;
      return {};
    }
    ++report_.failed;
    report_.last_failure = worked.error().message;
    FORETUNE_TRY(const bool is_ours, lease.fail_shard(worked.error().message));
    report_.lost += is_ours ? 0U : 1U;
    return {};
  }

  const RunFolder& run_;
  const TaskOptions& options_;
  JournalWriter& journal_;
  const ShardWork& work_;
  TaskReport report_;
};

std::int64_t now_s() { return static_cast<std::int64_t>(std::time(nullptr)); }

}  // namespace

Result<TaskReport> run_task(const RunFolder& run, const TaskOptions& options,
                            const DatasetHeader& header, const ShardWork& work) {
  FORETUNE_TRY_STATUS(check_task_name(options.name));
  FORETUNE_TRY(
      const NodeLocks locks,
      NodeLocks::take(options.locks, concat("task ", options.name, " of ", run.path().string())));
  TaskRecord record{.name = options.name,
                    .host = host_name(),
                    .pid = ::getpid(),
                    .job = options.job,
                    .cores = options.cores,
                    .machine = hex_text(header.fingerprint.digest()),
                    .device = header.fingerprint.device,
                    .start = now_s(),
                    .exit = {}};
  FORETUNE_TRY_STATUS(begin_record(run, record));
  auto worked = [&]() -> Result<TaskReport> {
    FORETUNE_TRY(const auto journal,
                 JournalWriter::open(run.journal(options.name), header, JournalLock::kNone));
    return Task(run, options, *journal, work).run();
  }();
  record.end = now_s();
  record.exit = !worked               ? concat("error: ", worked.error().message)
                : worked->was_stopped ? "stopped"
                                      : "nothing left to do";
  if (worked) {
    record.report = *worked;
  }
  std::error_code ignored;
  std::filesystem::remove(run.path() / "tasks" / concat(options.name, ".clock"), ignored);
  FORETUNE_TRY_STATUS(write_text_file_atomically(run.task_file(options.name), json_of(record)));
  return worked;
}

Result<std::vector<TaskRecord>> read_tasks(const RunFolder& run) {
  std::vector<TaskRecord> out;
  FORETUNE_TRY(const std::vector<std::string> names, run.names("tasks"));
  for (const std::string& name : names) {
    if (!name.ends_with(".json")) {
      continue;
    }
    const std::filesystem::path path = run.path() / "tasks" / name;
    FORETUNE_TRY(const std::string text, read_text_file(path));
    const Result<Json> document = formats::parse_json(text);
    if (!document) {
      return fail_because(document.error(), path.string());
    }
    const auto text_of = [&](const char* key) {
      return formats::text_at(*document, key).value_or(std::string());
    };
    const auto number_of = [&](const char* key) {
      return formats::integer_at(*document, key).value_or(0);
    };
    const auto count_of = [&](const char* key) {
      return static_cast<std::uint64_t>(std::max<std::int64_t>(0, number_of(key)));
    };
    out.push_back({.name = text_of("name"),
                   .host = text_of("host"),
                   .pid = number_of("pid"),
                   .job = text_of("job"),
                   .cores = {},
                   .machine = text_of("machine"),
                   .device = text_of("device"),
                   .start = number_of("start"),
                   .end = number_of("end"),
                   .exit = text_of("exit"),
                   .report = {.finished = count_of("finished"),
                              .taken_over = count_of("taken_over"),
                              .lost = count_of("lost"),
                              .failed = count_of("failed"),
                              .last_failure = {},
                              .was_stopped = text_of("exit") == "stopped"}});
  }
  return out;
}

}  // namespace foretune::cluster
