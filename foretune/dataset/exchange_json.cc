// Our own JSON and MessagePack: one self-describing document with everything a data set holds.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/dataset/exchange.h"
#include "foretune/dataset/exchange_io.h"
#include "foretune/dataset/exchange_json.h"

namespace foretune {

using dataset_internal::ImportCounter;
using dataset_internal::Json;

namespace dataset_internal {

namespace {

constexpr int kMaxDepth = 64;

// One MessagePack token: how many bytes its head and content take, and how many values follow.
struct Token {
  std::uint64_t bytes = 0;
  std::uint64_t children = 0;
};

std::optional<Token> read_token(std::span<const std::byte> rest) {
  const auto tag = static_cast<unsigned>(rest[0]);
  const auto number = [&](std::size_t width) -> std::optional<std::uint64_t> {
    if (rest.size() < 1 + width) {
      return std::nullopt;
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      value = (value << 8U) | static_cast<std::uint64_t>(rest[1 + i]);
    }
    return value;
  };
  const auto sized = [&](std::size_t width, std::uint64_t extra) -> std::optional<Token> {
    const auto size = number(width);
    return size ? std::optional(Token{1 + width + *size + extra, 0}) : std::nullopt;
  };
  const auto container = [&](std::size_t width, std::uint64_t per_item) -> std::optional<Token> {
    const auto size = number(width);
    return size ? std::optional(Token{1 + width, *size * per_item}) : std::nullopt;
  };
  if (tag <= 0x7f || tag >= 0xe0) {
    return Token{1, 0};
  }
  if (tag <= 0x8f) {
    return Token{1, 2ULL * (tag & 15U)};
  }
  if (tag <= 0x9f) {
    return Token{1, tag & 15U};
  }
  if (tag <= 0xbf) {
    return Token{1ULL + (tag & 31U), 0};
  }
  switch (tag) {
    case 0xc0:
    case 0xc2:
    case 0xc3:
      return Token{1, 0};
    case 0xc4:
    case 0xd9:
      return sized(1, 0);
    case 0xc5:
    case 0xda:
      return sized(2, 0);
    case 0xc6:
    case 0xdb:
      return sized(4, 0);
    case 0xc7:
      return sized(1, 1);
    case 0xc8:
      return sized(2, 1);
    case 0xc9:
      return sized(4, 1);
    case 0xcc:
    case 0xd0:
      return Token{2, 0};
    case 0xcd:
    case 0xd1:
      return Token{3, 0};
    case 0xca:
    case 0xce:
    case 0xd2:
      return Token{5, 0};
    case 0xcb:
    case 0xcf:
    case 0xd3:
      return Token{9, 0};
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return Token{2ULL + (1ULL << (tag - 0xd4U)), 0};
    case 0xdc:
      return container(2, 1);
    case 0xdd:
      return container(4, 1);
    case 0xde:
      return container(2, 2);
    case 0xdf:
      return container(4, 2);
    default:
      return std::nullopt;
  }
}

}  // namespace

// The library's MessagePack reader calls itself for every level, so depth is checked before.
Status check_msgpack(std::span<const std::byte> bytes) {
  std::vector<std::uint64_t> left{1};
  std::size_t position = 0;
  while (!left.empty()) {
    if (left.back() == 0) {
      left.pop_back();
      continue;
    }
    --left.back();
    if (position >= bytes.size()) {
      return fail(ErrorCode::kCorrupt, "the MessagePack data ends too early");
    }
    const std::optional<Token> token = read_token(bytes.subspan(position));
    // Every value takes a byte at least: a count beyond the rest is a lie.
    if (!token || token->bytes > bytes.size() - position ||
        token->children > bytes.size() - position) {
      return fail(ErrorCode::kCorrupt, "the MessagePack data is damaged at byte ", position);
    }
    position += token->bytes;
    if (token->children > 0) {
      if (left.size() > kMaxDepth) {
        return fail(ErrorCode::kCorrupt, "the MessagePack data is nested over ", kMaxDepth,
                    " levels deep");
      }
      left.push_back(token->children);
    }
  }
  return position == bytes.size()
             ? Status()
             : Status(fail(ErrorCode::kCorrupt, "bytes follow the MessagePack document"));
}

Result<Json> parse_document(std::span<const std::byte> bytes, bool msgpack) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  Json document;
  if (msgpack) {
    FORETUNE_TRY_STATUS(check_msgpack(bytes));
    document = Json::from_msgpack(data, data + bytes.size(), true, false);
  } else {
    // torch-diode writes the bare word Infinity for a failed config, which JSON does not know.
    const std::string text = quote_infinities(text_of(bytes));
    document = Json::parse(text, nullptr, false);
  }
  if (document.is_discarded()) {
    return fail(ErrorCode::kCorrupt, msgpack ? "this is not MessagePack" : "this is not JSON");
  }
  return document;
}

std::string quote_infinities(std::string_view text) {
  static constexpr std::string_view kWord = "Infinity";
  if (text.find(kWord) == std::string_view::npos) {
    return std::string(text);
  }
  std::string out;
  out.reserve(text.size() + 64);
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\' && i + 1 < text.size()) {
      out += c;
      out += text[++i];
      continue;
    }
    if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && text.substr(i, kWord.size()) == kWord) {
      out += "\"Infinity\"";
      i += kWord.size() - 1;
      continue;
    }
    out += c;
  }
  return out;
}

}  // namespace dataset_internal

namespace {

constexpr const char* kFormat = "foretune-dataset";

Json schema_json(const ConfigSchema& schema) {
  Json parameters = Json::array();
  for (const Parameter& parameter : schema.parameters) {
    parameters.push_back({{"name", parameter.name}, {"labels", parameter.labels}});
  }
  return {{"name", schema.name},
          {"version", schema.version},
          {"kind", schema.kind == SchemaKind::kSequence ? "sequence" : "parametric"},
          {"parameters", std::move(parameters)}};
}

Json to_json(const Dataset& dataset) {
  const DatasetHeader& header = dataset.header();
  Json out{{"format", kFormat},
           {"version", 1},
           {"header",
            {{"family", header.family},
             {"problem_type", find_problem_schema(header.problem_type)->name},
             {"config_schema", schema_json(header.config_schema)},
             {"space", header.space_text},
             {"fingerprint", header.fingerprint.text()},
             {"role", to_string(header.role)},
             {"seed", header.seed},
             {"created_by", header.created_by}}}};
  Json& problems = out["problems"] = Json::array();
  for (const Problem& problem : dataset.problems()) {
    problems.push_back(problem.text());
  }
  Json& configs = out["configs"] = Json::array();
  for (const Config& config : dataset.configs()) {
    configs.push_back(std::vector<std::int32_t>(config.words.begin(), config.words.end()));
  }
  Json& contexts = out["contexts"] = Json::array();
  for (const Context& context : dataset.contexts()) {
    contexts.push_back({{"machine", context.machine},
                        {"device", context.device},
                        {"threads", context.threads},
                        {"cache", to_string(context.cache)},
                        {"clock_mhz", context.clock_mhz},
                        {"fidelity", context.fidelity}});
  }
  out["columns"] = {"problem", "config", "context",   "outcome", "stage",  "flags",
                    "reason",  "time_ns", "median_ns", "spread",  "samples"};
  Json& rows = out["rows"] = Json::array();
  for (const Dataset::Row& row : dataset.rows()) {
    rows.push_back({row.problem, row.config, row.context, to_string(row.outcome),
                    to_string(row.stage), row.flags, dataset.reason(row.reason),
                    static_cast<double>(row.time_ns), static_cast<double>(row.median_ns),
                    static_cast<double>(row.spread), row.samples});
  }
  Json& extras = out["metrics"] = Json::array();
  for (const Dataset::ExtraMetric& extra : dataset.extras()) {
    extras.push_back({extra.row, metric_info(extra.value.metric).name, extra.value.value,
                      extra.value.spread, extra.value.samples});
  }
  Json& samples = out["samples"] = Json::array();
  for (const Dataset::Samples& kept : dataset.samples()) {
    samples.push_back({kept.row, kept.values_ns});
  }
  Json& baselines = out["baselines"] = Json::array();
  for (const Dataset::Baseline& baseline : dataset.baselines()) {
    baselines.push_back({baseline.problem, baseline.name, static_cast<double>(baseline.time_ns)});
  }
  return out;
}

// Checked access: the value at `key` when it is there and of the right type.
const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) {
    return nullptr;
  }
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::optional<std::string> text_at(const Json& object, const char* key) {
  const Json* value = member(object, key);
  return value != nullptr && value->is_string() ? std::optional(value->get<std::string>())
                                                : std::nullopt;
}

std::optional<std::int64_t> integer_of(const Json& value) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) {
    return std::nullopt;
  }
  return value.is_number_integer() ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

std::optional<std::int64_t> integer_at(const Json& object, const char* key) {
  const Json* value = member(object, key);
  return value == nullptr ? std::nullopt : integer_of(*value);
}

tl::unexpected<Error> broken(std::string_view what) {
  return fail(ErrorCode::kCorrupt, "the document's ", what, " makes no sense");
}

Result<ConfigSchema> schema_of(const Json* json) {
  if (json == nullptr) {
    return broken("config schema");
  }
  const auto name = text_at(*json, "name");
  const auto version = integer_at(*json, "version");
  const auto kind = text_at(*json, "kind");
  const Json* parameters = member(*json, "parameters");
  if (!name || !version || *version < 0 || *version > UINT32_MAX || !kind ||
      parameters == nullptr || !parameters->is_array()) {
    return broken("config schema");
  }
  ConfigSchema schema{.name = *name,
                      .version = static_cast<std::uint32_t>(*version),
                      .kind = *kind == "sequence" ? SchemaKind::kSequence : SchemaKind::kParametric,
                      .parameters = {}};
  for (const Json& entry : *parameters) {
    const auto parameter = text_at(entry, "name");
    const Json* labels = member(entry, "labels");
    if (!parameter || labels == nullptr || !labels->is_array()) {
      return broken("config schema");
    }
    schema.parameters.push_back({*parameter, {}});
    for (const Json& label : *labels) {
      if (!label.is_string()) {
        return broken("config schema");
      }
      schema.parameters.back().labels.push_back(label.get<std::string>());
    }
  }
  return schema;
}

Result<DatasetHeader> header_of(const Json* json) {
  if (json == nullptr) {
    return broken("header");
  }
  DatasetHeader header;
  const auto family = text_at(*json, "family");
  const auto type = text_at(*json, "problem_type");
  const auto space = text_at(*json, "space");
  const auto fingerprint = text_at(*json, "fingerprint");
  const auto role = text_at(*json, "role");
  const Json* seed = member(*json, "seed");
  const auto created_by = text_at(*json, "created_by");
  if (!family || !type || !space || !fingerprint || !role || seed == nullptr ||
      !seed->is_number_integer() || !created_by) {
    return broken("header");
  }
  const ProblemSchema* problem = find_problem_schema(*type);
  if (problem == nullptr) {
    return fail(ErrorCode::kUnsupported, "problems of type '", type->substr(0, 40),
                "' are not known to this version");
  }
  FORETUNE_TRY(header.config_schema, schema_of(member(*json, "config_schema")));
  FORETUNE_TRY(header.fingerprint, Fingerprint::parse(*fingerprint));
  header.family = *family;
  header.problem_type = problem->type;
  header.space_text = *space;
  header.role = *role == "validation" ? DatasetRole::kValidation : DatasetRole::kTraining;
  header.seed = seed->get<std::uint64_t>();
  header.created_by = *created_by;
  return header;
}

// Every list is checked against its expected shape; ids refer to the document's own lists.
class JsonImporter {
 public:
  JsonImporter(const Json& document, Dataset& dataset) : document_(document), dataset_(dataset) {}

  Status run(ImportReport* report) {
    FORETUNE_TRY_STATUS(read_tables());
    FORETUNE_TRY(const Json* const rows, list("rows"));
    ImportCounter counter;
    for (const Json& row : *rows) {
      counter.read();
      FORETUNE_TRY_STATUS(read_row(row));
      counter.keep();
    }
    FORETUNE_TRY_STATUS(read_attachments());
    counter.write_to(report);
    return {};
  }

 private:
  Result<const Json*> list(const char* key) const {
    const Json* found = member(document_, key);
    if (found == nullptr || !found->is_array()) {
      return broken(key);
    }
    return found;
  }

  Status read_tables() {
    FORETUNE_TRY(const Json* const problems, list("problems"));
    for (const Json& entry : *problems) {
      if (!entry.is_string()) {
        return broken("problems");
      }
      FORETUNE_TRY(const Problem problem, Problem::parse(entry.get<std::string>()));
      problems_.push_back(dataset_.intern_problem(problem));
    }
    FORETUNE_TRY(const Json* const configs, list("configs"));
    const ConfigSchema& schema = dataset_.header().config_schema;
    const std::uint64_t id = schema.id();
    for (const Json& entry : *configs) {
      Config config{.schema = id, .words = {}};
      if (!entry.is_array() || (schema.kind == SchemaKind::kParametric &&
                                entry.size() != schema.parameters.size())) {
        return broken("configs");
      }
      for (const Json& word : entry) {
        const auto value = integer_of(word);
        if (!value || *value < INT32_MIN || *value > INT32_MAX) {
          return broken("configs");
        }
        config.words.push_back(static_cast<std::int32_t>(*value));
      }
      configs_.push_back(dataset_.intern_config(config));
    }
    FORETUNE_TRY(const Json* const contexts, list("contexts"));
    if (contexts->size() > 60000) {
      return broken("contexts");
    }
    for (const Json& entry : *contexts) {
      FORETUNE_TRY(const Context context, context_of(entry));
      contexts_.push_back(dataset_.intern_context(context));
    }
    return {};
  }

  static Result<Context> context_of(const Json& entry) {
    const Json* machine = member(entry, "machine");
    const auto device = text_at(entry, "device");
    const auto threads = integer_at(entry, "threads");
    const auto cache = text_at(entry, "cache");
    const auto clock = integer_at(entry, "clock_mhz");
    const auto fidelity = integer_at(entry, "fidelity");
    const auto fits = [](const auto& value) {
      return value && *value >= INT32_MIN && *value <= INT32_MAX;
    };
    if (machine == nullptr || !machine->is_number_integer() || !device || !cache ||
        !fits(threads) || !fits(clock) || !fits(fidelity)) {
      return broken("contexts");
    }
    return Context{.machine = machine->get<std::uint64_t>(),
                   .device = *device,
                   .threads = static_cast<std::int32_t>(*threads),
                   .cache = *cache == "cold" ? CacheState::kCold : CacheState::kWarm,
                   .clock_mhz = static_cast<std::int32_t>(*clock),
                   .fidelity = static_cast<std::int32_t>(*fidelity)};
  }

  static std::optional<std::uint32_t> index(const Json& value, std::size_t size) {
    const auto number = integer_of(value);
    if (!number || *number < 0 || static_cast<std::uint64_t>(*number) >= size) {
      return std::nullopt;
    }
    return static_cast<std::uint32_t>(*number);
  }

  static bool is_time(const Json& value) {
    return value.is_number() && value.get<double>() >= 0 && value.get<double>() < 1e30;
  }

  Status read_row(const Json& json) {
    if (!json.is_array() || json.size() != 11) {
      return broken("rows");
    }
    const auto problem = index(json[0], problems_.size());
    const auto config = index(json[1], configs_.size());
    const auto context = index(json[2], contexts_.size());
    const auto outcome =
        json[3].is_string() ? parse_outcome(json[3].get<std::string>()) : std::nullopt;
    const auto stage = json[4].is_string() ? parse_stage(json[4].get<std::string>()) : std::nullopt;
    const auto flags = index(json[5], 256);
    const auto samples = index(json[10], 65536);
    if (!problem || !config || !context || !outcome || !stage || !flags || !json[6].is_string() ||
        !is_time(json[7]) || !is_time(json[8]) || !is_time(json[9]) || !samples) {
      return broken("rows");
    }
    Dataset::Row row;
    row.problem = problems_[*problem];
    row.config = configs_[*config];
    row.context = static_cast<std::uint16_t>(contexts_[*context]);
    row.outcome = *outcome;
    row.stage = *stage;
    row.flags = static_cast<std::uint8_t>(*flags);
    row.reason = dataset_.intern_reason(json[6].get<std::string>());
    row.time_ns = json[7].get<float>();
    row.median_ns = json[8].get<float>();
    row.spread = json[9].get<float>();
    row.samples = static_cast<std::uint16_t>(*samples);
    dataset_.add_rounded_row(row);
    return {};
  }

  Status read_attachments() {
    FORETUNE_TRY(const Json* const metrics, list("metrics"));
    RowIndex last = 0;
    const auto in_order = [&](const Json& entry) {
      const auto row = entry.is_array() && !entry.empty() ? index(entry[0], dataset_.size())
                                                          : std::nullopt;
      const bool ordered = row && *row >= last;
      last = row.value_or(last);
      return ordered;
    };
    for (const Json& entry : *metrics) {
      const auto id = entry.is_array() && entry.size() == 5 && entry[1].is_string()
                          ? parse_metric(entry[1].get<std::string>())
                          : std::nullopt;
      const auto samples = id ? index(entry[4], UINT32_MAX) : std::nullopt;
      if (!in_order(entry) || !samples || !entry[2].is_number() || !entry[3].is_number()) {
        return broken("metrics");
      }
      dataset_.add_extra({last, {*id, entry[2].get<double>(), entry[3].get<double>(), *samples}});
    }
    FORETUNE_TRY(const Json* const samples, list("samples"));
    last = 0;
    for (const Json& entry : *samples) {
      if (!in_order(entry) || entry.size() != 2 || !entry[1].is_array() ||
          !std::all_of(entry[1].begin(), entry[1].end(), &is_time)) {
        return broken("samples");
      }
      dataset_.add_samples({last, entry[1].get<std::vector<float>>()});
    }
    FORETUNE_TRY(const Json* const baselines, list("baselines"));
    for (const Json& entry : *baselines) {
      const auto problem = entry.is_array() && entry.size() == 3
                               ? index(entry[0], problems_.size())
                               : std::nullopt;
      if (!problem || !entry[1].is_string() || !is_time(entry[2])) {
        return broken("baselines");
      }
      dataset_.add_baseline(
          {problems_[*problem], entry[1].get<std::string>(), entry[2].get<float>()});
    }
    return {};
  }

  const Json& document_;
  Dataset& dataset_;
  std::vector<std::uint32_t> problems_;
  std::vector<std::uint32_t> configs_;
  std::vector<std::uint32_t> contexts_;
};

}  // namespace

namespace dataset_internal {

bool is_own_document(const Json& document) {
  return text_at(document, "format") == std::optional<std::string>(kFormat);
}

Result<Dataset> import_own_document(const Json& document, ImportReport* report) {
  if (integer_at(document, "version") != std::optional<std::int64_t>(1)) {
    return fail(ErrorCode::kUnsupported, "the document's version is not known to this version");
  }
  FORETUNE_TRY(DatasetHeader header, header_of(member(document, "header")));
  Dataset dataset(std::move(header));
  FORETUNE_TRY_STATUS(JsonImporter(document, dataset).run(report));
  return dataset;
}

Json export_own_document(const Dataset& dataset) { return to_json(dataset); }

}  // namespace dataset_internal

}  // namespace foretune
