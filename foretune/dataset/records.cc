#include "foretune/dataset/records.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "foretune/base/hash.h"
#include "foretune/dataset/quantise.h"
#include "foretune/dataset/storable.h"

namespace foretune::dataset_internal {
namespace {

tl::unexpected<Error> corrupt(std::string_view what) { return fail(ErrorCode::kCorrupt, what); }

// Turns an error into kCorrupt. No version of ours wrote a block with a right checksum that the
// rules refuse.
Status as_corrupt(const Status& status) {
  return status ? Status() : Status(corrupt(status.error().message));
}

void put_digest(ByteWriter& out, const Digest& digest) { out.put(digest.high, digest.low); }

}  // namespace

void encode_header(ByteWriter& out, const DatasetHeader& header) {
  out.put_string(header.family);
  out.put(static_cast<std::uint16_t>(header.problem_type));
  const ProblemSchema* schema = find_problem_schema(header.problem_type);
  out.put(schema == nullptr ? std::uint64_t{0} : schema->id());
  out.put_string(header.config_schema.name);
  out.put(header.config_schema.version, static_cast<std::uint8_t>(header.config_schema.kind));
  out.put_varint(header.config_schema.parameters.size());
  for (const Parameter& parameter : header.config_schema.parameters) {
    out.put_string(parameter.name);
    out.put_varint(parameter.labels.size());
    for (const std::string& label : parameter.labels) {
      out.put_string(label);
    }
  }
  out.put_string(header.space_text);
  out.put_string(header.fingerprint.text());
  out.put(static_cast<std::uint8_t>(header.role), header.seed);
  out.put_string(header.created_by);
}

namespace {

Status decode_schema(ByteReader& reader, ConfigSchema& schema) {
  schema.name = reader.get_string(kMaxNameBytes);
  schema.version = reader.get<std::uint32_t>();
  const auto kind = reader.get<std::uint8_t>();
  const std::uint64_t parameters = reader.get_count(5);
  if (!reader.ok() || kind > 1 || parameters > kMaxParameters) {
    return corrupt("the config schema in the header makes no sense");
  }
  schema.kind = static_cast<SchemaKind>(kind);
  for (std::uint64_t i = 0; i < parameters && reader.ok(); ++i) {
    Parameter parameter;
    parameter.name = reader.get_string(kMaxNameBytes);
    const std::uint64_t labels = reader.get_count(4);
    if (labels > kMaxLabels) {
      return corrupt("a parameter in the header has too many labels");
    }
    for (std::uint64_t j = 0; j < labels && reader.ok(); ++j) {
      parameter.labels.push_back(reader.get_string(kMaxNameBytes));
    }
    schema.parameters.push_back(std::move(parameter));
  }
  return {};
}

}  // namespace

Result<DatasetHeader> decode_header(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  DatasetHeader header;
  header.family = reader.get_string(kMaxNameBytes);
  header.problem_type = static_cast<ProblemType>(reader.get<std::uint16_t>());
  const auto problem_schema = reader.get<std::uint64_t>();
  FORETUNE_TRY_STATUS(decode_schema(reader, header.config_schema));
  header.space_text = reader.get_string();
  const std::string fingerprint = reader.get_string();
  const auto role = reader.get<std::uint8_t>();
  header.seed = reader.get<std::uint64_t>();
  header.created_by = reader.get_string();
  if (!reader.ok() || !reader.at_end() || role > 1) {
    return corrupt("the header makes no sense");
  }
  header.role = static_cast<DatasetRole>(role);
  const ProblemSchema* schema = find_problem_schema(header.problem_type);
  if (schema == nullptr) {
    return fail(ErrorCode::kMismatch, "the data set's problems are of family '", header.family,
                "', whose description or plug-in is not loaded (--plugin FILE)");
  }
  if (schema->id() != problem_schema) {
    return fail(ErrorCode::kMismatch,
                "the data set describes its problems by another version of "
                "their fields than this program");
  }
  FORETUNE_TRY(header.fingerprint, Fingerprint::parse(fingerprint));
  FORETUNE_TRY_STATUS(as_corrupt(check_header(header)));
  return header;
}

namespace {

// Bits of the byte for the parts that follow the first fields of a problem.
constexpr unsigned kHasPayload = 1;
constexpr unsigned kHasLaterFields = 2;

}  // namespace

void encode_problem(ByteWriter& out, const Problem& problem) {
  // Fields that a later version of the type added follow the others, by name, and only where they
  // differ from their default. So a file without such values has not changed.
  const std::span<const ProblemField> fields = problem.schema().fields;
  std::vector<std::size_t> later;
  std::size_t first = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].since == 1) {
      ++first;
    } else if (problem.field(i) != *fields[i].default_value) {
      later.push_back(i);
    }
  }
  out.put(static_cast<std::uint16_t>(problem.type()));
  out.put_varint(first);
  for (const std::int64_t value : problem.fields().first(first)) {
    out.put_zigzag(value);
  }
  const bool has_payload = problem.has_payload();
  out.put(static_cast<std::uint8_t>((has_payload ? kHasPayload : 0U) |
                                    (later.empty() ? 0U : kHasLaterFields)));
  if (has_payload) {
    put_digest(out, problem.payload());
  }
  if (!later.empty()) {
    out.put_varint(later.size());
    for (const std::size_t field : later) {
      out.put_string(fields[field].name);
      out.put_zigzag(problem.field(field));
    }
  }
}

void encode_config(ByteWriter& out, const Config& config) {
  out.put_varint(config.words.size());
  for (const std::int32_t word : config.words.view()) {
    out.put_zigzag(word);
  }
}

void encode_context(ByteWriter& out, const Context& context) {
  out.put(context.machine);
  out.put_string(context.device);
  out.put_zigzag(context.threads);
  out.put(static_cast<std::uint8_t>(context.cache));
  out.put_zigzag(context.clock_mhz);
  out.put_zigzag(context.fidelity);
}

void encode_baseline(ByteWriter& out, const Dataset::Baseline& baseline) {
  out.put_varint(baseline.problem);
  out.put_string(baseline.name);
  out.put(baseline.time_ns);
}

void encode_metric_info(ByteWriter& out, const MetricInfo& info) {
  out.put_string(info.name);
  out.put_string(info.unit);
  out.put(static_cast<std::uint8_t>(info.direction), static_cast<std::uint8_t>(info.stage));
}

void encode_metric_baseline(ByteWriter& out, const Dataset::Baseline& baseline) {
  encode_baseline(out, baseline);
  out.put_varint(baseline.metrics.size());
  for (const Dataset::Baseline::Metric& metric : baseline.metrics) {
    out.put(metric.metric, metric.value);
  }
}

void encode_metric(ByteWriter& out, const Dataset::ExtraMetric& metric) {
  out.put(metric.metric, metric.value, metric.spread);
  out.put_varint(metric.samples);
}

std::uint8_t pack_outcome(Outcome outcome, Stage stage) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(outcome) |
                                   (static_cast<unsigned>(stage) << 4U));
}

void encode_row(ByteWriter& out, const Dataset::Row& row,
                std::span<const Dataset::ExtraMetric> extras, std::span<const float> samples_ns) {
  out.put_varint(row.problem);
  out.put_varint(row.config);
  out.put_varint(row.context);
  out.put(pack_outcome(row.outcome, row.stage), row.flags);
  out.put_varint(row.reason);
  out.put(row.time_ns, encode_median(row.median_ns, row.time_ns), encode_spread(row.spread));
  out.put_varint(row.samples);
  out.put_varint(extras.size());
  for (const Dataset::ExtraMetric& extra : extras) {
    encode_metric(out, extra);
  }
  out.put_varint(samples_ns.size());
  out.put_bytes(std::as_bytes(samples_ns));
}

namespace {

// Sets the later fields that a problem stores by name. Errors: kMismatch for one that this version
// does not know.
Status decode_later_fields(ByteReader& reader, ProblemType type, Problem::Fields& fields) {
  const ProblemSchema* schema = find_problem_schema(type);
  const std::uint64_t count = reader.get_count(2);
  for (std::uint64_t i = 0; i < count && reader.ok(); ++i) {
    const std::string name = reader.get_string(kMaxNameBytes);
    const std::int64_t value = reader.get_zigzag();
    if (!reader.ok() || schema == nullptr) {
      break;
    }
    const std::optional<std::size_t> field = schema->find(name);
    if (!field || schema->fields[*field].since == 1) {
      return fail(ErrorCode::kMismatch, "the data set has problems with the field ",
                  quoted(name, 40), ", which ", schema->name,
                  " problems do not have in this version");
    }
    while (fields.size() <= *field) {
      fields.push_back(schema->fields[fields.size()].default_value.value_or(0));
    }
    fields[*field] = value;
  }
  return {};
}

Status decode_problems(ByteReader& reader, Dataset& dataset) {
  while (reader.ok() && !reader.at_end()) {
    const auto type = static_cast<ProblemType>(reader.get<std::uint16_t>());
    const std::uint64_t count = reader.get_count(1);
    Problem::Fields fields;
    for (std::uint64_t i = 0; i < count && reader.ok(); ++i) {
      fields.push_back(reader.get_zigzag());
    }
    const unsigned behind = reader.get<std::uint8_t>();
    Digest payload;
    if ((behind & kHasPayload) != 0) {
      payload.high = reader.get<std::uint64_t>();
      payload.low = reader.get<std::uint64_t>();
    }
    if (behind > (kHasPayload | kHasLaterFields)) {
      return corrupt("a problem has parts that this version does not know");
    }
    if ((behind & kHasLaterFields) != 0) {
      FORETUNE_TRY_STATUS(decode_later_fields(reader, type, fields));
    }
    if (!reader.ok()) {
      break;
    }
    const Result<Problem> problem = Problem::create(type, std::move(fields), payload);
    if (!problem) {
      return corrupt(problem.error().message);
    }
    FORETUNE_TRY_STATUS(as_corrupt(check_problem(dataset.header(), *problem)));
    const std::size_t expected = dataset.problems().size();
    if (dataset.intern_problem(*problem) != expected) {
      return corrupt("a problem is defined twice");
    }
  }
  return reader.ok() ? Status() : Status(corrupt("a problem is cut off"));
}

Status decode_configs(ByteReader& reader, Dataset& dataset) {
  const std::uint64_t id = dataset.header().config_schema.id();
  while (reader.ok() && !reader.at_end()) {
    const std::uint64_t count = reader.get_count(1);
    Config config{.schema = id, .words = {}};
    for (std::uint64_t i = 0; i < count && reader.ok(); ++i) {
      const std::int64_t word = reader.get_zigzag();
      if (word < INT32_MIN || word > INT32_MAX) {
        return corrupt("a word of a config is out of range");
      }
      config.words.push_back(static_cast<std::int32_t>(word));
    }
    if (!reader.ok()) {
      break;
    }
    FORETUNE_TRY_STATUS(as_corrupt(check_config(dataset.header(), id, config)));
    const std::size_t expected = dataset.configs().size();
    if (dataset.intern_config(config) != expected) {
      return corrupt("a config is defined twice");
    }
  }
  return reader.ok() ? Status() : Status(corrupt("a config is cut off"));
}

Status decode_contexts(ByteReader& reader, Dataset& dataset) {
  while (reader.ok() && !reader.at_end()) {
    Context context;
    context.machine = reader.get<std::uint64_t>();
    context.device = reader.get_string(kMaxNameBytes);
    const std::int64_t threads = reader.get_zigzag();
    const auto cache = reader.get<std::uint8_t>();
    const std::int64_t clock_mhz = reader.get_zigzag();
    const std::int64_t fidelity = reader.get_zigzag();
    const auto fits = [](std::int64_t value) { return value >= INT32_MIN && value <= INT32_MAX; };
    if (!reader.ok() || cache > 1 || !fits(threads) || !fits(clock_mhz) || !fits(fidelity) ||
        dataset.contexts().size() >= kMaxContexts) {
      return corrupt("a context makes no sense");
    }
    context.threads = static_cast<std::int32_t>(threads);
    context.cache = static_cast<CacheState>(cache);
    context.clock_mhz = static_cast<std::int32_t>(clock_mhz);
    context.fidelity = static_cast<std::int32_t>(fidelity);
    const std::size_t expected = dataset.contexts().size();
    if (dataset.intern_context(context) != expected) {
      return corrupt("a context is defined twice");
    }
  }
  return {};
}

Status decode_reasons(ByteReader& reader, Dataset& dataset) {
  while (reader.ok() && !reader.at_end()) {
    const std::string reason = reader.get_string(kMaxReasonBytes);
    const std::size_t expected = dataset.reason_count();
    if (reader.ok() && dataset.intern_reason(reason) != expected) {
      return corrupt("a reason is empty or defined twice");
    }
  }
  return reader.ok() ? Status() : Status(corrupt("a reason is cut off"));
}

Status decode_metrics(ByteReader& reader, Dataset& dataset) {
  while (reader.ok() && !reader.at_end()) {
    MetricInfo info;
    info.name = reader.get_string(kMaxNameBytes);
    info.unit = reader.get_string(kMaxNameBytes);
    const auto direction = reader.get<std::uint8_t>();
    const auto stage = reader.get<std::uint8_t>();
    if (!reader.ok() || direction > 1 || stage > 1) {
      return corrupt("a metric's declaration makes no sense");
    }
    info.direction = static_cast<Direction>(direction);
    info.stage = static_cast<MetricStage>(stage);
    const std::size_t expected = dataset.metric_count();
    FORETUNE_TRY_STATUS(as_corrupt(dataset.declare_metrics(std::span(&info, 1))));
    if (dataset.metric_count() == expected) {
      return corrupt("a metric is declared twice");
    }
  }
  return {};
}

Status decode_notes(ByteReader& reader, Dataset& dataset) {
  while (reader.ok() && !reader.at_end()) {
    const std::string name = reader.get_string(kMaxNameBytes);
    std::string text = reader.get_string(kMaxTextBytes);
    if (reader.ok()) {
      dataset.set_note(name, std::move(text));
    }
  }
  return reader.ok() ? Status() : Status(corrupt("a note is cut off"));
}

}  // namespace

Result<Dataset::ExtraMetric> decode_metric(ByteReader& reader, const Dataset& dataset) {
  Dataset::ExtraMetric metric;
  metric.metric = reader.get<std::uint8_t>();
  metric.value = reader.get<double>();
  metric.spread = reader.get<double>();
  const std::uint64_t samples = reader.get_varint();
  if (!reader.ok() || samples > UINT32_MAX) {
    return corrupt("a metric makes no sense");
  }
  metric.samples = static_cast<std::uint32_t>(samples);
  FORETUNE_TRY_STATUS(as_corrupt(check_metric(dataset, metric)));
  return metric;
}

Result<std::vector<float>> decode_samples(ByteReader& reader, std::uint64_t count) {
  const std::span<const std::byte> raw = reader.get_bytes(
      count > reader.remaining() / sizeof(float) ? SIZE_MAX : count * sizeof(float));
  std::vector<float> samples(raw.size() / sizeof(float));
  if (!raw.empty()) {
    std::memcpy(samples.data(), raw.data(), raw.size());
  }
  FORETUNE_TRY_STATUS(as_corrupt(check_samples(samples)));
  return samples;
}

Status check_definitions(const Dataset& dataset, std::uint64_t problem, std::uint64_t config,
                         std::uint64_t context, std::uint64_t reason) {
  if (problem >= dataset.problems().size() || config >= dataset.configs().size() ||
      context >= dataset.contexts().size() || reason >= dataset.reason_count()) {
    return corrupt("a row refers to a definition that is not there");
  }
  return {};
}

void unpack_outcome(std::uint8_t packed, Outcome& outcome, Stage& stage) {
  outcome = static_cast<Outcome>(packed & 15U);
  stage = static_cast<Stage>(packed >> 4U);
}

namespace {

Status decode_row(ByteReader& reader, Dataset& dataset) {
  Dataset::Row row;
  const std::uint64_t problem = reader.get_varint();
  const std::uint64_t config = reader.get_varint();
  const std::uint64_t context = reader.get_varint();
  unpack_outcome(reader.get<std::uint8_t>(), row.outcome, row.stage);
  row.flags = reader.get<std::uint8_t>();
  const std::uint64_t reason = reader.get_varint();
  row.time_ns = reader.get<float>();
  row.median_ns = decode_median(reader.get<std::uint16_t>(), row.time_ns);
  row.spread = decode_spread(reader.get<std::uint16_t>());
  const std::uint64_t samples = reader.get_varint();
  if (!reader.ok() || samples > UINT16_MAX || dataset.size() >= kMaxRows) {
    return corrupt("a row makes no sense");
  }
  FORETUNE_TRY_STATUS(check_definitions(dataset, problem, config, context, reason));
  row.problem = static_cast<std::uint32_t>(problem);
  row.config = static_cast<std::uint32_t>(config);
  row.context = static_cast<std::uint16_t>(context);
  row.reason = static_cast<std::uint32_t>(reason);
  row.samples = static_cast<std::uint16_t>(samples);
  const auto index = static_cast<RowIndex>(dataset.size());
  const std::uint64_t extras = reader.get_count(kMinMetricBytes);
  FORETUNE_TRY_STATUS(as_corrupt(check_row(row, extras > 0)));
  for (std::uint64_t i = 0; i < extras && reader.ok(); ++i) {
    FORETUNE_TRY(Dataset::ExtraMetric metric, decode_metric(reader, dataset));
    metric.row = index;
    dataset.add_extra(metric);
  }
  if (const std::uint64_t kept = reader.get_varint(); kept > 0) {
    FORETUNE_TRY(std::vector<float> samples_ns, decode_samples(reader, kept));
    dataset.add_samples({index, std::move(samples_ns)});
  }
  if (!reader.ok() || !reader.at_end()) {
    return corrupt("a row has another length than its content");
  }
  dataset.add_row(row);
  return {};
}

Status decode_baselines(ByteReader& reader, bool with_metrics, Dataset& dataset) {
  while (reader.ok() && !reader.at_end()) {
    Dataset::Baseline baseline;
    const std::uint64_t problem = reader.get_varint();
    baseline.name = reader.get_string(kMaxNameBytes);
    baseline.time_ns = reader.get<float>();
    if (!reader.ok() || problem > UINT32_MAX) {
      return corrupt("a baseline makes no sense");
    }
    baseline.problem = static_cast<std::uint32_t>(problem);
    const std::uint64_t metrics = with_metrics ? reader.get_count(1 + sizeof(double)) : 0;
    for (std::uint64_t i = 0; i < metrics && reader.ok(); ++i) {
      Dataset::Baseline::Metric metric;
      metric.metric = reader.get<std::uint8_t>();
      metric.value = reader.get<double>();
      baseline.metrics.push_back(metric);
    }
    if (!reader.ok()) {
      return corrupt("a baseline is cut off");
    }
    FORETUNE_TRY_STATUS(as_corrupt(check_baseline(dataset, baseline)));
    dataset.add_baseline(std::move(baseline));
  }
  return {};
}

Status decode_payload(const Block& block, Dataset& dataset) {
  ByteReader reader(block.payload);
  switch (block.type) {
    case BlockType::kHeader:
      return corrupt("there is a second header");
    case BlockType::kProblems:
      return decode_problems(reader, dataset);
    case BlockType::kConfigs:
      return decode_configs(reader, dataset);
    case BlockType::kContexts:
      return decode_contexts(reader, dataset);
    case BlockType::kReasons:
      return decode_reasons(reader, dataset);
    case BlockType::kRow:
      return decode_row(reader, dataset);
    case BlockType::kSegment:
      return decode_segment(reader, dataset);
    case BlockType::kBaselines:
      return decode_baselines(reader, false, dataset);
    case BlockType::kMetrics:
      return decode_metrics(reader, dataset);
    case BlockType::kMetricBaselines:
      return decode_baselines(reader, true, dataset);
    case BlockType::kNotes:
      return decode_notes(reader, dataset);
  }
  return corrupt("a block of unknown type");
}

}  // namespace

Status decode_block(const Block& block, Dataset& dataset) {
  const Status status = decode_payload(block, dataset);
  if (!status) {
    return fail_because(status.error(), "the block at byte ", block.position);
  }
  return {};
}

}  // namespace foretune::dataset_internal
