// A feature table made from names alone: the fields of a problem and the parameters of a config, as
// they are. For families that nobody wrote features for; trees learn well from it where configs are
// measured densely, and badly for problems far from those measured.
//
//   FORETUNE_TRY_STATUS(register_feature_table(make_plain_table("stencil-plain", type, schema)));
//
// Columns: of the problem, log2 of one more than every size and the number of every label; the same
// of the config's parameters; and log2 of every drawn size over every parameter that is a number.
// Thread safety: free function; tables are constant. Cost: a logarithm a column.
#pragma once

#include <memory>
#include <string>

#include "foretune/features/feature_table.h"
#include "foretune/problem/problem_type.h"
#include "foretune/space/config.h"

namespace foretune {

// `type` and `schema` are copied, but what `type` points to has to stay as long as the table.
// `schema` is parametric.
std::unique_ptr<const FeatureTable> make_plain_table(std::string name, const ProblemTypeInfo& type,
                                                     const ConfigSchema& schema);

}  // namespace foretune
