#include "foretune/problem/conv/conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "foretune/base/rng.h"
#include "foretune/base/testing/refusals.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

Problem conv_of(std::string_view text) { return Problem::parse(text).value(); }
ConvProblem conv(std::string_view text) { return ConvProblem::from(conv_of(text)).value(); }

constexpr std::string_view kLayer = "conv n=16 c=64 k=128 hi=28 wi=30 y=3 x=5 pad_h=1 pad_w=2";

TEST(ConvProblem, ShortTextTakesDefaults) {
  EXPECT_EQ(conv_of("conv n=2 c=8 k=16 hi=7 wi=9 y=3 x=1").text(),
            "conv op=forward n=2 c=8 k=16 g=1 di=1 hi=7 wi=9 z=1 y=3 x=1 stride_d=1 stride_h=1 "
            "stride_w=1 pad_d=0 pad_h=0 pad_w=0 dilation_d=1 dilation_h=1 dilation_w=1 dtype=f32 "
            "layout=channels_last");
  const ConvSizes sizes = conv("conv n=2 c=8 k=16 hi=7 wi=9 y=3 x=1").sizes();
  EXPECT_EQ(sizes, (ConvSizes{.n = 2, .c = 8, .k = 16, .hi = 7, .wi = 9, .y = 3}));
}

TEST(ConvProblem, EveryFieldArrivesInItsMember) {
  const ConvSizes sizes{.operation = ConvOperation::kBackwardWeight,
                        .n = 2,
                        .c = 12,
                        .k = 15,
                        .g = 3,
                        .di = 20,
                        .hi = 21,
                        .wi = 22,
                        .z = 4,
                        .y = 5,
                        .x = 6,
                        .stride_d = 7,
                        .stride_h = 8,
                        .stride_w = 9,
                        .pad_d = 10,
                        .pad_h = 11,
                        .pad_w = 13,
                        .dilation_d = 2,
                        .dilation_h = 3,
                        .dilation_w = 4,
                        .dtype = DataType::kBf16,
                        .layout = ConvLayout::kChannelsFirst};
  const Problem problem = ConvProblem::create(sizes).value().to_problem();
  EXPECT_EQ(problem.text(),
            "conv op=backward_weight n=2 c=12 k=15 g=3 di=20 hi=21 wi=22 z=4 y=5 x=6 stride_d=7 "
            "stride_h=8 stride_w=9 pad_d=10 pad_h=11 pad_w=13 dilation_d=2 dilation_h=3 "
            "dilation_w=4 dtype=bf16 layout=channels_first");
  EXPECT_EQ(ConvProblem::from(problem).value().sizes(), sizes);
}

TEST(ConvProblem, OutputSizesFollowStridePadAndDilation) {
  EXPECT_EQ(conv(kLayer).ho(), 28);
  EXPECT_EQ(conv(kLayer).wo(), 30);
  EXPECT_EQ(conv(kLayer).depth_out(), 1);
  // 224 + 6 - 7 = 223 steps of 2: 111, and the first.
  const ConvProblem stem =
      conv("conv n=1 c=3 k=64 hi=224 wi=224 y=7 x=7 stride_h=2 stride_w=2 pad_h=3 pad_w=3");
  EXPECT_EQ(stem.ho(), 112);
  // A 3-wide filter of dilation 4 spans 9.
  EXPECT_EQ(conv("conv n=1 c=1 k=1 hi=9 wi=10 y=3 x=3 dilation_h=4 dilation_w=4").ho(), 1);
  EXPECT_EQ(conv("conv n=1 c=1 k=1 hi=9 wi=10 y=3 x=3 dilation_h=4 dilation_w=4").wo(), 2);
  const ConvProblem deep =
      conv("conv n=1 c=1 k=1 di=8 z=3 hi=5 wi=5 y=1 x=1 stride_d=3 pad_d=1 dilation_d=2");
  EXPECT_EQ(deep.depth_out(), 2);  // 8 + 2 - 5 = 5 steps of 3
  EXPECT_TRUE(deep.is_3d());
  EXPECT_FALSE(stem.is_3d());
}

// Counts the multiply-adds of a forward pass by walking all its loops.
std::int64_t counted_multiply_adds(const ConvSizes& sizes) {
  std::int64_t count = 0;
  const auto positions = [](std::int64_t input, std::int64_t filter, std::int64_t stride,
                            std::int64_t pad, std::int64_t dilation) {
    std::int64_t out = 0;
    for (std::int64_t at = -pad; at + dilation * (filter - 1) < input + pad; at += stride) {
      out += filter;
    }
    return out;
  };
  count = positions(sizes.di, sizes.z, sizes.stride_d, sizes.pad_d, sizes.dilation_d) *
          positions(sizes.hi, sizes.y, sizes.stride_h, sizes.pad_h, sizes.dilation_h) *
          positions(sizes.wi, sizes.x, sizes.stride_w, sizes.pad_w, sizes.dilation_w);
  return count * sizes.n * sizes.k * (sizes.c / sizes.g);
}

TEST(ConvProblem, RandomProblemsRoundTripAndCountTheirWork) {
  constexpr std::uint64_t kSeed = 83;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  int accepted = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    ConvSizes sizes;
    sizes.operation = static_cast<ConvOperation>(rng.below(3));
    sizes.g = rng.between(1, 4);
    sizes.n = rng.between(1, 8);
    sizes.c = sizes.g * rng.between(1, 40);
    sizes.k = sizes.g * rng.between(1, 40);
    for (std::int64_t* size : {&sizes.di, &sizes.hi, &sizes.wi}) {
      *size = rng.between(1, 20);
    }
    for (std::int64_t* filter : {&sizes.z, &sizes.y, &sizes.x}) {
      *filter = rng.between(1, 5);
    }
    for (std::int64_t* step : {&sizes.stride_d, &sizes.stride_h, &sizes.stride_w, &sizes.dilation_d,
                               &sizes.dilation_h, &sizes.dilation_w}) {
      *step = rng.between(1, 3);
    }
    for (std::int64_t* pad : {&sizes.pad_d, &sizes.pad_h, &sizes.pad_w}) {
      *pad = rng.between(0, 3);
    }
    const std::int64_t counted = counted_multiply_adds(sizes);
    const auto created = ConvProblem::create(sizes);
    ASSERT_EQ(created.has_value(), counted > 0);
    if (!created) {
      continue;
    }
    ++accepted;
    ASSERT_EQ(created->flops(), 2.0 * static_cast<double>(counted));
    const Problem problem = created->to_problem();
    ASSERT_EQ(conv_of(problem.text()), problem);
    ASSERT_EQ(ConvProblem::from(problem).value(), *created);
    const ImplicitGemm gemm = created->implicit_gemm();
    if (sizes.operation != ConvOperation::kBackwardData) {
      ASSERT_EQ(gemm.m * gemm.n * gemm.k * gemm.groups, counted);
    }
  }
  EXPECT_GT(accepted, 1000);
}

TEST(ConvProblem, ImplicitGemmOfEachOperation) {
  const std::string sizes = " n=2 c=12 k=30 g=3 hi=9 wi=9 y=3 x=3 stride_h=2 stride_w=2";
  EXPECT_EQ(conv("conv op=forward" + sizes).implicit_gemm(),
            (ImplicitGemm{.m = 2 * 4 * 4, .n = 10, .k = 4 * 9, .groups = 3}));
  EXPECT_EQ(conv("conv op=backward_data" + sizes).implicit_gemm(),
            (ImplicitGemm{.m = 2 * 81, .n = 4, .k = 10 * 9, .groups = 3}));
  EXPECT_EQ(conv("conv op=backward_weight" + sizes).implicit_gemm(),
            (ImplicitGemm{.m = 10, .n = 4 * 9, .k = 2 * 4 * 4, .groups = 3}));
}

TEST(ConvProblem, CountsBytesOfAllThreeTensors) {
  const ConvProblem problem = conv("conv n=2 c=12 k=30 g=3 hi=9 wi=8 y=3 x=3 dtype=bf16");
  EXPECT_EQ(problem.input_elements(), 2 * 12 * 9 * 8);
  EXPECT_EQ(problem.weight_elements(), 30 * 4 * 9);
  EXPECT_EQ(problem.output_elements(), 2 * 30 * 7 * 6);
  EXPECT_EQ(problem.bytes(), 2.0 * (2 * 12 * 9 * 8 + 30 * 4 * 9 + 2 * 30 * 7 * 6));
}

TEST(ConvProblem, RefusalsSayWhatDoesNotFit) {
  testing_support::expect_refusals(
      Problem::parse,
      {{"conv n=1 c=6 k=8 g=4 hi=8 wi=8 y=1 x=1", "g=4 does not divide c=6 and k=8"},
       {"conv n=1 c=8 k=6 g=4 hi=8 wi=8 y=1 x=1", "does not divide"},
       {"conv n=1 c=8 k=8 hi=2 wi=8 y=5 x=1 pad_h=1",
        "y=5 with dilation 1 does not fit hi=2 with pad 1"},
       {"conv n=1 c=8 k=8 hi=8 wi=8 y=1 x=3 dilation_w=4", "x=3 with dilation 4 does not fit wi=8"},
       {"conv n=1 c=8 k=8 hi=8 wi=8 y=1 x=1 z=2", "z=2"},
       {"conv n=1 c=8 k=8 hi=8 wi=8 y=1", "x is missing"},
       {"conv n=1 c=8 k=8 hi=8 wi=8 y=1 x=1 stride_h=0", "stride_h is 0"},
       {"conv n=1 c=8 k=8 hi=8 wi=8 y=1 x=1 pad_w=-1", "pad_w is -1"},
       {"conv n=1 c=8 k=8 hi=8 wi=8 y=1 x=1 op=backward",
        "one of forward backward_data backward_weight"},
       {"conv n=2147483647 c=2147483647 k=1 hi=1 wi=1 y=1 x=1", "more than 2^53 elements"},
       {"conv n=1 c=1 k=2147483647 hi=65535 wi=65535 y=1 x=1", "more than 2^53 elements"}});
  // 2^53 to the point.
  EXPECT_TRUE(Problem::parse("conv n=1073741824 c=8388608 k=1 hi=1 wi=1 y=1 x=1"));
  EXPECT_FALSE(Problem::parse("conv n=1073741824 c=8388609 k=1 hi=1 wi=1 y=1 x=1"));
  EXPECT_THAT(ConvProblem::from(conv_of("gemm m=1 n=1 k=1")).error().message,
              HasSubstr("not a conv problem"));
}

TEST(ConvProblem, GroupHoldsAllSizesAndLeavesOutTypeLayoutAndOperation) {
  const std::string text(kLayer);
  const std::uint64_t group = conv_of(text).group();
  for (const char* same : {" dtype=bf16", " layout=channels_first", " op=backward_data"}) {
    EXPECT_EQ(conv_of(text + same).group(), group) << same;
  }
  for (const char* other : {" stride_h=2", " stride_w=2", " pad_d=1", " dilation_h=2",
                            " dilation_w=2", " g=2", " di=2"}) {
    EXPECT_NE(conv_of(text + other).group(), group) << other;
  }
}

// Data sets and models store these: a change needs a new version of the type.
TEST(ConvProblem, IdsAndHashesAreGolden) {
  EXPECT_EQ(find_problem_schema("conv")->id(), 18281371532252744526U);
  EXPECT_EQ(conv_of(kLayer).hash(), 1631322173393679008U);
  EXPECT_EQ(conv_of(kLayer).group(), 1584535962462169598U);
}

TEST(ConvLabels, ParseBack) {
  for (const std::string_view label : conv_operation_labels()) {
    EXPECT_EQ(to_string(parse_conv_operation(label).value()), label);
  }
  EXPECT_THAT(parse_conv_operation("fwd").error().message, HasSubstr("forward, backward_data"));
}

}  // namespace
}  // namespace foretune
