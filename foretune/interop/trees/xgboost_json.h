// XGBoost's JSON models (save_model("model.json"), versions 1 to 3): booster gbtree, one output.
//
// Every row of 32-bit floats takes the ways that it takes in XGBoost, NaN as what is missing:
// XGBoost goes left when value < condition, both floats, which is value <= the float before the
// condition, whatever the precision of the comparison. Rows of doubles have to be rounded to floats
// first, as XGBoost does. Two exceptions: values of magnitude up to 1e-35 count as 0 here, and a
// category from -1 to 0, exclusive, is category 0.
// Leaves are summed as doubles, base score first, where XGBoost sums floats: predictions differ by
// its rounding, some 1e-7 of the largest partial sum.
//
// Thread safety: free functions without state. Cost: linear in the text.
#pragma once

#include <string_view>

#include "foretune/base/result.h"
#include "foretune/interop/trees/tree_model.h"

namespace foretune {

// Errors: kCorrupt for text that is truncated or contradicts itself; kUnsupported with the reason
// for other boosters (dart, gblinear), several outputs and objectives that are not known.
Result<TreeModel> parse_xgboost_json(std::string_view text);

}  // namespace foretune
