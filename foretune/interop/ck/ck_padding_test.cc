#include "foretune/interop/ck/ck_padding.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/space/known_spaces.h"

namespace foretune {
namespace {

Config kernel(const std::string& pads, const std::string& rest = "128x64x32_2x2x1_32x32x16") {
  return parse_ck_gemm_name("gemm_universal_fp16_rcr_compv3_default_intrawave_" + pads + "_False_" +
                            rest)
      .value()
      .config;
}

GemmProblem gemm(std::int64_t m, std::int64_t n, std::int64_t k,
                 GemmLayout layout = GemmLayout::kRcr) {
  return GemmProblem::create({.m = m, .n = n, .k = k, .dtype = DataType::kF16, .layout = layout})
      .value();
}

TEST(PaddedFor, RoundsUpWhatTheKernelDoesNotPad) {
  // Rows of A that lie one after the other need no padding.
  EXPECT_EQ(padded_for(gemm(1, 1, 1), kernel("False_False_False")).value(), gemm(1, 64, 32));
  EXPECT_EQ(padded_for(gemm(129, 65, 33), kernel("False_False_False")).value(), gemm(129, 128, 64));
  EXPECT_EQ(padded_for(gemm(129, 65, 33, GemmLayout::kCcr), kernel("False_False_False")).value(),
            gemm(256, 128, 64, GemmLayout::kCcr));
  EXPECT_EQ(padded_for(gemm(129, 65, 33, GemmLayout::kCrr), kernel("False_False_False")).value(),
            gemm(256, 128, 33, GemmLayout::kCrr));
  EXPECT_EQ(padded_for(gemm(129, 65, 33), kernel("True_False_True")).value(), gemm(129, 128, 33));
  EXPECT_EQ(padded_for(gemm(129, 65, 33), kernel("True_True_True")).value(), gemm(129, 65, 33));
  EXPECT_EQ(padded_for(gemm(256, 640, 96), kernel("False_False_False")).value(),
            gemm(256, 640, 96));
}

TEST(PaddedFor, EveryPartOfTheDepthIsWhole) {
  Config split = kernel("False_False_False");
  split.words[static_cast<std::size_t>(CkGemmParameter::kSplitK)] = 3;
  EXPECT_EQ(padded_for(gemm(128, 64, 100), split).value(), gemm(128, 64, 192));
}

TEST(PaddedFor, VectorsFitTheExtentTheyLieAlong) {
  const Config wide = kernel("True_True_True", "128x64x32_2x2x1_32x32x16_vec8_4_2");
  EXPECT_EQ(padded_for(gemm(13, 13, 13), wide).value(), gemm(13, 14, 16));
  EXPECT_EQ(padded_for(gemm(13, 13, 13, GemmLayout::kCrr), wide).value(),
            gemm(16, 16, 13, GemmLayout::kCrr));
}

TEST(PaddedFor, RefusesOtherConfigsAndTooLargeProblems) {
  Config other = kernel("False_False_False");
  other.schema += 1;
  EXPECT_EQ(padded_for(gemm(1, 1, 1), other).error().code, ErrorCode::kInvalidArgument);
  Config no_tile = kernel("False_False_False");
  no_tile.words[0] = 0;
  EXPECT_EQ(padded_for(gemm(1, 1, 1), no_tile).error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(padded_for(gemm(0x7fffffff, 1, 1, GemmLayout::kCcr), kernel("False_False_False")));
}

TEST(PaddedForPool, PadsOnlyWhenNoKernelComputesTheProblemAsItIs) {
  const auto space = CompiledSpace::create(known_space("ck-gemm-gfx942").value()).value();
  const Hardware hardware = known_device("gfx942").value().hardware;
  const std::vector<Config> pool{kernel("False_False_False", "128x128x64_2x2x1_32x32x16"),
                                 kernel("False_False_False", "64x64x64_2x2x1_32x32x16"),
                                 kernel("False_True_False", "256x128x64_2x2x1_32x32x16")};
  // The third kernel takes any n.
  EXPECT_EQ(padded_for_pool(gemm(256, 7, 64), pool, *space, hardware).value(), gemm(256, 7, 64));
  // No kernel takes any k: the smallest tile adds the least.
  EXPECT_EQ(padded_for_pool(gemm(65, 64, 100), pool, *space, hardware).value(), gemm(65, 64, 128));
  EXPECT_EQ(padded_for_pool(gemm(200, 7, 60), pool, *space, hardware).value(), gemm(200, 7, 64));
  // Its instructions are for f16.
  const auto none = padded_for_pool(
      GemmProblem::create({.m = 64, .n = 64, .k = 64, .dtype = DataType::kF64}).value(), pool,
      *space, hardware);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnsupported);
}

TEST(PaddedChannels, RoundsUpTheChannelsAndFiltersOfEachGroup) {
  const ConvSizes sizes{.n = 2, .c = 9, .k = 51, .g = 3, .hi = 8, .wi = 8, .y = 3, .x = 3};
  const ConvProblem conv = ConvProblem::create(sizes).value();
  ConvSizes larger = sizes;
  larger.c = 24;
  larger.k = 72;
  EXPECT_EQ(padded_channels(conv, 8).value().sizes(), larger);
  EXPECT_EQ(padded_channels(conv, 1).value(), conv);
  EXPECT_EQ(padded_channels(conv, 0).error().code, ErrorCode::kInvalidArgument);
}

TEST(PaddedForPool, RoundsUpChannelsThatNoKernelLoads) {
  const auto space = CompiledSpace::create(known_space("ck-conv-gfx950").value()).value();
  const Hardware hardware = known_device("gfx950").value().hardware;
  const std::vector<Config> pool{
      parse_ck_conv_name("grouped_conv_forward_bf16_2d_64x64x64_compv3_intrawave").value().config};
  ConvSizes sizes{.n = 2, .c = 6, .k = 40, .g = 2, .hi = 8, .wi = 8, .y = 3, .x = 3};
  sizes.dtype = DataType::kBf16;
  const auto padded =
      padded_for_pool(ConvProblem::create(sizes).value(), pool, *space, hardware).value();
  sizes.c = 16;
  sizes.k = 48;
  EXPECT_EQ(padded.sizes(), sizes);
  EXPECT_EQ(padded_for_pool(padded, pool, *space, hardware).value(), padded);
  sizes.dtype = DataType::kF64;
  EXPECT_EQ(
      padded_for_pool(ConvProblem::create(sizes).value(), pool, *space, hardware).error().code,
      ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace foretune
