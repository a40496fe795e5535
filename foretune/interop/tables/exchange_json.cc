// Our own JSON and MessagePack: one self-describing document with everything a data set holds.
#include "foretune/interop/tables/exchange_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/dataset/storable.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/interop/tables/internal/exchange_io.h"

namespace foretune {

using dataset_internal::integer_at;
using dataset_internal::integer_of;
using dataset_internal::Json;
using dataset_internal::member;
using dataset_internal::text_at;

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

Json to_json(const Dataset& dataset, bool short_numbers) {
  // In text the shortest number that is read back as the same; in MessagePack the very bits, which
  // take 5 bytes instead of 9.
  const auto number = [short_numbers](float value) {
    return short_numbers ? dataset_internal::short_double(value) : static_cast<double>(value);
  };
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
  for (const MetricInfo& info : header.metrics) {
    out["header"]["metrics"].push_back(to_text(info));
  }
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
  out["columns"] = {"problem", "config",  "context",   "outcome", "stage",  "flags",
                    "reason",  "time_ns", "median_ns", "spread",  "samples"};
  Json& rows = out["rows"] = Json::array();
  for (const Dataset::Row& row : dataset.rows()) {
    rows.push_back({row.problem, row.config, row.context, to_string(row.outcome),
                    to_string(row.stage), row.flags, dataset.reason(row.reason),
                    number(row.time_ns), number(row.median_ns), number(row.spread), row.samples});
  }
  Json& extras = out["metrics"] = Json::array();
  for (const Dataset::ExtraMetric& extra : dataset.extras()) {
    extras.push_back(
        {extra.row, dataset.metric(extra.metric).name, extra.value, extra.spread, extra.samples});
  }
  Json& samples = out["samples"] = Json::array();
  for (const Dataset::Samples& kept : dataset.samples()) {
    Json values = Json::array();
    for (const float value : kept.values_ns) {
      values.push_back(number(value));
    }
    samples.push_back({kept.row, std::move(values)});
  }
  Json& baselines = out["baselines"] = Json::array();
  for (const Dataset::Baseline& baseline : dataset.baselines()) {
    Json& entry =
        baselines.emplace_back(Json{baseline.problem, baseline.name, number(baseline.time_ns)});
    if (!baseline.metrics.empty()) {
      Json& metrics = entry.emplace_back(Json::array());
      for (const Dataset::Baseline::Metric& metric : baseline.metrics) {
        metrics.push_back({dataset.metric(metric.metric).name, metric.value});
      }
    }
  }
  if (!dataset.notes().empty()) {
    out["notes"] = dataset.notes();
  }
  return out;
}

tl::unexpected<Error> broken(std::string_view what) {
  return fail(ErrorCode::kCorrupt, "the document's ", what, " makes no sense");
}
// Entry `index` of one of the document's lists.
tl::unexpected<Error> broken(std::string_view what, std::size_t index) {
  return fail(ErrorCode::kCorrupt, "the document's ", what, "[", index, "] makes no sense");
}
tl::unexpected<Error> broken(std::string_view what, std::size_t index, const Status& why) {
  return fail(ErrorCode::kCorrupt, "the document's ", what, "[", index, "]: ", why.error().message);
}

std::optional<std::uint64_t> unsigned_of(const Json* value) {
  return value != nullptr && value->is_number_unsigned()
             ? std::optional(value->get<std::uint64_t>())
             : std::nullopt;
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
      (*kind != "sequence" && *kind != "parametric") || parameters == nullptr ||
      !parameters->is_array()) {
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

Result<std::vector<MetricInfo>> metrics_of(const Json& json) {
  std::vector<MetricInfo> infos;
  for (const Json& entry : json) {
    if (!json.is_array() || !entry.is_string()) {
      return broken("header");
    }
    FORETUNE_TRY(infos.emplace_back(), parse_metric_info(entry.get<std::string>()));
  }
  return infos;
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
  const auto seed = unsigned_of(member(*json, "seed"));
  const auto created_by = text_at(*json, "created_by");
  if (!family || !type || !space || !fingerprint || !role || !seed || !created_by ||
      (*role != "training" && *role != "validation")) {
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
  header.seed = *seed;
  header.created_by = *created_by;
  if (const Json* const metrics = member(*json, "metrics"); metrics != nullptr) {
    FORETUNE_TRY(header.metrics, metrics_of(*metrics));
  }
  if (const Status status = dataset_internal::check_header(header); !status) {
    return fail_because(status.error(), "the document's header");
  }
  return header;
}

// Every list is checked against its expected shape; ids refer to the document's own lists.
class JsonImporter {
 public:
  JsonImporter(const Json& document, Dataset& dataset) : document_(document), dataset_(dataset) {}

  Status run(ImportReport* report) {
    FORETUNE_TRY_STATUS(read_tables());
    FORETUNE_TRY(const Json* const rows, list("rows"));
    if (rows->size() > dataset_internal::kMaxRows) {
      return broken("rows");
    }
    dataset_.reserve(rows->size());
    for (std::size_t i = 0; i < rows->size(); ++i) {
      FORETUNE_TRY_STATUS(read_row((*rows)[i], i));
    }
    FORETUNE_TRY_STATUS(read_metrics());
    FORETUNE_TRY_STATUS(check_rows());
    FORETUNE_TRY_STATUS(read_samples());
    FORETUNE_TRY_STATUS(read_baselines());
    FORETUNE_TRY_STATUS(read_notes());
    if (report != nullptr) {
      *report = {.rows_read = rows->size(), .rows_kept = rows->size(), .dropped = {}, .notes = {}};
    }
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
      const std::size_t index = problems_.size();
      if (!entry.is_string()) {
        return broken("problems", index);
      }
      const Result<Problem> problem = Problem::parse(entry.get<std::string>());
      if (!problem) {
        return broken("problems", index, tl::unexpected<Error>(problem.error()));
      }
      if (const Status fits = dataset_internal::check_problem(dataset_.header(), *problem); !fits) {
        return broken("problems", index, fits);
      }
      problems_.push_back(dataset_.intern_problem(*problem));
    }
    FORETUNE_TRY_STATUS(read_configs());
    FORETUNE_TRY(const Json* const contexts, list("contexts"));
    if (contexts->size() > dataset_internal::kMaxContexts) {
      return broken("contexts");
    }
    for (const Json& entry : *contexts) {
      const std::optional<Context> context = context_of(entry);
      if (!context || !dataset_internal::check_context(*context)) {
        return broken("contexts", contexts_.size());
      }
      contexts_.push_back(dataset_.intern_context(*context));
    }
    return {};
  }

  Status read_configs() {
    FORETUNE_TRY(const Json* const configs, list("configs"));
    const std::uint64_t id = dataset_.header().config_schema.id();
    for (const Json& entry : *configs) {
      Config config{.schema = id, .words = {}};
      if (!entry.is_array()) {
        return broken("configs", configs_.size());
      }
      for (const Json& word : entry) {
        const auto value = integer_of(word);
        if (!value || *value < INT32_MIN || *value > INT32_MAX) {
          return broken("configs", configs_.size());
        }
        config.words.push_back(static_cast<std::int32_t>(*value));
      }
      if (const Status fits = dataset_internal::check_config(dataset_.header(), id, config);
          !fits) {
        return broken("configs", configs_.size(), fits);
      }
      configs_.push_back(dataset_.intern_config(config));
    }
    return {};
  }

  static std::optional<Context> context_of(const Json& entry) {
    const auto machine = unsigned_of(member(entry, "machine"));
    const auto device = text_at(entry, "device");
    const auto threads = integer_at(entry, "threads");
    const auto cache = text_at(entry, "cache");
    const auto clock = integer_at(entry, "clock_mhz");
    const auto fidelity = integer_at(entry, "fidelity");
    const auto fits = [](const auto& value) {
      return value && *value >= INT32_MIN && *value <= INT32_MAX;
    };
    if (!machine || !device || !cache || (*cache != "cold" && *cache != "warm") || !fits(threads) ||
        !fits(clock) || !fits(fidelity)) {
      return std::nullopt;
    }
    return Context{.machine = *machine,
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
    return value.is_number() && value.get<double>() >= 0 &&
           value.get<double>() <= static_cast<double>(dataset_internal::kLongestNs) * 1e8;
  }

  Status read_row(const Json& json, std::size_t number) {
    if (!json.is_array() || json.size() != kColumns) {
      return broken("rows", number);
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
      return broken("rows", number);
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
    // Rounding would drop what goes with a time that is not there.
    if (!row.has_time() && (row.median_ns > 0 || row.spread > 0)) {
      return broken("rows", number);
    }
    dataset_.add_row(row);
    return {};
  }

  Status check_rows() const {
    for (std::size_t i = 0; i < dataset_.size(); ++i) {
      const Dataset::Row& row = dataset_.rows()[i];
      const bool has_metrics =
          !row.has_time() && !dataset_.extras(static_cast<RowIndex>(i)).empty();
      if (const Status fits = dataset_internal::check_row(row, has_metrics); !fits) {
        return broken("rows", i, fits);
      }
    }
    return {};
  }

  // The row that an entry of metrics or samples begins with.
  std::optional<RowIndex> row_of(const Json& entry, std::size_t size) const {
    return entry.is_array() && entry.size() == size ? index(entry[0], dataset_.size())
                                                    : std::nullopt;
  }

  Status read_metrics() {
    FORETUNE_TRY(const Json* const metrics, list("metrics"));
    RowIndex last = 0;
    for (std::size_t i = 0; i < metrics->size(); ++i) {
      const Json& entry = (*metrics)[i];
      const auto row = row_of(entry, 5);
      if (!row || *row < last || !entry[1].is_string() || !entry[2].is_number() ||
          !entry[3].is_number()) {
        return broken("metrics", i);
      }
      const auto metric = dataset_.find_metric(entry[1].get<std::string>());
      const auto samples = integer_of(entry[4]);
      if (!metric || !samples || *samples < 0 || *samples > UINT32_MAX) {
        return broken("metrics", i);
      }
      last = *row;
      const Dataset::ExtraMetric extra{.row = last,
                                       .metric = *metric,
                                       .samples = static_cast<std::uint32_t>(*samples),
                                       .value = entry[2].get<double>(),
                                       .spread = entry[3].get<double>()};
      if (const Status fits = dataset_internal::check_metric(dataset_, extra); !fits) {
        return broken("metrics", i, fits);
      }
      dataset_.add_extra(extra);
    }
    return {};
  }

  Status read_samples() {
    FORETUNE_TRY(const Json* const samples, list("samples"));
    std::size_t next = 0;
    for (std::size_t i = 0; i < samples->size(); ++i) {
      const Json& entry = (*samples)[i];
      const auto row = row_of(entry, 2);
      if (!row || *row < next || !entry[1].is_array() ||
          !std::all_of(entry[1].begin(), entry[1].end(), &is_time)) {
        return broken("samples", i);
      }
      Dataset::Samples kept{*row, entry[1].get<std::vector<float>>()};
      if (const Status fits = dataset_internal::check_samples(kept.values_ns); !fits) {
        return broken("samples", i, fits);
      }
      next = std::size_t{*row} + 1;
      dataset_.add_samples(std::move(kept));
    }
    return {};
  }

  Status read_baselines() {
    FORETUNE_TRY(const Json* const baselines, list("baselines"));
    for (std::size_t i = 0; i < baselines->size(); ++i) {
      const Json& entry = (*baselines)[i];
      const bool has_metrics = entry.is_array() && entry.size() == 4 && entry[3].is_array();
      const auto problem = entry.is_array() && (entry.size() == 3 || has_metrics)
                               ? index(entry[0], problems_.size())
                               : std::nullopt;
      if (!problem || !entry[1].is_string() || !is_time(entry[2])) {
        return broken("baselines", i);
      }
      Dataset::Baseline baseline{.problem = problems_[*problem],
                                 .name = entry[1].get<std::string>(),
                                 .time_ns = entry[2].get<float>()};
      for (std::size_t j = 0; has_metrics && j < entry[3].size(); ++j) {
        const Json& value = entry[3][j];
        const auto metric = value.is_array() && value.size() == 2 && value[0].is_string()
                                ? dataset_.find_metric(value[0].get<std::string>())
                                : std::nullopt;
        if (!metric || !value[1].is_number()) {
          return broken("baselines", i);
        }
        baseline.metrics.push_back({*metric, value[1].get<double>()});
      }
      if (const Status fits = dataset_internal::check_baseline(dataset_, baseline); !fits) {
        return broken("baselines", i, fits);
      }
      dataset_.add_baseline(std::move(baseline));
    }
    return {};
  }

  Status read_notes() {
    const Json* const notes = member(document_, "notes");
    if (notes == nullptr) {
      return {};
    }
    if (!notes->is_object()) {
      return broken("notes");
    }
    for (const auto& [name, text] : notes->items()) {
      if (!text.is_string()) {
        return broken("notes");
      }
      dataset_.set_note(name, text.get<std::string>());
    }
    if (const Status fits = dataset_internal::check_notes(dataset_.notes()); !fits) {
      return fail_because(fits.error(), "the document's notes");
    }
    return {};
  }

  static constexpr std::size_t kColumns = 11;
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

Json export_own_document(const Dataset& dataset, bool short_numbers) {
  return to_json(dataset, short_numbers);
}

}  // namespace dataset_internal

}  // namespace foretune
