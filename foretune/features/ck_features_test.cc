// Our features of Composable Kernel's kernels, by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/features/testing/named_row.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/problem/problem.h"

namespace foretune {
namespace {

Problem parsed(std::string_view text) { return Problem::parse(text).value(); }

Config gemm_kernel(std::string_view name, std::int32_t split_k = 1) {
  Config config = parse_ck_gemm_name(name).value().config;
  config.words[static_cast<std::size_t>(CkGemmParameter::kSplitK)] = split_k;
  return config;
}
Config conv_kernel(std::string_view name) { return parse_ck_conv_name(name).value().config; }

std::map<std::string, double> row_of(std::string_view table, const Problem& problem,
                                     std::string_view device, const Config& config) {
  return named_row(*find_feature_table(table).value(), problem,
                   known_device(device).value().hardware, config);
}

TEST(GemmCk, ValuesByHand) {
  // Tiles of 128 x 64 x 64: 2 x 5 of them, 16 steps deep, with two buffers of 192 x 64 elements.
  const Problem problem = parsed("gemm m=129 n=300 k=1000 dtype=bf16 layout=rcr");
  const std::string kernel =
      "gemm_universal_bf16_rcr_compv4_default_intrawave_False_False_False_False_128x64x64_2x2x1_"
      "32x32x16";
  auto row = row_of("gemm-ck", problem, "gfx950", gemm_kernel(kernel));
  expect_columns(row, {{"waves_per_block", 4},
                       {"results_per_wave", 2048},
                       {"instructions_per_step", 8},  // 2 x 1 x 4
                       {"buffers", 2},
                       {"memory_share", 0.3},
                       {"resident_blocks", 3},
                       {"use_m", 129.0 / 256},
                       {"use_n", 300.0 / 320},
                       {"use_k", 1000.0 / 1024},
                       {"log2_tiles", std::log2(10)},
                       {"waves", 1},
                       {"wave_use", 10.0 / 256},
                       {"resident_wave_use", 10.0 / 768},
                       {"k_steps", 16},
                       {"log2_k_per_unit", 10},
                       {"log2_traffic", std::log2(10.0 * 192 * 1024 / (429 * 1000))}});
  // 2 x 128 x 64 x 1024 flops at 2516.6e3 / 256 a nanosecond.
  expect_columns(row, {
                          {"log2_compute_ns", std::log2(16777216 / (2516.6e3 / 256))},
                          {"missing_pad_m", 1},
                          {"missing_pad_k", 1},
                          {"load_width_a", 8},
                          {"store_width_c", 4}  // 300 = 4 x 75
                      });

  // The depth in two parts: twice the tiles, each of 8 steps.
  row = row_of("gemm-ck", problem, "gfx950", gemm_kernel(kernel + "_vec2_4_1", 2));
  expect_columns(row, {{"log2_tiles", std::log2(20)},
                       {"k_steps", 8},
                       {"use_k", 1000.0 / 1024},
                       {"log2_k_per_unit", 9},
                       {"load_width_a", 2},
                       {"load_width_b", 4},
                       {"store_width_c", 1}});
}

TEST(GemmCk, TilesBeyondTheUnitsTakeWaves) {
  // 17 x 16 tiles on 256 units: two waves, the second nearly empty. One byte an element.
  const auto row =
      row_of("gemm-ck", parsed("gemm m=2176 n=2048 k=128 dtype=f8e4m3 layout=rcr"), "gfx950",
             gemm_kernel("gemm_universal_fp8_rcr_compv3_default_intrawave_True_True_True_False_"
                         "128x128x128_2x2x1_32x32x16"));
  expect_columns(row, {{"waves", 2},
                       {"wave_use", 272.0 / 512},
                       {"resident_blocks", 5},  // 32 KiB of 160
                       {"resident_wave_use", 272.0 / 1280},
                       {"log2_critical_work", std::log2(512.0 / 272)}});
  // Both units' halves of 17 x 16 tiles at twice the peak of bf16.
  expect_columns(row,
                 {{"log2_compute_ns", std::log2(2 * 2.0 * 128 * 128 * 128 / (2 * 2516.6e3 / 256))},
                  {"missing_pad_m", 0}});
}

TEST(GemmCk, StreamkHasTheSameColumnsAndTheReduction) {
  const Problem problem = parsed("gemm m=129 n=300 k=1000 dtype=bf16 layout=rcr");
  const std::string rest = "False_False_False_False_128x64x64_2x2x1_32x32x16";
  const auto universal =
      row_of("gemm-ck", problem, "gfx950",
             gemm_kernel("gemm_universal_bf16_rcr_compv4_default_intrawave_" + rest));
  auto streamk = row_of("gemm-ck-streamk", problem, "gfx950",
                        gemm_kernel("gemm_streamk_bf16_rcr_compv4_default_intrawave_tree_" + rest));
  EXPECT_EQ(streamk["reduction"], 2);
  streamk.erase("reduction");
  EXPECT_EQ(streamk, universal);
  const FeatureTable& table = **find_feature_table("gemm-ck-streamk");
  EXPECT_TRUE(table.supports(kGemmProblem, ck_gemm_streamk_schema()));
  EXPECT_FALSE(table.supports(kGemmProblem, ck_gemm_schema()));
}

TEST(GroupedConv, ValuesByHand) {
  // Products of 10 x 36 x 32, three of them: 4 x 4 outputs of 2 images are the depth.
  const auto row = row_of(
      "grouped-conv",
      parsed("conv op=backward_weight n=2 c=12 k=30 g=3 hi=9 wi=9 y=3 x=3 stride_h=2 stride_w=2 "
             "dtype=bf16"),
      "gfx942", conv_kernel("grouped_conv_bwd_weight_bf16_2d_16x64x32_compv3_dsb"));
  expect_columns(row, {{"log2_m", std::log2(10)},
                       {"log2_n", std::log2(36)},
                       {"log2_k", 5},
                       {"log2_flops", std::log2(2.0 * 10 * 36 * 32 * 3)},
                       {"is_pointwise", 0},
                       {"log2_stride", 2},
                       {"input_reuse", std::log2(16.0 * 9 / 81)}});
  // Tiles of 16 x 64, 32 deep: one for each group, in two buffers of 80 x 32 elements.
  expect_columns(row, {{"use_m", 10.0 / 16},
                       {"use_n", 36.0 / 64},
                       {"use_k", 1},
                       {"log2_tiles", std::log2(3)},
                       {"k_steps", 1},
                       {"wave_use", 3.0 / 304},
                       {"buffers", 2},
                       {"memory_share", 2.0 * 80 * 32 * 2 / 65536},
                       {"resident_blocks", 6}});
  // 3 tiles of 80 x 32 over 2 x (12 x 81 + 30 x 16) elements that are read.
  EXPECT_DOUBLE_EQ(row.at("log2_traffic"), std::log2(3.0 * 80 * 32 / (2 * (12 * 81 + 30 * 16))));
}

// A product of 3136 x 256 x 256 on 256 units: 49 x 4 tiles of 64 x 64 are one a unit, which moves
// the least; 98 x 4 tiles of 32 x 64 are two.
TEST(GroupedConv, MovedBytesAreThoseOfTheBusiestUnitOverTheLeastOfTheTiles) {
  const Problem problem = parsed("conv op=forward n=1 c=256 k=256 hi=56 wi=56 y=1 x=1 dtype=bf16");
  const auto moved = [&](std::string_view kernel) {
    return row_of("grouped-conv", problem, "gfx950", conv_kernel(kernel))
        .at("log2_moved_over_least");
  };
  const std::string head = "grouped_conv_forward_bf16_2d_";
  const double least = 128.0 * 256 + 64 * 64;
  EXPECT_DOUBLE_EQ(moved(head + "64x64x64_compv3"), 0);
  EXPECT_DOUBLE_EQ(moved(head + "64x64x128_compv4"), 0);
  EXPECT_DOUBLE_EQ(moved(head + "32x64x128_compv3"), std::log2(2 * (96.0 * 256 + 32 * 64) / least));
  EXPECT_DOUBLE_EQ(moved(head + "128x128x64_compv3"), std::log2((256.0 * 256 + 128 * 128) / least));
}

TEST(GroupedConv, ForwardAndGradientsAreOtherProducts) {
  const Config config = conv_kernel("grouped_conv_forward_bf16_2d_64x64x32_compv3");
  const std::string sizes = " n=4 c=64 k=32 hi=14 wi=14 y=1 x=1 dtype=bf16";
  const auto forward = row_of("grouped-conv", parsed("conv op=forward" + sizes), "gfx942", config);
  const auto data =
      row_of("grouped-conv", parsed("conv op=backward_data" + sizes), "gfx942", config);
  expect_columns(forward,
                 {{"is_pointwise", 1}, {"log2_m", std::log2(784)}, {"log2_n", 5}, {"log2_k", 6}});
  expect_columns(data, {{"log2_n", 6}, {"log2_k", 5}});
  EXPECT_DOUBLE_EQ(forward.at("use_n"), 0.5);
  EXPECT_DOUBLE_EQ(data.at("use_n"), 1);
  EXPECT_DOUBLE_EQ(forward.at("log2_flops"), data.at("log2_flops"));
}

}  // namespace
}  // namespace foretune
