#include "foretune/interop/ck/foretune_ck.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

TEST(ForetuneCk, NamesTheKernelOfCkTile) {
  const std::string name =
      "gemm_universal_bf16_rrr_mem_cshuffle_interwave_True_True_True_False_128x64x32_2x2x1_"
      "16x16x32";
  const Config config = parse_ck_gemm_name(name)->config;
  const auto bf16 = static_cast<std::int32_t>(DataType::kBf16);
  const auto rrr = static_cast<std::int32_t>(GemmLayout::kRrr);
  const auto count = static_cast<std::uint32_t>(config.words.size());
  std::array<char, 256> text{};
  EXPECT_EQ(foretune_ck_gemm_name(bf16, rrr, config.words.data(), count, text.data(), text.size()),
            name.size());
  EXPECT_EQ(std::string(text.data()), name);
  // As much as fits, and how much is needed.
  EXPECT_EQ(foretune_ck_gemm_name(bf16, rrr, config.words.data(), count, text.data(), 5),
            name.size());
  EXPECT_EQ(std::string(text.data()), "gemm");
  EXPECT_EQ(foretune_ck_gemm_name(bf16, rrr, config.words.data(), count, nullptr, 0), name.size());
  const auto is_refused = [&](std::int32_t dtype, std::int32_t layout, const std::int32_t* words,
                              std::uint32_t words_given) {
    text[0] = 'x';
    return foretune_ck_gemm_name(dtype, layout, words, words_given, text.data(), text.size()) ==
               0 &&
           text[0] == '\0';
  };
  EXPECT_TRUE(is_refused(bf16, rrr, nullptr, count));
  EXPECT_TRUE(is_refused(bf16, rrr, config.words.data(), count - 1));
  EXPECT_TRUE(is_refused(bf16, 99, config.words.data(), count));
  EXPECT_TRUE(is_refused(-1, rrr, config.words.data(), count));
}

TEST(ForetuneCk, NamesTheConvolutionOfCkTile) {
  const std::string name = "grouped_conv_bwd_weight_bf16_3d_64x128x64_basic_v1_interwave_dsb_si";
  const Config config = parse_ck_conv_name(name)->config;
  const auto bf16 = static_cast<std::int32_t>(DataType::kBf16);
  const auto count = static_cast<std::uint32_t>(config.words.size());
  const std::int32_t* const words = config.words.data();
  std::array<char, 256> text{};
  EXPECT_EQ(foretune_ck_conv_name(2, bf16, 3, words, count, text.data(), text.size()), name.size());
  EXPECT_EQ(std::string(text.data()), name);
  EXPECT_EQ(foretune_ck_conv_name(0, bf16, 2, words, count, text.data(), 25),
            std::string("grouped_conv_forward_bf16_2d_64x128x64_basic_v1_interwave_dsb_si").size());
  EXPECT_EQ(std::string(text.data()), "grouped_conv_forward_bf1");
  const auto is_refused = [&](std::int64_t op, std::int64_t dtype, std::int32_t dims,
                              const std::int32_t* given, std::uint32_t words_given) {
    text[0] = 'x';
    return foretune_ck_conv_name(op, dtype, dims, given, words_given, text.data(), text.size()) ==
               0 &&
           text[0] == '\0';
  };
  EXPECT_TRUE(is_refused(3, bf16, 2, words, count));
  EXPECT_TRUE(is_refused(-1, bf16, 2, words, count));
  EXPECT_TRUE(is_refused(0, 99, 2, words, count));
  EXPECT_TRUE(is_refused(0, bf16, 4, words, count));
  EXPECT_TRUE(is_refused(0, bf16, 0, words, count));
  EXPECT_TRUE(is_refused(0, bf16, 2, words, count - 1));
  EXPECT_TRUE(is_refused(0, bf16, 2, nullptr, count));
  const auto f64 = static_cast<std::int32_t>(DataType::kF64);
  EXPECT_TRUE(is_refused(0, f64, 2, words, count)) << "a type without a name";
}

TEST(ForetuneCk, NamesStreamkKernelsByTheNumberOfTheirWords) {
  const std::string name =
      "gemm_streamk_fp16_rcr_compv4_cshuffle_intrawave_tree_False_False_False_True_128x128x64_"
      "2x2x1_16x16x32";
  const Config config = parse_ck_gemm_name(name)->config;
  std::array<char, 256> text{};
  EXPECT_EQ(foretune_ck_gemm_name(static_cast<std::int32_t>(DataType::kF16),
                                  static_cast<std::int32_t>(GemmLayout::kRcr), config.words.data(),
                                  static_cast<std::uint32_t>(config.words.size()), text.data(),
                                  text.size()),
            name.size());
  EXPECT_EQ(std::string(text.data()), name);
}

}  // namespace
}  // namespace foretune
