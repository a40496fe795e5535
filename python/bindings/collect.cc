// Bindings for collecting: the options of the command line as keywords, the library's collection,
// and the worker process that runs the measurements.
#include "foretune/collect/collect.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/families/families.h"
#include "foretune/measure/measure.h"
#include "foretune/plugin/loader/plugin_loader.h"
#include "foretune/search/strategy.h"
#include "foretune/workflow/collection.h"
#include "python/bindings/bindings.h"
#include "python/bindings/options.h"

namespace foretune::python {
namespace {

struct Job {
  workflow::CollectArguments arguments;
  workflow::Invocation invocation;
};

Job make_job(const OptionTexts& texts, const std::string& role, std::int64_t seed,
             std::vector<std::string> worker_command) {
  Job job{role == "validation" ? workflow::CollectArguments(workflow::ValidationArguments())
                               : workflow::CollectArguments(workflow::TrainingArguments()),
          {.seed = static_cast<std::uint64_t>(seed),
           .worker_command = std::move(worker_command),
           .command_line = "foretune.MatmulDatasetCollector"}};
  set_options([&](workflow::OptionList& list) { job.arguments.visit(list); }, texts);
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

// Prepares the collection. Fails unless `hardware_name` is a part of the device's name.
Result<workflow::PreparedCollection> prepare(const Job& job, const std::string& hardware_name) {
  FORETUNE_TRY(workflow::PreparedCollection prepared,
               workflow::prepare_collection(job.arguments, job.invocation));
  const FamilyInfo& info = prepared.live.family->info();
  if (to_lower(info.fingerprint.device).find(to_lower(hardware_name)) == std::string::npos) {
    return fail(ErrorCode::kMismatch, "the family ", info.name, " runs on '",
                info.fingerprint.device, "', not on '", hardware_name, "'");
  }
  return prepared;
}

// Runs the collection. Returns the errors of preparing, measuring and the file; the file stays when
// the collection stops early.
Result<CollectResult> run(const Job& job, const std::string& hardware_name,
                          const nb::object& callback, Interruptions& interruptions) {
  FORETUNE_TRY(const workflow::PreparedCollection prepared, prepare(job, hardware_name));
  std::atomic<bool> stop = false;
  CollectHooks hooks;
  hooks.stop = &stop;
  hooks.on_progress = [&](const CollectProgress& progress) {
    if (!interruptions.poll(callback, [&] { return describe(progress); })) {
      stop = true;
    }
  };
  FORETUNE_TRY(CollectResult result, workflow::run_collection(prepared, job.invocation, hooks));
  FORETUNE_TRY_STATUS(workflow::check_measured(result));
  return result;
}

nb::dict collect_now(const OptionTexts& texts, const std::string& role, std::int64_t seed,
                     std::vector<std::string> worker_command, const std::string& hardware_name,
                     const nb::object& callback) {
  const Job job = make_job(texts, role, seed, std::move(worker_command));
  Interruptions interruptions;
  Result<CollectResult> result =
      without_lock([&] { return run(job, hardware_name, callback, interruptions); });
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

std::vector<std::string> problems_of(const OptionTexts& texts, const std::string& role,
                                     std::int64_t seed, const std::string& hardware_name) {
  const Job job = make_job(texts, role, seed, {});
  const workflow::PreparedCollection prepared =
      checked(without_lock([&] { return prepare(job, hardware_name); }));
  std::vector<std::string> problems;
  for (const Problem& problem : prepared.problems) {
    problems.push_back(problem.text());
  }
  return problems;
}

// Returns the problems that a family would measure on a device, without needing the device.
std::vector<std::string> detached_problems_of(const OptionTexts& texts, const std::string& role,
                                              std::int64_t seed) {
  const Job job = make_job(texts, role, seed, {});
  const auto drawn = [&]() -> Result<SampledProblems> {
    FORETUNE_TRY(const workflow::LiveFamily live,
                 workflow::open_family_of(job.arguments.family, Fingerprint()));
    FORETUNE_TRY(const auto payloads, job.arguments.family.payloads.open());
    return workflow::make_problems(job.arguments.problems, *live.family,
                                   static_cast<std::uint64_t>(seed), *payloads);
  };
  std::vector<std::string> problems;
  for (const Problem& problem : checked(without_lock(drawn)).problems) {
    problems.push_back(problem.text());
  }
  return problems;
}

// Checks names and values of options; contradictions between them are found where they are used.
void check(const OptionTexts& texts, const std::string& role) { make_job(texts, role, 0, {}); }

std::vector<std::pair<std::string, std::string>> family_list() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const FamilyEntry* const entry : families()) {
    out.emplace_back(entry->name, entry->description);
  }
  return out;
}

// Returns the path of each loaded plug-in and its additions.
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
