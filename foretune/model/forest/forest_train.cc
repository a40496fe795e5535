#include <array>

#include "foretune/model/train/trainer.h"

namespace foretune {

std::span<const ModelTypeEntry> forest_trainers();

std::span<const ModelTypeEntry> forest_trainers() {
  static const std::array types{
      ModelTypeEntry{"gbdt", "gradient-boosted regression trees (LightGBM)", &train_gbdt}};
  return types;
}

}  // namespace foretune
