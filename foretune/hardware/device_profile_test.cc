#include "foretune/hardware/device_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "foretune/base/testing/refusals.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

double fact(std::string_view device, HardwareValue value) {
  return known_device(device).value().hardware.get(value);
}

TEST(DeviceProfiles, EveryFileParsesAndIsFoundByEachOfItsNames) {
  std::set<std::string> names;
  ASSERT_EQ(device_profiles().size(), device_profile_texts().size());
  for (std::size_t i = 0; i < device_profiles().size(); ++i) {
    const EmbeddedText& file = device_profile_texts()[i];
    SCOPED_TRACE(std::string(file.name));
    const auto parsed = DeviceProfile::parse(file.text);
    ASSERT_TRUE(parsed) << parsed.error().message;
    ASSERT_FALSE(parsed->names.empty());
    EXPECT_EQ(parsed->names[0], file.name);
    for (const std::string& name : parsed->names) {
      EXPECT_TRUE(names.insert(name).second) << name;
      EXPECT_EQ(known_device(name).value(), parsed->fingerprint);
    }
    EXPECT_EQ(known_device(parsed->fingerprint.device).value(), parsed->fingerprint);
    EXPECT_FALSE(parsed->fingerprint.isa.empty());
    // Every table of features for its kind needs these values; GPUs alone have warps.
    const Hardware& hardware = parsed->fingerprint.hardware;
    const bool is_gpu = hardware.get(HardwareValue::kWarpSize) > 0;
    EXPECT_NE(is_gpu, hardware.get(HardwareValue::kVectorBytes) > 0);
    for (const HardwareValue value :
         {HardwareValue::kCores,
          is_gpu ? HardwareValue::kSharedBytesPerBlock : HardwareValue::kL3Bytes,
          HardwareValue::kThreadsPerCore, HardwareValue::kL2Bytes, HardwareValue::kClockMhz}) {
      EXPECT_GT(parsed->fingerprint.hardware.get(value), 0) << to_string(value);
    }
  }
  for (const char* wanted :
       {"gfx950", "gfx942", "mi300a", "gfx90a", "h200", "a100", "ck-gfx950", "ck-gfx942",
        "ck-gfx90a", "epyc7543", "xeon8272cl", "xeon_e5_2620v4", "xeon_e5_2680v3"}) {
    EXPECT_TRUE(names.count(wanted)) << wanted;
  }
}

TEST(DeviceProfiles, HoldThePublishedFacts) {
  EXPECT_EQ(fact("gfx950", HardwareValue::kCores), 256);
  EXPECT_EQ(fact("gfx950", HardwareValue::kSharedBytesPerBlock), 160 * 1024);
  EXPECT_EQ(fact("MI355X", HardwareValue::kDies), 8);
  EXPECT_EQ(fact("gfx942", HardwareValue::kCores), 304);
  EXPECT_EQ(fact("mi300a", HardwareValue::kCores), 228);
  EXPECT_EQ(fact("gfx90a", HardwareValue::kCores), 110);
  EXPECT_EQ(fact("gfx90a", HardwareValue::kL3Bytes), 0);
  EXPECT_EQ(fact("a100", HardwareValue::kCores), 108);
  EXPECT_EQ(fact("nvidia h200", HardwareValue::kCores), 132);
  EXPECT_EQ(fact("epyc7543", HardwareValue::kCores), 64);
  EXPECT_EQ(fact("xeon8272cl", HardwareValue::kVectorBytes), 64);
  EXPECT_EQ(fact("xeon_e5_2620v4", HardwareValue::kL3Bytes), 20.0 * 1024 * 1024);
  EXPECT_EQ(fact("xeon_e5_2680v3", HardwareValue::kL3Bytes), 30.0 * 1024 * 1024);
}

// These are the numbers that Composable Kernel's models were trained with, wrong ones included.
TEST(DeviceProfiles, OfComposableKernelKeepItsNumbers) {
  EXPECT_EQ(fact("ck-gfx950", HardwareValue::kCores), 256);
  EXPECT_EQ(fact("ck-gfx950", HardwareValue::kSharedBytesPerBlock), 65536);
  EXPECT_EQ(fact("ck-gfx950", HardwareValue::kL2Bytes), 4096.0 * 1024);
  EXPECT_EQ(fact("ck-gfx950", HardwareValue::kL3Bytes), 262144.0 * 1024);
  EXPECT_EQ(fact("ck-gfx942", HardwareValue::kCores), 228);
  EXPECT_EQ(fact("ck-gfx942", HardwareValue::kShaderEngines), 28);
  EXPECT_EQ(fact("ck-gfx90a", HardwareValue::kL3Bytes), 131072.0 * 1024);
  EXPECT_EQ(fact("ck-gfx90a", HardwareValue::kVectorCacheBytes), 16.0 * 1024);
}

TEST(DeviceProfiles, UnknownDevicesAreToldWhichAreKnown) {
  const auto unknown = known_device("gfx1");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(unknown.error().message, HasSubstr("gfx942, mi300x"));
}

TEST(DeviceProfile, IsReadFromItsText) {
  const auto profile = DeviceProfile::parse(
      "# Mine\n\n device: Box 1  # of two\nnames: BOX1 b\nisa: i\nsource: a page\n"
      "source: and a guess\ncores = 7\nl2_bytes=1e6\n");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->fingerprint.device, "Box 1");
  EXPECT_EQ(profile->fingerprint.isa, "i");
  EXPECT_EQ(profile->names, (std::vector<std::string>{"box1", "b"}));
  EXPECT_EQ(profile->source, "a page and a guess");
  EXPECT_EQ(profile->fingerprint.hardware.text(), "cores=7 l2_bytes=1e+06");
}

TEST(DeviceProfile, RefusesWhatItDoesNotKnow) {
  testing_support::expect_refusals(
      [](const std::string& lines) {
        return DeviceProfile::parse("device: d\nsource: s\n" + lines + "\n");
      },
      {{"corse=4", "'corse=4'"},
       {"cores", "'cores'"},
       {"cores=0", "above 0"},
       {"cores=nan", "above 0"},
       {"cores=4\ncores=5", "cores is given twice"},
       {"maker: me", "'maker' is no key"}});
  EXPECT_FALSE(DeviceProfile::parse("source: s\ncores=4"));
  EXPECT_FALSE(DeviceProfile::parse("device: d\ncores=4"));
}

}  // namespace
}  // namespace foretune
