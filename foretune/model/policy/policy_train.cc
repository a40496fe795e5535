// Policies learn by trying, not from data sets: foretune-train-policy trains them.
#include <span>

#include "foretune/model/train/trainer.h"

namespace foretune {

std::span<const ModelTypeEntry> policy_trainers();

std::span<const ModelTypeEntry> policy_trainers() { return {}; }

}  // namespace foretune
