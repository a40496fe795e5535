// foretune collect and foretune create-validation: measure problems into a data set.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <unordered_set>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/dataset/exchange.h"
#include "foretune/dataset/journal.h"
#include "foretune/models/infer/model_file.h"
#include "foretune/select/select.h"
#include "foretune/tune/collect.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/common.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct CollectArguments {
  explicit CollectArguments(DatasetRole collected_role) : role(collected_role) {}

  DatasetRole role;
  std::string output;
  std::string budget;
  std::string search_space = "DEFAULT";
  std::string search_mode = "max-autotune";
  std::int64_t chunk_size = 20;
  bool dry_run = false;
  bool no_resume = false;
  std::string training_data;
  std::string model;
  std::int64_t model_top = 16;
  std::int64_t confirm_top = 5;
  FamilyArguments family;
  ProblemArguments problems;
  MeasureArguments measuring;

  void visit(OptionList& list) {
    const bool validation = role == DatasetRole::kValidation;
    list.add("output", output, "FILE",
             "data set to write (.ftd); with --format the export gets this name");
    list.add("budget", budget, "90s|500",
             "stop after this time (s, m, h) or number of measurements");
    list.add("search-space", search_space, "DEFAULT|EXHAUSTIVE|SAMPLE:n",
             validation ? "configs per problem; DEFAULT is SAMPLE:256"
                        : "configs per problem; DEFAULT is SAMPLE:64");
    list.add("search-mode", search_mode, "MODE",
             "max-autotune measures with the full protocol; fast with fewer windows")
        .choose({"max-autotune", "fast"});
    list.add("chunk-size", chunk_size, "N", "problems between two writes of the export")
        .at_least(1);
    list.add_switch("dry-run", dry_run, "say how many measurements and how long, measure nothing");
    list.add_switch("no-resume", no_resume, "refuse to continue an existing data set");
    if (validation) {
      list.add("training-data", training_data, "PATH",
               "data set or folder whose problems must not appear here");
      list.add("model", model, "FILE", "also measure this model's best configs of every problem");
      list.add("model-top", model_top, "N", "how many of them").at_least(0);
      list.add("confirm-top", confirm_top, "N",
               "re-measure the best N of every problem interleaved; 0 does not")
          .at_least(0);
    }
    problems.visit(list);
    family.visit(list);
    measuring.visit(list);
  }
};

struct TrainingArguments : CollectArguments {
  TrainingArguments() : CollectArguments(DatasetRole::kTraining) {
    output = "matmul_dataset.ftd";
    problems.num_shapes = 100;
  }
};
struct ValidationArguments : CollectArguments {
  ValidationArguments() : CollectArguments(DatasetRole::kValidation) {
    output = "matmul_validation_dataset.ftd";
    problems.num_shapes = 30;
  }
};

// Removes problems whose group the training data holds; returns how many.
Result<std::unordered_set<std::uint64_t>> training_groups(const std::string& path) {
  std::unordered_set<std::uint64_t> groups;
  if (path.empty()) {
    return groups;
  }
  FORETUNE_TRY(const std::vector<std::filesystem::path> files, find_datasets(path));
  for (const std::filesystem::path& file : files) {
    FORETUNE_TRY(const Dataset dataset, read_dataset(file));
    if (dataset.header().role == DatasetRole::kValidation) {
      continue;
    }
    for (const Problem& problem : dataset.problems()) {
      groups.insert(problem.group());
    }
  }
  return groups;
}

Result<std::unique_ptr<Selector>> open_selector(const std::string& path, const FamilyInfo& info) {
  FORETUNE_TRY(std::unique_ptr<Selector> selector, Selector::open(path));
  FORETUNE_TRY_STATUS(check_model_fits(selector->model(), info, path));
  return selector;
}

std::string progress_text(const CollectProgress& progress) {
  std::string out =
      concat("problem ", std::min(progress.problems_done + 1, progress.problems_total), "/",
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

struct Prepared {
  OutputPaths paths;
  LiveFamily live;
  std::vector<Problem> problems;
  CollectOptions options;
  Protocol protocol;
  Context context;
};

Result<Prepared> prepare_collection(const CollectArguments& arguments,
                                    const Invocation& invocation) {
  Prepared prepared;
  FORETUNE_TRY(prepared.paths, output_paths(arguments.output, *invocation.global));
  const auto seed = static_cast<std::uint64_t>(invocation.global->seed);
  const bool validation = arguments.role == DatasetRole::kValidation;
  if (arguments.no_resume && std::filesystem::exists(prepared.paths.journal)) {
    return fail(ErrorCode::kInvalidArgument, prepared.paths.journal.string(),
                " exists and --no-resume was given");
  }
  FORETUNE_TRY(prepared.live, open_family_for(arguments.family, prepared.paths.journal));
  FORETUNE_TRY(std::unordered_set<std::uint64_t> excluded,
               training_groups(arguments.training_data));
  FORETUNE_TRY(SampledProblems sampled,
               make_problems(arguments.problems, *prepared.live.family, seed, std::move(excluded)));
  if (sampled.skipped_by_limit > 0) {
    remark(
        concat(sampled.skipped_by_limit, " drawn problems were over --max-flops or --max-bytes"));
  }
  if (!arguments.training_data.empty()) {
    remark(concat(sampled.skipped_by_group,
                  " drawn problems left out because the training data holds them"));
  }
  prepared.problems = std::move(sampled.problems);
  FORETUNE_TRY(prepared.options.search_space, parse_search_space(arguments.search_space));
  if (validation && arguments.search_space == "DEFAULT") {
    prepared.options.search_space.sample_size = 256;
  }
  if (!arguments.budget.empty()) {
    FORETUNE_TRY(prepared.options.budget, parse_budget(arguments.budget));
  }
  prepared.options.seed = seed;
  prepared.options.confirm_top = validation ? static_cast<int>(arguments.confirm_top) : 0;
  prepared.protocol = arguments.measuring.protocol(seed);
  if (arguments.search_mode == "fast") {
    prepared.protocol.windows = 3;
    prepared.protocol.max_windows = 3;
  }
  prepared.context = arguments.measuring.context(prepared.live.family->info());
  if (!arguments.model.empty()) {
    FORETUNE_TRY(std::shared_ptr<Selector> selector,
                 open_selector(arguments.model, prepared.live.family->info()));
    const auto top = static_cast<std::size_t>(arguments.model_top);
    prepared.options.first = [selector, top](const Problem& problem) {
      std::vector<Config> configs;
      for (const RankedCandidate& ranked : selector->rank(problem)) {
        if (configs.size() == top) {
          break;
        }
        configs.push_back(selector->config(ranked.candidate));
      }
      return configs;
    };
  }
  return prepared;
}

Result<int> dry_run(const Prepared& prepared, const DatasetHeader& header) {
  std::unique_ptr<JournalWriter> journal;
  if (std::filesystem::exists(prepared.paths.journal)) {
    FORETUNE_TRY(journal, JournalWriter::open(prepared.paths.journal, header));
  }
  FORETUNE_TRY(const CollectPlan plan,
               plan_collection(*prepared.live.family, prepared.problems, prepared.options,
                               prepared.protocol, journal.get(), prepared.context));
  print(concat(count_text(plan.problems), " problems, ", count_text(plan.measurements),
               " measurements, ", count_text(plan.already_done), " of them done already; about ",
               duration_text(plan.estimated_seconds), "\n"));
  for (const auto& [reason, count] : plan.skipped) {
    print(concat(count_text(count), " problems left out: ", reason, "\n"));
  }
  return kExitOk;
}

Result<int> collect_into(const CollectArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(Prepared prepared, prepare_collection(arguments, invocation));
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
    if (done % static_cast<std::uint64_t>(arguments.chunk_size) == 0 && export_status) {
      export_status = export_now(prepared.paths);
    }
  };
  FORETUNE_TRY(const CollectResult result, collect(*prepared.live.family, *measurer, *journal,
                                                   prepared.problems, prepared.options, hooks));
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
