// The figures that composable_kernel's training and evaluation report (ROCm, dispatcher/heuristics,
// train.py and evaluate.py), by their definitions. They differ from ours: rows that were stopped
// early do not exist, and exact ties with the best are misses.
//
//   const CvMetrics metrics = cv_metrics(rows);
//
// Thread safety: free functions without state. Cost: linear.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace foretune {

// A row that ran to the end, with what a model says about it.
struct PredictedRow {
  std::uint32_t problem = 0;
  double time_ns = 0;
  double score = 0;       // lower is better
  double value = 0;       // what the model learns, as it learns it
  double prediction = 0;  // of `value`; NaN for a model that predicts none
};

struct CvMetrics {
  std::size_t problems = 0;
  std::size_t rows = 0;
  // Over all rows, of the value as it is learned (a logarithm when that is what is learned). NaN
  // without predictions of it.
  double rmse = 0;
  double mae = 0;
  double r2 = 0;  // 1 - squared error / squared deviation from the mean; NaN for equal values
  // Rate of the row with the best score over the highest measured rate, of every problem: the same
  // as lowest time over its time.
  double mean_efficiency = 0;
  double p10_efficiency = 0;
  double p50_efficiency = 0;
  double min_efficiency = 0;
  // Share of problems whose row with the best score is the first of the fastest rows. (Called NDCG
  // there, without gain or discount.)
  double ndcg_at_1 = 0;
  // Share of problems where that row is among the first k by score.
  double top3_hit = 0;
  double top5_hit = 0;
  double top10_hit = 0;

  // All but the counts, by the names of the members.
  [[nodiscard]] std::vector<std::pair<std::string, double>> named() const;
};

// The rows of a problem may stand anywhere; among equal scores the first row counts. All 0 without
// rows.
CvMetrics cv_metrics(std::span<const PredictedRow> rows);

// Member by member over the folds, NaN left out; counts are summed.
CvMetrics mean_of(std::span<const CvMetrics> folds);

}  // namespace foretune
