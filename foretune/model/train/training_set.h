// A data set as the trainer sees it: feature rows, targets, weights, bounds. Internal.
// Thread safety: plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/forest/forest.h"
#include "foretune/model/train/internal/lightgbm_booster.h"
#include "foretune/model/train/trainer.h"

namespace foretune::train_internal {

// A model compares; the booster also draws a part of the examples for each tree.
inline constexpr std::size_t kFewestExamples = 2;

// One example per ok or censored row of a problem that has at least one ok row.
struct TrainingSet {
  Matrix matrix;
  std::vector<RowIndex> row;           // of the data set
  std::vector<std::uint32_t> problem;  // of the data set
  std::vector<float> log_time;         // ln ns; of a censored row the ln of its lower bound
  std::vector<float> relative;         // ln(time / best of the problem)
  std::vector<bool> censored;
  std::vector<float> weight;
  std::vector<float> trust;                  // its factor for times that were disturbed: below 1
  std::uint64_t failed_rows = 0;             // wrong, crashed, ...: counted, not learned from
  std::optional<std::uint32_t> base_column;  // of the matrix

  [[nodiscard]] std::size_t size() const { return row.size(); }
};

// Rows that were re-measured interleaved stand for the ordinary ones of the same config.
// Errors: kInvalidArgument without a single ok row.
Result<TrainingSet> make_training_set(const Dataset& dataset, const FeatureTable& table,
                                      double weight_decay);

// The prediction of the forest for every `step`th example; NaN for the others.
std::vector<double> predictions_of(const Forest& forest, const TrainingSet& set,
                                   std::size_t step = 1);

// The weights of the examples that another decay gives.
std::vector<float> weights_of(const TrainingSet& set, double weight_decay);

// The table of that name, or, for an empty one, the first that describes the configs. Errors:
// kNotFound, kMismatch, kUnsupported.
Result<const FeatureTable*> table_for(const Dataset& dataset, const std::string& name);

// The examples that options ask for, with the table of their features.
struct TrainingData {
  const FeatureTable* table = nullptr;
  TrainingSet set;
};
// Keeps the trees from the columns that are to be left out. Errors: those of table_for() and
// make_training_set(); kInvalidArgument below kFewestExamples; kMismatch with the names of columns
// that the table does not have; kInvalidArgument for a base column whose order means nothing.
Result<TrainingData> training_data(const Dataset& dataset, const TrainOptions& options);

// The rows that count: one per (problem, config), re-measured ones first, ok before censored.
std::vector<bool> preferred_rows(const Dataset& dataset);

}  // namespace foretune::train_internal
