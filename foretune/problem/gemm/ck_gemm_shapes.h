// Sets of GEMM shapes that kernels of CK Tile are measured on. ck-25 is a first look: cubes, small
// batches, three language models, extremes. ck-wide and ck-edge cover what the descriptions of the
// wide-coverage and edge-dimension sets of composable_kernel's heuristics name, group by group and
// with as many shapes (706, 546); the exact numbers are ours. All are f16, rcr. Thread safety: a
// free function without state.
#pragma once

#include <vector>

#include "foretune/problem/problem_type.h"

namespace foretune {

std::vector<NamedShapeSet> ck_gemm_shape_sets();

}  // namespace foretune
