#include "foretune/measure/energy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "foretune/base/statistics.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

// How often clock and meter may be read in a window: its ends are found to half a percent.
constexpr double kLooksInAWindow = 200;
// The runs between two readings last at least this many times as long as a reading does, so that
// the window does not consist of readings.
constexpr double kRunningPerReading = 8;
constexpr double kMaxCallsPerLook = 1e9;

class EnergyWindows {
 public:
  EnergyWindows(const std::function<Status()>& run, double run_ns,
                const std::function<Result<double>()>& read_j,
                const std::function<std::int64_t()>& now_ns, const EnergyProtocol& protocol)
      : run_(run),
        read_j_(read_j),
        now_ns_(now_ns),
        protocol_(protocol),
        call_ns_(run_ns * static_cast<double>(protocol.runs_per_call)) {}

  // Reads the meter, then runs until it moves.
  Status begin();
  // Returns the joules of one run, over a window that begins and ends where the meter has just
  // moved.
  Result<double> window();

 private:
  [[nodiscard]] double calls_per_look() const {
    const double look_ns =
        std::max(protocol_.window_ns / kLooksInAWindow, kRunningPerReading * reading_ns_);
    return std::clamp(std::floor(look_ns / call_ns_), 1.0, kMaxCallsPerLook);
  }
  [[nodiscard]] double since(std::int64_t begin_ns) const {
    return static_cast<double>(now_ns_() - begin_ns);
  }
  Status run_until_look();
  // Reads the meter; returns true when it shows more than at the last reading.
  Result<bool> has_moved();
  [[nodiscard]] tl::unexpected<Error> stands_still() const {
    return fail(ErrorCode::kUnsupported, "the meter of energy did not move within ",
                fixed(protocol_.max_wait_ns * 1e-6, 0), " ms of running");
  }

  const std::function<Status()>& run_;
  const std::function<Result<double>()>& read_j_;
  const std::function<std::int64_t()>& now_ns_;
  const EnergyProtocol& protocol_;
  double call_ns_;  // as announced, then as last seen
  double calls_ = 0;
  double last_j_ = -std::numeric_limits<double>::infinity();
  double reading_ns_ = 0;  // the shortest so far
};

Status EnergyWindows::run_until_look() {
  const double calls = calls_per_look();
  const std::int64_t begin_ns = now_ns_();
  for (std::int64_t left = static_cast<std::int64_t>(calls); left > 0; --left) {
    FORETUNE_TRY_STATUS(run_());
  }
  calls_ += calls;
  if (const double took_ns = since(begin_ns); took_ns > 0) {
    call_ns_ = took_ns / calls;
  }
  return {};
}

Result<bool> EnergyWindows::has_moved() {
  const std::int64_t begin_ns = now_ns_();
  FORETUNE_TRY(const double now_j, read_j_());
  const double took_ns = since(begin_ns);
  if (!std::isfinite(now_j) || now_j < last_j_) {
    return fail(ErrorCode::kCorrupt, "the meter of energy went from ", last_j_, " J to ", now_j,
                " J");
  }
  const bool is_first = std::isinf(last_j_);
  reading_ns_ = is_first ? took_ns : std::min(reading_ns_, took_ns);
  const bool moved = now_j > last_j_;
  last_j_ = now_j;
  return moved;
}

Status EnergyWindows::begin() {
  FORETUNE_TRY(bool moved, has_moved());
  const std::int64_t begin_ns = now_ns_();
  do {
    FORETUNE_TRY_STATUS(run_until_look());
    FORETUNE_TRY(moved, has_moved());
    if (moved) {
      return {};
    }
  } while (since(begin_ns) < protocol_.max_wait_ns);
  return stands_still();
}

Result<double> EnergyWindows::window() {
  const double begin_j = last_j_;
  const double begin_calls = calls_;
  const std::int64_t begin_ns = now_ns_();
  bool was_read = true;  // just before the next runs, so that a movement belongs to them
  while (true) {
    FORETUNE_TRY_STATUS(run_until_look());
    const double elapsed_ns = since(begin_ns);
    if (elapsed_ns + calls_per_look() * call_ns_ < protocol_.window_ns) {
      was_read = false;
      continue;
    }
    FORETUNE_TRY(const bool moved, has_moved());
    if (elapsed_ns >= protocol_.window_ns && was_read && moved) {
      const double runs = (calls_ - begin_calls) * static_cast<double>(protocol_.runs_per_call);
      return (last_j_ - begin_j) / runs;
    }
    if (elapsed_ns >= protocol_.window_ns + protocol_.max_wait_ns) {
      return stands_still();
    }
    was_read = true;
  }
}

}  // namespace

Result<MetricValue> measure_energy(const std::function<Status()>& run, double run_ns,
                                   const std::function<Result<double>()>& read_j,
                                   const std::function<std::int64_t()>& now_ns,
                                   const EnergyProtocol& protocol) {
  const auto is_duration = [](double ns) { return std::isfinite(ns) && ns > 0; };
  if (!is_duration(run_ns)) {
    return fail(ErrorCode::kInvalidArgument, "a run of ", run_ns,
                " ns is none whose energy can be measured");
  }
  if (!is_duration(protocol.window_ns) || !is_duration(protocol.max_wait_ns) ||
      protocol.windows < 1 || protocol.runs_per_call < 1) {
    return fail(
        ErrorCode::kInvalidArgument,
        "energy is measured in at least one window, with a length and a wait above 0 ns and "
        "at least one run a call");
  }
  EnergyWindows windows(run, run_ns, read_j, now_ns, protocol);
  FORETUNE_TRY_STATUS(windows.begin());
  std::vector<double> samples_j;
  for (int i = 0; i < protocol.windows; ++i) {
    FORETUNE_TRY(const double sample_j, windows.window());
    samples_j.push_back(sample_j);
  }
  return MetricValue(kEnergyJ, median(samples_j), relative_spread(samples_j),
                     static_cast<std::uint32_t>(samples_j.size()));
}

}  // namespace foretune
