#include "foretune/workflow/validation.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "foretune/base/clock.h"
#include "foretune/base/text.h"
#include "foretune/collect/compare_picks.h"
#include "foretune/dataset/journal.h"
#include "foretune/select/select.h"
#include "foretune/workflow/datasets.h"
#include "foretune/workflow/judge.h"

namespace foretune::workflow {

void ValidateArguments::visit(OptionList& list) {
  list.add("model", model, "FILE", "model file").require();
  list.add("dataset", dataset, "FILE", "validation data set").require();
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
               Selector::create(model, {.objective = objective}));
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
    invocation.remark(concat("measured ", collected.progress.measured,
                             " missing picks and compared ", compared,
                             " picks with the best, interleaved"));
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

Result<Validation> run_validation(const ValidateArguments& arguments, const Invocation& invocation,
                                  const ValidateHooks& hooks) {
  FORETUNE_TRY(const std::optional<Objective> objective,
               parse_objective_option(arguments.objective));
  FORETUNE_TRY(const Model model, read_model(arguments.model));
  const std::filesystem::path path = journal_of(arguments.dataset);
  FORETUNE_TRY(Dataset dataset, read_measurements(path.string(), invocation));
  FORETUNE_TRY_STATUS(describe_payloads(dataset, arguments.family.payloads, invocation));
  if (dataset.header().config_schema != model.config_schema) {
    return fail(ErrorCode::kMismatch, arguments.dataset, " holds configs of ",
                dataset.header().config_schema.name, " v", dataset.header().config_schema.version,
                ", the model was trained for ", model.config_schema.name, " v",
                model.config_schema.version);
  }
  if (!arguments.no_measure && path.extension() == ".ftd" && can_measure_for(objective)) {
    FORETUNE_TRY(const bool added,
                 complete(arguments, invocation, model, objective, dataset, path, hooks));
    if (added) {
      FORETUNE_TRY(dataset, read_dataset(path));
      FORETUNE_TRY_STATUS(arguments.family.payloads.describe(dataset).map([](std::size_t) {}));
    }
  }
  Validation out{.family = model.family,
                 .machine = dataset.header().fingerprint,
                 .fronts = {},
                 .evaluation = {}};
  if (objective && objective->is_pareto()) {
    if (!arguments.report.html.empty() || !arguments.training_data.empty()) {
      return without_effect({"--html", "--training-data"}, "with one target");
    }
    FORETUNE_TRY(out.fronts,
                 evaluate_fronts(model, dataset, *objective,
                                 default_configs_of(arguments.family, out.family, out.machine)));
    return out;
  }
  std::optional<Dataset> training;
  if (!arguments.training_data.empty()) {
    FORETUNE_TRY(training, read_training_sets(arguments.training_data, invocation));
  }
  EvaluateOptions options;
  options.top_n_worst = static_cast<std::size_t>(arguments.report.top_n_worst);
  options.seed = invocation.seed;
  options.training = training ? &*training : nullptr;
  FORETUNE_TRY(out.evaluation, objective ? evaluate_model(model, dataset, arguments.dataset,
                                                          arguments.family, *objective, options)
                                         : evaluate_model(model, dataset, arguments.dataset,
                                                          arguments.family, options));
  return out;
}

}  // namespace foretune::workflow
