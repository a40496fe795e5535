// The code shared by import and export of CSV: records, quoting, and the meaning of columns by
// name. Internal to the module.
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
  std::size_t index = 0;  // position of the field, parameter or metric
  double factor_ns = 1;   // of a time
};

// Splits one record off `text` (RFC 4180): quoted cells may hold commas, quotes and line breaks.
// Returns false when a quote is never closed, or there are over kMaxCsvColumns columns.
bool next_csv_record(std::string_view& text, std::vector<std::string>& cells);

// True when a column declares a metric, even an invalid one: "psnr_db:maximise:dB".
bool declares_metric(std::string_view name);
// Returns the column of a measurement named `name`: "time_us", "outcome", "energy_j_spread",
// "psnr_db:maximise:dB", or "psnr_db" where that is neither a field of the problem nor another
// column of a metric. The index of a metric is its position among `metrics`.
std::optional<CsvColumn> measurement_column(std::string_view name, const ProblemSchema& problem,
                                            std::span<const MetricInfo> metrics);
// Returns the name of a parameter's column: the parameter's name, with "config." before it where
// another column has that name.
std::string parameter_column(const ProblemSchema& problem, std::span<const MetricInfo> metrics,
                             std::string_view parameter);
inline constexpr std::string_view kParameterPrefix = "config.";

// Configs that are sequences are in one column: "config:NAME:VERSION" of the schema, above
// "3,16,1,0". Returns the schema when `name` is such a column, else nothing.
std::optional<ConfigSchema> sequence_column(std::string_view name);
std::string sequence_column_name(const ConfigSchema& schema);
// Marks a baseline's name among the configs of that column: "baseline:cublas".
inline constexpr std::string_view kBaselinePrefix = "baseline:";

}  // namespace foretune::dataset_internal
