#include "foretune/loop/computation_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "foretune/base/rng.h"
#include "foretune/base/testing/refusals.h"
#include "foretune/loop/machine/testing/loop_samples.h"

namespace foretune::loop {
namespace {

TEST(ComputationText, NamesParseBackToTheSameComputation) {
  constexpr std::uint64_t kSeed = 77;
  int parsed = 0;
  for (int i = 0; i < 400; ++i) {
    Rng rng(kSeed + static_cast<std::uint64_t>(i));
    const auto made = i % 4 == 0   ? samples_internal::random_matmul(rng)
                      : i % 4 == 1 ? samples_internal::random_conv(rng)
                      : i % 4 == 2 ? samples_internal::random_reduction(rng)
                                   : samples_internal::random_elementwise(rng);
    if (made) {
      const auto again = parse_computation(made->name);
      ASSERT_TRUE(again) << made->name << ": " << again.error().message;
      EXPECT_EQ(*again, *made);
      ++parsed;
    }
  }
  EXPECT_GT(parsed, 300);
}

TEST(ComputationText, SizesThatAreLeftOutAreOneAndBlanksDoNotCount) {
  EXPECT_EQ(*parse_computation("  mm  k=3 m=5 "), *matmul({.m = 5, .k = 3}));
}

TEST(ComputationText, ChainsGoByNameOrByTheirSteps) {
  const Computation chain = *parse_computation("map c=5 chain=bias_relu r=3");
  EXPECT_EQ(chain.name, "map r=3 c=5 chain=bias_relu");
  EXPECT_EQ(chain, *elementwise(3, 5, {{.op = Op::kAdd, .input = 1}, {.op = Op::kMax}}));
  EXPECT_EQ(chain, *parse_computation("elementwise r=3 c=5 add=in1 max=0"));
  const Computation odd = *parse_computation("elementwise r=3 multiply=in2 min=-6.1 c=5");
  EXPECT_EQ(
      odd,
      *elementwise(3, 5, {{.op = Op::kMultiply, .input = 2}, {.op = Op::kMin, .constant = -6.1F}}));
  EXPECT_EQ(odd, *parse_computation(odd.name));
}

TEST(ComputationText, RefusesWhatItDoesNotKnow) {
  testing_support::expect_refusals(
      parse_computation, {{"", "'' is no kind of computation; there are mm, conv"},
                          {"gemm m=3", "'gemm' is no kind"},
                          {"mm m=3 q=4", "mm has no 'q'; it has m, n, k"},
                          {"mm m", "'m' is no whole number: m=N"},
                          {"mm m=x", "'m=x' is no whole number"},
                          {"mm m=3 m=4", "'m' is there twice"},
                          {"mm bias=1", "'bias' takes no value"},
                          {"mm m=0", "m is 0"},
                          {"reduce r=4 op=divide", "'op'"},
                          {"map r=4", "map has no chain=NAME; there are relu, relu6"},
                          {"map r=4 chain=gelu", "'gelu' is no chain; there are relu"},
                          {"map chain=relu chain=relu", "'chain' is there twice"},
                          {"map chain=relu q=1", "map has no 'q'; it has r, c"},
                          {"elementwise add=in5", "'add=in5' reads no tensor from in1 to in4"},
                          {"elementwise add=in0", "'add=in0' reads no tensor"},
                          {"elementwise add=x", "'add=x' has neither a tensor nor a number"},
                          {"elementwise add=1e39", "neither a tensor nor a number"},
                          {"elementwise r=2 r=3", "'r' is there twice"}});
}

}  // namespace
}  // namespace foretune::loop
