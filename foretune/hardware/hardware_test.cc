#include "foretune/hardware/hardware.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

TEST(HardwareValue, NamesAreDistinctWordsAndParseBack) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kHardwareValueCount; ++i) {
    const auto value = static_cast<HardwareValue>(i);
    const std::string_view name = to_string(value);
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos);
    EXPECT_EQ(parse_hardware_value(name), value);
    names.insert(name);
  }
  EXPECT_EQ(names.size(), kHardwareValueCount);
  EXPECT_FALSE(parse_hardware_value("speed"));
  EXPECT_FALSE(parse_hardware_value(""));
}

TEST(Hardware, TextLeavesOutWhatIsUnknown) {
  Hardware hardware;
  EXPECT_EQ(hardware.text(), "");
  hardware.set(HardwareValue::kClockMhz, 2600.5);
  hardware.set(HardwareValue::kCores, 2);
  EXPECT_EQ(hardware.text(), "cores=2 clock_mhz=2600.5");
  EXPECT_EQ(Hardware::parse(hardware.text()).value(), hardware);
  EXPECT_EQ(Hardware::parse("").value(), Hardware{});
}

TEST(Hardware, RandomValuesRoundTrip) {
  constexpr std::uint64_t kSeed = 41;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  for (int trial = 0; trial < 500; ++trial) {
    Hardware hardware;
    for (std::size_t i = 0; i < kHardwareValueCount; ++i) {
      if (rng.below(2) == 0) {
        hardware.set(static_cast<HardwareValue>(i),
                     rng.uniform() * static_cast<double>(std::uint64_t{1} << rng.below(50)));
      }
    }
    ASSERT_EQ(Hardware::parse(hardware.text()).value(), hardware);
  }
}

TEST(Hardware, SkipsNamesOfLaterVersionsAndRefusesNonsense) {
  EXPECT_EQ(Hardware::parse("cores=4 qubits=17").value().get(HardwareValue::kCores), 4);
  for (const char* text : {"cores", "cores=", "cores=x", "cores=-1", "cores=nan", "cores=inf",
                           "cores=1e30", "cores=4x", "qubits=?"}) {
    const Result<Hardware> parsed = Hardware::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt);
  }
}

Fingerprint some_fingerprint() {
  Fingerprint fingerprint;
  fingerprint.device = "Some CPU: 3000 (R)";
  fingerprint.isa = "avx2 fma";
  fingerprint.system = "6.1.0, KVM";
  fingerprint.hardware.set(HardwareValue::kCores, 4);
  fingerprint.hardware.set(HardwareValue::kL2Bytes, 1 << 20);
  return fingerprint;
}

TEST(Fingerprint, TextRoundTrips) {
  const Fingerprint fingerprint = some_fingerprint();
  EXPECT_EQ(Fingerprint::parse(fingerprint.text()).value(), fingerprint);
  EXPECT_EQ(Fingerprint::parse(Fingerprint{}.text()).value(), Fingerprint{});
  EXPECT_EQ(Fingerprint::parse("").value(), Fingerprint{});
  EXPECT_EQ(Fingerprint::parse(h200_fingerprint().text()).value(), h200_fingerprint());
}

TEST(Fingerprint, RefusesOtherText) {
  EXPECT_EQ(Fingerprint::parse("no colon here").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(Fingerprint::parse("device: x\nhardware: cores=many").error().code,
            ErrorCode::kCorrupt);
  EXPECT_EQ(Fingerprint::parse("device: x\nlater: unknown key").value().device, "x");
}

TEST(Fingerprint, DigestCoversWhatIsStableOnly) {
  const Fingerprint fingerprint = some_fingerprint();
  EXPECT_NE(fingerprint.digest(), 0U);
  EXPECT_EQ(Fingerprint{}.digest(), 0U);
  Fingerprint same = fingerprint;
  same.system = "6.2.0";
  same.hardware.set(HardwareValue::kFmaPeakGflops, 123);
  same.hardware.set(HardwareValue::kClockMhz, 999);
  same.hardware.set(HardwareValue::kBandwidthGbs, 9);
  same.hardware.set(HardwareValue::kMemoryBytes, 1e9);
  EXPECT_EQ(same.digest(), fingerprint.digest());
  std::set<std::uint64_t> digests{fingerprint.digest()};
  Fingerprint other = fingerprint;
  other.device += "x";
  digests.insert(other.digest());
  other = fingerprint;
  other.isa = "avx2";
  digests.insert(other.digest());
  other = fingerprint;
  other.hardware.set(HardwareValue::kCores, 5);
  digests.insert(other.digest());
  other = fingerprint;
  other.hardware.set(HardwareValue::kL2Bytes, 5);
  digests.insert(other.digest());
  EXPECT_EQ(digests.size(), 5U);
}

// Data sets store the digest: it must not change between versions.
TEST(Fingerprint, DigestIsGolden) { EXPECT_EQ(h200_fingerprint().digest(), 11871939507552992777U); }

TEST(H200, HasThePublishedFacts) {
  const Hardware hardware = h200_fingerprint().hardware;
  EXPECT_EQ(hardware.get(HardwareValue::kCores), 132);
  EXPECT_EQ(hardware.get(HardwareValue::kL1Bytes), 228 * 1024);
  EXPECT_EQ(hardware.get(HardwareValue::kSharedBytesPerBlock), 232448);
  EXPECT_EQ(hardware.get(HardwareValue::kL2Bytes), 52428800);
  EXPECT_EQ(hardware.get(HardwareValue::kBandwidthGbs), 4800);
  EXPECT_EQ(hardware.get(HardwareValue::kTensorPeakGflops), 989000);
  EXPECT_EQ(hardware.get(HardwareValue::kRegisterFileBytes), 262144);
  EXPECT_EQ(hardware.get(HardwareValue::kThreadsPerCore), 2048);
  EXPECT_EQ(hardware.get(HardwareValue::kWarpSize), 32);
  EXPECT_EQ(hardware.get(HardwareValue::kMemoryBytes), 141e9);
  EXPECT_EQ(hardware.get(HardwareValue::kClockMhz), 1980);
}

}  // namespace
}  // namespace foretune
