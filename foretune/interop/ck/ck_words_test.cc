#include "foretune/interop/ck/ck_words.h"

#include <gtest/gtest.h>

#include <string>

#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

TEST(CkWords, LabelsOfTheirsBecomeOurs) {
  EXPECT_EQ(our_label("dtype", "fp16"), "f16");
  EXPECT_EQ(our_label("dtype", "fp8"), "f8e4m3");
  EXPECT_EQ(our_label("dtype", "bf16"), "bf16");
  EXPECT_EQ(our_label("dtype", "f32"), "f32");
  EXPECT_EQ(our_label("dtype", "half"), "half");
  EXPECT_EQ(our_label("op", "bwd_data"), "backward_data");
  EXPECT_EQ(our_label("op", "bwd_weight"), "backward_weight");
  EXPECT_EQ(our_label("op", "backward_data"), "backward_data");
  EXPECT_EQ(our_label("op", "mm"), "mm");
  EXPECT_EQ(our_label("layout", "fp16"), "fp16");
}

TEST(CkWords, OperationsNameATypeAndMayNameADirection) {
  for (const char* const gemm : {"gemm_universal", "gemm_streamk", "gemm_preshuffle"}) {
    ASSERT_TRUE(parse_ck_operation(gemm)) << gemm;
    EXPECT_EQ(parse_ck_operation(gemm)->type, kGemmProblem);
    EXPECT_EQ(parse_ck_operation(gemm)->label, "");
  }
  EXPECT_EQ(parse_ck_operation("grouped_conv")->type, kConvProblem);
  EXPECT_EQ(parse_ck_operation("grouped_conv")->label, "");
  EXPECT_EQ(parse_ck_operation("grouped_conv_bwd_weight")->label, "backward_weight");
  for (const char* const other : {"", "conv", "grouped_conv_sideways", "fmha", "bwd_data"}) {
    EXPECT_FALSE(parse_ck_operation(other)) << other;
  }
}

TEST(CkWords, AConfigIsAKernelForAProblem) {
  const std::string gemm =
      "gemm_universal_fp8_rcr_compv3_cshuffle_intrawave_False_False_False_False_"
      "128x128x128_1x4x1_16x16x128";
  Config config = parse_ck_gemm_name(gemm)->config;
  const Problem product = *Problem::parse("gemm m=128 n=1536 k=7168 dtype=f8e4m3 layout=rcr");
  EXPECT_EQ(ck_kernel_name(product, config), gemm);
  config.words[static_cast<std::size_t>(CkGemmParameter::kSplitK)] = 2;
  EXPECT_EQ(ck_kernel_name(product, config), gemm + " split_k=2");
  const Problem layer =
      *Problem::parse("conv op=backward_data n=2 c=16 k=16 di=4 hi=8 wi=8 z=3 y=3 x=3 dtype=bf16");
  const std::string conv = "grouped_conv_bwd_data_bf16_3d_64x64x64_compv4_intrawave_dsb";
  const Config of_conv = parse_ck_conv_name(conv)->config;
  EXPECT_EQ(ck_kernel_name(layer, of_conv), conv);
  EXPECT_EQ(ck_kernel_name(product, of_conv), "") << "another type of problem";
  EXPECT_EQ(ck_kernel_name(*Problem::parse("gemm m=4 n=4 k=4 dtype=f64"), config), "")
      << "a data type that they lack";
  EXPECT_EQ(ck_kernel_name(product, Config{}), "");
}

}  // namespace
}  // namespace foretune
