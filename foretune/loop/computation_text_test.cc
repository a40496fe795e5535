#include "foretune/loop/computation_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "foretune/base/rng.h"
#include "foretune/loop/loop_samples.h"

namespace foretune::loop {
namespace {

using testing::HasSubstr;

TEST(ComputationText, NamesParseBackToTheSameComputation) {
  constexpr std::uint64_t kSeed = 77;
  int parsed = 0;
  for (int i = 0; i < 300; ++i) {
    Rng rng(kSeed + static_cast<std::uint64_t>(i));
    const auto made = i % 3 == 0   ? samples_internal::random_matmul(rng)
                      : i % 3 == 1 ? samples_internal::random_conv(rng)
                                   : samples_internal::random_reduction(rng);
    if (made) {
      const auto again = parse_computation(made->name);
      ASSERT_TRUE(again) << made->name << ": " << again.error().message;
      EXPECT_EQ(*again, *made);
      ++parsed;
    }
  }
  EXPECT_GT(parsed, 200);
}

TEST(ComputationText, SizesThatAreLeftOutAreOneAndBlanksDoNotCount) {
  EXPECT_EQ(*parse_computation("  mm  k=3 m=5 "), *matmul({.m = 5, .k = 3}));
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
}

}  // namespace
}  // namespace foretune::loop
