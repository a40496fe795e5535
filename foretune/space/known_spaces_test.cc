#include "foretune/space/known_spaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "foretune/base/text.h"
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
  // The rules alone: a kernel may have values that the lists for searching lack.
  const auto compiled =
      CompiledSpace::create(SpaceDefinition::parse(known_rules_of(ck_gemm_schema(), arch)).value());
  EXPECT_TRUE(compiled) << compiled.error().message;
  const CkGemmKernel parsed = parse_ck_gemm_name("gemm_universal_" + std::string(kernel)).value();
  const Hardware device = known_device(hardware.empty() ? arch : hardware).value().hardware;
  return std::string(
      (*compiled)
          ->why_not(
              parsed.config,
              Problem::parse(
                  concat("gemm ", problem.find("layout=") == std::string::npos ? "layout=rcr " : "",
                         problem))
                  .value(),
              device)
          .reason());
}

constexpr const char* kF16 = "m=256 n=256 k=128 dtype=f16";
constexpr const char* kF8 = "m=256 n=256 k=256 dtype=f8e4m3";

TEST(KnownSpaces, AllCompileAndHaveTheSchemaOfTheirConfigs) {
  ASSERT_EQ(known_space_texts().size(), 6U);
  for (const EmbeddedText& file : known_space_texts()) {
    SCOPED_TRACE(std::string(file.name));
    const auto definition = known_space(file.name);
    ASSERT_TRUE(definition) << definition.error().message;
    const bool is_conv = file.name.starts_with("ck-conv-");
    EXPECT_EQ(definition->schema, is_conv ? ck_grouped_conv_schema() : ck_gemm_schema());
    EXPECT_EQ(definition->text(), file.text);
    const auto compiled = CompiledSpace::create(*definition);
    ASSERT_TRUE(compiled) << compiled.error().message;
    EXPECT_EQ(definition->domains.size(), definition->schema.parameters.size());
    // A device is found by its architecture, and its rules are those of the file.
    const std::string isa(file.name.substr(file.name.rfind('-') + 1));
    EXPECT_EQ(known_space_of(definition->schema, isa + ":xnack-").value(), *definition);
    const auto rules = SpaceDefinition::parse(known_rules_of(definition->schema, isa));
    ASSERT_TRUE(rules) << rules.error().message;
    EXPECT_TRUE(rules->domains.empty());
    EXPECT_EQ(rules->constraints, definition->constraints);
  }
  EXPECT_EQ(known_rules_of(ck_gemm_schema(), "gfx1"), "");
  EXPECT_EQ(known_rules_of(ck_gemm_schema(), ""), "");
  EXPECT_THAT(known_space_of(ck_gemm_schema(), "gfx1").error().message, HasSubstr("'gfx1'"));
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
  // Rows of A that lie one after the other need no padding; columns do.
  const std::string plain = kernel(kNoPad, "128x128x64_2x2x1_32x32x16");
  EXPECT_EQ(refusal("gfx942", plain, "m=257 n=256 k=128 dtype=f16"), "");
  EXPECT_THAT(refusal("gfx942", plain, "m=257 n=256 k=128 dtype=f16 layout=crr"),
              HasSubstr("does not pad m"));
  EXPECT_EQ(
      refusal("gfx942",
              kernel("compv3_default_intrawave_True_False_False", "128x128x64_2x2x1_32x32x16"),
              "m=257 n=256 k=128 dtype=f16 layout=crr"),
      "");
  EXPECT_THAT(refusal("gfx942", plain, "m=256 n=257 k=128 dtype=f16"), HasSubstr("pad n"));
  EXPECT_THAT(refusal("gfx942", plain, "m=256 n=256 k=100 dtype=f16"), HasSubstr("pad k"));
  EXPECT_EQ(refusal("gfx942", plain, "m=256 n=256 k=100 dtype=f16 layout=crr"), "");
  EXPECT_THAT(refusal("gfx942", kernel(kNoPad, "128x128x64_2x2x1_32x32x16_vec16_8_8"), kF16),
              HasSubstr("accesses of A"));
  EXPECT_EQ(refusal("gfx942", kernel(kNoPad, "128x128x64_2x2x1_32x32x16_vec8_8_8"), kF16), "");
  EXPECT_THAT(refusal("gfx942", kernel(kNoPad, "128x128x64_2x2x1_32x32x16"),
                      "op=bmm batch=2 m=256 n=256 k=128 dtype=f16"),
              HasSubstr("plain products"));
}

std::string conv_refusal(const std::string& arch, std::string_view kernel,
                         const std::string& problem) {
  const CkConvKernel parsed =
      parse_ck_conv_name("grouped_conv_forward_bf16_2d_" + std::string(kernel)).value();
  const Config& config = parsed.config;
  // The rules alone: a kernel without a wave mode is legal but not proposed.
  SpaceDefinition rules =
      SpaceDefinition::parse(known_rules_of(ck_grouped_conv_schema(), arch)).value();
  const auto without_values = CompiledSpace::create(std::move(rules));
  EXPECT_TRUE(without_values);
  return std::string((*without_values)
                         ->why_not(config, Problem::parse("conv " + problem).value(),
                                   known_device(arch).value().hardware)
                         .reason());
}

constexpr const char* kLayer = "n=2 c=64 k=128 hi=28 wi=28 y=3 x=3 pad_h=1 pad_w=1 dtype=bf16";

TEST(CkConvSpaces, HaveTenTilesAndThirtyVariantsOfThePipelines) {
  const Hardware hardware = known_device("gfx950").value().hardware;
  const auto compiled = CompiledSpace::create(known_space("ck-conv-gfx950").value());
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (const char* op : {"forward", "backward_data", "backward_weight"}) {
    const auto space = ParametricSpace::bind(
        *compiled, Problem::parse(std::string("conv op=") + op + " " + kLayer).value(), hardware);
    ASSERT_TRUE(space) << space.error().message;
    ASSERT_NE((*space)->enumerable(), nullptr);
    EXPECT_EQ((*space)->count(), 300U) << op;
  }
  // Less local memory holds no second buffer of the largest tile: compv4, compv6 and dsb.
  const auto small = CompiledSpace::create(known_space("ck-conv-gfx942").value());
  const auto space =
      ParametricSpace::bind(*small, Problem::parse("conv " + std::string(kLayer)).value(),
                            known_device("gfx942").value().hardware);
  EXPECT_EQ((*space)->count(), 300U - 18U);
}

TEST(CkConvSpaces, RefuseKernelsWithTheirReason) {
  for (const char* arch : {"gfx90a", "gfx942", "gfx950"}) {
    EXPECT_EQ(conv_refusal(arch, "64x64x64_compv3", kLayer), "") << arch;
    EXPECT_EQ(conv_refusal(arch, "64x64x64_compv4", kLayer), "") << arch;
    EXPECT_EQ(conv_refusal(arch, "64x64x64_mem_interwave_dsb_si", kLayer), "") << arch;
  }
  EXPECT_THAT(conv_refusal("gfx950", "128x64x64_compv3", kLayer), HasSubstr("ten tiles"));
  EXPECT_THAT(conv_refusal("gfx950", "64x64x64_compv3_interwave", kLayer),
              HasSubstr("only the pipelines mem and basic_v1"));
  EXPECT_THAT(conv_refusal("gfx950", "64x64x64_compv4_intrawave", kLayer),
              HasSubstr("always has two buffers"));
  EXPECT_THAT(conv_refusal("gfx950", "64x64x64_compv3_dsb", kLayer), HasSubstr("no wave mode"));
  EXPECT_THAT(conv_refusal("gfx942", "128x64x128_compv4_intrawave_dsb", kLayer),
              HasSubstr("do not fit local memory"));
  EXPECT_EQ(conv_refusal("gfx950", "128x64x128_compv4_intrawave_dsb", kLayer), "");
  EXPECT_THAT(
      conv_refusal("gfx950", "64x64x64_compv3", "n=2 c=64 k=4 hi=28 wi=28 y=3 x=3 dtype=bf16"),
      HasSubstr("8 filters"));
  EXPECT_THAT(conv_refusal("gfx950", "64x64x64_compv3",
                           "n=2 c=64 k=64 g=64 hi=28 wi=28 y=3 x=3 dtype=bf16"),
              HasSubstr("8 channels"));
  EXPECT_THAT(
      conv_refusal("gfx950", "64x64x64_compv3", std::string(kLayer) + " layout=channels_first"),
      HasSubstr("channels last"));
}

}  // namespace
}  // namespace foretune
