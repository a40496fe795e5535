#include "foretune/measure/energy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/hardware/energy_meter.h"

namespace foretune {
namespace {

using testing::HasSubstr;

// A machine that consumes power while its clock moves, and a meter that shows the consumption up to
// its last update.
class PoweredMachine {
 public:
  double watts = 100;
  std::int64_t update_ns = 1'000'000;
  std::int64_t reading_ns = 20'000;
  double shown_j = 0;

  void pass(std::int64_t ns) {
    while (ns > 0) {
      const std::int64_t step_ns = std::min(ns, update_ns - now_ns_ % update_ns);
      now_ns_ += step_ns;
      taken_j_ += static_cast<double>(step_ns) * 1e-9 * watts;
      ns -= step_ns;
      if (now_ns_ % update_ns == 0) {
        shown_j = taken_j_;
      }
    }
  }
  [[nodiscard]] std::int64_t now_ns() const { return now_ns_; }

 private:
  std::int64_t now_ns_ = 123'456;
  double taken_j_ = 0;
};

class Energy : public testing::Test {
 protected:
  // The runs take `takes_ns` and are announced as `run_ns`.
  Result<MetricValue> measure(std::int64_t takes_ns, double run_ns) {
    return measure_energy(
        [this, takes_ns] {
          ++calls;
          machine.pass(takes_ns);
          return before_return ? before_return() : Status();
        },
        run_ns,
        [this]() -> Result<double> {
          ++readings;
          machine.pass(machine.reading_ns);
          return shown ? shown() : machine.shown_j;
        },
        [this] { return machine.now_ns(); }, protocol);
  }
  Result<MetricValue> measure(std::int64_t takes_ns) {
    return measure(takes_ns, static_cast<double>(takes_ns));
  }
  Error error_of(std::int64_t takes_ns) {
    const Result<MetricValue> energy = measure(takes_ns);
    EXPECT_FALSE(energy);
    return energy ? Error{} : energy.error();
  }
  PoweredMachine machine;
  EnergyProtocol protocol;
  std::function<Status()> before_return;
  std::function<Result<double>()> shown;  // in place of what the machine's meter shows
  std::int64_t calls = 0;
  std::int64_t readings = 0;
};

TEST_F(Energy, IsPowerTimesTheTimeOfARun) {
  const auto energy = measure(10'000);
  ASSERT_TRUE(energy) << energy.error().message;
  EXPECT_EQ(energy->metric, kEnergyJ);
  EXPECT_NEAR(energy->value, 1e-3, 1e-5);
  EXPECT_LT(energy->spread, 0.01);
  EXPECT_EQ(energy->samples, 3U);
  // Three windows of 200 ms, and an update of the meter in front and behind each.
  EXPECT_GE(machine.now_ns(), 600'000'000);
  EXPECT_LT(machine.now_ns(), 615'000'000);
  EXPECT_LT(readings, 30);
}

TEST_F(Energy, ARunIsRightWhateverItsLength) {
  for (const std::int64_t takes_ns : {500, 70'000, 3'000'000, 150'000'000, 450'000'000}) {
    const auto energy = measure(takes_ns);
    ASSERT_TRUE(energy) << energy.error().message;
    const double expected_j = static_cast<double>(takes_ns) * 1e-7;
    EXPECT_NEAR(energy->value, expected_j, 0.015 * expected_j) << takes_ns;
  }
}

TEST_F(Energy, ARunLongerThanAWindowIsAWindow) {
  protocol.windows = 5;
  const auto energy = measure(3'000'000'000);
  ASSERT_TRUE(energy) << energy.error().message;
  EXPECT_NEAR(energy->value, 300, 0.2);
  EXPECT_EQ(energy->samples, 5U);
  EXPECT_EQ(calls, 6);  // one until the meter moves
}

TEST_F(Energy, ARunsTimeNeedNotBeKnownWell) {
  for (const double run_ns : {1e3, 1e4, 1e6, 1e9}) {
    const auto energy = measure(10'000, run_ns);
    ASSERT_TRUE(energy) << energy.error().message;
    EXPECT_NEAR(energy->value, 1e-3, 4e-5) << run_ns;
  }
}

TEST_F(Energy, ACallMayMakeManyRuns) {
  protocol.runs_per_call = 50;
  const auto energy = measure(500'000, 10'000);
  ASSERT_TRUE(energy) << energy.error().message;
  EXPECT_NEAR(energy->value, 1e-3, 1e-5);
}

TEST_F(Energy, WindowsLastFromUpdateToUpdateOfTheMeter) {
  machine.watts = 300;
  machine.update_ns = 100'000'000;
  machine.reading_ns = 3'000'000;
  protocol = EnergyProtocol::for_device();
  const auto energy = measure(1'000'000);
  ASSERT_TRUE(energy) << energy.error().message;
  EXPECT_NEAR(energy->value, 0.3, 0.009);
  EXPECT_LT(energy->spread, 0.03);
}

TEST_F(Energy, AMeterThatMovesRarelyMakesWindowsLonger) {
  machine.update_ns = 700'000'000;
  const auto energy = measure(100'000);
  ASSERT_TRUE(energy) << energy.error().message;
  EXPECT_NEAR(energy->value, 1e-2, 4e-4);
  EXPECT_GE(machine.now_ns(), 2'800'000'000);
}

TEST_F(Energy, AMeterThatNeverMovesIsAnError) {
  machine.watts = 0;
  const Error error = error_of(10'000);
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("did not move within 2000 ms"));
  EXPECT_GE(machine.now_ns(), 2'000'000'000);
  EXPECT_LT(machine.now_ns(), 2'100'000'000);
}

TEST_F(Energy, AMeterThatStopsInAWindowIsAnError) {
  shown = [this] { return std::min(machine.shown_j, 30.0); };  // in the second window
  EXPECT_EQ(error_of(10'000).code, ErrorCode::kUnsupported);
  EXPECT_GE(machine.now_ns(), 2'400'000'000);
  EXPECT_LT(machine.now_ns(), 2'500'000'000);
}

TEST_F(Energy, OneDisturbedWindowDoesNotCount) {
  before_return = [this] {
    const bool disturbed = machine.now_ns() > 250'000'000 && machine.now_ns() < 350'000'000;
    machine.watts = disturbed ? 300 : 100;
    return Status();
  };
  const auto energy = measure(10'000);
  ASSERT_TRUE(energy) << energy.error().message;
  EXPECT_NEAR(energy->value, 1e-3, 2e-5);
  EXPECT_GT(energy->spread, 0.3);
}

TEST_F(Energy, AnErrorOfARunEndsIt) {
  before_return = [this]() -> Status {
    if (calls == 30'000) {
      return fail(ErrorCode::kIo, "no more");
    }
    return {};
  };
  EXPECT_EQ(error_of(10'000), (Error{ErrorCode::kIo, "no more"}));
  EXPECT_EQ(calls, 30'000);
}

TEST_F(Energy, AnErrorOfTheMeterEndsIt) {
  for (const std::int64_t last : {1, 2, 5}) {
    readings = 0;
    shown = [this, last]() -> Result<double> {
      if (readings == last) {
        return fail(ErrorCode::kNotFound, "gone");
      }
      return machine.shown_j;
    };
    EXPECT_EQ(error_of(10'000), (Error{ErrorCode::kNotFound, "gone"})) << last;
    EXPECT_EQ(readings, last);
  }
}

TEST_F(Energy, AMeterThatGoesBackOrShowsNoNumberIsAnError) {
  for (const double value : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    readings = 0;
    shown = [this, value] { return readings == 4 ? value : machine.shown_j; };
    EXPECT_EQ(error_of(10'000).code, ErrorCode::kCorrupt) << value;
    EXPECT_EQ(readings, 4);
  }
  shown = [] { return std::nan(""); };
  EXPECT_EQ(error_of(10'000).code, ErrorCode::kCorrupt);
}

TEST_F(Energy, RefusesWhatMakesNoSense) {
  for (const double run_ns : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const auto energy = measure(10'000, run_ns);
    ASSERT_FALSE(energy);
    EXPECT_EQ(energy.error().code, ErrorCode::kInvalidArgument);
  }
  for (const EnergyProtocol& wrong :
       {EnergyProtocol{.windows = 0}, EnergyProtocol{.window_ns = 0},
        EnergyProtocol{.max_wait_ns = -1}, EnergyProtocol{.runs_per_call = 0}}) {
    protocol = wrong;
    EXPECT_EQ(error_of(10'000).code, ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(calls, 0);
}

TEST_F(Energy, ACounterMayBeginAgainWhileItRuns) {
  constexpr std::uint64_t kRangeUj = 25'000'000;  // three times in 600 ms of 100 W
  const testing_support::TemporaryFolder folder;
  const std::filesystem::path zone = folder / "intel-rapl:0";
  std::filesystem::create_directory(zone);
  const auto write = [&](const char* file, const std::string& text) {
    std::ofstream(zone / file) << text << '\n';
  };
  const auto publish = [&] {
    const auto shown_uj = static_cast<std::uint64_t>(machine.shown_j * 1e6);
    write("energy_uj", std::to_string(shown_uj % (kRangeUj + 1)));
  };
  write("name", "package-0");
  write("max_energy_range_uj", std::to_string(kRangeUj));
  publish();
  auto meter = EnergyMeter::open(folder.path());
  ASSERT_TRUE(meter) << meter.error().message;
  shown = [&] {
    publish();
    return meter->read_j();
  };
  const auto energy = measure(10'000);
  ASSERT_TRUE(energy) << energy.error().message;
  EXPECT_NEAR(energy->value, 1e-3, 1e-5);
  EXPECT_GT(machine.shown_j, 50);
}

}  // namespace
}  // namespace foretune
