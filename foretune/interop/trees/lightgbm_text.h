// Reads and writes LightGBM's model text, as its save_model writes it and version 4 reads it: one
// output, numerical and categorical splits of all missing types, every objective whose prediction
// follows from the sum of the leaves, averages of random forests. Linear trees and several outputs
// are refused.
//
//   FORETUNE_TRY(const TreeModel model, parse_lightgbm_text(text));
//   FORETUNE_TRY(const std::string same, to_lightgbm_text(model));
//
// Categories are looked up as LightGBM 4 does: NaN goes right. (Up to version 3 it was category 0
// where a split had no missing values.)
// Thread safety: free functions without state. Cost: linear in the text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/interop/trees/tree_model.h"

namespace foretune {

// Errors: kCorrupt for text that is truncated or contradicts itself, kMismatch when there are not
// as many names as features, kUnsupported with the reason for models of another kind.
Result<TreeModel> parse_lightgbm_text(std::string_view text);

// Returns text that reads back as an equal model, and with which LightGBM predicts the same. It
// omits everything without influence on predictions (gains, counts). The objective is the first one
// with the model's transform.
// Errors: kInvalidArgument for names that the text cannot hold and models without features,
// kUnsupported for categorical splits that send NaN left, which LightGBM does not have.
Result<std::string> to_lightgbm_text(const TreeModel& model);

// Returns LightGBM's name for a column without a name.
std::string made_up_name(std::size_t column);

}  // namespace foretune
