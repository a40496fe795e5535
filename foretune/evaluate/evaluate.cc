#include "foretune/evaluate/evaluate.h"

#include <algorithm>
#include <utility>

#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/internal/baselines.h"
#include "foretune/evaluate/internal/diagnosis.h"
#include "foretune/evaluate/internal/picker.h"
#include "foretune/evaluate/measured_times.h"

namespace foretune {
namespace {

using evaluate_internal::BaselineInput;
using evaluate_internal::DiagnosisInput;
using evaluate_internal::ProblemScore;
using evaluate_internal::SummaryOptions;

Status check_ranked(const Dataset& dataset, const std::vector<RankedProblem>& ranked) {
  std::vector<bool> seen(dataset.problems().size(), false);
  for (const RankedProblem& entry : ranked) {
    if (entry.problem >= seen.size()) {
      return fail(ErrorCode::kInvalidArgument, "a ranking names problem ", entry.problem,
                  ", the data set has ", seen.size());
    }
    if (seen[entry.problem]) {
      return fail(ErrorCode::kInvalidArgument, "problem ", entry.problem, " is ranked twice");
    }
    seen[entry.problem] = true;
    for (const std::uint32_t config : entry.configs) {
      if (config >= dataset.configs().size()) {
        return fail(ErrorCode::kInvalidArgument, "a ranking names config ", config,
                    ", the data set has ", dataset.configs().size());
      }
    }
    if (!entry.scores.empty() && entry.scores.size() != entry.configs.size()) {
      return fail(ErrorCode::kInvalidArgument, "problem ", entry.problem, " is ranked with ",
                  entry.scores.size(), " scores for ", entry.configs.size(), " configs");
    }
  }
  return {};
}

Status check_training(const Dataset& dataset, const EvaluateOptions& options) {
  if (!options.fold_of_problem.empty()) {
    if (options.training != nullptr) {
      return fail(ErrorCode::kInvalidArgument,
                  "folds and a training set exclude each other: in cross-validation the data set "
                  "is its own training set");
    }
    if (options.fold_of_problem.size() != dataset.problems().size()) {
      return fail(ErrorCode::kInvalidArgument, "folds are given for ",
                  options.fold_of_problem.size(), " problems, the data set has ",
                  dataset.problems().size());
    }
  }
  if (options.training != nullptr &&
      options.training->header().config_schema != dataset.header().config_schema) {
    return fail(ErrorCode::kMismatch, "the training set holds configs of ",
                options.training->header().config_schema.name, " v",
                options.training->header().config_schema.version, ", the validation set of ",
                dataset.header().config_schema.name, " v", dataset.header().config_schema.version);
  }
  return {};
}

// The ranked problems that have an oracle, by ascending id.
std::vector<const RankedProblem*> evaluated_problems(const std::vector<RankedProblem>& ranked,
                                                     const MeasuredTimes& times) {
  std::vector<const RankedProblem*> out;
  for (const RankedProblem& entry : ranked) {
    if (times.has_oracle(entry.problem)) {
      out.push_back(&entry);
    }
  }
  std::sort(out.begin(), out.end(),
            [](const RankedProblem* a, const RankedProblem* b) { return a->problem < b->problem; });
  return out;
}

}  // namespace

Result<Evaluation> evaluate(const Dataset& dataset, const std::vector<RankedProblem>& ranked,
                            const Model* model, const EvaluateOptions& options) {
  FORETUNE_TRY_STATUS(check_ranked(dataset, ranked));
  FORETUNE_TRY_STATUS(check_training(dataset, options));
  const MeasuredTimes times(dataset);
  const std::vector<const RankedProblem*> entries = evaluated_problems(ranked, times);
  if (entries.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                ranked.empty() ? "no problem of the data set could be ranked"
                               : "none of the ranked problems has a measured time");
  }
  Evaluation out;
  std::vector<std::uint32_t> evaluated;
  std::vector<ProblemScore> scores;
  std::vector<double> strict;
  for (const RankedProblem* entry : entries) {
    evaluated.push_back(entry->problem);
    scores.push_back(evaluate_internal::score_picks(times, entry->problem, entry->configs, 1));
    const bool has_row =
        !entry->configs.empty() && times.find(entry->problem, entry->configs[0]) != nullptr;
    const bool is_unmeasured = entry->pick_unmeasured || !has_row;
    out.unmeasured_picks += is_unmeasured ? 1 : 0;
    strict.push_back(is_unmeasured ? 0 : scores.back().efficiency);
  }
  out.strict_mean_efficiency = mean(strict);
  out.strict_p10_efficiency = quantile(strict, 0.1);
  const SummaryOptions summary{options.bootstrap_samples, options.seed};
  out.model = evaluate_internal::summarise("model", "model", 1, scores, summary);
  const BaselineInput input{dataset, times, evaluated, model, options};
  evaluate_internal::BaselineResults baselines = evaluate_internal::evaluate_baselines(input);
  out.baselines = std::move(baselines.pickers);
  out.portfolio = std::move(baselines.portfolio);
  for (PickerResult& baseline : out.baselines) {
    evaluate_internal::compare_with_model(out.model, summary, baseline);
  }
  const DiagnosisInput diagnosis{input, entries};
  evaluate_internal::describe_predictions(diagnosis, out);
  evaluate_internal::describe_slices(diagnosis, out);
  evaluate_internal::describe_problems(diagnosis, out);
  evaluate_internal::describe_data(diagnosis, out);
  if (model != nullptr) {
    out.trained = training_curves(model->card_json);
  }
  return out;
}

std::vector<double> oracle_times_ns(const Dataset& dataset) {
  const MeasuredTimes times(dataset);
  std::vector<double> out;
  out.reserve(times.problem_count());
  for (std::uint32_t problem = 0; problem < times.problem_count(); ++problem) {
    out.push_back(times.oracle_ns(problem));
  }
  return out;
}

const PickerResult* find_baseline(const Evaluation& evaluation, std::string_view key) {
  for (const PickerResult& baseline : evaluation.baselines) {
    if (baseline.key == key) {
      return &baseline;
    }
  }
  return nullptr;
}

}  // namespace foretune
