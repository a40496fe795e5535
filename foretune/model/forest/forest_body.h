// The body of the kind "gbdt": forests whose predictions are averaged.
//
//   set_forests(model, std::move(forests));
//   for (const Forest& forest : forests_of(model)) ...
//
// Thread safety: free functions without state.
#pragma once

#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/result.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/forest/forest.h"
#include "foretune/model/model_columns.h"
#include "foretune/model/model_file.h"
#include "foretune/model/model_kind.h"

namespace foretune {

using ForestBody = PartsBody<Forest>;

// None where the model is of another kind, or was read without its body.
const std::vector<Forest>& forests_of(const Model& model);
// Makes the model one of forests.
void set_forests(Model& model, std::vector<Forest> forests);

// For kinds that have forests among others.
void put_forests(ByteWriter& writer, const std::vector<Forest>& forests);
Result<std::vector<Forest>> read_forests(std::span<const std::byte> section,
                                         const ColumnMap& columns);
Status check_forests(const std::vector<Forest>& forests, const FeatureTable& table,
                     bool was_just_read);
double reference_score(const std::vector<Forest>& forests, std::span<const double> row);
ModelFacts facts_of(const std::vector<Forest>& forests);
// Adds `share` of what every column contributes.
void attribute(const std::vector<Forest>& forests, double share, const Explained& out);

// The row of the table of kinds.
const ModelKind& forest_model_kind();

}  // namespace foretune
