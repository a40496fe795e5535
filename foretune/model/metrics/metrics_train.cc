#include "foretune/model/train/trainer.h"

namespace foretune {

std::span<const ModelTypeEntry> metrics_trainers();

std::span<const ModelTypeEntry> metrics_trainers() {
  // Each metric is trained by a type of the others (train_metrics.h).
  return {};
}

}  // namespace foretune
