#include "foretune/model/train/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "foretune/model/forest/forest_body.h"
#include "foretune/model/train/assemble.h"
#include "foretune/model/train/combine_forests.h"
#include "foretune/model/train/held_out.h"
#include "foretune/model/train/internal/cross_validation.h"
#include "foretune/model/train/internal/warm_start.h"
#include "foretune/model/train/model_card.h"
#include "foretune/model/train/targets.h"
#include "foretune/model/train/train_ensemble.h"
#include "foretune/model/train/train_network.h"
#include "foretune/model/train/training_set.h"

namespace foretune {

using train_internal::averaged;
using train_internal::CardFacts;
using train_internal::count_groups;
using train_internal::CrossValidated;
using train_internal::deal_folds;
using train_internal::FinalForests;
using train_internal::Folds;
using train_internal::ForestTrainer;
using train_internal::held_out_metrics;
using train_internal::HeldOutMetrics;
using train_internal::Learned;
using train_internal::learned_values;
using train_internal::make_model;
using train_internal::model_card;
using train_internal::objective_of;
using train_internal::predictions_of;
using train_internal::predicts_log_time;
using train_internal::Rows;
using train_internal::scaled;
using train_internal::score_factor;
using train_internal::training_data;
using train_internal::TrainingData;
using train_internal::TrainingSet;
using train_internal::warm_forests;

namespace {

constexpr std::uint32_t kMaxForests = 64;

// One training from data to figures, step by step.
class Training {
 public:
  Training(const Dataset& dataset, const FeatureTable& table, const TrainingSet& set,
           const TrainOptions& options, const ProgressHook& progress)
      : dataset_(dataset),
        table_(table),
        set_(set),
        options_(options),
        folds_(deal_folds(dataset, set, options)),
        trainer_(dataset, set, options, folds_, progress) {}

  Result<TrainResult> run() {
    std::vector<Forest> start;
    if (options_.warm_start != nullptr) {
      FORETUNE_TRY(start, warm_forests(dataset_, table_, options_));
    }
    FORETUNE_TRY(learned_, learned_values(dataset_, set_, options_.target, options_.log_transform));
    result_.fold_of_problem = folds_.of_problem;
    result_.held_out_scores.assign(dataset_.size(), std::numeric_limits<double>::quiet_NaN());
    std::uint32_t trees = options_.gbdt.trees;
    if (folds_.count > 0) {
      FORETUNE_TRY(const CrossValidated held_out, cross_validate());
      trees = held_out.trees;
      if (!held_out.predictions.empty()) {
        report(held_out.predictions);
      }
    }
    FORETUNE_TRY(
        FinalForests forests,
        trainer_.final_forests(learned_, start.empty() ? trees : options_.warm_start_trees, start));
    FORETUNE_TRY_STATUS(finish(std::move(forests)));
    return std::move(result_);
  }

 private:
  [[nodiscard]] HeldOutMetrics figures_of(std::span<const double> predictions) const {
    return held_out_metrics(set_, scores_of(predictions), learned_.target == Target::kLog);
  }

  [[nodiscard]] std::vector<double> scores_of(std::span<const double> predictions) const {
    std::vector<double> out(predictions.begin(), predictions.end());
    for (double& score : out) {
      score *= factor_;
    }
    return out;
  }

  Result<CrossValidated> cross_validate() {
    FORETUNE_TRY(CrossValidated chosen, trainer_.cross_validate(learned_));
    if (!options_.choose_target || !options_.held_out) {
      return chosen;
    }
    const double efficiency = figures_of(chosen.predictions).mean_efficiency;
    const Target other = learned_.target == Target::kLog ? Target::kRelativeLog : Target::kLog;
    FORETUNE_TRY(Learned learned, learned_values(dataset_, set_, other, false));
    FORETUNE_TRY(CrossValidated alternative, trainer_.cross_validate(learned));
    const double other_efficiency = figures_of(alternative.predictions).mean_efficiency;
    compared_ = {{learned_.target, efficiency}, {other, other_efficiency}};
    if (other_efficiency > efficiency) {
      learned_ = std::move(learned);
      return alternative;
    }
    return chosen;
  }

  // Figures of all that was held out, and of every fold.
  void report(std::span<const double> predictions) {
    factor_ = score_factor(set_, learned_, options_.objective, predictions);
    const std::vector<double> scores = scores_of(predictions);
    for (std::size_t i = 0; i < set_.size(); ++i) {
      result_.held_out_scores[set_.row[i]] = scores[i];
    }
    std::vector<std::uint32_t> all(set_.size());
    std::iota(all.begin(), all.end(), 0U);
    const HeldOutMetrics ours = figures_of(predictions);
    const CvMetrics theirs = cv_metrics(predicted_rows(all, predictions, scores));
    residual_std_ = ours.rmse_log;
    result_.metrics = ours.named();
    result_.metrics.emplace_back("ndcg_at_1", theirs.ndcg_at_1);
    result_.metrics.emplace_back("r2", theirs.r2);
    for (std::uint32_t fold = 0; fold < folds_.count; ++fold) {
      const Rows rows = trainer_.rows_of_fold(fold);
      std::vector<double> own(set_.size(), std::numeric_limits<double>::quiet_NaN());
      for (const std::uint32_t row : rows.valid) {
        own[row] = predictions[row];
      }
      result_.folds.push_back(
          {.metrics = cv_metrics(predicted_rows(rows.valid, predictions, scores)),
           .ours = figures_of(own).named(),
           .train_rows = rows.train.size(),
           .train_groups = count_groups(dataset_, set_, rows.train, options_.group_key),
           .held_out_groups = count_groups(dataset_, set_, rows.valid, options_.group_key)});
    }
  }

  // A ranking predicts no values.
  [[nodiscard]] std::vector<PredictedRow> predicted_rows(std::span<const std::uint32_t> rows,
                                                         std::span<const double> predictions,
                                                         std::span<const double> scores) const {
    const bool is_rank = options_.objective == TrainObjective::kLambdaRank;
    std::vector<PredictedRow> out;
    for (const std::uint32_t row : rows) {
      if (!set_.censored[row]) {
        out.push_back(
            {.problem = set_.problem[row],
             .time_ns = static_cast<double>(dataset_.rows()[set_.row[row]].time_ns),
             .score = scores[row],
             .value = static_cast<double>(learned_.value[row]),
             .prediction = is_rank ? std::numeric_limits<double>::quiet_NaN() : predictions[row]});
      }
    }
    return out;
  }

  // Without held-out predictions those of the training rows say how large a score has to be.
  void settle_factor(const std::vector<Forest>& forests) {
    if (result_.folds.empty() && !predicts_log_time(learned_, options_.objective)) {
      factor_ =
          score_factor(set_, learned_, options_.objective, predictions_of(averaged(forests), set_));
    }
  }

  void add_importances(const std::vector<Forest>& forests, const std::vector<double>& gains) {
    for (std::size_t column = 0; column < gains.size(); ++column) {
      FeatureImportance importance{.feature = std::string(table_.columns()[column].name),
                                   .gain = gains[column],
                                   .splits = 0};
      for (const Forest& forest : forests) {
        importance.splits += static_cast<std::uint64_t>(
            std::count(forest.feature.begin(), forest.feature.end(), column));
      }
      result_.importances.push_back(std::move(importance));
    }
    std::stable_sort(result_.importances.begin(), result_.importances.end(),
                     [](const auto& a, const auto& b) { return a.gain > b.gain; });
  }

  Status finish(FinalForests forests) {
    settle_factor(forests.forests);
    FORETUNE_TRY(result_.model, make_model(dataset_, table_, set_, options_));
    add_importances(forests.forests, forests.gains);
    for (const FeatureInfo& column : table_.columns()) {
      result_.predictor.feature_names.emplace_back(column.name);
    }
    result_.predictor.forest = averaged(forests.forests);
    result_.target = learned_.target;
    result_.log1p = learned_.log1p;
    result_.score_factor = factor_;
    result_.model.residual_std = residual_std_;
    result_.model.target = to_string(learned_.target);
    const CardFacts facts{.options = options_,
                          .folds = result_.folds.empty() ? 0 : folds_.count,
                          .examples = set_.size(),
                          .failed_rows = set_.failed_rows,
                          .target = learned_.target,
                          .log1p = learned_.log1p,
                          .score_factor = factor_,
                          .trees = static_cast<std::uint32_t>(forests.forests[0].trees.size()),
                          .residual_std = residual_std_,
                          .compared = compared_,
                          .metrics = result_.metrics};
    result_.model.card_json = model_card(dataset_, table_, forests.forests[0], facts);
    for (Forest& forest : forests.forests) {
      if (factor_ != 1) {
        forest = scaled(std::move(forest), factor_);
      }
    }
    set_forests(result_.model, std::move(forests.forests));
    return {};
  }

  const Dataset& dataset_;
  const FeatureTable& table_;
  const TrainingSet& set_;
  const TrainOptions& options_;
  Folds folds_;
  ForestTrainer trainer_;
  Learned learned_;
  double factor_ = 1;
  double residual_std_ = 0;
  std::vector<std::pair<Target, double>> compared_;
  TrainResult result_;
};

}  // namespace

TrainObjective settled_objective(const TrainOptions& options) {
  if (options.objective != TrainObjective::kAuto) {
    return options.objective;
  }
  if (options.target != Target::kRelativeLog || options.choose_target) {
    return TrainObjective::kRegression;
  }
  return options.warm_start != nullptr ? objective_of(*options.warm_start)
                                       : TrainObjective::kRegret;
}

Status check_train_options(const TrainOptions& options) {
  if (options.forests < 1 || options.forests > kMaxForests) {
    return fail(ErrorCode::kInvalidArgument, "a model of ", options.forests, " forests; 1 to ",
                kMaxForests, " make sense");
  }
  const bool is_time = options.target == Target::kRelativeLog || options.target == Target::kLog;
  if (options.choose_target && !is_time) {
    return fail(ErrorCode::kInvalidArgument, "only targets of time can be chosen between");
  }
  const TrainObjective objective = settled_objective(options);
  if (objective != TrainObjective::kRegression &&
      (options.target != Target::kRelativeLog || options.choose_target)) {
    return fail(ErrorCode::kInvalidArgument, "the objective ", to_string(objective),
                " needs the target relative-log");
  }
  if (!options.base_column.empty() && options.warm_start != nullptr) {
    return fail(ErrorCode::kInvalidArgument,
                "a warm start begins with the trees of its model, not with a column");
  }
  if (!options.base_column.empty() && objective == TrainObjective::kLambdaRank) {
    return fail(ErrorCode::kInvalidArgument,
                "trees that rank predict no values, so they cannot begin with those of a column");
  }
  if (options.choose_target && options.warm_start != nullptr) {
    return fail(ErrorCode::kInvalidArgument, "a warm start settles the target");
  }
  const MiningOptions& mining = options.mining;
  if (mining.rounds > 0 && !(mining.folds >= 2 && mining.hard_share > 0 && mining.hard_share < 1 &&
                             mining.factor >= 1 && mining.most >= 1)) {
    return fail(ErrorCode::kInvalidArgument,
                "mining needs 2 folds or more, a share of hard problems between 0 and 1, and "
                "factors of at least 1");
  }
  return {};
}

Result<TrainOptions> settled_options(const TrainOptions& options) {
  FORETUNE_TRY_STATUS(check_train_options(options));
  TrainOptions out = options;
  out.objective = settled_objective(options);
  return out;
}

Result<TrainResult> train_gbdt(const Dataset& dataset, const TrainOptions& given,
                               const ProgressHook& progress) {
  FORETUNE_TRY(const TrainOptions options, settled_options(given));
  FORETUNE_TRY(const TrainingData data, training_data(dataset, options));
  return Training(dataset, *data.table, data.set, options, progress).run();
}

}  // namespace foretune
