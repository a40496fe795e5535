// The table conv-cudnn on convolutions whose product is easy to compute by hand.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "foretune/base/text.h"
#include "foretune/features/feature_table.h"
#include "foretune/features/testing/named_row.h"
#include "foretune/problem/problem.h"
#include "foretune/space/schemas/cudnn.h"

namespace foretune {
namespace {

using Row = std::map<std::string, double>;

Row row_of(const std::string& problem, const CudnnConfig& config) {
  return named_row(**find_feature_table("conv-cudnn"), *Problem::parse(problem),
                   h200_fingerprint().hardware, config.to_config());
}

constexpr std::string_view kLayer =
    " n=32 c=64 k=128 hi=16 wi=16 y=3 x=3 pad_h=1 pad_w=1 dtype=bf16";

TEST(ConvCudnnFeatures, DescribeTheProductOfEachDirection) {
  const CudnnConfig config = CudnnConfig::of_engine(62);
  const auto row = [&](const char* operation) {
    return row_of(concat("conv op=", operation, kLayer), config);
  };
  const Row forward = row("forward");
  EXPECT_DOUBLE_EQ(forward.at("log2_m"), 13);  // 32 * 16 * 16
  EXPECT_DOUBLE_EQ(forward.at("log2_n"), 7);
  EXPECT_DOUBLE_EQ(forward.at("waves_128_128"), 64.0 / 132);
  EXPECT_DOUBLE_EQ(row("backward_data").at("log2_n"), 6);
  EXPECT_DOUBLE_EQ(row("backward_weight").at("log2_k"), 13);
  EXPECT_DOUBLE_EQ(forward.at("is_pointwise"), 0);
  EXPECT_DOUBLE_EQ(forward.at("channels_aligned"), 16);
}

TEST(ConvCudnnFeatures, TellDepthwiseAndOddChannelsApart) {
  const CudnnConfig config = CudnnConfig::ranked(CudnnHeuristic::kA, 2);
  const Row depthwise = row_of("conv n=1 c=36 k=36 g=36 hi=8 wi=8 y=3 x=3 dtype=bf16", config);
  EXPECT_DOUBLE_EQ(depthwise.at("is_depthwise"), 1);
  EXPECT_DOUBLE_EQ(depthwise.at("channels_aligned"), 1);
  EXPECT_DOUBLE_EQ(depthwise.at("rank"), 2);
  EXPECT_DOUBLE_EQ(depthwise.at("engine"), -1);
  const Row odd = row_of("conv n=1 c=36 k=20 hi=8 wi=8 y=1 x=1 dtype=bf16", config);
  EXPECT_DOUBLE_EQ(odd.at("channels_aligned"), 4);
  EXPECT_DOUBLE_EQ(odd.at("is_pointwise"), 1);
}

TEST(ConvCudnnFeatures, DivideTheDepthByTheParts) {
  CudnnConfig config = CudnnConfig::of_engine(33);
  const std::string layer = concat("conv op=backward_weight", kLayer);
  EXPECT_DOUBLE_EQ(row_of(layer, config).at("log2_split_depth"), 13);
  config.set_knob(0, 8);  // split_k
  EXPECT_DOUBLE_EQ(row_of(layer, config).at("log2_split_depth"), 10);
  CudnnConfig slices = CudnnConfig::of_engine(70);
  slices.set_knob(17, 4);  // split_k_slc
  EXPECT_DOUBLE_EQ(row_of(layer, slices).at("log2_split_depth"), 11);
  EXPECT_DOUBLE_EQ(row_of(layer, slices).at("split_waves"),
                   4 * row_of(layer, slices).at("waves_128_128"));
}

}  // namespace
}  // namespace foretune
