#include "foretune/hardware/energy_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "foretune/base/testing/temporary_folder.h"

namespace foretune {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint64_t kRangeUj = 262'143'328'850;  // of many Intel processors

// Makes a folder like /sys/class/powercap: all zones side by side, whatever they belong to.
class EnergyMeterTest : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path zone(const std::string& name) const { return folder / name; }
  void write(const std::string& zone_name, const std::string& file, const std::string& text) {
    std::filesystem::create_directories(zone(zone_name));
    std::ofstream(zone(zone_name) / file) << text << '\n';
  }
  void add(const std::string& zone_name, const std::string& name, std::uint64_t energy_uj) {
    write(zone_name, "name", name);
    write(zone_name, "max_energy_range_uj", std::to_string(kRangeUj));
    set(zone_name, energy_uj);
  }
  void set(const std::string& zone_name, std::uint64_t energy_uj) {
    write(zone_name, "energy_uj", std::to_string(energy_uj));
  }
  EnergyMeter open() {
    auto meter = EnergyMeter::open(folder.path());
    EXPECT_TRUE(meter) << meter.error().message;
    return *std::move(meter);
  }
  Error open_error() {
    const auto meter = EnergyMeter::open(folder.path());
    EXPECT_FALSE(meter);
    return meter ? Error{} : meter.error();
  }
  testing_support::TemporaryFolder folder;
};

TEST_F(EnergyMeterTest, CountsJoulesSinceItWasOpened) {
  add("intel-rapl:0", "package-0", 7'000'000);
  EnergyMeter meter = open();
  EXPECT_EQ(meter.read_j(), 0.0);
  set("intel-rapl:0", 9'500'000);
  EXPECT_DOUBLE_EQ(meter.read_j().value(), 2.5);
  EXPECT_DOUBLE_EQ(meter.read_j().value(), 2.5);
  set("intel-rapl:0", 9'500'061);
  EXPECT_DOUBLE_EQ(meter.read_j().value(), 2.500061);
}

TEST_F(EnergyMeterTest, AddsPackagesAndMemoryAndNothingTwice) {
  std::filesystem::create_directories(zone("intel-rapl"));
  add("intel-rapl:0", "package-0", 0);
  add("intel-rapl:0:0", "core", 0);
  add("intel-rapl:0:1", "uncore", 0);
  add("intel-rapl:0:2", "dram", 0);
  add("intel-rapl:1", "package-1-die-0", 0);
  add("intel-rapl:1:0", "dram", 0);
  add("intel-rapl:2", "psys", 0);
  add("intel-rapl:2:0", "dram", 0);
  add("intel-rapl-mmio:0", "package-0", 0);
  add("intel-rapl:x", "package-7", 0);
  add("intel-rapl:0:2:0", "dram", 0);
  EnergyMeter meter = open();
  EXPECT_EQ(meter.description(),
            "RAPL: package-0, dram of package-0, package-1-die-0, dram of package-1-die-0");
  std::uint64_t energy_uj = 1'000'000;
  for (const char* const name :
       {"intel-rapl:0", "intel-rapl:0:2", "intel-rapl:1", "intel-rapl:1:0"}) {
    set(name, energy_uj);
    energy_uj *= 10;
  }
  for (const char* const name : {"intel-rapl:0:0", "intel-rapl:0:1", "intel-rapl:2",
                                 "intel-rapl:2:0", "intel-rapl-mmio:0", "intel-rapl:x"}) {
    set(name, 500'000);
  }
  EXPECT_DOUBLE_EQ(meter.read_j().value(), 1111);
}

TEST_F(EnergyMeterTest, TenPackagesAreInTheOrderOfTheirNumbers) {
  add("intel-rapl:10", "package-10", 0);
  add("intel-rapl:2", "package-2", 0);
  EXPECT_EQ(open().description(), "RAPL: package-2, package-10");
}

TEST_F(EnergyMeterTest, ACounterThatBeginsAgainGoesOn) {
  add("intel-rapl:0", "package-0", kRangeUj - 3'000'000);
  add("intel-rapl:1", "package-1", 5'000'000);
  EnergyMeter meter = open();
  set("intel-rapl:0", kRangeUj - 1'000'000);
  set("intel-rapl:1", 6'000'000);
  EXPECT_DOUBLE_EQ(meter.read_j().value(), 3);
  set("intel-rapl:0", 4'000'000);  // 1 J up to its range, and 4 J
  EXPECT_DOUBLE_EQ(meter.read_j().value(), 8);
  set("intel-rapl:0", 1'000'000);  // a whole round but 3 J
  EXPECT_DOUBLE_EQ(meter.read_j().value(), 8 + static_cast<double>(kRangeUj) * 1e-6 - 3);
}

TEST_F(EnergyMeterTest, ACounterThatItsRangeDoesNotExplainIsAnError) {
  add("intel-rapl:0", "package-0", kRangeUj + 5);
  EnergyMeter meter = open();
  set("intel-rapl:0", 4);
  const auto joules = meter.read_j();
  ASSERT_FALSE(joules);
  EXPECT_EQ(joules.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(joules.error().message, AllOf(HasSubstr("energy_uj"), HasSubstr("went back")));
}

TEST_F(EnergyMeterTest, AMachineWithoutCountersSaysSo) {
  const Error empty = open_error();
  EXPECT_EQ(empty.code, ErrorCode::kUnsupported);
  EXPECT_THAT(empty.message, HasSubstr(folder.path().string()));
  const auto absent = EnergyMeter::open(folder / "absent");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kUnsupported);
  add("intel-rapl:0", "psys", 0);
  EXPECT_EQ(open_error().code, ErrorCode::kUnsupported);
}

TEST_F(EnergyMeterTest, ARootThatIsNoFolderIsAnError) {
  std::ofstream(folder / "file") << "x";
  const auto meter = EnergyMeter::open(folder / "file");
  ASSERT_FALSE(meter);
  EXPECT_EQ(meter.error().code, ErrorCode::kIo);
}

TEST_F(EnergyMeterTest, ZonesThatAContainerHidesAreNoCounters) {
  std::filesystem::create_symlink("../nowhere/intel-rapl:0", zone("intel-rapl:0"));
  const Error error = open_error();
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("intel-rapl:0/name"));
}

TEST_F(EnergyMeterTest, APackageWithoutACounterIsAnError) {
  write("intel-rapl:0", "name", "package-0");
  EXPECT_EQ(open_error().code, ErrorCode::kNotFound);
  write("intel-rapl:0", "max_energy_range_uj", "1000");
  const Error error = open_error();
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("energy_uj"));
}

TEST_F(EnergyMeterTest, TextInPlaceOfANumberIsAnError) {
  add("intel-rapl:0", "package-0", 0);
  for (const char* const text : {"", "-1", "1 2", "many", "99999999999999999999"}) {
    write("intel-rapl:0", "energy_uj", text);
    const Error error = open_error();
    EXPECT_EQ(error.code, ErrorCode::kCorrupt) << text;
    EXPECT_THAT(error.message, AllOf(HasSubstr("energy_uj"), HasSubstr("not a number"))) << text;
  }
  set("intel-rapl:0", 0);
  write("intel-rapl:0", "max_energy_range_uj", "far");
  EXPECT_THAT(open_error().message, HasSubstr("max_energy_range_uj"));
}

TEST_F(EnergyMeterTest, AnErrorInTheMiddleOfAReadLosesNothing) {
  add("intel-rapl:0", "package-0", 0);
  add("intel-rapl:1", "package-1", 0);
  EnergyMeter meter = open();
  set("intel-rapl:0", 2'000'000);
  std::filesystem::remove(zone("intel-rapl:1") / "energy_uj");
  const auto gone = meter.read_j();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(gone.error().message, HasSubstr("intel-rapl:1/energy_uj"));
  write("intel-rapl:1", "energy_uj", "none");
  EXPECT_EQ(meter.read_j().error().code, ErrorCode::kCorrupt);
  set("intel-rapl:1", 3'000'000);
  EXPECT_DOUBLE_EQ(meter.read_j().value(), 5);
}

// The thread's file accesses are those of a user who is not root, while this lives.
class AsNobody {
 public:
  AsNobody() : before_(static_cast<uid_t>(::setfsuid(65534))) {}
  ~AsNobody() { ::setfsuid(before_); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  uid_t before_;
};

TEST_F(EnergyMeterTest, WhoMayNotReadACounterLearnsWhichAndWhoMay) {
  using std::filesystem::perms;
  add("intel-rapl:0", "package-0", 0);
  std::filesystem::permissions(folder.path(), perms::all);
  std::filesystem::permissions(zone("intel-rapl:0") / "energy_uj", perms::none);
  const AsNobody nobody;
  if (std::ifstream(zone("intel-rapl:0") / "energy_uj")) {
    GTEST_SKIP() << "this user may read everything and cannot be another";
  }
  const Error error = open_error();
  EXPECT_EQ(error.code, ErrorCode::kIo);
  EXPECT_THAT(error.message, AllOf(HasSubstr("intel-rapl:0/energy_uj"), HasSubstr("root")));
}

TEST(EnergyMeter, OpensThisMachineOrSaysWhyNot) {
  auto meter = EnergyMeter::open();
  if (!meter) {
    EXPECT_THAT(meter.error().message, HasSubstr("/sys/class/powercap"));
    GTEST_SKIP() << meter.error().message;
  }
  const auto joules = meter->read_j();
  ASSERT_TRUE(joules) << joules.error().message;
  EXPECT_GE(*joules, 0);
}

}  // namespace
}  // namespace foretune
