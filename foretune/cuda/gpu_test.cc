// Tests with the libraries of tests/fake_gpu. The environment belongs to the whole process, so
// faults are tested where a process can be started for each: in the family's tests.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/cuda/clock_monitor.h"
#include "foretune/cuda/device.h"
#include "foretune/cuda/stopwatch.h"

namespace foretune::cuda {
namespace {

const Libraries kFake{.driver = FORETUNE_FAKE_GPU, .nvml = FORETUNE_FAKE_GPU};

std::shared_ptr<Device> open_device() {
  auto device = Device::open(kFake, 0);
  EXPECT_TRUE(device) << device.error().message;
  return *std::move(device);
}

std::vector<float> values(Device& device, const Buffer& buffer, DataType type, std::size_t count) {
  auto wide = device.allocate(count * sizeof(float));
  device.widen(buffer, type, count, *wide);
  std::vector<float> out(count);
  device.read(*wide, 0, out);
  return out;
}

TEST(DriverApi, SaysWhatItCannotLoad) {
  const auto api = DriverApi::load("libno-such-driver.so.1");
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(api.error().message.find("libno-such-driver.so.1"), std::string::npos);
}

TEST(DriverApi, SaysWhichSymbolIsMissing) {
  // This library exists, but is not one of CUDA's.
  const auto api = DriverApi::load("libm.so.6");
  ASSERT_FALSE(api);
  EXPECT_NE(api.error().message.find("cuInit"), std::string::npos) << api.error().message;
}

TEST(DriverApi, ErrorsCarryCallAndNumber) {
  const auto api = DriverApi::load(FORETUNE_FAKE_GPU);
  ASSERT_TRUE(api) << api.error().message;
  EXPECT_TRUE((*api)->check(kDriverSuccess, "cuInit"));
  const Status status = (*api)->check(2, "cuMemAlloc");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("cuMemAlloc"), std::string::npos);
  EXPECT_NE(status.error().message.find("CUDA error 2"), std::string::npos);
}

TEST(Device, KnowsItself) {
  const auto device = open_device();
  const Fingerprint& fingerprint = device->fingerprint();
  EXPECT_EQ(fingerprint.device, "Foretune Fake GPU");
  EXPECT_EQ(fingerprint.isa, "sm_90");
  EXPECT_EQ(fingerprint.hardware.get(HardwareValue::kCores), 132);
  EXPECT_GT(fingerprint.hardware.get(HardwareValue::kBandwidthAllGbs), 1000);
  EXPECT_NE(fingerprint.digest(), 0U);
  EXPECT_EQ(device->l2_bytes(), std::size_t{50} << 20U);
}

TEST(Device, RefusesAGpuThatIsNotThere) {
  const auto device = Device::open(kFake, 7);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(device.error().message.find("no GPU 7"), std::string::npos);
}

TEST(Device, TooMuchMemoryIsAnError) {
  const auto device = open_device();
  const auto buffer = device->allocate(std::size_t{1} << 40U);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().code, ErrorCode::kUnsupported);
  const std::size_t before = device->free_bytes();
  {
    const auto kept = device->allocate(1 << 20);
    ASSERT_TRUE(kept);
    EXPECT_LE(device->free_bytes() + (1 << 20), before);
  }
  EXPECT_EQ(device->free_bytes(), before);
}

class RandomElements : public testing::TestWithParam<DataType> {};

TEST_P(RandomElements, HostAndDeviceAgreeExactly) {
  constexpr std::size_t kCount = 5000;
  const auto device = open_device();
  const auto buffer = device->allocate(kCount * sizeof(float));
  ASSERT_TRUE(buffer);
  device->fill(*buffer, GetParam(), kCount, 77);
  const std::vector<float> found = values(*device, *buffer, GetParam(), kCount);
  std::set<float> distinct;
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(found[i], random_element(GetParam(), 77, i)) << i;
    ASSERT_GE(found[i], -1);
    ASSERT_LT(found[i], 1);
    distinct.insert(found[i]);
  }
  EXPECT_GE(distinct.size(), 16U);
  // The next seed gives other numbers, not the same ones shifted by one.
  std::size_t same = 0;
  std::size_t shifted = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    same += random_element(GetParam(), 78, i) == found[i] ? 1U : 0U;
    shifted += random_element(GetParam(), 76, i + 1) == found[i] ? 1U : 0U;
  }
  EXPECT_LT(same, kCount / 10);
  EXPECT_LT(shifted, kCount / 10);
}

INSTANTIATE_TEST_SUITE_P(Types, RandomElements,
                         testing::Values(DataType::kF32, DataType::kF16, DataType::kBf16,
                                         DataType::kTf32, DataType::kF8e4m3));

// Has two buffers of single precision. `wanted` has values of seed 1.
class ComparisonTest : public testing::Test {
 protected:
  static constexpr std::size_t kCount = 1000;

  void SetUp() override {
    ASSERT_TRUE(wanted);
    ASSERT_TRUE(found);
    device->fill(*wanted, DataType::kF32, kCount, 1);
  }

  const std::shared_ptr<Device> device = open_device();
  const Result<Buffer> wanted = device->allocate(kCount * sizeof(float));
  const Result<Buffer> found = device->allocate(kCount * sizeof(float));
};

TEST_F(ComparisonTest, AllowsTheTolerance) {
  device->fill(*found, DataType::kF32, kCount, 1);
  EXPECT_EQ(device->compare(*found, DataType::kF32, *wanted, kCount, 0, 0).count, 0U);
  // Other numbers differ almost everywhere.
  device->fill(*found, DataType::kF32, kCount, 2);
  const Difference difference =
      device->compare(*found, DataType::kF32, *wanted, kCount, 1e-4F, 1e-4F);
  EXPECT_GT(difference.count, 900U);
  EXPECT_EQ(difference.wanted, random_element(DataType::kF32, 1, difference.first));
  EXPECT_EQ(device->compare(*found, DataType::kF32, *wanted, kCount, 2.5F, 0).count, 0U);
}

TEST(Device, AppliesGeluInPlace) {
  constexpr std::size_t kCount = 300;
  const auto device = open_device();
  const auto buffer = device->allocate(kCount * sizeof(float));
  ASSERT_TRUE(buffer);
  device->fill(*buffer, DataType::kF32, kCount, 5);
  const std::vector<float> before = values(*device, *buffer, DataType::kF32, kCount);
  device->gelu(*buffer, kCount);
  const std::vector<float> after = values(*device, *buffer, DataType::kF32, kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_NEAR(static_cast<double>(after[i]), gelu(static_cast<double>(before[i])), 1e-6);
  }
}

TEST_F(ComparisonTest, PoisonIsNeverEqual) {
  device->set(*found, 0xff);
  for (const DataType type : {DataType::kF32, DataType::kBf16, DataType::kF16, DataType::kF8e4m3}) {
    EXPECT_EQ(device->compare(*found, type, *wanted, kCount, 1e30F, 1).count, kCount)
        << to_string(type);
  }
}

class StopwatchTest : public testing::Test {
 protected:
  StopwatchTest() : buffer(*device->allocate(1 << 22)), watch(*device) {}
  Stopwatch::Enqueue fill(std::uint64_t elements) {
    return [this, elements](std::int64_t run) -> Status {
      runs.push_back(run);
      device->fill(buffer, DataType::kF32, elements, 1);
      return {};
    };
  }
  std::shared_ptr<Device> device = open_device();
  Buffer buffer;
  Stopwatch watch;
  std::vector<std::int64_t> runs;
};

TEST_F(StopwatchTest, TimesOneRunOfEachWindow) {
  const auto rough_ns = watch.first_run(fill(1 << 20));
  ASSERT_TRUE(rough_ns);
  EXPECT_EQ(runs.size(), 2U);
  ASSERT_TRUE(watch.record({.runs = 4, .windows = 3}, fill(1 << 20), nullptr));
  std::vector<double> windows_ns;
  watch.time(windows_ns);
  ASSERT_EQ(windows_ns.size(), 3U);
  // The fake's own formula: 2000 ns and 4 MiB at 2400 bytes a nanosecond.
  for (const double window_ns : windows_ns) {
    EXPECT_NEAR(window_ns, 2000 + 4194304 / 2400.0, 5);
  }
  // The fake's clock does not run while the host enqueues.
  EXPECT_GT(*rough_ns, 0);
  EXPECT_LT(*rough_ns, 3 * windows_ns[0]);
}

TEST_F(StopwatchTest, TheHostsTimeIsNotThatOfAFirstRun) {
  const auto slow_host = [&](std::int64_t run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return fill(1 << 20)(run);
  };
  const auto rough_ns = watch.first_run(slow_host);
  ASSERT_TRUE(rough_ns);
  EXPECT_GT(*rough_ns, 0);
  EXPECT_LT(*rough_ns, 2500);  // a quarter of the time that the device takes, launches included
}

TEST_F(StopwatchTest, RecordsOnceAndReplays) {
  ASSERT_TRUE(watch.record({.runs = 3, .windows = 2}, fill(1024), nullptr));
  const std::vector<std::int64_t> expected{0, 0, 1, 2, 0, 1, 2};  // the first one warms up
  EXPECT_EQ(runs, expected);
  ASSERT_TRUE(watch.record({.runs = 3, .windows = 2}, fill(1024), nullptr));
  EXPECT_EQ(runs, expected);
  std::vector<double> windows_ns;
  watch.time(windows_ns);
  watch.time(windows_ns);
  EXPECT_EQ(windows_ns.size(), 4U);
  ASSERT_TRUE(watch.record({.runs = 1, .windows = 1}, fill(1024), nullptr));
  EXPECT_EQ(runs.size(), 9U);
}

TEST_F(StopwatchTest, WhatComesBeforeAWindowIsNotItsTime) {
  const auto large = device->allocate(1 << 26);
  const auto flush = [&] { device->set(*large, 0); };
  std::vector<double> without;
  std::vector<double> with;
  ASSERT_TRUE(watch.record({.runs = 2, .windows = 2}, fill(4096), nullptr));
  watch.time(without);
  ASSERT_TRUE(watch.record({.runs = 2, .windows = 3}, fill(4096), flush));
  watch.time(with);
  EXPECT_NEAR(with[1], without[1], 1);
}

TEST_F(StopwatchTest, ARefusedRunIsAnErrorAndLeavesTheDeviceUsable) {
  const Stopwatch::Enqueue refuses = [](std::int64_t) -> Status {
    return fail(ErrorCode::kUnsupported, "no");
  };
  EXPECT_FALSE(watch.first_run(refuses));
  EXPECT_EQ(watch.record({.runs = 2, .windows = 2}, refuses, nullptr).error().message, "no");
  EXPECT_TRUE(watch.record({.runs = 2, .windows = 2}, fill(1024), nullptr));
  std::vector<double> windows_ns;
  watch.time(windows_ns);
  EXPECT_EQ(windows_ns.size(), 2U);
}

TEST(ClockMonitor, ReadsAndLogs) {
  const testing_support::TemporaryFolder folder;
  const auto device = open_device();
  const std::filesystem::path log = folder.path() / "clock.csv";
  {
    const auto monitor = ClockMonitor::start(FORETUNE_FAKE_GPU, device->bus_id(), log);
    ASSERT_TRUE(monitor) << monitor.error().message;
    ClockReading reading;
    for (int i = 0; i < 500 && reading.sm_mhz == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      reading = (*monitor)->take();
    }
    EXPECT_EQ(reading.sm_mhz, 1980U);
    EXPECT_EQ(reading.milliwatt, 350000U);
    EXPECT_FALSE(reading.was_throttled);
  }
  const std::string text = *read_text_file(log);
  EXPECT_TRUE(text.starts_with("seconds,sm_mhz,memory_mhz,milliwatt,celsius,throttle_reasons\n"));
  EXPECT_NE(text.find(",1980,3201,350000,45,0\n"), std::string::npos) << text;
}

TEST(ClockMonitor, SaysWhyThereIsNone) {
  EXPECT_EQ(ClockMonitor::start("libno-such-nvml.so", "0", {}).error().code,
            ErrorCode::kUnsupported);
  EXPECT_EQ(ClockMonitor::start(FORETUNE_FAKE_GPU, "ffff:ff:ff.f", {}).error().code,
            ErrorCode::kUnsupported);
  const auto device = open_device();
  EXPECT_EQ(
      ClockMonitor::start(FORETUNE_FAKE_GPU, device->bus_id(), "/no/such/folder/x").error().code,
      ErrorCode::kIo);
}

}  // namespace
}  // namespace foretune::cuda
