#include <array>

#include "foretune/model/train/train_ensemble.h"
#include "foretune/model/train/trainer.h"

namespace foretune {

std::span<const ModelTypeEntry> ensemble_trainers();

std::span<const ModelTypeEntry> ensemble_trainers() {
  static const std::array types{ModelTypeEntry{
      "ensemble", "boosted trees and networks, mixed as picks best", &train_ensemble}};
  return types;
}

}  // namespace foretune
