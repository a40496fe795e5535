#include "foretune/cluster/work.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "foretune/base/clock.h"
#include "foretune/base/text.h"
#include "foretune/tune/tune_problem.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/output.h"

namespace foretune::cluster {
namespace {

Result<std::vector<Problem>> parse_all(const std::vector<std::string>& texts,
                                       PayloadStore& payloads) {
  std::vector<Problem> problems;
  for (const std::string& text : texts) {
    FORETUNE_TRY(Problem problem, workflow::parse_problem(text, payloads));
    problems.push_back(std::move(problem));
  }
  return problems;
}

void set_locks(TaskPlace& place, const FamilyInfo& info) {
  if (!place.share_cores) {
    place.options.locks = locks_for(info, place.options.cores, place.gpus);
  }
}

CollectHooks hooks_of(const ShardContext& shard) {
  CollectHooks hooks;
  hooks.now_s = &monotonic_s;
  hooks.stop = shard.stop;
  hooks.may_go_on = shard.holds;
  return hooks;
}

bool is_stopped(const ShardContext& shard) {
  return (shard.stop != nullptr && *shard.stop) || !shard.holds();
}

tl::unexpected<Error> stopped() { return fail(ErrorCode::kCancelled, "the task was stopped"); }

// Returns the problems that an earlier holder has compared the finalists of: they are tuned.
std::unordered_set<Problem> tuned_elsewhere(const Dataset* elsewhere, Context context) {
  std::unordered_set<Problem> tuned;
  context.fidelity = kReferenceFidelity;
  if (elsewhere == nullptr) {
    return tuned;
  }
  for (const Dataset::Row& row : elsewhere->rows()) {
    if ((row.flags & kFlagReference) != 0 && elsewhere->contexts()[row.context] == context) {
      tuned.insert(elsewhere->problems()[row.problem]);
    }
  }
  return tuned;
}

}  // namespace

std::vector<std::string> locks_for(const FamilyInfo& info, const std::vector<int>& cores,
                                   const std::vector<std::string>& gpus) {
  std::vector<std::string> locks;
  if (info.simulated) {
    return locks;
  }
  if (!workflow::is_on_device(info.name)) {
    for (const int core : cores) {
      locks.push_back(concat("core-", core));
    }
    return locks;
  }
  for (const std::string& gpu : gpus) {
    std::string name = concat("gpu-", gpu);
    std::replace(name.begin(), name.end(), '/', '-');
    locks.push_back(std::move(name));
  }
  return locks;
}

Status check_shareable(const workflow::CollectArguments& arguments) {
  if (arguments.active) {
    return fail(ErrorCode::kInvalidArgument,
                "--active learns from all problems at once, so they cannot be shared out");
  }
  if (!arguments.budget.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "--budget is for one process; a run that is shared out ends with its problems "
                "(--search-space and --num-shapes bound it)");
  }
  if (arguments.dry_run) {
    return fail(ErrorCode::kInvalidArgument, "--dry-run is for one process");
  }
  return {};
}

Status check_shareable(const workflow::TuneArguments& arguments) {
  if (arguments.is_contest()) {
    return fail(ErrorCode::kInvalidArgument,
                "--strategies times strategies against each other in one process");
  }
  if (!arguments.cache.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--cache is a file of one process");
  }
  if (!arguments.report.empty() || !arguments.json.empty()) {
    return fail(
        ErrorCode::kInvalidArgument,
        "--report and --json are of one process; a run that is shared out has --summary, and "
        "the data set of --output");
  }
  if (arguments.output.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "--output is missing: tasks of several machines leave their results in a data set");
  }
  return {};
}

Result<std::vector<Problem>> run_problems(const workflow::CollectArguments& arguments,
                                          const workflow::Invocation& invocation) {
  return workflow::collection_problems(arguments, invocation);
}

Result<std::vector<Problem>> run_problems(const workflow::TuneArguments& arguments,
                                          const workflow::Invocation& /*invocation*/) {
  FORETUNE_TRY(const workflow::LiveFamily live,
               workflow::open_family_of(arguments.family, Fingerprint()));
  return workflow::tuning_problems(arguments, live.family->info().problem_type);
}

Result<TaskReport> run_work_task(const RunFolder& run, TaskPlace place,
                                 workflow::CollectArguments arguments,
                                 const workflow::Invocation& invocation) {
  arguments.output = run.journal(place.options.name).string();
  arguments.no_resume = false;
  FORETUNE_TRY(const std::shared_ptr<PayloadStore> payloads, arguments.family.payloads.open());
  std::vector<std::string> texts;
  for (const Shard& shard : run.plan().shards) {
    texts.insert(texts.end(), shard.problems.begin(), shard.problems.end());
  }
  FORETUNE_TRY(std::vector<Problem> all, parse_all(texts, *payloads));
  FORETUNE_TRY(const workflow::PreparedCollection prepared,
               workflow::prepare_collection_of(std::move(all), arguments, invocation));
  set_locks(place, prepared.live.family->info());
  FORETUNE_TRY(
      const std::unique_ptr<Measurer> measurer,
      workflow::open_measurer(prepared.live, prepared.protocol, prepared.context, invocation));
  const ShardWork work = [&](const ShardContext& shard) -> Status {
    FORETUNE_TRY(const std::vector<Problem> problems, parse_all(shard.shard.problems, *payloads));
    FORETUNE_TRY(const CollectResult result,
                 workflow::collect_problems(prepared, *measurer, shard.journal, problems,
                                            shard.elsewhere, hooks_of(shard)));
    return result.stopped_by_request ? Status(stopped()) : Status();
  };
  return run_task(run, place.options, workflow::collection_header(prepared, invocation), work);
}

Result<TaskReport> run_work_task(const RunFolder& run, TaskPlace place,
                                 workflow::TuneArguments arguments,
                                 const workflow::Invocation& invocation) {
  // The task's journal takes the measurements.
  arguments.output.clear();
  arguments.json.clear();
  FORETUNE_TRY(const workflow::PreparedTuning ready,
               workflow::prepare_tuning(arguments, invocation));
  const FamilyInfo& info = ready.live.family->info();
  set_locks(place, info);
  FORETUNE_TRY(const std::shared_ptr<PayloadStore> payloads, arguments.family.payloads.open());
  const ShardWork work = [&](const ShardContext& shard) -> Status {
    FORETUNE_TRY(const std::vector<Problem> problems, parse_all(shard.shard.problems, *payloads));
    const std::unordered_set<Problem> tuned = tuned_elsewhere(shard.elsewhere, ready.context);
    for (const Problem& problem : problems) {
      if (is_stopped(shard)) {
        return stopped();
      }
      if (tuned.contains(problem)) {
        continue;
      }
      CollectHooks hooks = hooks_of(shard);
      // A search that is stopped would compare the best so far, and the problem would count as
      // tuned.
      hooks.may_go_on = [&shard] { return !is_stopped(shard); };
      const Result<TuneResult> result = tune_problem(*ready.live.family, *ready.measurer,
                                                     &shard.journal, problem, ready.options, hooks);
      if (is_stopped(shard)) {
        return stopped();
      }
      if (!result) {
        return fail_because(result.error(), problem.shown_text());
      }
    }
    return {};
  };
  return run_task(run, place.options,
                  workflow::dataset_header(info, DatasetRole::kTraining, invocation), work);
}

std::vector<std::pair<std::string, std::vector<std::string>>> changed_options(
    const workflow::OptionList& list, const workflow::OptionList& defaults) {
  std::vector<std::pair<std::string, std::vector<std::string>>> out;
  for (std::size_t i = 0; i < list.options().size(); ++i) {
    const workflow::Option& option = list.options()[i];
    std::vector<std::string> texts = workflow::option_texts(option);
    if (texts != workflow::option_texts(defaults.options()[i])) {
      out.emplace_back(option.name, std::move(texts));
    }
  }
  return out;
}

}  // namespace foretune::cluster
