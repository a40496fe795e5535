// The functions behind the rows of tables.inc. Internal to features.
// Thread safety: tables are constant.
#pragma once

#include <span>

#include "foretune/features/feature_table.h"

namespace foretune::features_internal {

#define FORETUNE_FEATURE_TABLE(name) const FeatureTable& name##_table();
#include "foretune/features/tables.inc"
#undef FORETUNE_FEATURE_TABLE
// The simulated family has one table for each problem type; that of gemm is its own.
std::span<const FeatureTable* const> fields_null_tables();
// Describes any sequence, and stands behind all that know more.
const FeatureTable& sequence_words_table();

}  // namespace foretune::features_internal
