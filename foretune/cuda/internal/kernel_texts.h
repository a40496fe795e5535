// The files of foretune/cuda/kernels, as built in. Internal to the module.
#pragma once

#include <span>

#include "foretune/base/embedded_text.h"

namespace foretune {

std::span<const EmbeddedText> gpu_kernel_texts();

}  // namespace foretune
