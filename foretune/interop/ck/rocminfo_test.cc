#include "foretune/interop/ck/rocminfo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace foretune {
namespace {

using ::testing::HasSubstr;

constexpr const char* kText = R"(ROCk module is loaded
Runtime Version:         1.14
==========
HSA Agents
==========
*******
Agent 1
*******
  Name:                    AMD EPYC
  Device Type:             CPU
  Compute Unit:            96
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: FINE GRAINED
      Size:                    1000(0x3e8) KB
*******
Agent 2
*******
  Name:                    gfx900
  Device Type:             GPU
  Max Clock Frequency (MHz):1750
*******
Agent 3
*******
  Name:                    gfx942
  Marketing Name:          Some Accelerator
  Device Type:             GPU
  Cache Info:
    L1:                      32(0x20) KB
    L2:                      4096(0x1000) KB
    L3:                      262144(0x40000) KB
  Max Clock Freq. (MHz):   2100
  Compute Unit:            228
  Wavefront Size:          64(0x40)
  Max Waves Per CU:        32(0x20)
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: COARSE GRAINED
      Size:                    2048(0x800) KB
    Pool 2
      Segment:                 GROUP
      Size:                    64(0x40) KB
  ISA Info:
    ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx942
)";

TEST(Rocminfo, FindsTheNamedGpuAndItsFacts) {
  const auto found = parse_rocminfo(kText, "gfx942");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->device, "Some Accelerator");
  EXPECT_EQ(found->isa, "gfx942");
  Hardware expected;
  expected.set(HardwareValue::kCores, 228);
  expected.set(HardwareValue::kClockMhz, 2100);
  expected.set(HardwareValue::kL1Bytes, 65536);
  expected.set(HardwareValue::kSharedBytesPerBlock, 65536);
  expected.set(HardwareValue::kL2Bytes, 4194304);
  expected.set(HardwareValue::kL3Bytes, 268435456);
  expected.set(HardwareValue::kMemoryBytes, 2097152);
  expected.set(HardwareValue::kWarpSize, 64);
  expected.set(HardwareValue::kThreadsPerCore, 2048);
  EXPECT_EQ(found->hardware.text(), expected.text());
}

TEST(Rocminfo, TakesTheFirstGpuWhenNoneIsNamed) {
  const auto found = parse_rocminfo(kText);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->device, "gfx900");
  EXPECT_EQ(found->hardware.get(HardwareValue::kClockMhz), 1750);
  EXPECT_EQ(found->hardware.get(HardwareValue::kCores), 0);
}

TEST(Rocminfo, SaysWhatIsThereInstead) {
  EXPECT_THAT(parse_rocminfo(kText, "gfx950").error().message,
              HasSubstr("no 'gfx950', but gfx900, gfx942"));
  EXPECT_THAT(parse_rocminfo("", "gfx950").error().message, HasSubstr("names no GPU"));
  EXPECT_EQ(parse_rocminfo("Agent 1\nName: cpu\nDevice Type: CPU\n").error().code,
            ErrorCode::kNotFound);
}

// Cut anywhere, it is a GPU with fewer facts or none, never nonsense.
TEST(Rocminfo, MayEndAnywhere) {
  const std::string text = kText;
  for (std::size_t end = 0; end < text.size(); ++end) {
    const auto found = parse_rocminfo(std::string_view(text).substr(0, end), "gfx942");
    if (found) {
      EXPECT_EQ(found->isa, "gfx942") << end;
      EXPECT_GE(found->hardware.get(HardwareValue::kCores), 0) << end;
      EXPECT_LE(found->hardware.get(HardwareValue::kCores), 228) << end;
    }
  }
}

}  // namespace
}  // namespace foretune
