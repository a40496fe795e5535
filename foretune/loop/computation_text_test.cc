#include "foretune/loop/computation_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "foretune/base/rng.h"
#include "foretune/loop/machine/testing/loop_samples.h"

namespace foretune::loop {
namespace {

using testing::HasSubstr;

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
  const auto refusal = [](const char* text) {
    const auto parsed = parse_computation(text);
    EXPECT_FALSE(parsed) << text;
    return parsed ? std::string() : parsed.error().message;
  };
  EXPECT_THAT(refusal(""), HasSubstr("'' is no kind of computation; there are mm, conv"));
  EXPECT_THAT(refusal("gemm m=3"), HasSubstr("'gemm' is no kind"));
  EXPECT_THAT(refusal("mm m=3 q=4"), HasSubstr("mm has no 'q'; it has m, n, k"));
  EXPECT_THAT(refusal("mm m"), HasSubstr("'m' is no whole number: m=N"));
  EXPECT_THAT(refusal("mm m=x"), HasSubstr("'m=x' is no whole number"));
  EXPECT_THAT(refusal("mm m=3 m=4"), HasSubstr("'m' is there twice"));
  EXPECT_THAT(refusal("mm bias=1"), HasSubstr("'bias' takes no value"));
  EXPECT_THAT(refusal("mm m=0"), HasSubstr("m is 0"));
  EXPECT_THAT(refusal("reduce r=4 op=divide"), HasSubstr("'op'"));
  EXPECT_THAT(refusal("map r=4"), HasSubstr("map has no chain=NAME; there are relu, relu6"));
  EXPECT_THAT(refusal("map r=4 chain=gelu"), HasSubstr("'gelu' is no chain; there are relu"));
  EXPECT_THAT(refusal("map chain=relu chain=relu"), HasSubstr("'chain' is there twice"));
  EXPECT_THAT(refusal("map chain=relu q=1"), HasSubstr("map has no 'q'; it has r, c"));
  EXPECT_THAT(refusal("elementwise add=in5"),
              HasSubstr("'add=in5' reads no tensor from in1 to in4"));
  EXPECT_THAT(refusal("elementwise add=in0"), HasSubstr("'add=in0' reads no tensor"));
  EXPECT_THAT(refusal("elementwise add=x"), HasSubstr("'add=x' has neither a tensor nor a number"));
  EXPECT_THAT(refusal("elementwise add=1e39"), HasSubstr("neither a tensor nor a number"));
  EXPECT_THAT(refusal("elementwise r=2 r=3"), HasSubstr("'r' is there twice"));
}

}  // namespace
}  // namespace foretune::loop
