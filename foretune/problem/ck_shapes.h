// Sets of GEMM and convolution shapes that kernels of CK Tile are measured on, by name:
//
//   FORETUNE_TRY(const std::vector<Problem> shapes, named_shape_set("ck-25"));
//
// ck-25 is a first look: cubes, small batches, three language models, extremes. ck-wide and ck-edge
// cover what the wide-coverage and edge-dimension sets of composable_kernel's heuristics are
// described to cover, group by group and with as many shapes (706, 546); the very numbers are ours.
// GEMMs are f16, rcr; convolutions bf16.
// Thread safety: free functions without state. Cost: makes the list at each call.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/problem/problem.h"

namespace foretune {

struct NamedShapeSet {
  std::string_view name;
  std::string_view summary;
  std::vector<Problem> (*make)();
  ProblemType type = ProblemType::kGemm;
};

std::span<const NamedShapeSet> named_shape_sets();
bool is_named_shape_set(std::string_view name);
// Distinct problems, always in the same order. Errors: kNotFound, with the names there are.
Result<std::vector<Problem>> named_shape_set(std::string_view name);

}  // namespace foretune
