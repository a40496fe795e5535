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

}  // namespace
}  // namespace foretune
