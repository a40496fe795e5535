// The rules that imported data sets carry, so that a model that learns from them knows the legal
// kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "foretune/base/text.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/space/known_spaces.h"

namespace foretune {
namespace {

Dataset import_csv(std::string_view text, ImportReport* report = nullptr,
                   std::string_view arch = "gfx950") {
  ImportFacts facts;
  facts.fingerprint = ck_fingerprint(arch).value();
  auto dataset = import_ck_text(text, ExchangeFormat::kCkCsv, facts, report);
  EXPECT_TRUE(dataset) << dataset.error().message;
  return *std::move(dataset);
}

std::string layer_of(std::string_view kernel) {
  return concat("kernel,N,C,K,G,Hi,Wi,Y,X,stride_h,stride_w,pad_h,pad_w,latency_ms\n",
                "grouped_conv_forward_bf16_2d_", kernel, ",2,64,64,1,14,14,3,3,1,1,1,1,0.01\n");
}

std::string product_of(std::string_view sizes) {
  return concat("kernel,m,n,k,latency_ms\n",
                "gemm_universal_fp16_rcr_compv3_cshuffle_intrawave_False_False_False_False_"
                "128x64x32_2x2x1_32x32x16,",
                sizes, ",0.01\n");
}

TEST(CkRules, AreThoseOfTheArchitecture) {
  for (const char* arch : {"gfx90a", "gfx942", "gfx950", "gfx1201"}) {
    EXPECT_EQ(import_csv(product_of("1,64,32"), nullptr, arch).header().space_text,
              known_rules_of(ck_gemm_schema(), arch));
    EXPECT_EQ(import_csv(layer_of("64x64x64_compv3"), nullptr, arch).header().space_text,
              known_rules_of(ck_grouped_conv_schema(), arch));
  }
  EXPECT_EQ(known_rules_of(ck_gemm_schema(), "gfx1201"), "");
}

TEST(CkRules, AreLeftOutWhereAKernelThatRanBreaksThem) {
  for (const std::string& text : {layer_of("256x256x32_compv3"), product_of("1,65,32")}) {
    ImportReport report;
    EXPECT_EQ(import_csv(text, &report).header().space_text, "") << text;
    ASSERT_EQ(report.notes.size(), 1U);
    EXPECT_THAT(report.notes.front().first,
                ::testing::StartsWith("without the rules of the architecture, which refuse a "));
  }
}

}  // namespace
}  // namespace foretune
