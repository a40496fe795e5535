// Metrics: what a measurement yields beside its outcome. Time comes first; a family may declare any
// other (time to pack, bytes of workspace, energy, accuracy on a data set).
//
//   MetricInfo info{.name = "psnr_db", .unit = "dB", .direction = Direction::kMaximise};
//   measurement.metrics.push_back({"psnr_db", 41.5});
//
// A metric is known by its name: letters, digits and underscores, beginning with a letter.
// Thread safety: plain values and constant tables.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "foretune/base/result.h"

namespace foretune {

// The two metrics that every timed measurement has.
inline constexpr std::string_view kTimeNs = "time_ns";      // minimum over the windows, per run
inline constexpr std::string_view kMedianNs = "median_ns";  // their median

inline constexpr std::string_view kPackNs = "pack_ns";
inline constexpr std::string_view kWorkspaceBytes = "bytes";
inline constexpr std::string_view kEnergyJ = "energy_j";

// Stored in files: never renumber.
enum class Direction : std::uint8_t { kMinimise = 0, kMaximise = 1 };
std::string_view to_string(Direction direction);

// When a metric becomes known. Stored in files: never renumber.
enum class MetricStage : std::uint8_t {
  kRun = 0,         // with the time, by the measurement that takes it
  kEvaluation = 1,  // in a stage of its own, after timing and verification, on request
};

struct MetricInfo {
  std::string name;
  std::string unit;  // may be empty
  Direction direction = Direction::kMinimise;
  MetricStage stage = MetricStage::kRun;
  bool operator==(const MetricInfo&) const = default;
};

struct MetricValue {
  MetricValue() = default;
  MetricValue(std::string_view name, double measured, double relative_spread = 0,
              std::uint32_t sample_count = 0)
      : metric(name), value(measured), spread(relative_spread), samples(sample_count) {}

  std::string metric;
  double value = 0;
  double spread = 0;  // relative interquartile range of the samples; 0 when unknown
  std::uint32_t samples = 0;
  bool operator==(const MetricValue&) const = default;
};

// Returns the value of that name, or nullptr.
const MetricValue* find_metric(std::span<const MetricValue> values, std::string_view name);
const MetricInfo* find_metric(std::span<const MetricInfo> infos, std::string_view name);

// Returns the metrics with a fixed meaning in this project: time_ns, median_ns, pack_ns, energy_j,
// bytes, qos_tune, qos_test. Families declare others.
std::span<const MetricInfo> common_metrics();

// Describes an undeclared name: a common metric, or one to minimise without a unit.
MetricInfo metric_info(std::string_view name);

// Errors: kInvalidArgument for a name that is not one, of more than 64 bytes, or a unit of more
// than 16.
Status check_metric_info(const MetricInfo& info);

// Returns the text form "psnr_db:maximise:dB", followed by ":evaluation" for a metric of the later
// stage; a common metric is only its name. Columns of tables have these names.
std::string to_text(const MetricInfo& info);
// Errors: kInvalidArgument.
Result<MetricInfo> parse_metric_info(std::string_view text);

}  // namespace foretune
