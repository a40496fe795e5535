#include "foretune/model/train/internal/boosting.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/model/train/internal/base_score.h"

namespace foretune::train_internal {
namespace {

// Trees between two reports where no validation loss is computed.
constexpr std::uint32_t kProgressStep = 25;
// The most documents of a query that LightGBM takes.
constexpr std::size_t kMaxRowsOfAQuery = 10000;
constexpr std::int32_t kTopGrade = 30;
constexpr double kMinWeight = 0.05;

std::string lightgbm_parameters(const BoostRun& run) {
  const GbdtOptions& gbdt = run.options.gbdt;
  std::string out = concat(
      "boosting=gbdt verbosity=-1 deterministic=true force_row_wise=true num_threads=1 num_leaves=",
      gbdt.leaves, " learning_rate=", gbdt.learning_rate,
      " min_data_in_leaf=", gbdt.min_rows_per_leaf, " feature_fraction=", gbdt.feature_fraction,
      " bagging_fraction=", gbdt.bagging_fraction, " bagging_freq=", gbdt.bagging_frequency,
      " lambda_l2=", gbdt.lambda_l2, " max_bin=", gbdt.max_bins,
      " min_data_in_bin=1 seed=", run.seed & 0x7fffffffU);
  if (run.options.objective != TrainObjective::kLambdaRank) {
    return out + " objective=custom";
  }
  // Linear gains: a grade is a share of the best rate already.
  out += concat(" objective=lambdarank metric=ndcg eval_at=5 lambdarank_truncation_level=30",
                " min_sum_hessian_in_leaf=1e-6 label_gain=0");
  for (std::int32_t grade = 1; grade <= kTopGrade; ++grade) {
    out += concat(",", grade);
  }
  return out;
}

float weight_of(const BoostRun& run, std::uint32_t row) {
  const float factor = run.problem_weight.empty() ? 1.0F : run.problem_weight[run.set.problem[row]];
  return run.weight[row] * factor;
}

double weighted_mean(const BoostRun& run, std::span<const std::uint32_t> rows) {
  double sum = 0;
  double weights = 0;
  for (const std::uint32_t row : rows) {
    if (!run.set.censored[row]) {
      const auto weight = static_cast<double>(weight_of(run, row));
      sum += weight * static_cast<double>(run.learned.value[row]);
      weights += weight;
    }
  }
  return weights > 0 ? sum / weights : 0;
}

// Fits the base column to these rows. Bounds are left out: they are no values.
Forest fitted_base(const BoostRun& run, std::span<const std::uint32_t> rows) {
  const Matrix& matrix = run.set.matrix;
  std::vector<BasePoint> points;
  for (const std::uint32_t row : rows) {
    if (!run.set.censored[row]) {
      points.push_back({.x = matrix.values[row * matrix.columns + *run.set.base_column],
                        .value = static_cast<double>(run.learned.value[row]),
                        .weight = static_cast<double>(weight_of(run, row))});
    }
  }
  return base_forest(std::move(points), *run.set.base_column,
                     static_cast<std::uint32_t>(matrix.columns));
}

// Squared error; a censored row only pulls while the prediction lies on the fast side of its bound
// (the one-sided loss of a Tobit model with the likelihood's tail replaced by a hinge).
class SquaredError {
 public:
  SquaredError(const BoostRun& run, std::span<const std::uint32_t> rows) : run_(run), rows_(rows) {}

  void gradients(std::span<const double> predictions, std::vector<float>& gradient,
                 std::vector<float>& hessian) {
    gradient.resize(rows_.size());
    hessian.resize(rows_.size());
    if (run_.options.objective == TrainObjective::kRegret) {
      find_lowest(predictions);
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double error = error_of(i, predictions[i]);
      const double weight = run_.options.objective == TrainObjective::kRegret
                                ? regret_weight(i, predictions[i])
                                : static_cast<double>(weight_of(run_, rows_[i]));
      gradient[i] = static_cast<float>(weight * error);
      hessian[i] = static_cast<float>(weight);
    }
  }

  [[nodiscard]] double mean(std::span<const double> predictions) const {
    double sum = 0;
    double weights = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double error = error_of(i, predictions[i]);
      const auto weight = static_cast<double>(weight_of(run_, rows_[i]));
      sum += weight * error * error;
      weights += weight;
    }
    return weights > 0 ? sum / weights : 0;
  }

 private:
  [[nodiscard]] double error_of(std::size_t i, double prediction) const {
    const std::uint32_t row = rows_[i];
    const double error = prediction - static_cast<double>(run_.learned.value[row]);
    if (!run_.set.censored[row]) {
      return error;
    }
    return run_.learned.larger_is_better ? std::max(0.0, error) : std::min(0.0, error);
  }

  void find_lowest(std::span<const double> predictions) {
    lowest_.assign(lowest_.size(), std::numeric_limits<double>::infinity());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::uint32_t problem = run_.set.problem[rows_[i]];
      if (problem >= lowest_.size()) {
        lowest_.resize(problem + 1U, std::numeric_limits<double>::infinity());
      }
      lowest_[problem] = std::min(lowest_[problem], predictions[i]);
    }
  }

  // By the smaller of the distances from the best, measured and as predicted so far: a slow config
  // that looks fast would be picked, so its error costs as much as that of a fast one.
  [[nodiscard]] double regret_weight(std::size_t i, double prediction) const {
    const std::uint32_t row = rows_[i];
    const double distance = std::min(static_cast<double>(run_.set.relative[row]),
                                     prediction - lowest_[run_.set.problem[row]]);
    const double factor = run_.problem_weight.empty()
                              ? 1
                              : static_cast<double>(run_.problem_weight[run_.set.problem[row]]);
    return factor * static_cast<double>(run_.set.trust[row]) *
           std::max(kMinWeight, std::exp(-run_.options.regret_decay * std::max(0.0, distance)));
  }

  const BoostRun& run_;
  std::span<const std::uint32_t> rows_;
  std::vector<double> lowest_;  // prediction, per problem
};

// Rows of a problem next to each other, as queries have to be.
std::vector<std::uint32_t> by_problem(const TrainingSet& set,
                                      const std::vector<std::uint32_t>& rows) {
  std::vector<std::uint32_t> out = rows;
  std::stable_sort(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) {
    return set.problem[a] < set.problem[b];
  });
  return out;
}

Status add_queries(const BoostRun& run, BoosterRows& rows) {
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const std::uint32_t row = rows.rows[i];
    const bool is_new = i == 0 || run.set.problem[row] != run.set.problem[rows.rows[i - 1]];
    if (is_new) {
      rows.group.push_back(0);
    }
    if (static_cast<std::size_t>(++rows.group.back()) > kMaxRowsOfAQuery) {
      return fail(ErrorCode::kUnsupported, "lambdarank takes at most ", kMaxRowsOfAQuery,
                  " configs of a problem");
    }
    rows.label.push_back(
        static_cast<float>(relevance_grade(static_cast<double>(run.set.relative[row]))));
    if (!run.problem_weight.empty()) {
      rows.weight.push_back(run.problem_weight[run.set.problem[row]]);
    }
  }
  return {};
}

Result<BoosterRows> booster_rows(const BoostRun& run, std::span<const std::uint32_t> rows,
                                 double offset) {
  BoosterRows out;
  out.rows = rows;
  out.start.reserve(rows.size());
  for (const std::uint32_t row : rows) {
    out.start.push_back(offset + (run.base.empty() ? 0 : run.base[row]));
  }
  if (run.options.objective == TrainObjective::kLambdaRank) {
    FORETUNE_TRY_STATUS(add_queries(run, out));
  }
  return out;
}

// Adds the trees; `rows` as the booster got them.
class Climb {
 public:
  Climb(const BoostRun& run, const Rows& rows, Boosted& out)
      : run_(run), train_(run, rows.train), valid_(run, rows.valid), out_(out) {}

  Status run(std::uint32_t trees, bool early_stopping) {
    double best = std::numeric_limits<double>::infinity();
    FORETUNE_TRY_STATUS(out_.booster->predictions(0, predictions_));
    for (std::uint32_t tree = 0; tree < trees; ++tree) {
      FORETUNE_TRY(const bool grew, grow());
      if (!grew) {
        break;
      }
      out_.trees = tree + 1;
      const bool is_shown = early_stopping || tree % kProgressStep == 0;
      double loss = 0;
      if (early_stopping) {
        FORETUNE_TRY(loss, valid_loss());
        if (loss < best) {
          best = loss;
          out_.best_trees = out_.trees;
        } else if (out_.trees - out_.best_trees >= run_.options.gbdt.early_stopping_rounds) {
          break;
        }
      } else if (is_shown && !is_rank()) {
        loss = train_.mean(predictions_);
      }
      if (run_.progress && is_shown && !run_.progress({run_.stage, out_.trees, trees, loss})) {
        return fail(ErrorCode::kCancelled, "training was stopped");
      }
    }
    return {};
  }

 private:
  [[nodiscard]] bool is_rank() const {
    return run_.options.objective == TrainObjective::kLambdaRank;
  }

  Result<bool> grow() {
    if (is_rank()) {
      return out_.booster->update();
    }
    train_.gradients(predictions_, gradient_, hessian_);
    FORETUNE_TRY(const bool grew, out_.booster->update(gradient_, hessian_));
    FORETUNE_TRY_STATUS(out_.booster->predictions(0, predictions_));
    return grew;
  }

  Result<double> valid_loss() {
    if (is_rank()) {
      FORETUNE_TRY(const double ndcg, out_.booster->metric());
      return 1 - ndcg;
    }
    FORETUNE_TRY_STATUS(out_.booster->predictions(1, out_.valid_predictions));
    return valid_.mean(out_.valid_predictions);
  }

  const BoostRun& run_;
  SquaredError train_;
  SquaredError valid_;
  Boosted& out_;
  std::vector<double> predictions_;
  std::vector<float> gradient_;
  std::vector<float> hessian_;
};

}  // namespace

std::int32_t relevance_grade(double relative_log) {
  const double efficiency = std::exp(-std::max(0.0, relative_log));
  return static_cast<std::int32_t>(std::lround(kTopGrade * std::max(0.0, 2 * efficiency - 1)));
}

Result<Boosted> boost(const BoostRun& given, const Rows& rows, std::uint32_t trees,
                      bool early_stopping) {
  BoostRun run = given;
  const bool is_rank = run.options.objective == TrainObjective::kLambdaRank;
  const Rows ordered =
      is_rank ? Rows{by_problem(run.set, rows.train), by_problem(run.set, rows.valid)} : rows;
  Boosted out;
  std::vector<double> base;
  if (run.set.base_column && run.base.empty()) {
    out.base = fitted_base(run, ordered.train);
    base = predictions_of(out.base, run.set);
    run.base = base;
  }
  out.offset = is_rank || !run.base.empty() ? 0 : weighted_mean(run, ordered.train);
  FORETUNE_TRY(const BoosterRows train, booster_rows(run, ordered.train, out.offset));
  FORETUNE_TRY(const BoosterRows valid, booster_rows(run, ordered.valid, out.offset));
  FORETUNE_TRY(out.booster,
               Booster::create(run.set.matrix, train, valid, lightgbm_parameters(run)));
  Climb climb(run, ordered, out);
  FORETUNE_TRY_STATUS(climb.run(trees, early_stopping));
  if (!rows.valid.empty()) {
    std::vector<double> predictions;
    FORETUNE_TRY_STATUS(out.booster->predictions(1, predictions));
    std::vector<double> of_example(run.set.size());
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      of_example[ordered.valid[i]] = predictions[i];
    }
    out.valid_predictions.clear();
    for (const std::uint32_t row : rows.valid) {
      out.valid_predictions.push_back(of_example[row]);
    }
  }
  return out;
}

}  // namespace foretune::train_internal
