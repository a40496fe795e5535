// Right outputs of products on CPUs, for tests. Thread safety: a free function.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "foretune/families/cpu_gemm/blocked_gemm.h"
#include "foretune/families/cpu_gemm/gemm_data.h"

namespace foretune {

// Fills the output with a right result, summed in blocks of `kc`.
inline void multiply(GemmData& data, std::int32_t kc = 64) {
  const GemmProblem& problem = data.problem();
  auto gemm = BlockedGemm::create(
      {.m = problem.m(),
       .n = problem.n(),
       .k = problem.k(),
       .batch = problem.batch(),
       .a_by_columns = a_by_columns(problem.layout()),
       .b_by_columns = b_by_columns(problem.layout())},
      {.isa = CpuIsa::kGeneric, .mr = 4, .nr = 8, .pack_b = true, .mc = 64, .nc = 64, .kc = kc},
      nullptr);
  ASSERT_TRUE(gemm);
  auto workspace = gemm->make_workspace();
  ASSERT_TRUE(workspace);
  gemm->run(data.operands(), workspace->view());
  data.set_register_block(4, 8);
}

}  // namespace foretune
