#include <array>

#include "foretune/model/train/train_network.h"
#include "foretune/model/train/trainer.h"

namespace foretune {

std::span<const ModelTypeEntry> network_trainers();

std::span<const ModelTypeEntry> network_trainers() {
  static const std::array types{
      ModelTypeEntry{"standard", "dense layers one after another", &train_standard},
      ModelTypeEntry{"deep", "residual blocks of dense layers", &train_deep},
      ModelTypeEntry{"two-tower", "a network of the problem and one of the config",
                     &train_two_tower}};
  return types;
}

}  // namespace foretune
