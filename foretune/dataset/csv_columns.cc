#include "foretune/dataset/csv_columns.h"

#include <array>

#include "foretune/base/text.h"

namespace foretune::dataset_internal {

bool next_csv_record(std::string_view& text, std::vector<std::string>& cells) {
  cells.clear();
  cells.emplace_back();
  bool quoted = false;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        cells.back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        cells.back() += '"';
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"' && cells.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      if (cells.size() >= kMaxCsvColumns) {
        return false;
      }
      cells.emplace_back();
    } else if (c == '\n') {
      ++i;
      break;
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  text.remove_prefix(i);
  return !quoted;
}

namespace {

struct Known {
  std::string_view name;
  CsvRole role;
  double factor_ns;
};
constexpr std::array<Known, 16> kKnown{{{"time_ns", CsvRole::kTime, 1},
                                        {"time_us", CsvRole::kTime, 1e3},
                                        {"time_ms", CsvRole::kTime, 1e6},
                                        {"median_ns", CsvRole::kMedian, 1},
                                        {"spread", CsvRole::kSpread, 1},
                                        {"samples", CsvRole::kSamples, 1},
                                        {"outcome", CsvRole::kOutcome, 1},
                                        {"stage", CsvRole::kStage, 1},
                                        {"reason", CsvRole::kReason, 1},
                                        {"flags", CsvRole::kFlags, 1},
                                        {"machine", CsvRole::kMachine, 1},
                                        {"device", CsvRole::kDevice, 1},
                                        {"context_threads", CsvRole::kThreads, 1},
                                        {"cache", CsvRole::kCache, 1},
                                        {"clock_mhz", CsvRole::kClock, 1},
                                        {"fidelity", CsvRole::kFidelity, 1}}};

}  // namespace

std::optional<CsvColumn> measurement_column(std::string_view name,
                                            std::span<const MetricInfo> metrics) {
  for (const Known& known : kKnown) {
    if (known.name == name) {
      return CsvColumn{known.role, 0, known.factor_ns};
    }
  }
  for (std::size_t index = 0; index < metrics.size(); ++index) {
    const MetricInfo& info = metrics[index];
    if (info.name == kTimeNs || info.name == kMedianNs) {
      continue;
    }
    if (name == info.name || name == to_text(info)) {
      return CsvColumn{CsvRole::kMetric, index, 1};
    }
    if (name == concat(info.name, "_spread")) {
      return CsvColumn{CsvRole::kMetricSpread, index, 1};
    }
    if (name == concat(info.name, "_samples")) {
      return CsvColumn{CsvRole::kMetricSamples, index, 1};
    }
  }
  return std::nullopt;
}

std::string parameter_column(const ProblemSchema& problem, std::span<const MetricInfo> metrics,
                             std::string_view parameter) {
  const bool is_taken = measurement_column(parameter, metrics) || problem.find(parameter) ||
                        parameter.substr(0, kParameterPrefix.size()) == kParameterPrefix;
  return is_taken ? concat(kParameterPrefix, parameter) : std::string(parameter);
}

}  // namespace foretune::dataset_internal
