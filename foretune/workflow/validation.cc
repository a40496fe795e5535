#include "foretune/workflow/validation.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "foretune/base/clock.h"
#include "foretune/base/file.h"
#include "foretune/base/hash.h"
#include "foretune/base/quantities.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/collect/compare_picks.h"
#include "foretune/dataset/journal.h"
#include "foretune/evaluate/compare.h"
#include "foretune/select/select.h"
#include "foretune/workflow/datasets.h"
#include "foretune/workflow/judge.h"
#include "foretune/workflow/kernel_pool.h"
#include "foretune/workflow/source.h"

namespace foretune::workflow {

void ValidateArguments::visit(OptionList& list) {
  model.visit(list);
  list.add("dataset", dataset, "FILE", "validation data set").accept({"oracle-csv"});
  // Composable Kernel's scripts find models and data by these.
  list.add("variant", variant, "NAME", "conv: forward, bwd_data, bwd_weight")
      .accept({"direction"})
      .choose({"forward", "bwd_data", "bwd_weight"})
      .hide();
  list.add("problem-set", problem_set, "NAME", "name of the data, with --variant").hide();
  list.add("operation", operation, "NAME", "grouped_conv, with --variant").hide();
  list.add(
          "known-shapes", known_shapes, "N",
          "judge by N problems of the data set, drawn among those with at least five timed configs")
      .at_least(1);
  list.add("pass-mark", pass_mark, "X", "exit with 5 when the mean efficiency is below X percent");
  list.add("save-predictions", save_predictions, "FILE",
           "write the picks as CSV, for foretune compare");
  list.add("training-data", training_data, "PATH",
           "data set or folder that the model was trained on: for the baselines, and to check "
           "that no problem leaked");
  list.add("objective", objective, "TEXT", std::string(kObjectiveHelp));
  family.payloads.visit(list);
  report.visit(list);
  const Condition may_measure{"without --no-measure", [this] { return !no_measure; }};
  list.add_switch("no-measure", no_measure, "do not measure picks that the data set lacks");
  list.add("measure-top", measure_top, "N", "number of best-ranked configs that must be measured")
      .at_least(1)
      .only(may_measure);
  list.add("batch-size", batch_size, "N", "accepted for torch-diode's command lines; has no effect")
      .at_least(1)
      .unused("a model scores all configs of a problem at once, in portions of its own");
  measuring.visit(list, may_measure);
  family.visit_known(list, "the data set", may_measure);
}

namespace {

// An exported data set has its journal beside the export; rows can be added to the journal.
std::filesystem::path journal_of(const std::string& dataset) {
  std::filesystem::path journal(dataset);
  journal.replace_extension(".ftd");
  std::error_code error;
  return std::filesystem::exists(journal, error) ? journal : std::filesystem::path(dataset);
}

// Returns the context of most ordinary measurements; added rows must have the same.
Context usual_context(const Dataset& dataset, const Context& otherwise) {
  std::vector<std::size_t> counts(dataset.contexts().size(), 0);
  for (const Dataset::Row& row : dataset.rows()) {
    counts[row.context] += (row.flags & kFlagReference) == 0 ? 1U : 0U;
  }
  const auto most = std::max_element(counts.begin(), counts.end());
  return most == counts.end() || *most == 0
             ? otherwise
             : dataset.contexts()[static_cast<std::size_t>(most - counts.begin())];
}

// Measures the rows that the evaluation needs and the data set lacks. Returns true when it added
// rows.
Result<bool> complete(const ValidateArguments& arguments, const Invocation& invocation,
                      const Model& model, const std::optional<Objective>& objective,
                      const Dataset& dataset, const std::filesystem::path& journal_path,
                      const ValidateHooks& hooks) {
  const Fingerprint& machine = dataset.header().fingerprint;
  const Result<LiveFamily> live =
      open_family(arguments.family.as_known(model.family, machine), &machine, invocation);
  if (!live) {
    invocation.remark(concat("picks are not measured: ", live.error().message));
    return false;
  }
  const FamilyInfo& info = live->family->info();
  if (info.fingerprint.digest() != machine.digest() ||
      info.config_schema != dataset.header().config_schema) {
    invocation.remark(
        "picks are not measured: the data set comes from another machine or family version");
    return false;
  }
  FORETUNE_TRY(const std::unique_ptr<Selector> selector,
               Selector::create(model, {.objective = objective, .machine = info.fingerprint}));
  const RankedConfigs ranked = [&](const Problem& problem) {
    return best_ranked(*selector, problem, static_cast<std::size_t>(arguments.measure_top));
  };
  const auto seed = invocation.seed;
  const Protocol protocol = arguments.measuring.protocol(seed);
  FORETUNE_TRY(const Context asked, arguments.measuring.context(info));
  const Context context = usual_context(dataset, asked);
  if (!info.simulated && context.threads > 0 && context.threads != info.max_threads) {
    invocation.remark(concat("picks are not measured: the data set says that kernels might use ",
                             context.threads, " of the machine's threads, the family uses ",
                             info.max_threads));
    return false;
  }
  FORETUNE_TRY(auto measurer, open_measurer(*live, protocol, context, invocation));
  FORETUNE_TRY(auto journal, JournalWriter::open(journal_path, dataset.header()));

  std::string_view stage = "measuring picks";
  CollectHooks inner;
  inner.now_s = &monotonic_s;
  inner.stop = hooks.stop;
  inner.on_progress = [&](const CollectProgress& progress) {
    if (hooks.on_progress) {
      hooks.on_progress(progress, stage);
    }
  };
  CollectOptions options;
  options.search_space.sample_size = 0;
  options.first = ranked;
  options.previous = &dataset;
  options.seed = seed;
  FORETUNE_TRY(const CollectResult collected,
               collect(*live->family, *measurer, *journal, dataset.problems(), options, inner));
  std::optional<Dataset> extended;
  if (collected.progress.measured > 0) {
    FORETUNE_TRY(extended, read_dataset(journal_path));
    FORETUNE_TRY_STATUS(arguments.family.payloads.describe(*extended).map([](std::size_t) {}));
  }
  stage = "comparing picks with the best";
  FORETUNE_TRY(const std::uint64_t compared,
               compare_picks(extended ? *extended : dataset, *measurer, *journal, ranked,
                             kCompareRounds, inner));
  if (hooks.stop != nullptr && hooks.stop->load()) {
    return fail(ErrorCode::kCancelled, "interrupted; everything measured is kept");
  }
  if (collected.progress.measured > 0 || compared > 0) {
    invocation.remark(concat("measured ", count_of(collected.progress.measured, "missing pick"),
                             " and compared ", count_of(compared, "pick"),
                             " with the best, interleaved; ", journal_path.string(),
                             " holds the times"));
  }
  return collected.progress.measured > 0 || compared > 0;
}

// Judges fronts, and picks whose bounds depend on the problem's baseline, by the measurements at
// hand.
bool can_measure_for(const std::optional<Objective>& objective) {
  return !objective || (!objective->is_pareto() &&
                        std::none_of(objective->bounds.begin(), objective->bounds.end(),
                                     [](const MetricBound& bound) {
                                       return bound.bound.kind != BoundValue::Kind::kAbsolute ||
                                              bound.keep;
                                     }));
}

}  // namespace

namespace {

// Completes arguments by the names that Composable Kernel's scripts give to models and data.
Result<ValidateArguments> with_usual_names(ValidateArguments arguments) {
  if (arguments.variant.empty()) {
    if (!arguments.problem_set.empty() || !arguments.operation.empty()) {
      return without_effect({arguments.problem_set.empty() ? "--operation" : "--problem-set"},
                            "with --variant");
    }
  } else {
    if (arguments.model.path.empty()) {
      arguments.model.path = concat("models/grouped_conv_", arguments.variant, "_bf16_gfx950");
    }
    if (arguments.dataset.empty() && arguments.known_shapes) {
      arguments.dataset = "data";
    }
    if (arguments.dataset.empty()) {
      constexpr std::string_view kTail = "_validation";
      std::string_view set = arguments.problem_set;
      if (set.ends_with(kTail)) {
        set.remove_suffix(kTail.size());
      }
      arguments.dataset =
          concat(set.empty() ? concat(arguments.variant, "_model_crawler") : std::string(set),
                 "_oracle.csv");
    }
  }
  if (arguments.model.path.empty() || arguments.dataset.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                arguments.model.path.empty() ? "--model is required" : "--dataset is required");
  }
  arguments.model.usual_pool = arguments.dataset;
  return arguments;
}

// Reads a data set, or those of a folder that have such kernels and problems as the models are for.
Result<Dataset> read_judge(const std::filesystem::path& path, const OpenedModels& models,
                           const Invocation& invocation) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return read_measurements(path.string(), invocation);
  }
  const auto label = [&](const char* field) {
    const auto found = models.labels.find(field);
    return found == models.labels.end() ? std::string() : found->second;
  };
  const PoolFilter filter{.schema = &models.model.config_schema,
                          .data = {.op = label("op"), .dtype = label("dtype"), .arch = {}},
                          .arch = {}};
  FORETUNE_TRY(std::optional<Dataset> all, read_pool_data(path, filter, invocation));
  if (!all) {
    return fail(ErrorCode::kMismatch, "no data set below ", path.string(), " has configs of ",
                models.model.config_schema.name, " on problems as the model's");
  }
  return *std::move(all);
}

// Returns the part of a data set with `count` of its problems, drawn among those with enough timed
// configs for a choice to mean something. Errors: kMismatch when there is none.
Result<Dataset> drawn_part(const Dataset& dataset, std::size_t count, std::uint64_t seed) {
  constexpr std::size_t kFewest = 5;
  std::vector<std::set<std::uint32_t>> timed(dataset.problems().size());
  for (const Dataset::Row& row : dataset.rows()) {
    if (row.is_timed()) {
      timed[row.problem].insert(row.config);
    }
  }
  std::vector<std::size_t> problems;
  for (std::size_t i = 0; i < timed.size(); ++i) {
    if (timed[i].size() >= kFewest) {
      problems.push_back(i);
    }
  }
  if (problems.empty()) {
    return fail(ErrorCode::kMismatch, "no problem of the data set has times of ", kFewest,
                " configs");
  }
  Rng rng = Rng(seed).split(hash64("known shapes"));
  std::vector<bool> keep(timed.size(), false);
  for (std::size_t drawn = 0; drawn < std::min(count, problems.size()); ++drawn) {
    std::swap(problems[drawn], problems[drawn + rng.below(problems.size() - drawn)]);
    keep[problems[drawn]] = true;
  }
  return dataset.filter_problems(keep);
}

}  // namespace

Result<Validation> run_validation(const ValidateArguments& given, const Invocation& invocation,
                                  const ValidateHooks& hooks) {
  FORETUNE_TRY(const ValidateArguments arguments, with_usual_names(given));
  FORETUNE_TRY(const std::optional<Objective> objective,
               parse_objective_option(arguments.objective));
  FORETUNE_TRY(const OpenedModels opened, arguments.model.open(invocation));
  const Model& model = opened.model;
  const std::filesystem::path path = journal_of(arguments.dataset);
  FORETUNE_TRY(Dataset dataset, read_judge(path, opened, invocation));
  FORETUNE_TRY_STATUS(describe_payloads(dataset, arguments.family.payloads, invocation));
  if (dataset.header().config_schema != model.config_schema) {
    return fail(ErrorCode::kMismatch, arguments.dataset, " holds configs of ",
                dataset.header().config_schema.name, " v", dataset.header().config_schema.version,
                ", the model was trained for ", model.config_schema.name, " v",
                model.config_schema.version);
  }
  if (arguments.known_shapes) {
    FORETUNE_TRY(dataset, drawn_part(dataset, static_cast<std::size_t>(*arguments.known_shapes),
                                     invocation.seed));
  } else if (!arguments.no_measure && path.extension() == ".ftd" && can_measure_for(objective)) {
    FORETUNE_TRY(const bool added,
                 complete(arguments, invocation, model, objective, dataset, path, hooks));
    if (added) {
      FORETUNE_TRY(dataset, read_dataset(path));
      FORETUNE_TRY_STATUS(arguments.family.payloads.describe(dataset).map([](std::size_t) {}));
    }
  }
  const std::string judged_by = data_source(path.string(), dataset);
  FORETUNE_TRY(dataset, dataset.by_machine());
  Validation out{.family = model.family,
                 .machine = dataset.header().fingerprint,
                 .fronts = {},
                 .evaluation = {}};
  if (objective && objective->is_pareto()) {
    if (!arguments.report.html.empty() || !arguments.report.figures.empty() ||
        !arguments.training_data.empty()) {
      return without_effect({"--html", "--figures", "--training-data"}, "with one target");
    }
    if (!arguments.save_predictions.empty() || arguments.pass_mark) {
      return without_effect({"--save-predictions", "--pass-mark"}, "with one target");
    }
    FORETUNE_TRY(out.fronts,
                 evaluate_fronts(model, dataset, *objective,
                                 default_configs_of(arguments.family, out.family, out.machine)));
    return out;
  }
  std::optional<Dataset> training;
  if (!arguments.training_data.empty()) {
    FORETUNE_TRY(const Dataset read, read_training_sets(arguments.training_data, invocation));
    FORETUNE_TRY(training, read.by_machine());
  }
  EvaluateOptions options;
  options.top_n_worst = static_cast<std::size_t>(arguments.report.top_n_worst);
  options.seed = invocation.seed;
  options.training = training ? &*training : nullptr;
  FORETUNE_TRY(out.evaluation, objective ? evaluate_model(model, dataset, arguments.dataset,
                                                          arguments.family, *objective, options)
                                         : evaluate_model(model, dataset, arguments.dataset,
                                                          arguments.family, options));
  out.source =
      source_line({judged_by, model_source(arguments.model.path, model)}, out.machine.device);
  if (!arguments.save_predictions.empty()) {
    FORETUNE_TRY_STATUS(
        write_text_file_atomically(arguments.save_predictions, picks_csv(out.evaluation.picks)));
  }
  out.passes = 100 * out.evaluation.model.mean_efficiency.value >= arguments.pass_mark.value_or(0);
  return out;
}

}  // namespace foretune::workflow
