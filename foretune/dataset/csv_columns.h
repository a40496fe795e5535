// What import and export of CSV share: records, quoting, and the meaning of columns by name.
// Internal to the module.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/dataset/measurement.h"
#include "foretune/metrics/metric.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune::dataset_internal {

inline constexpr std::size_t kMaxCsvColumns = 16384;

enum class CsvRole : std::uint8_t {
  kField,
  kParameter,
  kConfig,
  kTime,
  kMedian,
  kSpread,
  kSamples,
  kOutcome,
  kStage,
  kReason,
  kFlags,
  kMachine,
  kDevice,
  kThreads,
  kCache,
  kClock,
  kFidelity,
  kMetric,
  kMetricSpread,
  kMetricSamples,
};

struct CsvColumn {
  CsvRole role = CsvRole::kParameter;
  std::size_t index = 0;  // of the field, parameter or metric
  double factor_ns = 1;   // of a time
};

// Splits one record off `text` (RFC 4180): quoted cells may hold commas, quotes and line breaks.
// False when a quote is never closed, or there are over kMaxCsvColumns columns.
bool next_csv_record(std::string_view& text, std::vector<std::string>& cells);

// Says whether a column declares a metric, perhaps badly: "psnr_db:maximise:dB".
bool declares_metric(std::string_view name);
// The column of a measurement that is called `name`: "time_us", "outcome", "energy_j_spread",
// "psnr_db:maximise:dB", or "psnr_db" where that is neither a field of the problem nor another
// column of a metric. The index of a metric is its position among `metrics`.
std::optional<CsvColumn> measurement_column(std::string_view name, const ProblemSchema& problem,
                                            std::span<const MetricInfo> metrics);
// What a parameter's column is called: by its name, or "config." and its name where another column
// is called so.
std::string parameter_column(const ProblemSchema& problem, std::span<const MetricInfo> metrics,
                             std::string_view parameter);
inline constexpr std::string_view kParameterPrefix = "config.";

// Configs that are sequences stand in one column: "config:NAME:VERSION" of the schema, above
// "3,16,1,0". Schema of that column when `name` is one, else nothing.
std::optional<ConfigSchema> sequence_column(std::string_view name);
std::string sequence_column_name(const ConfigSchema& schema);
// What tells a baseline's name from a config there: "baseline:cublas".
inline constexpr std::string_view kBaselinePrefix = "baseline:";

}  // namespace foretune::dataset_internal
