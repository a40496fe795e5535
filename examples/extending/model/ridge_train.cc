// Trains the kind "ridge": weighted least squares with a penalty on the slopes, held out by folds
// of whole problems.
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "examples/extending/model/ridge_body.h"
#include "foretune/model/train/assemble.h"
#include "foretune/model/train/held_out.h"
#include "foretune/model/train/trainer.h"
#include "foretune/model/train/training_set.h"

namespace foretune {

std::span<const ModelTypeEntry> ridge_trainers();

namespace {

using train_internal::TrainingSet;

constexpr double kPenalty = 1e-3;  // of the mean square of a column
constexpr std::uint32_t kMaxFolds = 20;

double known(double value) { return std::isnan(value) ? 0 : value; }

// Solves `matrix` x = `right`, symmetric and positive definite, in place.
void solve(std::vector<double>& matrix, std::vector<double>& right) {
  const std::size_t n = right.size();
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = matrix[i * n + k] / matrix[k * n + k];
      for (std::size_t j = k; j < n; ++j) {
        matrix[i * n + j] -= factor * matrix[k * n + j];
      }
      right[i] -= factor * right[k];
    }
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < n; ++j) {
      right[i] -= matrix[i * n + j] * right[j];
    }
    right[i] /= matrix[i * n + i];
  }
}

// The target is the logarithm of the time. The last unknown is the offset.
RidgeBody fitted(const TrainingSet& set, std::span<const bool> is_used) {
  const std::size_t width = set.matrix.columns;
  const std::size_t n = width + 1;
  std::vector<double> matrix(n * n);
  std::vector<double> right(n);
  std::vector<double> row(n, 1);
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (!is_used[set.problem[i]] || set.censored[i]) {
      continue;
    }
    for (std::size_t f = 0; f < width; ++f) {
      row[f] = known(set.matrix.values[i * width + f]);
    }
    const auto weight = static_cast<double>(set.weight[i]);
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        matrix[a * n + b] += weight * row[a] * row[b];
      }
      right[a] += weight * row[a] * static_cast<double>(set.log_time[i]);
    }
  }
  for (std::size_t a = 0; a < n; ++a) {
    // A column of zeros gets the slope 0.
    matrix[a * n + a] += kPenalty * matrix[a * n + a] + 1e-9;
  }
  solve(matrix, right);
  RidgeBody body;
  body.offset = right.back();
  right.pop_back();
  body.slopes = std::move(right);
  return body;
}

double predicted(const RidgeBody& body, const TrainingSet& set, std::size_t example) {
  double sum = body.offset;
  for (std::size_t f = 0; f < body.slopes.size(); ++f) {
    sum += body.slopes[f] * known(set.matrix.values[example * body.slopes.size() + f]);
  }
  return sum;
}

Result<TrainResult> train_ridge(const Dataset& dataset, const TrainOptions& options,
                                const ProgressHook& progress) {
  FORETUNE_TRY_STATUS(train_internal::check_role(dataset));
  FORETUNE_TRY(const FeatureTable* const table,
               train_internal::table_for(dataset, options.feature_table));
  FORETUNE_TRY(const TrainingSet set,
               train_internal::make_training_set(dataset, *table, options.weight_decay));
  TrainResult out;
  FORETUNE_TRY(out.model, train_internal::make_model(dataset, *table, set, options));
  const std::size_t problems = dataset.problems().size();
  std::vector<double> scores(set.size(), std::numeric_limits<double>::quiet_NaN());
  const std::uint32_t folds = std::min(options.folds, kMaxFolds);
  for (std::uint32_t fold = 0; fold < folds; ++fold) {
    if (progress && !progress({.stage = concat("fold ", fold + 1, " of ", folds)})) {
      return fail(ErrorCode::kCancelled, "the training was stopped");
    }
    // By group, so that no problem is judged by its twin.
    const auto is_held_out = [&](std::size_t problem) {
      return dataset.problems()[problem].group() % folds == fold;
    };
    const auto used = std::make_unique<bool[]>(problems);  // NOLINT: a span of bool is wanted
    for (std::size_t i = 0; i < problems; ++i) {
      used[i] = !is_held_out(i);
    }
    const RidgeBody body = fitted(set, {used.get(), problems});
    for (std::size_t i = 0; i < set.size(); ++i) {
      if (is_held_out(set.problem[i])) {
        scores[i] = predicted(body, set, i);
      }
    }
  }
  const auto all = std::make_unique<bool[]>(problems);  // NOLINT: as above
  std::fill_n(all.get(), problems, true);
  out.model.kind = "ridge";
  out.model.target = "log";
  out.model.body = std::make_shared<const RidgeBody>(fitted(set, {all.get(), problems}));
  out.target = Target::kLog;
  out.held_out_scores.assign(dataset.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < set.size(); ++i) {
    out.held_out_scores[set.row[i]] = scores[i];
  }
  if (folds > 0) {
    const auto figures = train_internal::held_out_metrics(set, scores, true);
    out.metrics = figures.named();
    out.model.residual_std = figures.rmse_log;
  }
  out.model.card_json = R"({"kind": "ridge"})";
  return out;
}

}  // namespace

std::span<const ModelTypeEntry> ridge_trainers() {
  static const std::array types{
      ModelTypeEntry{"ridge", "a linear function of the features", &train_ridge}};
  return types;
}

}  // namespace foretune
