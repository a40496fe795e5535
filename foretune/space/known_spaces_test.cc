#include "foretune/space/known_spaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "foretune/hardware/hardware.h"
#include "foretune/interop/ck/ck_kernels.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kKernel =
    "_rcr_compv3_cshuffle_intrawave_False_False_False_False_128x128x64_2x2x1_32x32x16";

// Returns why the kernel cannot compute the problem on the device; "" when it can.
std::string refusal(const std::string& arch, std::string_view kernel, const std::string& problem,
                    std::string_view hardware = {}) {
  const auto compiled = CompiledSpace::create(known_space("ck-gemm-" + arch).value());
  EXPECT_TRUE(compiled) << compiled.error().message;
  const CkGemmKernel parsed = parse_ck_gemm_name("gemm_universal_" + std::string(kernel)).value();
  const Hardware device = known_device(hardware.empty() ? arch : hardware).value().hardware;
  return std::string(
      (*compiled)
          ->why_not(parsed.config, Problem::parse("gemm layout=rcr " + problem).value(), device)
          .reason());
}

constexpr const char* kF16 = "m=256 n=256 k=128 dtype=f16";
constexpr const char* kF8 = "m=256 n=256 k=256 dtype=f8e4m3";

TEST(KnownSpaces, AllCompileAndHaveTheSchemaOfTheirConfigs) {
  ASSERT_EQ(known_space_texts().size(), 3U);
  for (const EmbeddedText& file : known_space_texts()) {
    SCOPED_TRACE(std::string(file.name));
    const auto definition = known_space(file.name);
    ASSERT_TRUE(definition) << definition.error().message;
    EXPECT_EQ(definition->schema, ck_gemm_schema());
    EXPECT_EQ(definition->text(), file.text);
    const auto compiled = CompiledSpace::create(*definition);
    ASSERT_TRUE(compiled) << compiled.error().message;
    EXPECT_TRUE(definition->domains.empty());
  }
  EXPECT_THAT(known_space("ck-gemm-gfx1").error().message, HasSubstr("ck-gemm-gfx90a"));
}

TEST(CkGemmSpaces, AcceptWhatFits) {
  for (const char* arch : {"gfx90a", "gfx942", "gfx950"}) {
    EXPECT_EQ(refusal(arch, "fp16" + std::string(kKernel), kF16), "") << arch;
    EXPECT_EQ(refusal(arch, "fp8" + std::string(kKernel), kF8), "") << arch;
  }
}

TEST(CkGemmSpaces, KnowTheMatrixInstructionsOfATypeAndDevice) {
  const std::string fp8 =
      "fp8_rcr_mem_default_interwave_False_False_False_False_128x128x128_2x2x1_";
  EXPECT_EQ(refusal("gfx950", fp8 + "16x16x128", kF8), "");
  EXPECT_THAT(refusal("gfx942", fp8 + "16x16x128", kF8), HasSubstr("no such matrix instruction"));
  EXPECT_EQ(refusal("gfx942", fp8 + "16x16x64", kF8), "");
  EXPECT_THAT(refusal("gfx90a", fp8 + "16x16x64", kF8), HasSubstr("no such matrix instruction"));
  EXPECT_EQ(refusal("gfx90a", fp8 + "32x32x32", kF8), "");
  // The same kernel for another type.
  EXPECT_THAT(refusal("gfx950", fp8 + "16x16x128", kF16), HasSubstr("for f16 and bf16"));
  EXPECT_THAT(refusal("gfx950", fp8 + "16x16x32", "m=256 n=256 k=256 dtype=f64"),
              HasSubstr("no kernel computes in this type"));
}

TEST(CkGemmSpaces, HoldTilesAgainstTheLocalMemoryThatThereIs) {
  // The tile takes (256 + 256) x 64 x 2 bytes: 64 KiB, and twice that when the pipeline has two
  // buffers.
  const std::string tile = "_False_False_False_False_256x256x64_2x2x1_32x32x16";
  const std::string problem = "m=256 n=256 k=64 dtype=f16";
  EXPECT_EQ(refusal("gfx942", "fp16_rcr_compv3_default_intrawave" + tile, problem), "");
  EXPECT_THAT(refusal("gfx942", "fp16_rcr_compv4_default_intrawave" + tile, problem),
              HasSubstr("do not fit local memory"));
  EXPECT_EQ(refusal("gfx950", "fp16_rcr_compv4_default_intrawave" + tile, problem), "");
  // Uses the numbers that Composable Kernel's engine has for the device.
  EXPECT_THAT(refusal("gfx950", "fp16_rcr_compv4_default_intrawave" + tile, problem, "ck-gfx950"),
              HasSubstr("do not fit local memory"));
  // The limit counts bytes, not elements.
  EXPECT_THAT(refusal("gfx942",
                      "fp16_rcr_compv3_default_intrawave_False_False_False_False_"
                      "256x256x128_2x2x1_32x32x16",
                      kF16),
              HasSubstr("do not fit local memory"));
  EXPECT_EQ(refusal("gfx942",
                    "fp8_rcr_compv3_default_intrawave_False_False_False_False_"
                    "256x256x128_2x2x1_32x32x16",
                    kF8),
            "");
}

TEST(CkGemmSpaces, RefuseWavesSchedulersAndShapesWithTheirReason) {
  const auto kernel = [](std::string_view traits, std::string_view sizes) {
    return "fp16_rcr_" + std::string(traits) + "_False_" + std::string(sizes);
  };
  constexpr std::string_view kNoPad = "compv3_default_intrawave_False_False_False";
  EXPECT_THAT(refusal("gfx90a", kernel(kNoPad, "128x128x64_2x1x1_32x32x16"), kF16),
              HasSubstr("2, 4 or 8 of them"));
  EXPECT_EQ(refusal("gfx942", kernel(kNoPad, "128x128x64_2x1x1_32x32x16"), kF16), "");
  EXPECT_THAT(refusal("gfx942", kernel(kNoPad, "96x128x64_2x2x1_32x32x16"),
                      "m=96 n=128 k=64 "
                      "dtype=f16"),
              HasSubstr("do not divide tile_m"));
  EXPECT_THAT(
      refusal("gfx942",
              kernel("compv3_default_interwave_False_False_False", "128x128x64_2x2x1_32x32x16"),
              kF16),
      HasSubstr("only the mem pipeline"));
  EXPECT_THAT(
      refusal("gfx942", kernel(kNoPad, "128x128x64_2x2x1_32x32x16"), "m=257 n=256 k=128 dtype=f16"),
      HasSubstr("does not pad m"));
  EXPECT_EQ(
      refusal("gfx942",
              kernel("compv3_default_intrawave_True_False_False", "128x128x64_2x2x1_32x32x16"),
              "m=257 n=256 k=128 dtype=f16"),
      "");
  EXPECT_THAT(refusal("gfx942", kernel(kNoPad, "128x128x64_2x2x1_32x32x16_vec16_8_8"), kF16),
              HasSubstr("accesses of A"));
  EXPECT_EQ(refusal("gfx942", kernel(kNoPad, "128x128x64_2x2x1_32x32x16_vec8_8_8"), kF16), "");
  EXPECT_THAT(refusal("gfx942", kernel(kNoPad, "128x128x64_2x2x1_32x32x16"),
                      "op=bmm batch=2 m=256 n=256 k=128 dtype=f16"),
              HasSubstr("plain products"));
}

}  // namespace
}  // namespace foretune
