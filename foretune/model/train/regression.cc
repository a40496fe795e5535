#include "foretune/model/train/regression.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/model/train/internal/lightgbm_booster.h"

namespace foretune {
namespace {

std::vector<std::uint32_t> varying_columns(std::span<const double> rows, std::size_t columns) {
  std::vector<std::uint32_t> out;
  for (std::size_t column = 0; column < columns; ++column) {
    for (std::size_t at = column; at < rows.size(); at += columns) {
      if (rows[at] != rows[column]) {
        out.push_back(static_cast<std::uint32_t>(column));
        break;
      }
    }
  }
  return out;
}

// The first one where none is named: a matrix has at least one.
std::vector<double> columns_of(std::span<const double> rows, std::size_t columns,
                               std::span<const std::uint32_t> named) {
  std::vector<double> out;
  for (std::size_t row = 0; row < rows.size(); row += columns) {
    for (const std::uint32_t column : named) {
      out.push_back(rows[row + column]);
    }
    if (named.empty()) {
      out.push_back(rows[row]);
    }
  }
  return out;
}

}  // namespace

Result<Regression> fit_regression(std::span<const double> rows, std::size_t columns,
                                  std::span<const double> targets, std::span<const double> start,
                                  const RegressionOptions& options) {
  if (targets.empty() || columns == 0 || rows.size() != targets.size() * columns ||
      (!start.empty() && start.size() != targets.size())) {
    return fail(ErrorCode::kInvalidArgument, targets.size(), " targets and ", start.size(),
                " starts do not fit ", rows.size(), " values in ", columns, " columns");
  }
  // LightGBM spends time on every column, and most of a small matrix say the same in all rows.
  const std::vector<std::uint32_t> varying = varying_columns(rows, columns);
  const train_internal::Matrix matrix{.values = columns_of(rows, columns, varying),
                                      .columns = std::max<std::size_t>(1, varying.size()),
                                      .left_out = {}};
  std::vector<std::uint32_t> all(targets.size());
  std::iota(all.begin(), all.end(), 0U);
  train_internal::BoosterRows train{.rows = all};
  Regression out;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    out.offset += targets[i] - (start.empty() ? 0 : start[i]);
  }
  out.offset /= static_cast<double>(targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    train.label.push_back(static_cast<float>(targets[i]));
    train.start.push_back(out.offset + (start.empty() ? 0 : start[i]));
  }
  const std::string parameters = concat(
      "objective=regression verbosity=-1 num_threads=1 deterministic=true force_row_wise=true "
      "boost_from_average=false feature_pre_filter=false num_leaves=",
      options.leaves, " learning_rate=", options.learning_rate,
      " min_data_in_leaf=", options.least_rows_of_leaf, " min_data_in_bin=1 max_bin=63",
      " feature_fraction=", options.column_share, " seed=", options.seed & 0x7fffffffU);
  FORETUNE_TRY(const auto booster, train_internal::Booster::create(matrix, train, {}, parameters));
  std::size_t trees = 0;
  for (; trees < options.trees; ++trees) {
    FORETUNE_TRY(const bool grows, booster->update());
    if (!grows) {
      break;
    }
  }
  if (trees > 0) {
    FORETUNE_TRY(out.forest, booster->forest(trees));
    for (std::uint32_t& feature : out.forest.feature) {
      feature = varying.empty() ? 0 : varying[feature];
    }
    out.forest.feature_count = static_cast<std::uint32_t>(columns);
  }
  return out;
}

}  // namespace foretune
