// Multiplies with the kernel that the exported header picks: neither Foretune nor a model file is
// needed to build or run this.
//
//   multiply M N K
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "kernel_heuristics.h"
#include "timing.h"

// Returns the kernel for a problem. The header's fields are those of Foretune's problem `gemm`.
static const Variant* pick(int m, int n, int k) {
  kernel_heuristics::Problem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  const auto picked = kernel_heuristics::select(problem);
  if (picked.index < 0) {
    return nullptr;
  }
  const auto& config = kernel_heuristics::kConfigs[static_cast<std::size_t>(picked.index)];
  const auto* const found =
      std::find_if(kVariants.begin(), kVariants.end(), [&](const Variant& variant) {
        return variant.rows == config.rows && variant.columns == config.columns;
      });
  return found == kVariants.end() ? nullptr : found;
}

int main(int argc, char** argv) {
  const int m = argc == 4 ? std::atoi(argv[1]) : 0;
  const int n = argc == 4 ? std::atoi(argv[2]) : 0;
  const int k = argc == 4 ? std::atoi(argv[3]) : 0;
  if (m < 1 || n < 1 || k < 1) {
    std::fprintf(stderr, "usage: multiply M N K\n");
    return 2;
  }
  const Variant* const chosen = pick(m, n, k);
  if (chosen == nullptr) {
    std::fprintf(stderr, "the header has no kernel for %d x %d x %d\n", m, n, k);
    return 1;
  }
  for (const Variant& variant : kVariants) {
    std::printf("%d x %-2d  %8.2f us%s\n", variant.rows, variant.columns,
                microseconds(variant.run, m, n, k), &variant == chosen ? "  <- picked" : "");
  }
  return 0;
}
