// foretune collect and foretune create-validation: measure problems into a data set.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/dataset/exchange.h"
#include "foretune/dataset/journal.h"
#include "foretune/tune/collect.h"
#include "tools/foretune/collection.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/common.h"
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
    out += concat("  best ", time_text(progress.best_ns), " of ", progress.problem);
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
  print(concat(count_text(progress.measured), " measurements of ",
               count_text(progress.problems_done), " problems in ",
               duration_text(progress.elapsed_s), outcomes.empty() ? "" : ": ", outcomes, "\n"));
  if (progress.resumed > 0) {
    print(concat(count_text(progress.resumed), " were there already\n"));
  }
  if (progress.rounds > 0) {
    print(concat(progress.round, " of ", progress.rounds, " rounds; ", progress.trainings,
                 " trainings took ", duration_text(progress.training_s), " of it\n"));
  }
  for (const auto& [reason, count] : result.skipped) {
    print(concat(count_text(count), " problems left out: ", reason, "\n"));
  }
  print(concat("data set: ", paths.journal.string(),
               paths.exported ? concat(" (also ", paths.exported->string(), ")") : std::string(),
               "\n"));
}

Status export_now(const OutputPaths& paths) {
  if (!paths.exported) {
    return {};
  }
  FORETUNE_TRY(const Dataset dataset, read_dataset(paths.journal));
  return export_dataset(dataset, *paths.exported, paths.format);
}

Result<int> dry_run(const PreparedCollection& prepared, const DatasetHeader& header) {
  std::unique_ptr<JournalWriter> journal;
  CollectOptions options = prepared.options;
  if (prepared.active) {
    // Which configs is not known before, but how many.
    options.search_space.sample_size =
        prepared.active->measurements / std::max<std::size_t>(1, prepared.problems.size());
  }
  if (std::filesystem::exists(prepared.paths.journal)) {
    FORETUNE_TRY(journal, JournalWriter::open(prepared.paths.journal, header));
  }
  FORETUNE_TRY(const CollectPlan plan,
               plan_collection(*prepared.live.family, prepared.problems, options, prepared.protocol,
                               journal.get(), prepared.context));
  if (prepared.active) {
    print(concat(count_text(plan.problems), " problems, ",
                 count_text(prepared.active->measurements), " measurements in ",
                 prepared.active->rounds, " rounds; about ", duration_text(plan.estimated_seconds),
                 " without training\n"));
  } else {
    print(concat(count_text(plan.problems), " problems, ", count_text(plan.measurements),
                 " measurements, ", count_text(plan.already_done), " of them done already; about ",
                 duration_text(plan.estimated_seconds), "\n"));
  }
  for (const auto& [reason, count] : plan.skipped) {
    print(concat(count_text(count), " problems left out: ", reason, "\n"));
  }
  return kExitOk;
}

Result<int> collect_into(const CollectArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(PreparedCollection prepared, prepare_collection(arguments, invocation));
  for (const std::string& text : prepared.remarks) {
    remark(text);
  }
  const DatasetHeader header =
      dataset_header(prepared.live.family->info(), arguments.role, invocation);
  if (arguments.dry_run) {
    return dry_run(prepared, header);
  }
  if (!prepared.live.family->info().simulated) {
    for (const std::string& warning : load_warnings()) {
      warn(warning);
    }
  }
  FORETUNE_TRY(auto journal, open_journal(prepared.paths.journal, header));
  FORETUNE_TRY(auto measurer,
               open_measurer(prepared.live, prepared.protocol, prepared.context, invocation));
  ProgressLine line;
  CollectHooks hooks;
  Status export_status;
  hooks.now_s = &monotonic_s;
  hooks.stop = &stop_flag();
  hooks.on_progress = [&](const CollectProgress& progress) {
    if (line.due()) {
      line.show(progress_text(progress));
    }
  };
  hooks.on_problem_done = [&](std::uint64_t done) {
    if (done % prepared.chunk_size == 0 && export_status) {
      export_status = export_now(prepared.paths);
    }
  };
  FORETUNE_TRY(const CollectResult result, collect_prepared(prepared, *measurer, *journal, hooks));
  line.clear();
  FORETUNE_TRY_STATUS(export_status);
  FORETUNE_TRY_STATUS(journal->sync());
  journal.reset();
  if (!result.stopped_by_request) {
    FORETUNE_TRY_STATUS(seal(prepared.paths.journal));
  }
  FORETUNE_TRY_STATUS(export_now(prepared.paths));
  report_counts(result, prepared.paths);
  if (result.stopped_by_request) {
    remark("interrupted; everything measured is kept, the same command continues");
    return kExitInterrupted;
  }
  FORETUNE_TRY_STATUS(check_measured(result));
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_collect(OptionList& list) {
  return prepare_with<TrainingArguments, collect_into>(list);
}
std::function<int(const Invocation&)> prepare_create_validation(OptionList& list) {
  return prepare_with<ValidationArguments, collect_into>(list);
}

}  // namespace foretune::cli
