// The columns that tables of sparse problems have of the matrix, from the descriptor of its
// pattern; NaN where no pattern is known. Internal to the module. Thread safety: constant.
#pragma once

#include <span>

#include "foretune/features/feature_table.h"
#include "foretune/problem/problem.h"

namespace foretune::features_internal {

std::span<const FeatureInfo> sparse_matrix_columns();
// Writes the values to the first places of `out`.
void sparse_matrix_row(const Problem& problem, std::span<double> out);

}  // namespace foretune::features_internal
