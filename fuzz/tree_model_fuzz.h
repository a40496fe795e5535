// The contract of every reader of foreign tree models: it gives a reason, or a model that can be
// evaluated and that is equal after it was written as LightGBM's text and read back.
#pragma once

#include <cstdlib>
#include <vector>

#include "foretune/interop/trees/lightgbm_text.h"

inline void check_tree_model(const foretune::Result<foretune::TreeModel>& model) {
  if (!model) {
    if (model.error().message.empty()) {
      std::abort();
    }
    return;
  }
  if (!model->forest.validate()) {
    std::abort();
  }
  if (model->forest.feature_count > 1000) {
    return;
  }
  const std::vector<double> row(model->forest.feature_count, 0.5);
  static_cast<void>(foretune::predict(*model, row));
  if (const auto text = foretune::to_lightgbm_text(*model)) {
    const auto again = foretune::parse_lightgbm_text(*text);
    if (!again || again->output != model->output ||
        again->forest.threshold != model->forest.threshold ||
        again->forest.leaf_value != model->forest.leaf_value) {
      std::abort();
    }
  }
}
