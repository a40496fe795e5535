// Kernels that Triton would have compiled, on the host.
#pragma once

#include <string_view>

#include "tests/fake_gpu/fake_kernels.h"

namespace foretune::fake_gpu {

// What the image of such a kernel begins with; the kernel's key and a zero follow.
inline constexpr std::string_view kTritonImage = "foretune fake triton kernel\n";

// The function of such an image, made once and kept; nullptr when its key makes no sense.
gpu::FunctionObject* triton_function(std::string_view image);
// Whether triton_function() has made it.
bool is_triton_function(const gpu::FunctionObject* function);

}  // namespace foretune::fake_gpu
