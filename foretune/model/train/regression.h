// Boosted regression trees on a plain matrix: for those whose rows are neither a data set's nor a
// feature table's. Small and fast: some milliseconds for some hundred rows.
//
//   FORETUNE_TRY(const Regression trees, fit_regression(rows, columns, targets, {}));
//   trees.predict(row)
//
// Thread safety: any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "foretune/base/result.h"
#include "foretune/model/forest/forest.h"

namespace foretune {

struct RegressionOptions {
  std::size_t trees = 60;
  int leaves = 15;
  double learning_rate = 0.15;
  int least_rows_of_leaf = 3;
  double column_share = 1;  // of every tree, at random
  std::uint64_t seed = 1;
};

struct Regression {
  Forest forest;
  double offset = 0;

  // `row` has as many values as the matrix had columns.
  [[nodiscard]] double predict(std::span<const double> row) const {
    return offset + predict_reference(forest, row);
  }
};

// Squared error. `rows`: [targets][columns], by rows. `start`: what the trees add to, per row;
// empty for nothing but the mean. Same input and seed, same trees. Errors: kInvalidArgument for
// sizes that do not fit and for no rows; LightGBM's.
Result<Regression> fit_regression(std::span<const double> rows, std::size_t columns,
                                  std::span<const double> targets, std::span<const double> start,
                                  const RegressionOptions& options);

}  // namespace foretune
