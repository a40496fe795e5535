// Collecting: the options of the command line as keywords, the library's collection, and the worker
// process that the measurements run in.
#include "foretune/tune/collect.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/families.h"
#include "foretune/measure/measure.h"
#include "foretune/plugin/loader/plugin_loader.h"
#include "foretune/search/strategy.h"
#include "python/bindings/bindings.h"
#include "tools/foretune/collection.h"
#include "tools/foretune/terminal.h"

namespace foretune::python {
namespace {

using Values = std::map<std::string, std::vector<std::string>>;  // by the option's name

struct Job {
  cli::GlobalOptions global;
  cli::Invocation invocation;
  cli::CollectArguments arguments;
};

// The invocation refers to the job, which therefore stays where it is.
std::unique_ptr<Job> make_job(const Values& values, const std::string& role, std::int64_t seed,
                              std::vector<std::string> worker_command) {
  const bool validation = role == "validation";
  auto job =
      std::make_unique<Job>(Job{{},
                                {},
                                validation ? cli::CollectArguments(cli::ValidationArguments())
                                           : cli::CollectArguments(cli::TrainingArguments())});
  job->global.seed = seed;
  job->invocation = {.global = &job->global,
                     .worker_command = std::move(worker_command),
                     .command_line = "foretune.MatmulDatasetCollector"};
  cli::OptionList list;
  job->arguments.visit(list);
  for (const auto& [name, texts] : values) {
    checked(cli::set_option(list, name, texts));
  }
  checked(cli::check_effects(list));
  return job;
}

nb::dict describe(const CollectProgress& progress) {
  nb::dict out;
  out["problems_done"] = progress.problems_done;
  out["problems_total"] = progress.problems_total;
  out["measured"] = progress.measured;
  out["planned"] = progress.planned;
  out["resumed"] = progress.resumed;
  out["elapsed_s"] = progress.elapsed_s;
  out["eta_s"] = progress.eta_s;
  out["problem"] = progress.problem;
  out["best_ns"] = progress.best_ns;
  out["round"] = progress.round;
  out["rounds"] = progress.rounds;
  nb::dict outcomes;
  for (std::size_t i = 0; i < std::size(progress.by_outcome); ++i) {
    if (progress.by_outcome[i] > 0) {
      outcomes[nb::cast(std::string(to_string(static_cast<Outcome>(i))))] = progress.by_outcome[i];
    }
  }
  out["outcomes"] = outcomes;
  return out;
}

// Whoever says on what hardware the data is measured must be right.
Result<cli::PreparedCollection> prepare(const Job& job, const std::string& hardware_name) {
  FORETUNE_TRY(cli::PreparedCollection prepared,
               cli::prepare_collection(job.arguments, job.invocation));
  const FamilyInfo& info = prepared.live.family->info();
  if (to_lower(info.fingerprint.device).find(to_lower(hardware_name)) == std::string::npos) {
    return fail(ErrorCode::kMismatch, "the family ", info.name, " runs on '",
                info.fingerprint.device, "', not on '", hardware_name, "'");
  }
  return prepared;
}

// Errors: those of preparing, measuring and the file. The file stays when the collection stops.
Result<CollectResult> run(const Job& job, const std::string& hardware_name,
                          const nb::object& callback, Interruptions& interruptions) {
  FORETUNE_TRY(const cli::PreparedCollection prepared, prepare(job, hardware_name));
  const std::filesystem::path& path = prepared.paths.journal;
  if (path.has_parent_path()) {
    std::error_code ignored;
    std::filesystem::create_directories(path.parent_path(), ignored);
  }
  FORETUNE_TRY(auto journal,
               JournalWriter::open(path, cli::dataset_header(prepared.live.family->info(),
                                                             job.arguments.role, job.invocation)));
  FORETUNE_TRY(auto measurer, cli::open_measurer(prepared.live, prepared.protocol, prepared.context,
                                                 job.invocation));
  std::atomic<bool> stop = false;
  CollectHooks hooks;
  hooks.now_s = &cli::monotonic_s;
  hooks.stop = &stop;
  hooks.on_progress = [&](const CollectProgress& progress) {
    if (!interruptions.poll(callback, [&] { return describe(progress); })) {
      stop = true;
    }
  };
  FORETUNE_TRY(CollectResult result, cli::collect_prepared(prepared, *measurer, *journal, hooks));
  FORETUNE_TRY_STATUS(journal->sync());
  journal.reset();
  if (!result.stopped_by_request) {
    FORETUNE_TRY_STATUS(seal(path));
  }
  FORETUNE_TRY_STATUS(cli::check_measured(result));
  return result;
}

nb::dict collect_now(const Values& values, const std::string& role, std::int64_t seed,
                     std::vector<std::string> worker_command, const std::string& hardware_name,
                     const nb::object& callback) {
  const std::unique_ptr<Job> job = make_job(values, role, seed, std::move(worker_command));
  Interruptions interruptions;
  Result<CollectResult> result =
      without_lock([&] { return run(*job, hardware_name, callback, interruptions); });
  interruptions.raise_pending();
  const CollectResult done = checked(std::move(result));
  nb::dict out = describe(done.progress);
  out["stopped_by_budget"] = done.stopped_by_budget;
  nb::dict skipped;
  for (const auto& [reason, count] : done.skipped) {
    skipped[nb::cast(reason)] = count;
  }
  out["skipped"] = skipped;
  return out;
}

nb::tuple problems_of(const Values& values, const std::string& role, std::int64_t seed,
                      const std::string& hardware_name) {
  const std::unique_ptr<Job> job = make_job(values, role, seed, {});
  const cli::PreparedCollection prepared =
      checked(without_lock([&] { return prepare(*job, hardware_name); }));
  std::vector<std::string> problems;
  for (const Problem& problem : prepared.problems) {
    problems.push_back(problem.text());
  }
  return nb::make_tuple(problems, prepared.remarks);
}

// The same where the device is not: what a family on a device would be asked to measure.
std::vector<std::string> detached_problems_of(const Values& values, const std::string& role,
                                              std::int64_t seed) {
  const std::unique_ptr<Job> job = make_job(values, role, seed, {});
  const auto drawn = [&]() -> Result<SampledProblems> {
    FORETUNE_TRY(const cli::LiveFamily live,
                 cli::open_family_of(job->arguments.family, Fingerprint()));
    FORETUNE_TRY(const auto payloads, job->arguments.family.payloads.open());
    return cli::make_problems(job->arguments.problems, *live.family,
                              static_cast<std::uint64_t>(seed), *payloads);
  };
  std::vector<std::string> problems;
  for (const Problem& problem : checked(without_lock(drawn)).problems) {
    problems.push_back(problem.text());
  }
  return problems;
}

// Names and values alone: whether they contradict each other is found out where they are used.
void check(const Values& values, const std::string& role) { make_job(values, role, 0, {}); }

std::vector<std::pair<std::string, std::string>> family_list() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const FamilyEntry* const entry : families()) {
    out.emplace_back(entry->name, entry->description);
  }
  return out;
}

// The path of each and what it has added.
std::vector<std::pair<std::string, std::vector<std::string>>> plugin_list() {
  std::vector<std::pair<std::string, std::vector<std::string>>> out;
  for (const LoadedPlugin& plugin : loaded_plugins()) {
    out.emplace_back(plugin.path.string(), plugin.added);
  }
  return out;
}

int run_worker_here() {
  return without_lock([] { return run_worker(STDIN_FILENO, STDOUT_FILENO, &create_family); });
}

}  // namespace

void bind_collect(nb::module_& module) {
  module.def("collect", &collect_now, nb::arg("options"), nb::arg("role"), nb::arg("seed"),
             nb::arg("worker_command"), nb::arg("hardware_name"), nb::arg("progress").none());
  module.def("collection_problems", &problems_of, nb::arg("options"), nb::arg("role"),
             nb::arg("seed"), nb::arg("hardware_name"));
  module.def("detached_problems", &detached_problems_of, nb::arg("options"), nb::arg("role"),
             nb::arg("seed"));
  module.def("check_collection", &check, nb::arg("options"), nb::arg("role"));
  module.def("families", &family_list);
  module.def(
      "load_plugin",
      [](const std::string& path) { checked(without_lock([&] { return load_plugin(path); })); },
      nb::arg("path"));
  module.def("loaded_plugins", &plugin_list);
  module.def("run_worker", &run_worker_here);
}

}  // namespace foretune::python
