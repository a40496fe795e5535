// Tests with the NVML of tests/fake_gpu, and with a made-up table of functions for answers that the
// fake never gives.
#include "foretune/cuda/energy_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/cuda/clock_monitor.h"
#include "foretune/cuda/device.h"
#include "foretune/cuda/stopwatch.h"

namespace foretune::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The table's functions answer with these.
struct MadeUpNvml {
  int users = 0;
  int init_code = 0;
  int energy_code = 0;
  unsigned long long millijoule = 5'000;
};
MadeUpNvml& made_up() {
  static MadeUpNvml nvml;
  return nvml;
}

class MadeUpEnergy : public testing::Test {
 protected:
  void SetUp() override { made_up() = {}; }
  void TearDown() override { EXPECT_EQ(made_up().users, 0) << "NVML is left open, or shut twice"; }
  static std::shared_ptr<NvmlApi> table() {
    auto api = std::make_shared<NvmlApi>();
    api->init = [] {
      made_up().users += made_up().init_code == 0 ? 1 : 0;
      return made_up().init_code;
    };
    api->shutdown = [] {
      --made_up().users;
      return 0;
    };
    api->device_by_bus_id = [](const char* bus_id, NvmlDevice*) {
      return std::string_view(bus_id) == "0000:01:00.0" ? 0 : 6;
    };
    api->total_energy_millijoule = [](NvmlDevice, unsigned long long* millijoule) {
      *millijoule = made_up().millijoule;
      return made_up().energy_code;
    };
    return api;
  }
  static Error open_error(std::shared_ptr<NvmlApi> api, const std::string& bus_id) {
    const auto meter = EnergyMeter::open(std::move(api), bus_id);
    EXPECT_FALSE(meter);
    return meter ? Error{} : meter.error();
  }
};

TEST_F(MadeUpEnergy, CountsJoulesSinceItWasOpened) {
  const auto meter = EnergyMeter::open(table(), "0000:01:00.0");
  ASSERT_TRUE(meter) << meter.error().message;
  EXPECT_EQ((*meter)->read_j().value(), 0.0);
  made_up().millijoule += 12'345;
  EXPECT_DOUBLE_EQ((*meter)->read_j().value(), 12.345);
  EXPECT_EQ(made_up().users, 1);
}

TEST_F(MadeUpEnergy, ADriverWithoutTheCountIsNoMeter) {
  auto api = table();
  api->total_energy_millijoule = nullptr;
  const Error error = open_error(std::move(api), "0000:01:00.0");
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("driver"));
}

TEST_F(MadeUpEnergy, ADeviceThatDoesNotCountIsNoMeter) {
  made_up().energy_code = kNvmlNotSupported;
  const Error error = open_error(table(), "0000:01:00.0");
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, AllOf(HasSubstr("0000:01:00.0"), HasSubstr("Volta")));
}

TEST_F(MadeUpEnergy, SaysWhatFails) {
  EXPECT_THAT(open_error(table(), "ffff:ff:ff.f").message, HasSubstr("ffff:ff:ff.f (6)"));
  made_up().init_code = 9;
  EXPECT_THAT(open_error(table(), "0000:01:00.0").message, HasSubstr("nvmlInit fails (9)"));
}

TEST_F(MadeUpEnergy, AnErrorOfAReadLeavesTheMeterUsable) {
  const auto meter = EnergyMeter::open(table(), "0000:01:00.0");
  ASSERT_TRUE(meter) << meter.error().message;
  made_up().energy_code = 15;  // the GPU is lost
  const auto lost = (*meter)->read_j();
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::kIo);
  EXPECT_THAT(lost.error().message, HasSubstr("(15)"));
  made_up().energy_code = 0;
  made_up().millijoule = 4'999;
  EXPECT_EQ((*meter)->read_j().error().code, ErrorCode::kCorrupt);
  made_up().millijoule = 6'000;
  EXPECT_DOUBLE_EQ((*meter)->read_j().value(), 1);
}

TEST(EnergyMeter, FollowsWhatTheDeviceExecutes) {
  const Libraries fake{.driver = FORETUNE_FAKE_GPU, .nvml = FORETUNE_FAKE_GPU};
  const auto device = Device::open(fake, 0);
  ASSERT_TRUE(device) << device.error().message;
  const auto meter = EnergyMeter::open(fake.nvml, (*device)->bus_id());
  ASSERT_TRUE(meter) << meter.error().message;
  // Both use NVML, and closing one of them must leave the other's NVML open.
  ASSERT_TRUE(ClockMonitor::start(fake.nvml, (*device)->bus_id(), {}));
  EXPECT_EQ((*meter)->read_j().value(), 0.0);
  const auto buffer = (*device)->allocate(1 << 22);
  ASSERT_TRUE(buffer);
  Stopwatch watch(**device);
  ASSERT_TRUE(watch.record(
      {.runs = 64, .windows = 2},
      [&](std::int64_t) -> Status {
        (*device)->fill(*buffer, DataType::kF32, 1 << 20, 1);
        return {};
      },
      nullptr));
  std::vector<double> windows_ns;
  const double before_j = (*meter)->read_j().value();
  watch.time(windows_ns);
  const double joules = (*meter)->read_j().value() - before_j;
  ASSERT_EQ(windows_ns.size(), 2U);
  // 350 W, counted in millijoules; the graph's launch and events are not in the windows.
  EXPECT_NEAR(joules, 350e-9 * 64 * (windows_ns[0] + windows_ns[1]), 5e-3);
  EXPECT_GT(joules, 0.1);
}

TEST(EnergyMeter, SaysThatThereIsNoNvml) {
  const auto meter = EnergyMeter::open("libno-such-nvml.so", "0");
  ASSERT_FALSE(meter);
  EXPECT_EQ(meter.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace foretune::cuda
