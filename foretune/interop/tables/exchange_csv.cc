// CSV in: one line of column names, then a measurement or a baseline per record.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/dataset/storable.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/interop/tables/internal/csv_columns.h"
#include "foretune/interop/tables/internal/csv_layout.h"
#include "foretune/interop/tables/internal/exchange_io.h"
#include "foretune/problem/problem_type.h"

namespace foretune {

using dataset_internal::CsvColumn;
using dataset_internal::CsvLayout;
using dataset_internal::CsvRole;
using dataset_internal::ImportCounter;
using dataset_internal::next_csv_record;

namespace {

// One record while its cells are read.
struct Record {
  std::vector<std::optional<std::int64_t>> fields;
  std::vector<std::optional<std::int32_t>> words;
  Config::Words sequence;  // instead of them
  double time_ns = 0;
  double median_ns = 0;
  double spread = 0;
  std::int64_t samples = 1;
  Outcome outcome = Outcome::kOk;
  Stage stage = Stage::kNone;
  std::int64_t flags = kFlagImported;
  std::string reason;
  Context context;
  std::vector<std::pair<MetricValue, bool>> metrics;  // by number, whether it is there
};

template <class Target>
bool take_integer(std::string_view text, std::int64_t low, std::int64_t high, Target& out) {
  const auto value = parse_int(text);
  if (!value || *value < low || *value > high) {
    return false;
  }
  out = static_cast<Target>(*value);
  return true;
}

bool take_time(std::string_view text, double factor, double& out) {
  const auto value = parse_double(text);
  if (!value ||
      !(*value >= 0 && *value * factor <= static_cast<double>(dataset_internal::kLongestNs))) {
    return false;
  }
  out = *value * factor;
  return true;
}

template <class T>
bool take_name(const std::optional<T>& parsed, T& out) {
  if (parsed) {
    out = *parsed;
  }
  return parsed.has_value();
}

bool take_machine(std::string_view text, std::uint64_t& out) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out, 16);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

bool take_cache(std::string_view text, CacheState& out) {
  out = text == "cold" ? CacheState::kCold : CacheState::kWarm;
  return text == "cold" || text == "warm";
}

class CsvImporter {
 public:
  CsvImporter(Dataset& dataset, const ProblemSchema& problem, const CsvLayout& layout)
      : dataset_(dataset),
        problem_(problem),
        layout_(layout),
        schema_(dataset.header().config_schema),
        schema_id_(schema_.id()) {
    for (const Parameter& parameter : schema_.parameters) {
      auto& words = words_of_.emplace_back();
      for (std::size_t i = 0; i < parameter.labels.size(); ++i) {
        words.emplace(parameter.labels[i], static_cast<std::int32_t>(i));
      }
    }
    default_context_.machine = dataset.header().fingerprint.digest();
    default_context_.device = dataset.header().fingerprint.device;
  }

  // Adds a row or a baseline, or says why not.
  Status add(const std::vector<std::string>& cells) {
    if (cells.size() != layout_.columns.size()) {
      return fail(ErrorCode::kCorrupt, "it has another number of columns than the first line");
    }
    record_ = Record{};
    record_.fields.resize(problem_.fields.size());
    record_.words.resize(schema_.parameters.size());
    record_.context = default_context_;
    const auto baseline =
        dataset_internal::csv_baseline_name(layout_, schema_.parameters.size(), cells);
    const bool is_baseline = baseline && (words_of_.empty() || !words_of_[0].contains(*baseline));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const CsvRole role = layout_.columns[i].role;
      if (is_baseline && (role == CsvRole::kParameter || role == CsvRole::kConfig)) {
        continue;
      }
      if (role == CsvRole::kConfig) {
        FORETUNE_TRY(Config config, parse_config(schema_, cells[i]));
        record_.sequence = std::move(config.words);
        continue;
      }
      if (!take(layout_.columns[i], cells[i])) {
        return fail(ErrorCode::kCorrupt, "the value of column '", layout_.names[i],
                    "' makes no sense");
      }
    }
    FORETUNE_TRY(const Problem problem, make_problem());
    return is_baseline ? add_baseline(problem, *baseline) : add_measurement(problem);
  }

 private:
  bool take(const CsvColumn& column, const std::string& cell) {
    const std::string_view text = trim(cell);
    switch (column.role) {
      case CsvRole::kField:
        return take_field(column.index, text);
      case CsvRole::kParameter:
        record_.words[column.index] = word_of(column.index, text);
        return record_.words[column.index].has_value();
      case CsvRole::kReason:
        record_.reason = cell;
        return true;
      case CsvRole::kDevice:
        record_.context.device = cell;
        return true;
      default:
        // All others may be left out, row by row.
        return text.empty() || take_optional(column, text);
    }
  }

  bool take_optional(const CsvColumn& column, std::string_view text) {
    Context& context = record_.context;
    switch (column.role) {
      case CsvRole::kTime:
        return take_time(text, column.factor_ns, record_.time_ns);
      case CsvRole::kMedian:
        return take_time(text, 1, record_.median_ns);
      case CsvRole::kSpread:
        return take_time(text, 1, record_.spread);
      case CsvRole::kSamples:
        return take_integer(text, 0, UINT16_MAX, record_.samples);
      case CsvRole::kFlags:
        return take_integer(text, 0, UINT8_MAX, record_.flags);
      case CsvRole::kOutcome:
        return take_name(parse_outcome(text), record_.outcome);
      case CsvRole::kStage:
        return take_name(parse_stage(text), record_.stage);
      case CsvRole::kMachine:
        return take_machine(text, context.machine);
      case CsvRole::kThreads:
        return take_integer(text, INT32_MIN, INT32_MAX, context.threads);
      case CsvRole::kCache:
        return take_cache(text, context.cache);
      case CsvRole::kClock:
        return take_integer(text, INT32_MIN, INT32_MAX, context.clock_mhz);
      case CsvRole::kFidelity:
        return take_integer(text, INT32_MIN, INT32_MAX, context.fidelity);
      case CsvRole::kMetric:
      case CsvRole::kMetricSpread:
      case CsvRole::kMetricSamples:
        return take_metric(column, text);
      default:
        return false;
    }
  }

  bool take_metric(const CsvColumn& column, std::string_view text) {
    record_.metrics.resize(layout_.metrics.size());
    auto& [metric, is_there] = record_.metrics[column.index];
    metric.metric = layout_.metrics[column.index].name;
    if (column.role == CsvRole::kMetricSamples) {
      // Frames write a column with gaps as "3.0".
      const auto count = parse_double(text);
      const bool is_count =
          count && *count >= 0 && *count <= UINT32_MAX && std::floor(*count) == *count;
      metric.samples = is_count ? static_cast<std::uint32_t>(*count) : 0;
      return is_count;
    }
    const auto value = parse_double(text);
    (column.role == CsvRole::kMetric ? metric.value : metric.spread) = value.value_or(0);
    is_there = is_there || column.role == CsvRole::kMetric;
    return value && std::isfinite(*value);
  }

  bool take_field(std::size_t index, std::string_view text) {
    const ProblemField& field = problem_.fields[index];
    std::optional<std::int64_t>& out = record_.fields[index];
    if (field.labels.empty()) {
      out = parse_int(text);
    } else if (const auto found = std::find(field.labels.begin(), field.labels.end(), text);
               found != field.labels.end()) {
      out = found - field.labels.begin();
    }
    return out.has_value();
  }

  std::optional<std::int32_t> word_of(std::size_t index, std::string_view text) const {
    const auto found = words_of_[index].find(std::string(text));
    return found != words_of_[index].end() ? std::optional(found->second)
                                           : dataset_internal::parse_csv_word(text);
  }

  [[nodiscard]] bool has_metrics() const {
    return std::any_of(record_.metrics.begin(), record_.metrics.end(),
                       [](const auto& metric) { return metric.second; });
  }

  Result<Problem> make_problem() const {
    Problem::Fields fields;
    for (std::size_t i = 0; i < record_.fields.size(); ++i) {
      const auto value = record_.fields[i] ? record_.fields[i] : problem_.fields[i].default_value;
      fields.push_back(value.value_or(0));
    }
    return Problem::create(problem_.type, std::move(fields));
  }

  Status add_baseline(const Problem& problem, const std::string& name) {
    const auto time_ns = static_cast<float>(record_.time_ns);
    if (!(time_ns > 0) && !has_metrics()) {
      return fail(ErrorCode::kCorrupt, "a baseline has no time");
    }
    const std::uint32_t id = dataset_.intern_problem(problem);
    Dataset::Baseline baseline{.problem = id, .name = name, .time_ns = time_ns};
    for (std::size_t i = 0; i < record_.metrics.size(); ++i) {
      if (const auto& [metric, is_there] = record_.metrics[i]; is_there) {
        baseline.metrics.push_back({static_cast<MetricIndex>(i), metric.value});
      }
    }
    FORETUNE_TRY_STATUS(dataset_internal::check_baseline(dataset_, baseline));
    dataset_.add_baseline(std::move(baseline));
    return {};
  }

  Status add_measurement(const Problem& problem) {
    const bool may_have_time =
        record_.outcome == Outcome::kOk || record_.outcome == Outcome::kCensored;
    const bool has_time = static_cast<float>(record_.time_ns) > 0;
    if (may_have_time && !has_time && !(record_.outcome == Outcome::kOk && has_metrics())) {
      return fail(ErrorCode::kCorrupt, "a measurement has no time");
    }
    if (may_have_time && has_time && record_.stage == Stage::kEvaluate) {
      return fail(ErrorCode::kCorrupt, "an evaluation has a time");
    }
    if (dataset_.contexts().size() >= dataset_internal::kMaxContexts &&
        !dataset_.find_context(record_.context)) {
      return fail(ErrorCode::kUnsupported, "there are too many different contexts");
    }
    FORETUNE_TRY_STATUS(dataset_internal::check_context(record_.context));
    Measurement out{.problem = problem,
                    .config = {.schema = schema_id_, .words = std::move(record_.sequence)},
                    .context = record_.context,
                    .outcome = record_.outcome,
                    .stage = record_.stage,
                    .flags = static_cast<std::uint8_t>(record_.flags),
                    .reason = record_.reason,
                    .metrics = {},
                    .samples_ns = {}};
    for (const std::optional<std::int32_t>& word : record_.words) {
      out.config.words.push_back(word.value_or(0));
    }
    if (may_have_time && has_time) {
      const auto samples = static_cast<std::uint32_t>(record_.samples);
      out.metrics.emplace_back(kTimeNs, record_.time_ns, record_.spread, samples);
      if (record_.median_ns > 0) {
        out.metrics.emplace_back(kMedianNs, record_.median_ns, record_.spread, samples);
      }
    }
    for (const auto& [metric, is_there] : record_.metrics) {
      if (is_there) {
        out.metrics.push_back(metric);
      }
    }
    dataset_.add(out);
    return {};
  }

  Dataset& dataset_;
  const ProblemSchema& problem_;
  const CsvLayout& layout_;
  const ConfigSchema& schema_;
  std::uint64_t schema_id_;
  std::vector<std::unordered_map<std::string, std::int32_t>> words_of_;  // labels by parameter
  Context default_context_;
  Record record_;
};

bool is_blank(const std::vector<std::string>& cells) {
  return cells.size() == 1 && trim(cells[0]).empty();
}

}  // namespace

Result<Dataset> import_csv_text(std::string_view text, const DatasetHeader& given,
                                ImportReport* report) {
  DatasetHeader header = given;
  if (text.substr(0, 3) == "\xef\xbb\xbf") {
    text.remove_prefix(3);  // a byte order mark
  }
  std::vector<std::string> cells;
  if (!next_csv_record(text, cells) || is_blank(cells)) {
    return fail(ErrorCode::kCorrupt, "the CSV does not begin with a line of column names");
  }
  if (header.problem_type == ProblemType{}) {
    FORETUNE_TRY(header.problem_type, dataset_internal::type_of_csv_columns(cells));
  }
  const ProblemSchema* problem = find_problem_schema(header.problem_type);
  if (problem == nullptr || problem->payload == PayloadUse::kRequired) {
    return fail(ErrorCode::kUnsupported, "problems of this type cannot be read from CSV");
  }
  const bool derive = header.config_schema.parameters.empty();
  FORETUNE_TRY(const CsvLayout layout, dataset_internal::read_csv_layout(cells, *problem, header));
  if (derive && header.config_schema.kind == SchemaKind::kParametric) {
    FORETUNE_TRY_STATUS(dataset_internal::derive_csv_labels(text, layout, header.config_schema));
    if (header.config_schema.name.empty()) {
      header.config_schema.name = "csv";
    }
  }
  FORETUNE_TRY_STATUS(dataset_internal::check_header(header));
  Dataset dataset(std::move(header));
  CsvImporter importer(dataset, *problem, layout);
  ImportCounter counter;
  while (!text.empty()) {
    const std::string place = concat("row ", counter.report().rows_read + 1);
    if (!next_csv_record(text, cells)) {
      return fail(ErrorCode::kCorrupt, place,
                  " of the CSV: a quote is never closed, or there are "
                  "over ",
                  dataset_internal::kMaxCsvColumns, " columns");
    }
    if (is_blank(cells)) {
      continue;
    }
    counter.read();
    if (const Status added = importer.add(cells); added) {
      counter.keep();
    } else {
      counter.drop(added.error().message, place);
    }
  }
  FORETUNE_TRY_STATUS(counter.finish(report));
  return dataset;
}

Result<Dataset> import_csv(const std::filesystem::path& path, const DatasetHeader& header,
                           ImportReport* report) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, dataset_internal::read_maybe_compressed(path));
  auto dataset = import_csv_text(dataset_internal::text_of(bytes), header, report);
  if (!dataset) {
    return fail_because(dataset.error(), path.string());
  }
  return dataset;
}

}  // namespace foretune
