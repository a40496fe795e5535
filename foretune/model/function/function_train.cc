#include <span>

#include "foretune/model/train/trainer.h"

namespace foretune {

std::span<const ModelTypeEntry> function_trainers();

// Functions come from outside (train_by_function.h).
std::span<const ModelTypeEntry> function_trainers() { return {}; }

}  // namespace foretune
