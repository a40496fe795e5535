// Plays kernels that Triton would have compiled, on the host.
#pragma once

#include <string_view>

#include "tests/fake_gpu/fake_kernels.h"

namespace foretune::fake_gpu {

// The beginning of the image of such a kernel; the kernel's key and a zero follow.
inline constexpr std::string_view kTritonImage = "foretune fake triton kernel\n";

// Returns the function of such an image, made once and kept; nullptr when its key makes no sense.
cuda::FunctionObject* triton_function(std::string_view image);
// Returns true when triton_function() made the function.
bool is_triton_function(const cuda::FunctionObject* function);

}  // namespace foretune::fake_gpu
