// CSV in and out (RFC 4180 quoting, one header line).
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/dataset/exchange.h"
#include "foretune/dataset/exchange_io.h"

namespace foretune {

using dataset_internal::ImportCounter;

namespace {

constexpr std::size_t kMaxColumns = 512;
constexpr double kLargestNs = 1e18;

// Splits one record off `text`; quoted fields may hold commas, quotes and line breaks. False when a
// quote is never closed.
bool next_record(std::string_view& text, std::vector<std::string>& fields) {
  fields.clear();
  fields.emplace_back();
  bool quoted = false;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        fields.back() += '"';
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      if (fields.size() > kMaxColumns) {
        return false;
      }
      fields.emplace_back();
    } else if (c == '\n') {
      ++i;
      break;
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  text.remove_prefix(i);
  return !quoted;
}

// What a column of the file means.
enum class Role : std::uint8_t {
  kField,
  kParameter,
  kTime,
  kMedian,
  kSpread,
  kSamples,
  kOutcome,
  kStage,
  kReason,
  kFlags,
  kDevice,
  kThreads,
  kCache,
  kFidelity,
  kIgnored,
};

struct Column {
  Role role = Role::kIgnored;
  std::size_t index = 0;   // of the field or parameter
  double factor_ns = 1;    // of a time
};

struct Layout {
  std::vector<Column> columns;
  std::vector<std::string> names;
  bool derive_schema = false;
};

std::optional<Column> measurement_column(std::string_view name) {
  struct Known {
    std::string_view name;
    Role role;
    double factor_ns;
  };
  static constexpr Known kKnown[] = {
      {"time_ns", Role::kTime, 1},        {"time_us", Role::kTime, 1e3},
      {"time_ms", Role::kTime, 1e6},      {"median_ns", Role::kMedian, 1},
      {"spread", Role::kSpread, 1},       {"samples", Role::kSamples, 1},
      {"outcome", Role::kOutcome, 1},     {"stage", Role::kStage, 1},
      {"reason", Role::kReason, 1},       {"flags", Role::kFlags, 1},
      {"device", Role::kDevice, 1},       {"context_threads", Role::kThreads, 1},
      {"cache", Role::kCache, 1},         {"fidelity", Role::kFidelity, 1},
  };
  for (const Known& known : kKnown) {
    if (known.name == name) {
      return Column{known.role, 0, known.factor_ns};
    }
  }
  return std::nullopt;
}

Result<Layout> read_layout(const std::vector<std::string>& names, const ProblemSchema& problem,
                           DatasetHeader& header) {
  Layout layout{.columns = {}, .names = names, .derive_schema = false};
  layout.derive_schema = header.config_schema.parameters.empty();
  int times = 0;
  for (const std::string& raw : names) {
    const std::string name(trim(raw));
    Column column;
    if (const auto known = measurement_column(name)) {
      column = *known;
      times += column.role == Role::kTime ? 1 : 0;
    } else if (const auto parameter = header.config_schema.find(name);
               parameter && !layout.derive_schema) {
      column = {Role::kParameter, *parameter, 1};
    } else if (const auto field = problem.find(name)) {
      column = {Role::kField, *field, 1};
    } else if (layout.derive_schema && !name.empty()) {
      header.config_schema.parameters.push_back({name, {}});
      column = {Role::kParameter, header.config_schema.parameters.size() - 1, 1};
    }
    layout.columns.push_back(column);
  }
  if (times != 1) {
    return fail(ErrorCode::kInvalidArgument,
                "the CSV needs one column time_ns, time_us or time_ms, it has ", times);
  }
  for (std::size_t i = 0; i < header.config_schema.parameters.size(); ++i) {
    const auto count = std::count_if(
        layout.columns.begin(), layout.columns.end(),
        [&](const Column& c) { return c.role == Role::kParameter && c.index == i; });
    if (count != 1) {
      return fail(ErrorCode::kMismatch, "the CSV has ", count, " columns for parameter '",
                  header.config_schema.parameters[i].name, "'");
    }
  }
  for (std::size_t i = 0; i < problem.fields.size(); ++i) {
    const auto count =
        std::count_if(layout.columns.begin(), layout.columns.end(),
                      [&](const Column& c) { return c.role == Role::kField && c.index == i; });
    if (count > 1 || (count == 0 && !problem.fields[i].default_value)) {
      return fail(ErrorCode::kInvalidArgument, "the CSV has ", count, " columns for '",
                  problem.fields[i].name, "' of the problem");
    }
  }
  if (layout.derive_schema && header.config_schema.name.empty()) {
    header.config_schema.name = "csv";
  }
  return layout;
}

std::optional<std::int64_t> field_value(const ProblemField& field, std::string_view text) {
  if (field.labels.empty()) {
    return parse_int(text);
  }
  const auto found = std::find(field.labels.begin(), field.labels.end(), text);
  if (found == field.labels.end()) {
    return std::nullopt;
  }
  return found - field.labels.begin();
}

std::optional<std::int32_t> parameter_value(const Parameter& parameter, std::string_view text) {
  const auto found = std::find(parameter.labels.begin(), parameter.labels.end(), text);
  if (found != parameter.labels.end()) {
    return static_cast<std::int32_t>(found - parameter.labels.begin());
  }
  const auto value = parse_int(text);
  if (!value || *value < INT32_MIN || *value > INT32_MAX) {
    return std::nullopt;
  }
  return static_cast<std::int32_t>(*value);
}

class CsvImporter {
 public:
  CsvImporter(Dataset& dataset, const ProblemSchema& problem, const Layout& layout)
      : dataset_(dataset),
        problem_(problem),
        layout_(layout),
        schema_id_(dataset.header().config_schema.id()) {}

  // Adds a row, or says why not.
  Status add(const std::vector<std::string>& values) {
    if (values.size() != layout_.columns.size()) {
      return fail(ErrorCode::kCorrupt, "another number of columns than the header");
    }
    fields_.assign(problem_.fields.size(), std::nullopt);
    words_.assign(dataset_.header().config_schema.parameters.size(), std::nullopt);
    vendor_.clear();
    row_ = Measured{};
    for (std::size_t i = 0; i < values.size(); ++i) {
      FORETUNE_TRY_STATUS(take(layout_.columns[i], trim(values[i]), i));
    }
    FORETUNE_TRY(const Problem problem, make_problem());
    if (!vendor_.empty()) {
      return add_vendor(problem);
    }
    return add_measurement(problem);
  }

 private:
  struct Measured {
    double time_ns = -1;
    double median_ns = -1;
    double spread = 0;
    std::int64_t samples = 1;
    Outcome outcome = Outcome::kOk;
    Stage stage = Stage::kNone;
    std::string reason;
    std::int64_t flags = kFlagImported;
    Context context;
    bool has_context = false;
  };

  Status take(const Column& column, std::string_view text, std::size_t index) {
    const auto bad = [&] {
      return Status(fail(ErrorCode::kCorrupt, "a value of column ", layout_.names[index],
                         " makes no sense"));
    };
    const auto integer = [&](std::int64_t low, std::int64_t high, auto& out) {
      const auto value = parse_int(text);
      if (!value || *value < low || *value > high) {
        return false;
      }
      out = static_cast<std::remove_reference_t<decltype(out)>>(*value);
      return true;
    };
    const auto number = [&](double factor, double& out) {
      const auto value = parse_double(text);
      if (!value || !(*value >= 0 && *value * factor <= kLargestNs)) {
        return false;
      }
      out = *value * factor;
      return true;
    };
    switch (column.role) {
      case Role::kField:
        fields_[column.index] = field_value(problem_.fields[column.index], text);
        return fields_[column.index] ? Status() : bad();
      case Role::kParameter:
        return take_parameter(column.index, text) ? Status() : bad();
      case Role::kTime:
        return text.empty() || number(column.factor_ns, row_.time_ns) ? Status() : bad();
      case Role::kMedian:
        return text.empty() || number(1, row_.median_ns) ? Status() : bad();
      case Role::kSpread:
        return text.empty() || number(1, row_.spread) ? Status() : bad();
      case Role::kSamples:
        return text.empty() || integer(0, 65535, row_.samples) ? Status() : bad();
      case Role::kFlags:
        return text.empty() || integer(0, 255, row_.flags) ? Status() : bad();
      case Role::kOutcome:
        return take_name(parse_outcome(text), row_.outcome) ? Status() : bad();
      case Role::kStage:
        return text.empty() || take_name(parse_stage(text), row_.stage) ? Status() : bad();
      case Role::kReason:
        row_.reason = text;
        return {};
      case Role::kDevice:
        row_.context.device = text;
        row_.has_context = true;
        return {};
      case Role::kThreads:
        return integer(0, 1 << 20, row_.context.threads) ? Status() : bad();
      case Role::kCache:
        row_.context.cache = text == "cold" ? CacheState::kCold : CacheState::kWarm;
        return text == "cold" || text == "warm" ? Status() : bad();
      case Role::kFidelity:
        return integer(INT32_MIN, INT32_MAX, row_.context.fidelity) ? Status() : bad();
      case Role::kIgnored:
        return {};
    }
    return {};
  }

  template <class T>
  static bool take_name(const std::optional<T>& parsed, T& out) {
    if (parsed) {
      out = *parsed;
    }
    return parsed.has_value();
  }

  // The first parameter may name a vendor's library instead of a value; the others are empty then.
  bool take_parameter(std::size_t index, std::string_view text) {
    const Parameter& parameter = dataset_.header().config_schema.parameters[index];
    words_[index] = parameter_value(parameter, text);
    if (words_[index]) {
      return vendor_.empty();
    }
    if (index == 0 && !text.empty()) {
      vendor_ = text;
      return true;
    }
    return text.empty() && !vendor_.empty();
  }

  Result<Problem> make_problem() const {
    Problem::Fields fields;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const auto value = fields_[i] ? fields_[i] : problem_.fields[i].default_value;
      fields.push_back(value.value_or(0));
    }
    auto problem = Problem::create(problem_.type, std::move(fields));
    if (!problem) {
      return fail(ErrorCode::kCorrupt, "a problem with sizes out of range");
    }
    return problem;
  }

  Status add_vendor(const Problem& problem) {
    if (row_.time_ns <= 0) {
      return fail(ErrorCode::kCorrupt, "a baseline without a time");
    }
    dataset_.add_baseline({.problem = dataset_.intern_problem(problem),
                           .name = vendor_,
                           .time_ns = static_cast<float>(row_.time_ns)});
    return {};
  }

  Status add_measurement(const Problem& problem) {
    Config config{.schema = schema_id_, .words = {}};
    for (const std::optional<std::int32_t>& word : words_) {
      config.words.push_back(word.value_or(0));
    }
    const bool timed = row_.outcome == Outcome::kOk || row_.outcome == Outcome::kCensored;
    if (timed && row_.time_ns <= 0) {
      return fail(ErrorCode::kCorrupt, "a measurement without a time");
    }
    if (!row_.has_context) {
      row_.context.device = dataset_.header().fingerprint.device;
    }
    row_.context.machine = dataset_.header().fingerprint.digest();
    Measurement out{.problem = problem,
                    .config = std::move(config),
                    .context = row_.context,
                    .outcome = row_.outcome,
                    .stage = row_.stage,
                    .flags = static_cast<std::uint8_t>(row_.flags),
                    .reason = row_.reason,
                    .metrics = {},
                    .samples_ns = {}};
    if (timed) {
      const auto samples = static_cast<std::uint32_t>(row_.samples);
      out.metrics.push_back({MetricId::kTimeNs, row_.time_ns, row_.spread, samples});
      if (row_.median_ns > 0) {
        out.metrics.push_back({MetricId::kMedianNs, row_.median_ns, row_.spread, samples});
      }
    }
    dataset_.add(out);
    return {};
  }

  Dataset& dataset_;
  const ProblemSchema& problem_;
  const Layout& layout_;
  std::uint64_t schema_id_;
  std::vector<std::optional<std::int64_t>> fields_;
  std::vector<std::optional<std::int32_t>> words_;
  std::string vendor_;
  Measured row_;
};

}  // namespace

Result<Dataset> import_csv_text(std::string_view text, const DatasetHeader& given,
                                ImportReport* report) {
  DatasetHeader header = given;
  const ProblemSchema* problem = find_problem_schema(header.problem_type);
  if (problem == nullptr) {
    return fail(ErrorCode::kUnsupported, "problems of this type cannot be read from CSV");
  }
  std::vector<std::string> fields;
  if (trim(text.substr(0, 4096)).empty() || !next_record(text, fields)) {
    return fail(ErrorCode::kCorrupt, "there is no header line");
  }
  FORETUNE_TRY(const Layout layout, read_layout(fields, *problem, header));
  Dataset dataset(std::move(header));
  CsvImporter importer(dataset, *problem, layout);
  ImportCounter counter;
  while (!text.empty()) {
    if (!next_record(text, fields)) {
      return fail(ErrorCode::kCorrupt, "row ", counter.report().rows_read + 1,
                  ": a quote is never closed, or there are over ", kMaxColumns, " columns");
    }
    if (fields.size() == 1 && trim(fields[0]).empty()) {
      continue;
    }
    counter.read();
    if (const Status added = importer.add(fields); added) {
      counter.keep();
    } else {
      counter.drop(added.error().message);
    }
  }
  counter.write_to(report);
  return dataset;
}

Result<Dataset> import_csv(const std::filesystem::path& path, const DatasetHeader& header,
                           ImportReport* report) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, dataset_internal::read_maybe_gzip(path));
  auto dataset = import_csv_text(dataset_internal::text_of(bytes), header, report);
  if (!dataset) {
    return fail_because(dataset.error(), path.string());
  }
  return dataset;
}

namespace {

std::string csv_quoted(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) {
    return std::string(text);
  }
  std::string out = "\"";
  for (const char c : text) {
    out += c == '"' ? std::string("\"\"") : std::string(1, c);
  }
  return out + "\"";
}

}  // namespace

Status export_csv(const Dataset& dataset, const std::filesystem::path& path) {
  const DatasetHeader& header = dataset.header();
  const ProblemSchema* problem = find_problem_schema(header.problem_type);
  if (problem == nullptr || problem->has_payload ||
      header.config_schema.kind != SchemaKind::kParametric) {
    return fail(ErrorCode::kUnsupported, "problems with payloads and configs of variable length do "
                                         "not fit a table; JSON holds them");
  }
  std::string out;
  for (const ProblemField& field : problem->fields) {
    out += concat(field.name, ",");
  }
  for (const Parameter& parameter : header.config_schema.parameters) {
    out += concat(csv_quoted(parameter.name), ",");
  }
  out += "time_ns,median_ns,spread,samples,outcome,stage,reason,flags,device,context_threads,"
         "cache,fidelity\n";
  for (const Dataset::Row& row : dataset.rows()) {
    const Problem& measured = dataset.problems()[row.problem];
    for (std::size_t i = 0; i < problem->fields.size(); ++i) {
      out += concat(measured.field_text(i), ",");
    }
    const Config& config = dataset.configs()[row.config];
    for (std::size_t i = 0; i < config.words.size(); ++i) {
      const Parameter& parameter = header.config_schema.parameters[i];
      const auto word = static_cast<std::size_t>(config.words[i]);
      out += config.words[i] >= 0 && word < parameter.labels.size() ? parameter.labels[word]
                                                                    : concat(config.words[i]);
      out += ',';
    }
    const Context& context = dataset.contexts()[row.context];
    out += concat(row.time_ns, ",", row.median_ns, ",", row.spread, ",", row.samples, ",",
                  to_string(row.outcome), ",", to_string(row.stage), ",",
                  csv_quoted(dataset.reason(row.reason)), ",", row.flags, ",",
                  csv_quoted(context.device), ",", context.threads, ",", to_string(context.cache),
                  ",", context.fidelity, "\n");
  }
  // Baselines stand where a config would: the name in the first parameter's column.
  for (const Dataset::Baseline& baseline : dataset.baselines()) {
    const Problem& measured = dataset.problems()[baseline.problem];
    for (std::size_t i = 0; i < problem->fields.size(); ++i) {
      out += concat(measured.field_text(i), ",");
    }
    out += csv_quoted(baseline.name);
    out.append(header.config_schema.parameters.size(), ',');
    out += concat(baseline.time_ns, ",,,,ok,none,,0,,1,warm,0\n");
  }
  return write_text_file_atomically(path, out);
}

}  // namespace foretune
