#include "foretune/interop/tables/internal/csv_columns.h"

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

constexpr std::string_view kSequencePrefix = "config:";

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

bool declares_metric(std::string_view name) {
  if (sequence_column(name)) {
    return false;
  }
  if (name.substr(0, kParameterPrefix.size()) == kParameterPrefix) {
    return false;
  }
  const std::size_t colon = name.find(':');
  // Any other colon may stand in the name of a parameter.
  return colon != std::string_view::npos && (name.substr(colon + 1).starts_with("minimise") ||
                                             name.substr(colon + 1).starts_with("maximise"));
}

std::optional<CsvColumn> measurement_column(std::string_view name, const ProblemSchema& problem,
                                            std::span<const MetricInfo> metrics) {
  for (const Known& known : kKnown) {
    if (known.name == name) {
      return CsvColumn{known.role, 0, known.factor_ns};
    }
  }
  const auto column = [&](CsvRole role, const auto& name_of) -> std::optional<CsvColumn> {
    for (std::size_t index = 0; index < metrics.size(); ++index) {
      const MetricInfo& info = metrics[index];
      if (info.name != kTimeNs && info.name != kMedianNs && name == name_of(info)) {
        return CsvColumn{role, index, 1};
      }
    }
    return std::nullopt;
  };
  // Columns that we write come first: one metric may be called like the spread of another.
  auto found = column(CsvRole::kMetric, [](const MetricInfo& info) { return to_text(info); });
  if (!found) {
    found = column(CsvRole::kMetricSpread,
                   [](const MetricInfo& info) { return concat(info.name, "_spread"); });
  }
  if (!found) {
    found = column(CsvRole::kMetricSamples,
                   [](const MetricInfo& info) { return concat(info.name, "_samples"); });
  }
  if (!found && !problem.find(name)) {
    found = column(CsvRole::kMetric, [](const MetricInfo& info) { return info.name; });
  }
  return found;
}

std::string parameter_column(const ProblemSchema& problem, std::span<const MetricInfo> metrics,
                             std::string_view parameter) {
  const bool is_taken = measurement_column(parameter, problem, metrics) ||
                        problem.find(parameter) || declares_metric(parameter) ||
                        sequence_column(parameter) ||
                        parameter.substr(0, kParameterPrefix.size()) == kParameterPrefix;
  return is_taken ? concat(kParameterPrefix, parameter) : std::string(parameter);
}

std::optional<ConfigSchema> sequence_column(std::string_view name) {
  const std::size_t last = name.rfind(':');
  if (!name.starts_with(kSequencePrefix) || last < kSequencePrefix.size()) {
    return std::nullopt;
  }
  const std::optional<std::uint64_t> version = parse_uint(name.substr(last + 1));
  if (!version || *version > UINT32_MAX) {
    return std::nullopt;
  }
  ConfigSchema schema;
  schema.name = name.substr(kSequencePrefix.size(), last - kSequencePrefix.size());
  schema.version = static_cast<std::uint32_t>(*version);
  schema.kind = SchemaKind::kSequence;
  return schema;
}

std::string sequence_column_name(const ConfigSchema& schema) {
  return concat(kSequencePrefix, schema.name, ":", schema.version);
}

}  // namespace foretune::dataset_internal
