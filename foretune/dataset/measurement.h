// One measurement: problem, config, context, outcome, metrics. Crashed, wrong and refused configs
// are data to learn from, so they are stored like any other.
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/hash.h"
#include "foretune/metrics/metric.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

// Stored in files: never renumber.
enum class Outcome : std::uint8_t {
  kOk = 0,
  kCensored = 1,  // stopped early: the value is a lower bound of the time, never a time
  kUnsupported = 2,
  kPrepareFailed = 3,
  kCrashed = 4,
  kTimedOut = 5,
  kWrongResult = 6,
};
// Returns the names that this version knows, in the order of the enumerators.
std::span<const std::string_view> outcome_names();
bool is_known(Outcome outcome);
std::string_view to_string(Outcome outcome);
std::optional<Outcome> parse_outcome(std::string_view text);

// The stage at which a measurement that is not ok stopped. Stored in files: never renumber.
enum class Stage : std::uint8_t {
  kNone = 0,
  kPrepare = 1,
  kBind = 2,
  kRun = 3,
  kVerify = 4,
  kEvaluate = 5,  // also for a row, ok or not, from a stage after the timing
};
std::span<const std::string_view> stage_names();
bool is_known(Stage stage);
std::string_view to_string(Stage stage);
std::optional<Stage> parse_stage(std::string_view text);

// Stored in files: never renumber.
enum class CacheState : std::uint8_t { kWarm = 0, kCold = 1 };
std::string_view to_string(CacheState state);

// The conditions that a time is valid for. The identity of a context has nothing that changes from
// minute to minute, because measurements are resumed by (problem, config, context).
struct Context {
  std::uint64_t machine = 0;  // Fingerprint::digest()
  std::string device;         // human-readable
  std::int32_t threads = 1;   // threads that the kernel may use
  CacheState cache = CacheState::kWarm;
  std::int32_t clock_mhz = 0;  // locked clock, 0 when free-running
  std::int32_t fidelity = 0;   // 0 is the full protocol; higher numbers are cheaper ones

  [[nodiscard]] std::uint64_t hash() const;
  [[nodiscard]] std::string text() const;
  bool operator==(const Context&) const = default;
};

// Conditions seen while measuring, as bits of Measurement::flags. Stored in files.
inline constexpr std::uint8_t kFlagLoaded = 1;     // other work was running
inline constexpr std::uint8_t kFlagThrottled = 2;  // the clock was below its usual value
inline constexpr std::uint8_t kFlagImported = 4;   // not measured by us
inline constexpr std::uint8_t kFlagReference = 8;  // re-measured interleaved with the winner

struct Measurement {
  Problem problem;
  Config config;
  Context context;
  Outcome outcome = Outcome::kOk;
  Stage stage = Stage::kNone;
  std::uint8_t flags = 0;
  std::string reason;                // for an outcome that is not ok
  std::vector<MetricValue> metrics;  // empty unless ok or censored; may lack a time
  std::vector<float> samples_ns;     // optional, per window

  // Returns the value of that name, or nullptr.
  [[nodiscard]] const MetricValue* find(std::string_view metric) const {
    return find_metric(metrics, metric);
  }
  // True when a later stage yielded it, after the config was timed and verified.
  [[nodiscard]] bool is_evaluation() const { return stage == Stage::kEvaluate; }
  bool operator==(const Measurement&) const = default;
};

// Returns the key of (problem, config, context), which decides whether something is already
// measured.
[[nodiscard]] std::uint64_t resume_key(const Problem& problem, const Config& config,
                                       const Context& context);

}  // namespace foretune
