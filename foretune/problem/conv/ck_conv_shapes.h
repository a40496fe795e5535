// A set of convolution shapes that kernels of CK Tile are measured on, in all three directions.
// Thread safety: a free function without state.
#pragma once

#include <vector>

#include "foretune/problem/problem_type.h"

namespace foretune {

// ck-conv, ck-conv-backward-data and ck-conv-backward-weight: bf16.
std::vector<NamedShapeSet> ck_conv_shape_sets();

}  // namespace foretune
