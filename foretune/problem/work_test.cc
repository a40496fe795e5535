#include <gtest/gtest.h>

#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/problem_type.h"

namespace foretune {
namespace {

TEST(ProblemWork, OfAProductIsTwiceItsMultiplyAddsAndItsThreeMatrices) {
  const Problem problem = *Problem::parse("gemm m=3 n=5 k=7 batch=2 op=bmm dtype=bf16");
  const auto work = problem_work(problem);
  ASSERT_TRUE(work.has_value());
  EXPECT_EQ(work->flops, 2.0 * 3 * 5 * 7 * 2);
  EXPECT_EQ(work->bytes, 2.0 * 2 * (3 * 7 + 7 * 5 + 3 * 5));
}

TEST(ProblemWork, OfAConvolutionIsItsOwn) {
  ConvSizes sizes;
  sizes.n = 2;
  sizes.c = 8;
  sizes.k = 16;
  sizes.hi = 14;
  sizes.wi = 14;
  sizes.y = 3;
  sizes.x = 3;
  const auto conv = ConvProblem::create(sizes);
  ASSERT_TRUE(conv.has_value()) << conv.error().message;
  const auto work = problem_work(conv->to_problem());
  ASSERT_TRUE(work.has_value());
  EXPECT_EQ(work->flops, conv->flops());
  EXPECT_EQ(work->bytes, conv->bytes());
}

}  // namespace
}  // namespace foretune
