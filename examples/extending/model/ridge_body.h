// The body of the kind of models "ridge": a linear function of the features.
// docs/guides/extending/model.md walks through it.
#pragma once

#include <vector>

#include "foretune/model/model_body.h"

namespace foretune {

struct RidgeBody final : ModelBody {
  [[nodiscard]] bool equals(const ModelBody& other) const override {
    const auto* const same = dynamic_cast<const RidgeBody*>(&other);
    return same != nullptr && same->slopes == slopes && same->offset == offset;
  }

  std::vector<double> slopes;  // a column of the feature table each
  double offset = 0;
};

}  // namespace foretune
