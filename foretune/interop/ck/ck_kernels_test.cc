#include "foretune/interop/ck/ck_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGemm =
    "gemm_universal_fp8_rcr_compv3_cshuffle_interwave_False_True_False_True_"
    "256x64x128_2x4x1_16x32x64";
constexpr const char* kConv = "grouped_conv_bwd_data_bf16_3d_16x64x128_basic_v1_interwave_dsb_si";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string gemm_error(const std::string& name) {
  const auto kernel = parse_ck_gemm_name(name);
  EXPECT_FALSE(kernel) << name;
  return kernel ? std::string() : kernel.error().message;
}
std::string conv_error(const std::string& name) {
  const auto kernel = parse_ck_conv_name(name);
  EXPECT_FALSE(kernel) << name;
  return kernel ? std::string() : kernel.error().message;
}

// Stored in data sets and models.
TEST(CkKernels, SchemasKeepTheirWords) {
  EXPECT_EQ(
      to_text(ck_gemm_schema(), Config{ck_gemm_schema().id(), {1, 2, 3, 4, 5, 6, 7, 8, 9, 5,
                                                               1, 1, 0, 1, 0, 1, 2, 8, 4, 2}}),
      "tile_m=1 tile_n=2 tile_k=3 warp_m=4 warp_n=5 warp_k=6 warp_tile_m=7 warp_tile_n=8 "
      "warp_tile_k=9 pipeline=basic_v1 scheduler=interwave epilogue=cshuffle pad_m=0 pad_n=1 "
      "pad_k=0 persistent=1 split_k=2 vec_a=8 vec_b=4 vec_c=2");
  EXPECT_EQ(to_text(ck_grouped_conv_schema(),
                    Config{ck_grouped_conv_schema().id(), {1, 2, 3, 6, 2, 1, 0}}),
            "tile_m=1 tile_n=2 tile_k=3 pipeline=compv6 wave_mode=interwave dsb=1 si=0");
  const ConfigSchema& gemm = ck_gemm_schema();
  EXPECT_EQ(gemm.find("split_k"), static_cast<std::size_t>(CkGemmParameter::kSplitK));
  EXPECT_EQ(gemm.find("vec_c"), static_cast<std::size_t>(CkGemmParameter::kVecC));
  EXPECT_EQ(gemm.parameters[9].labels[static_cast<std::size_t>(CkPipeline::kMem)], "mem");
  EXPECT_EQ(gemm.parameters[9].labels[static_cast<std::size_t>(CkPipeline::kCompV6)], "compv6");
}

TEST(CkKernels, GemmNameSaysEverything) {
  const auto kernel = parse_ck_gemm_name(kGemm);
  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_EQ(kernel->dtype, DataType::kF8e4m3);
  EXPECT_EQ(kernel->layout, GemmLayout::kRcr);
  EXPECT_EQ(to_text(ck_gemm_schema(), kernel->config),
            "tile_m=256 tile_n=64 tile_k=128 warp_m=2 warp_n=4 warp_k=1 warp_tile_m=16 "
            "warp_tile_n=32 warp_tile_k=64 pipeline=compv3 scheduler=interwave epilogue=cshuffle "
            "pad_m=0 pad_n=1 pad_k=0 persistent=1 split_k=1 vec_a=0 vec_b=0 vec_c=0");
  EXPECT_EQ(ck_gemm_name(*kernel), std::string(kGemm));

  const std::string vectors = std::string(kGemm) + "_vec8_0_2";
  const auto with_vectors = parse_ck_gemm_name("benchmark_" + vectors);
  ASSERT_TRUE(with_vectors) << with_vectors.error().message;
  EXPECT_EQ(with_vectors->config.words[17], 8);
  EXPECT_EQ(with_vectors->config.words[18], 0);
  EXPECT_EQ(with_vectors->config.words[19], 2);
  EXPECT_EQ(ck_gemm_name(*with_vectors), vectors);
}

TEST(CkKernels, GemmNamesOfAllOperationsAreRead) {
  const std::string rest =
      "fp16_rcr_compv4_cshuffle_intrawave_False_False_False_False_128x128x64_2x2x1_16x16x32";
  const auto universal = parse_ck_gemm_name("gemm_universal_" + rest);
  ASSERT_TRUE(universal) << universal.error().message;
  for (const std::string& name : {"gemm_" + rest, rest, "benchmark_gemm_" + rest}) {
    const auto kernel = parse_ck_gemm_name(name);
    ASSERT_TRUE(kernel) << name << ": " << kernel.error().message;
    EXPECT_EQ(*kernel, *universal) << name;
  }
  EXPECT_EQ(ck_gemm_identifier(*universal), rest);
  const std::string shuffled = "gemm_preshuffle_" + replaced(rest, "compv4", "preshufflev2");
  const auto preshuffle = parse_ck_gemm_name(shuffled);
  ASSERT_TRUE(preshuffle) << preshuffle.error().message;
  EXPECT_EQ(ck_gemm_name(*preshuffle), shuffled);
  EXPECT_THAT(gemm_error("gemm_preshuffle_" + rest), HasSubstr("has the pipeline preshufflev2"));
  EXPECT_THAT(gemm_error("gemm_multi_d_" + rest), HasSubstr("'multi' is not a data type"));
  EXPECT_THAT(gemm_error("gemm_universal"), HasSubstr("is not a data type"));
}

TEST(CkKernels, StreamkKernelsHaveAReduction) {
  for (const char* const reduction : {"atomic", "linear", "tree", "reduction"}) {
    const std::string name = concat("gemm_streamk_fp16_rcr_compv4_cshuffle_intrawave_", reduction,
                                    "_False_False_False_True_128x128x64_2x2x1_16x16x32");
    const auto kernel = parse_ck_gemm_name(name);
    ASSERT_TRUE(kernel) << name << ": " << kernel.error().message;
    EXPECT_EQ(kernel->config.schema, ck_gemm_streamk_schema().id());
    EXPECT_THAT(to_text(ck_gemm_streamk_schema(), kernel->config),
                HasSubstr(concat("vec_c=0 reduction=", reduction)));
    EXPECT_EQ(ck_gemm_name(*kernel), name);
  }
  EXPECT_THAT(gemm_error("gemm_streamk_fp16_rcr_compv4_cshuffle_intrawave_False_False_False_True_"
                         "128x128x64_2x2x1_16x16x32"),
              HasSubstr("'False' is not a reduction"));
}

TEST(CkKernels, ConvNameSaysEverything) {
  const auto kernel = parse_ck_conv_name(kConv);
  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_EQ(kernel->variant, CkConvVariant::kBwdData);
  EXPECT_EQ(kernel->dtype, DataType::kBf16);
  EXPECT_EQ(kernel->spatial_dims, 3);
  EXPECT_EQ(to_text(ck_grouped_conv_schema(), kernel->config),
            "tile_m=16 tile_n=64 tile_k=128 pipeline=basic_v1 wave_mode=interwave dsb=1 si=1");
  EXPECT_EQ(ck_conv_name(*kernel), std::string(kConv));

  const auto plain = parse_ck_conv_name("grouped_conv_forward_fp16_2d_32x128x64_compv4");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(to_text(ck_grouped_conv_schema(), plain->config),
            "tile_m=32 tile_n=128 tile_k=64 pipeline=compv4 wave_mode=none dsb=0 si=0");
}

TEST(CkKernels, EveryCombinationOfLabelsRoundTrips) {
  const ConfigSchema& schema = ck_gemm_schema();
  Rng rng(7);
  for (int round = 0; round < 2000; ++round) {
    CkGemmKernel kernel{.dtype = *parse_ck_dtype(std::vector<std::string>{
                            "fp32", "fp16", "bf16", "fp8", "bf8", "int8"}[rng.below(6)]),
                        .layout = static_cast<GemmLayout>(rng.below(4)),
                        .config = {schema.id(), Config::Words(schema.parameters.size())}};
    for (std::size_t i = 0; i < schema.parameters.size(); ++i) {
      const std::size_t labels = schema.parameters[i].labels.size();
      const bool flag = i >= 12 && i <= 15;
      kernel.config.words[i] = static_cast<std::int32_t>(
          labels > 0 ? rng.below(labels) : (flag ? rng.below(2) : 1 + rng.below(512)));
    }
    kernel.config.words[16] = 1;
    const auto name = ck_gemm_name(kernel);
    ASSERT_TRUE(name) << name.error().message;
    const auto again = parse_ck_gemm_name(*name);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, kernel) << *name;
  }
  const ConfigSchema& conv = ck_grouped_conv_schema();
  for (std::int32_t choice = 0; choice < 7 * 3 * 2 * 2 * 3 * 3; ++choice) {
    const CkConvKernel kernel{
        .variant = static_cast<CkConvVariant>(choice / 84 % 3),
        .dtype = DataType::kI8,
        .spatial_dims = choice / 252 + 1,
        .config = {conv.id(),
                   {16, 1, 8, choice % 7, choice / 7 % 3, choice / 21 % 2, choice / 42 % 2}}};
    const auto name = ck_conv_name(kernel);
    ASSERT_TRUE(name) << name.error().message;
    EXPECT_EQ(parse_ck_conv_name(*name), kernel) << *name;
  }
}

TEST(CkKernels, ErrorsNameThePart) {
  EXPECT_THAT(gemm_error(""), HasSubstr("does not begin with gemm_universal_"));
  EXPECT_THAT(gemm_error("gemm_universal"), HasSubstr("'' is not a data type"));
  EXPECT_THAT(gemm_error(replaced(kGemm, "fp8", "int4")), HasSubstr("'int4' is not a data type"));
  EXPECT_THAT(gemm_error(replaced(kGemm, "rcr", "rcc")), HasSubstr("'rcc' is not a layout (rcr"));
  EXPECT_THAT(gemm_error(replaced(kGemm, "compv3", "compv9")),
              HasSubstr("'compv9' is not a pipeline (compv3, compv4"));
  EXPECT_THAT(gemm_error(replaced(kGemm, "compv3", "compv33")), HasSubstr("'compv33'"));
  EXPECT_THAT(gemm_error(replaced(kGemm, "cshuffle_interwave", "interwave_cshuffle")),
              HasSubstr("'interwave' is not an epilogue"));
  EXPECT_THAT(gemm_error(replaced(kGemm, "interwave", "wave")), HasSubstr("a scheduler"));
  EXPECT_THAT(gemm_error(replaced(kGemm, "True_False", "true_False")),
              HasSubstr("'true' is not pad_n"));
  EXPECT_THAT(gemm_error(replaced(kGemm, "_True_256", "_256")),
              HasSubstr("'256x64x128' is not persistent"));
  EXPECT_THAT(gemm_error(replaced(kGemm, "256x64x128", "256x64")), HasSubstr("the block's tile"));
  EXPECT_THAT(gemm_error(replaced(kGemm, "2x4x1", "2x0x1")), HasSubstr("the warps of a block"));
  EXPECT_THAT(gemm_error(replaced(kGemm, "2x4x1", "2x04x1")), HasSubstr("the warps of a block"));
  EXPECT_THAT(gemm_error(replaced(kGemm, "16x32x64", "16x32x-64")), HasSubstr("the warp's tile"));
  EXPECT_THAT(gemm_error(replaced(kGemm, "16x32x64", "16x32x99999999999999999999")),
              HasSubstr("the warp's tile"));
  EXPECT_THAT(gemm_error(std::string(kGemm) + "_8_8_8"), HasSubstr("a's vector width"));
  EXPECT_THAT(gemm_error(std::string(kGemm) + "_vec8_8"), HasSubstr("c's vector width"));
  EXPECT_THAT(gemm_error(std::string(kGemm) + "_vec8_8_8_9"), HasSubstr("goes on"));
  EXPECT_THAT(gemm_error(std::string(kGemm) + "_"), HasSubstr("goes on"));
  EXPECT_THAT(gemm_error(kConv), HasSubstr("does not begin with gemm_universal_"));

  EXPECT_THAT(conv_error(kGemm), HasSubstr("does not begin with grouped_conv_"));
  EXPECT_THAT(conv_error(replaced(kConv, "bwd_data", "bwd")), HasSubstr("'bwd' is not a variant"));
  EXPECT_THAT(conv_error(replaced(kConv, "3d", "4d")), HasSubstr("'4d' is not a number of"));
  EXPECT_THAT(conv_error(replaced(kConv, "basic_v1", "basic")), HasSubstr("'basic' is not a pip"));
  EXPECT_THAT(conv_error(replaced(kConv, "dsb_si", "si_dsb")), HasSubstr("goes on"));
  EXPECT_THAT(conv_error(std::string(kConv) + "_si"), HasSubstr("goes on"));
  EXPECT_THAT(conv_error(std::string(kConv) + "_"), HasSubstr("goes on"));
  EXPECT_THAT(conv_error(replaced(kConv, "_dsb_", "_intrawave_dsb_")), HasSubstr("goes on"));
}

TEST(CkKernels, HostileNamesStayOutOfTheMessage) {
  const std::string message = gemm_error("gemm_universal_\x1b[31m" + std::string(100000, 'x'));
  EXPECT_LT(message.size(), 500U);
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_LT(gemm_error(std::string(1 << 20, '_')).size(), 500U);
  EXPECT_FALSE(parse_ck_conv_name(std::string("grouped_conv_\0forward", 21)));
}

// Whatever is accepted is what its own name says.
TEST(CkKernels, MutatedNamesAreRefusedOrCanonical) {
  constexpr std::string_view kAlphabet = "0123456789_xTFacemprstuv.-\n";
  Rng rng(11);
  int accepted = 0;
  for (int round = 0; round < 40000; ++round) {
    const bool gemm = rng.below(2) == 0;
    std::string name = gemm ? kGemm : kConv;
    for (std::uint64_t edits = 1 + rng.below(3); edits > 0 && !name.empty(); --edits) {
      const std::size_t at = rng.below(name.size());
      const char letter = kAlphabet[rng.below(kAlphabet.size())];
      switch (rng.below(4)) {
        case 0:
          name[at] = letter;
          break;
        case 1:
          name.insert(at, 1, letter);
          break;
        case 2:
          name.erase(at, 1);
          break;
        default:
          name.resize(at);
      }
    }
    if (const auto kernel = parse_ck_gemm_name(name)) {
      EXPECT_EQ(ck_gemm_name(*kernel), name);
      ++accepted;
    }
    if (const auto kernel = parse_ck_conv_name(name)) {
      EXPECT_EQ(ck_conv_name(*kernel), name);
      ++accepted;
    }
  }
  EXPECT_GT(accepted, 100);
}

TEST(CkKernels, NamesAreWrittenOnlyForKernelsThatHaveOne) {
  auto kernel = *parse_ck_gemm_name(kGemm);
  kernel.dtype = DataType::kF64;
  EXPECT_THAT(ck_gemm_name(kernel).error().message, HasSubstr("f64"));
  kernel.dtype = DataType::kF16;
  kernel.config.words[9] = 7;
  EXPECT_THAT(ck_gemm_name(kernel).error().message, HasSubstr("pipeline=7"));
  kernel.config.words[9] = 0;
  kernel.config.words[12] = 2;
  EXPECT_THAT(ck_gemm_name(kernel).error().message, HasSubstr("pad_m=2"));
  kernel.config.words[12] = 1;
  kernel.config.words[0] = 0;
  EXPECT_THAT(ck_gemm_name(kernel).error().message, HasSubstr("tile_m=0"));
  kernel.config.words.resize(19);
  EXPECT_THAT(ck_gemm_name(kernel).error().message, HasSubstr("none of ck-gemm"));

  auto conv = *parse_ck_conv_name(kConv);
  EXPECT_FALSE(ck_gemm_name({DataType::kF16, GemmLayout::kRcr, conv.config}));
  conv.spatial_dims = 4;
  EXPECT_THAT(ck_conv_name(conv).error().message, HasSubstr("4 spatial"));
  conv.spatial_dims = 2;
  conv.config.words[5] = 2;
  EXPECT_THAT(ck_conv_name(conv).error().message, HasSubstr("dsb=2"));
}

TEST(CkKernels, DataTypesHaveTheirNames) {
  const std::vector<std::pair<const char*, DataType>> known{
      {"fp32", DataType::kF32},   {"fp16", DataType::kF16},   {"bf16", DataType::kBf16},
      {"fp8", DataType::kF8e4m3}, {"bf8", DataType::kF8e5m2}, {"int8", DataType::kI8}};
  for (const auto& [name, type] : known) {
    EXPECT_EQ(parse_ck_dtype(name), type);
    EXPECT_EQ(ck_dtype_name(type), name);
  }
  EXPECT_EQ(ck_dtype_name(DataType::kTf32), "");
  EXPECT_THAT(parse_ck_dtype("int4").error().message, HasSubstr("'int4' is not a data type of CK"));
}

TEST(CkKernelNames, OfASchemaSayWhatTheyCompute) {
  const auto conv =
      parse_ck_kernel(ck_grouped_conv_schema(), "grouped_conv_bwd_data_fp16_2d_64x64x64_compv4");
  ASSERT_TRUE(conv) << conv.error().message;
  EXPECT_EQ(conv->dtype, DataType::kF16);
  EXPECT_EQ(conv->variant, CkConvVariant::kBwdData);
  EXPECT_FALSE(conv->layout);
  EXPECT_EQ(conv->config.schema, ck_grouped_conv_schema().id());
  const std::string name =
      "gemm_universal_fp8_rrr_compv3_cshuffle_intrawave_False_False_False_False_128x128x128_1x4x1_"
      "16x16x128";
  const auto gemm = parse_ck_kernel(ck_gemm_schema(), name);
  ASSERT_TRUE(gemm) << gemm.error().message;
  EXPECT_EQ(gemm->layout, GemmLayout::kRrr);
  EXPECT_FALSE(gemm->variant);
  EXPECT_EQ(gemm->config, parse_ck_gemm_name(name)->config);
  EXPECT_EQ(parse_ck_kernel(ck_gemm_streamk_schema(), name).error().code, ErrorCode::kMismatch);
  const std::string streamk_name =
      "gemm_streamk_fp16_rcr_compv4_cshuffle_intrawave_atomic_False_False_False_False_128x128x128_"
      "1x4x1_16x16x128";
  const auto streamk = parse_ck_kernel(ck_gemm_streamk_schema(), streamk_name);
  ASSERT_TRUE(streamk) << streamk.error().message;
  EXPECT_EQ(streamk->config.schema, ck_gemm_streamk_schema().id());
  EXPECT_EQ(parse_ck_kernel(ck_gemm_schema(), streamk_name).error().code, ErrorCode::kMismatch);
  const auto other = parse_ck_kernel(ck_grouped_conv_schema(), name);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("kernel 'gemm_universal_fp8"), std::string::npos);
  EXPECT_EQ(parse_ck_kernel({.name = "tiles", .parameters = {}}, name).error().code,
            ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace foretune
