// foretune collect and foretune create-validation: measure problems into a data set.
#include <algorithm>
#include <string>

#include "foretune/base/text.h"
#include "foretune/collect/collect.h"
#include "foretune/problem/problem.h"
#include "foretune/workflow/collection.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/output.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/shared_run.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

std::string progress_text(const CollectProgress& progress) {
  std::string out =
      progress.rounds == 0 ? "" : concat("round ", progress.round, "/", progress.rounds, "  ");
  out += concat("problem ", std::min(progress.problems_done + 1, progress.problems_total), "/",
                progress.problems_total, "  ", count_text(progress.measured), " measured");
  if (progress.elapsed_s > 0) {
    out +=
        concat("  ", fixed(static_cast<double>(progress.measured) / progress.elapsed_s, 0), "/s");
  }
  if (progress.eta_s >= 0) {
    out += concat("  ETA ", duration_text(progress.eta_s));
  }
  if (progress.best_ns > 0) {
    out += concat("  best ", time_text(progress.best_ns), " of ", shown_problem(progress.problem));
  }
  return out;
}

void report_counts(const CollectResult& result, const OutputPaths& paths) {
  const CollectProgress& progress = result.progress;
  std::string outcomes;
  for (std::size_t i = 0; i < std::size(progress.by_outcome); ++i) {
    if (progress.by_outcome[i] > 0) {
      outcomes += concat(outcomes.empty() ? "" : ", ", count_text(progress.by_outcome[i]), " ",
                         to_string(static_cast<Outcome>(i)));
    }
  }
  print(concat(count_of(progress.measured, "measurement"), " of ",
               count_of(progress.problems_done, "problem"), " in ",
               duration_text(progress.elapsed_s), outcomes.empty() ? "" : ": ", outcomes, "\n"));
  if (progress.rounds == 0 && progress.problems_done < progress.problems_total) {
    print(concat(count_text(progress.problems_done), " of ",
                 count_of(progress.problems_total, "problem"),
                 " are complete; the same command goes on from there\n"));
  }
  if (progress.resumed > 0) {
    print(concat(count_text(progress.resumed), " were there already\n"));
  }
  if (progress.rounds > 0) {
    print(concat(progress.round, " of ", count_of(progress.rounds, "round"), "; ",
                 count_of(progress.trainings, "training"), " took ",
                 duration_text(progress.training_s), " of it\n"));
  }
  for (const auto& [reason, count] : result.skipped) {
    print(concat(count_of(count, "problem"), " left out: ", reason, "\n"));
  }
  print(concat("data set: ", paths.journal.string(),
               paths.exported ? concat(" (also ", paths.exported->string(), ")") : std::string(),
               "\n"));
}

Result<int> dry_run(const PreparedCollection& prepared, const Invocation& invocation) {
  FORETUNE_TRY(const CollectPlan plan, plan_of(prepared, invocation));
  if (prepared.active) {
    print(concat(count_of(plan.problems, "problem"), ", ",
                 count_of(prepared.active->measurements, "measurement"), " in ",
                 count_of(prepared.active->rounds, "round"), "; about ",
                 duration_text(plan.estimated_seconds), " without training\n"));
  } else {
    print(concat(count_of(plan.problems, "problem"), ", ",
                 count_of(plan.measurements, "measurement"), ", ", count_text(plan.already_done),
                 " of them done already; about ", duration_text(plan.estimated_seconds), "\n"));
  }
  for (const auto& [reason, count] : plan.skipped) {
    print(concat(count_of(count, "problem"), " left out: ", reason, "\n"));
  }
  return kExitOk;
}

Result<int> collect_into(const CollectArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(const PreparedCollection prepared, prepare_collection(arguments, invocation));
  if (arguments.dry_run) {
    return dry_run(prepared, invocation);
  }
  ProgressLine line;
  CollectHooks hooks;
  hooks.stop = &stop_flag();
  hooks.on_progress = [&](const CollectProgress& progress) {
    if (line.due()) {
      line.show(progress_text(progress));
    }
  };
  FORETUNE_TRY(const CollectResult result, run_collection(prepared, invocation, hooks));
  line.clear();
  report_counts(result, prepared.paths);
  if (result.stopped_by_request) {
    remark("interrupted; everything measured is kept, the same command continues");
    return kExitInterrupted;
  }
  FORETUNE_TRY_STATUS(check_measured(result));
  return kExitOk;
}

template <class Work>
Result<int> collect_or_share(const char* command, const SharedOut<Work>& arguments,
                             const Invocation& invocation) {
  if (!arguments.cluster.is_shared_out()) {
    return collect_into(arguments.work, invocation);
  }
  FORETUNE_TRY(const SharedRun shared, shared_run(command, arguments.work, invocation));
  return share_out(shared, arguments.cluster, invocation);
}

Result<int> collect_training(const SharedOut<TrainingArguments>& arguments,
                             const Invocation& invocation) {
  return collect_or_share("collect", arguments, invocation);
}
Result<int> collect_validation(const SharedOut<ValidationArguments>& arguments,
                               const Invocation& invocation) {
  return collect_or_share("create-validation", arguments, invocation);
}

}  // namespace

std::function<int(const Invocation&)> prepare_collect(OptionList& list) {
  return prepare_with<SharedOut<TrainingArguments>, collect_training>(list);
}
std::function<int(const Invocation&)> prepare_create_validation(OptionList& list) {
  return prepare_with<SharedOut<ValidationArguments>, collect_validation>(list);
}

}  // namespace foretune::cli
