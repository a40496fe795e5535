#include "foretune/dataset/records.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "foretune/base/hash.h"

namespace foretune::dataset_internal {
namespace {

constexpr std::size_t kMaxParameters = 4096;
constexpr std::size_t kMaxLabels = 65536;

tl::unexpected<Error> corrupt(std::string_view what) { return fail(ErrorCode::kCorrupt, what); }

bool is_time(float value) { return std::isfinite(value) && value >= 0; }

void put_digest(ByteWriter& out, const Digest& digest) {
  out.put(digest.high);
  out.put(digest.low);
}

}  // namespace

void append_preamble(ByteWriter& out) {
  out.put_bytes(std::as_bytes(std::span(kMagic)));
  out.put(kFormatVersion);
}

void append_block(ByteWriter& out, BlockType type, std::span<const std::byte> payload) {
  ByteWriter head;
  head.put(static_cast<std::uint32_t>(payload.size()));
  head.put(static_cast<std::uint8_t>(type));
  head.put(std::uint8_t{0});
  // The head has a checksum of its own: a damaged length must not look like a torn tail.
  head.put(static_cast<std::uint16_t>(crc32c(head.bytes())));
  head.put(crc32c(payload, crc32c(head.bytes())));
  out.put_bytes(head.bytes());
  out.put_bytes(payload);
}

Result<BlockReader> BlockReader::create(std::span<const std::byte> file) {
  ByteReader reader(file);
  const std::span<const std::byte> magic = reader.get_bytes(kMagic.size());
  if (!reader.ok() || !std::equal(magic.begin(), magic.end(),
                                  std::as_bytes(std::span(kMagic)).begin())) {
    return corrupt("this is not a foretune data set (its first bytes are others)");
  }
  const auto version = reader.get<std::uint32_t>();
  if (!reader.ok()) {
    return corrupt("the file ends within its first 12 bytes");
  }
  if (version != kFormatVersion) {
    return fail(ErrorCode::kUnsupported, "data set format version ", version,
                " is not known to this version, which reads version ", kFormatVersion);
  }
  return BlockReader(file);
}

Result<std::optional<Block>> BlockReader::next() {
  const std::span<const std::byte> rest = file_.subspan(position_);
  if (rest.size() < kBlockHeadSize) {
    return std::optional<Block>();
  }
  // A file system may leave zeros where the last write never arrived.
  if (std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; })) {
    return std::optional<Block>();
  }
  ByteReader reader(rest);
  const auto length = reader.get<std::uint32_t>();
  const auto type = reader.get<std::uint8_t>();
  static_cast<void>(reader.get<std::uint8_t>());
  const auto head_check = reader.get<std::uint16_t>();
  const auto check = reader.get<std::uint32_t>();
  if (static_cast<std::uint16_t>(crc32c(rest.first(6))) != head_check) {
    return fail(ErrorCode::kCorrupt, "the block at byte ", position_, " is damaged (its head)");
  }
  if (length > reader.remaining()) {
    return std::optional<Block>();
  }
  const std::span<const std::byte> payload = reader.get_bytes(length);
  if (crc32c(payload, crc32c(rest.first(8))) != check) {
    return fail(ErrorCode::kCorrupt, "the block at byte ", position_, " is damaged (its content)");
  }
  if (type < static_cast<std::uint8_t>(BlockType::kHeader) ||
      type > static_cast<std::uint8_t>(BlockType::kBaselines)) {
    return fail(ErrorCode::kUnsupported, "the block at byte ", position_, " is of type ", type,
                ", which this version does not know");
  }
  const Block block{static_cast<BlockType>(type), payload, position_};
  position_ += kBlockHeadSize + length;
  return std::optional<Block>(block);
}

void encode_header(ByteWriter& out, const DatasetHeader& header) {
  out.put_string(header.family);
  out.put(static_cast<std::uint16_t>(header.problem_type));
  const ProblemSchema* schema = find_problem_schema(header.problem_type);
  out.put(schema == nullptr ? std::uint64_t{0} : schema->id());
  out.put_string(header.config_schema.name);
  out.put(header.config_schema.version);
  out.put(static_cast<std::uint8_t>(header.config_schema.kind));
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
  out.put(static_cast<std::uint8_t>(header.role));
  out.put(header.seed);
  out.put_string(header.created_by);
}

namespace {

Status decode_schema(ByteReader& reader, ConfigSchema& schema) {
  schema.name = reader.get_string();
  schema.version = reader.get<std::uint32_t>();
  const auto kind = reader.get<std::uint8_t>();
  const std::uint64_t parameters = reader.get_count(5);
  if (!reader.ok() || kind > 1 || parameters > kMaxParameters) {
    return corrupt("the config schema in the header makes no sense");
  }
  schema.kind = static_cast<SchemaKind>(kind);
  for (std::uint64_t i = 0; i < parameters && reader.ok(); ++i) {
    Parameter parameter;
    parameter.name = reader.get_string();
    const std::uint64_t labels = reader.get_count(4);
    if (labels > kMaxLabels) {
      return corrupt("a parameter in the header has too many labels");
    }
    for (std::uint64_t j = 0; j < labels && reader.ok(); ++j) {
      parameter.labels.push_back(reader.get_string());
    }
    schema.parameters.push_back(std::move(parameter));
  }
  return {};
}

}  // namespace

Result<DatasetHeader> decode_header(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  DatasetHeader header;
  header.family = reader.get_string();
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
  if (schema == nullptr || schema->id() != problem_schema) {
    return fail(ErrorCode::kMismatch, "the data set describes its problems by another version of "
                                      "their fields than this program");
  }
  FORETUNE_TRY(header.fingerprint, Fingerprint::parse(fingerprint));
  return header;
}

void encode_problem(ByteWriter& out, const Problem& problem) {
  out.put(static_cast<std::uint16_t>(problem.type()));
  out.put_varint(problem.fields().size());
  for (const std::int64_t value : problem.fields()) {
    out.put_zigzag(value);
  }
  out.put(std::uint8_t{problem.payload().is_zero() ? std::uint8_t{0} : std::uint8_t{1}});
  if (!problem.payload().is_zero()) {
    put_digest(out, problem.payload());
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

namespace {

void encode_metric(ByteWriter& out, const MetricValue& metric) {
  out.put(static_cast<std::uint8_t>(metric.metric));
  out.put(metric.value);
  out.put(metric.spread);
  out.put_varint(metric.samples);
}

std::uint8_t pack_outcome(const Dataset::Row& row) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(row.outcome) |
                                   (static_cast<unsigned>(row.stage) << 4U));
}

// (median - time) / time, the one of the nearby short floats that gives back this very median.
std::uint16_t short_excess(float time_ns, float median_ns) {
  if (time_ns <= 0 || median_ns <= 0) {
    return 0;
  }
  const auto near = static_cast<std::int32_t>(short_float(std::max(0.0F, median_ns / time_ns - 1)));
  for (const std::int32_t step : {0, -1, 1, -2, 2}) {
    const std::int32_t candidate = near + step;
    if (candidate >= 0 &&
        time_ns * (1 + long_float(static_cast<std::uint16_t>(candidate))) == median_ns) {
      return static_cast<std::uint16_t>(candidate);
    }
  }
  return static_cast<std::uint16_t>(near);
}

float median_from(float time_ns, std::uint16_t excess, bool present) {
  return present ? time_ns * (1 + long_float(excess)) : 0;
}

}  // namespace

std::uint16_t short_float(float value) {
  // The upper half of the bits, rounded to nearest.
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x8000U) >> 16U);
}

float long_float(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16U);
}

Dataset::Row rounded_for_storage(Dataset::Row row) {
  const auto sane = [](float value) { return is_time(value) ? value : 0.0F; };
  row.spread = long_float(short_float(std::min(sane(row.spread), 1e30F)));
  if (row.median_ns > 0 && row.time_ns > 0) {
    row.median_ns = median_from(row.time_ns, short_excess(row.time_ns, row.median_ns), true);
  } else {
    row.median_ns = 0;
  }
  return row;
}

void encode_row(ByteWriter& out, const Dataset::Row& row,
                std::span<const Dataset::ExtraMetric> extras, std::span<const float> samples_ns) {
  out.put_varint(row.problem);
  out.put_varint(row.config);
  out.put_varint(row.context);
  out.put(pack_outcome(row));
  out.put(row.flags);
  out.put_varint(row.reason);
  out.put(row.time_ns);
  out.put(short_float(row.spread));
  out.put(std::uint8_t{row.median_ns > 0 ? std::uint8_t{1} : std::uint8_t{0}});
  out.put(short_excess(row.time_ns, row.median_ns));
  out.put_varint(row.samples);
  out.put_varint(extras.size());
  for (const Dataset::ExtraMetric& extra : extras) {
    encode_metric(out, extra.value);
  }
  out.put_varint(samples_ns.size());
  for (const float sample : samples_ns) {
    out.put(sample);
  }
}

namespace {

// A column of numbers in the fewest whole bytes; width 0 is one number for all rows.
template <class Get>
void put_column(ByteWriter& out, std::size_t count, const Get& get) {
  std::uint32_t largest = 0;
  bool constant = true;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t value = get(i);
    constant = constant && value == get(0);
    largest = std::max(largest, value);
  }
  const unsigned width = constant ? 0 : largest < 0x100 ? 1 : largest < 0x10000 ? 2
                                          : largest < 0x1000000 ? 3 : 4;
  out.put(static_cast<std::uint8_t>(width));
  if (constant) {
    out.put(count == 0 ? std::uint32_t{0} : get(0));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t value = get(i);
    for (unsigned byte = 0; byte < width; ++byte) {
      out.put(static_cast<std::uint8_t>(value >> (8 * byte)));
    }
  }
}

// Reads a column into set(i, value); false when it does not fit the rest of the block.
template <class Set>
bool get_column(ByteReader& reader, std::size_t count, const Set& set) {
  const auto width = reader.get<std::uint8_t>();
  if (width > 4) {
    return false;
  }
  if (width == 0) {
    const auto value = reader.get<std::uint32_t>();
    for (std::size_t i = 0; i < count; ++i) {
      set(i, value);
    }
    return reader.ok();
  }
  const std::span<const std::byte> raw = reader.get_bytes(count * width);
  if (!reader.ok()) {
    return false;
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t value = 0;
    for (unsigned byte = 0; byte < width; ++byte) {
      value |= static_cast<std::uint32_t>(raw[i * width + byte]) << (8 * byte);
    }
    set(i, value);
  }
  return true;
}

}  // namespace

void encode_segment(ByteWriter& out, const Dataset& dataset, std::size_t begin, std::size_t end,
                    bool keep_samples) {
  const std::span<const Dataset::Row> rows = dataset.rows().subspan(begin, end - begin);
  const std::size_t count = rows.size();
  out.put_varint(count);
  put_column(out, count, [&](std::size_t i) { return rows[i].problem; });
  put_column(out, count, [&](std::size_t i) { return rows[i].config; });
  put_column(out, count, [&](std::size_t i) { return std::uint32_t{rows[i].context}; });
  put_column(out, count, [&](std::size_t i) { return std::uint32_t{pack_outcome(rows[i])}; });
  put_column(out, count, [&](std::size_t i) { return std::uint32_t{rows[i].flags}; });
  put_column(out, count, [&](std::size_t i) { return rows[i].reason; });
  put_column(out, count, [&](std::size_t i) { return std::uint32_t{rows[i].samples}; });
  put_column(out, count, [&](std::size_t i) { return rows[i].median_ns > 0 ? 1U : 0U; });
  put_column(out, count, [&](std::size_t i) {
    return std::uint32_t{short_excess(rows[i].time_ns, rows[i].median_ns)};
  });
  put_column(out, count,
             [&](std::size_t i) { return std::uint32_t{short_float(rows[i].spread)}; });
  for (const Dataset::Row& row : rows) {
    out.put(row.time_ns);
  }
  const auto by_row = [](const auto& entry, std::size_t row) { return entry.row < row; };
  const auto range = [&](auto entries) {
    const auto first = std::lower_bound(entries.begin(), entries.end(), begin, by_row);
    const auto last = std::lower_bound(first, entries.end(), end, by_row);
    return std::pair(first, last);
  };
  const auto [extra, extra_end] = range(dataset.extras());
  out.put_varint(static_cast<std::uint64_t>(extra_end - extra));
  for (auto it = extra; it != extra_end; ++it) {
    out.put_varint(it->row - begin);
    encode_metric(out, it->value);
  }
  const auto [kept, kept_end] = range(dataset.samples());
  out.put_varint(keep_samples ? static_cast<std::uint64_t>(kept_end - kept) : 0);
  for (auto it = kept; keep_samples && it != kept_end; ++it) {
    out.put_varint(it->row - begin);
    out.put_varint(it->values_ns.size());
    for (const float value : it->values_ns) {
      out.put(value);
    }
  }
}

namespace {

Status decode_problems(ByteReader& reader, Dataset& dataset) {
  while (reader.ok() && !reader.at_end()) {
    const auto type = reader.get<std::uint16_t>();
    const std::uint64_t count = reader.get_count(1);
    Problem::Fields fields;
    for (std::uint64_t i = 0; i < count && reader.ok(); ++i) {
      fields.push_back(reader.get_zigzag());
    }
    Digest payload;
    if (reader.get<std::uint8_t>() == 1) {
      payload.high = reader.get<std::uint64_t>();
      payload.low = reader.get<std::uint64_t>();
    }
    if (!reader.ok()) {
      break;
    }
    FORETUNE_TRY(const Problem problem, Problem::create(static_cast<ProblemType>(type),
                                                        std::move(fields), payload));
    const std::size_t expected = dataset.problems().size();
    if (dataset.intern_problem(problem) != expected) {
      return corrupt("a problem is defined twice");
    }
  }
  return reader.ok() ? Status() : Status(corrupt("a problem is cut off"));
}

Status decode_configs(ByteReader& reader, Dataset& dataset) {
  const ConfigSchema& schema = dataset.header().config_schema;
  const std::uint64_t id = schema.id();
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
    if (schema.kind == SchemaKind::kParametric && count != schema.parameters.size()) {
      return corrupt("a config has another number of words than its schema");
    }
    const std::size_t expected = dataset.configs().size();
    if (reader.ok() && dataset.intern_config(config) != expected) {
      return corrupt("a config is defined twice");
    }
  }
  return reader.ok() ? Status() : Status(corrupt("a config is cut off"));
}

Status decode_contexts(ByteReader& reader, Dataset& dataset) {
  while (reader.ok() && !reader.at_end()) {
    Context context;
    context.machine = reader.get<std::uint64_t>();
    context.device = reader.get_string();
    const std::int64_t threads = reader.get_zigzag();
    const auto cache = reader.get<std::uint8_t>();
    const std::int64_t clock_mhz = reader.get_zigzag();
    const std::int64_t fidelity = reader.get_zigzag();
    const auto fits = [](std::int64_t value) { return value >= INT32_MIN && value <= INT32_MAX; };
    if (!reader.ok() || cache > 1 || !fits(threads) || !fits(clock_mhz) || !fits(fidelity) ||
        dataset.contexts().size() + 1 >= std::numeric_limits<std::uint16_t>::max()) {
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
    const std::string reason = reader.get_string();
    const std::size_t expected = dataset.reason_count();
    if (reader.ok() && dataset.intern_reason(reason) != expected) {
      return corrupt("a reason is empty or defined twice");
    }
  }
  return reader.ok() ? Status() : Status(corrupt("a reason is cut off"));
}

Status check_row(const Dataset::Row& row, const Dataset& dataset) {
  if (row.problem >= dataset.problems().size() || row.config >= dataset.configs().size() ||
      row.context >= dataset.contexts().size() || row.reason >= dataset.reason_count()) {
    return corrupt("a row refers to a definition that is not there");
  }
  if (static_cast<std::uint8_t>(row.outcome) > static_cast<std::uint8_t>(Outcome::kWrongResult) ||
      static_cast<std::uint8_t>(row.stage) > static_cast<std::uint8_t>(Stage::kVerify)) {
    return corrupt("a row has an unknown outcome");
  }
  if (!is_time(row.time_ns) || !is_time(row.median_ns) || !is_time(row.spread)) {
    return corrupt("a row has a time that is no time");
  }
  return {};
}

void unpack_outcome(std::uint32_t packed, Dataset::Row& row) {
  row.outcome = static_cast<Outcome>(packed & 15U);
  row.stage = static_cast<Stage>((packed >> 4U) & 15U);
}

Result<MetricValue> decode_metric(ByteReader& reader) {
  const auto id = reader.get<std::uint8_t>();
  MetricValue metric;
  metric.value = reader.get<double>();
  metric.spread = reader.get<double>();
  metric.samples = static_cast<std::uint32_t>(reader.get_varint());
  if (!reader.ok() || id >= metric_infos().size()) {
    return corrupt("a metric makes no sense");
  }
  metric.metric = static_cast<MetricId>(id);
  return metric;
}

Status decode_samples(ByteReader& reader, RowIndex row, Dataset& dataset) {
  Dataset::Samples samples{.row = row, .values_ns = {}};
  const std::uint64_t count = reader.get_count(sizeof(float));
  for (std::uint64_t i = 0; i < count && reader.ok(); ++i) {
    samples.values_ns.push_back(reader.get<float>());
  }
  if (reader.ok() && count > 0) {
    dataset.add_samples(std::move(samples));
  }
  return {};
}

Status decode_row(ByteReader& reader, Dataset& dataset) {
  Dataset::Row row;
  const std::uint64_t problem = reader.get_varint();
  const std::uint64_t config = reader.get_varint();
  const std::uint64_t context = reader.get_varint();
  unpack_outcome(reader.get<std::uint8_t>(), row);
  row.flags = reader.get<std::uint8_t>();
  const std::uint64_t reason = reader.get_varint();
  row.time_ns = reader.get<float>();
  row.spread = long_float(reader.get<std::uint16_t>());
  const bool has_median = reader.get<std::uint8_t>() != 0;
  row.median_ns = median_from(row.time_ns, reader.get<std::uint16_t>(), has_median);
  const std::uint64_t samples = reader.get_varint();
  if (!reader.ok() || problem > UINT32_MAX || config > UINT32_MAX || context > UINT16_MAX ||
      reason > UINT32_MAX || samples > UINT16_MAX) {
    return corrupt("a row makes no sense");
  }
  row.problem = static_cast<std::uint32_t>(problem);
  row.config = static_cast<std::uint32_t>(config);
  row.context = static_cast<std::uint16_t>(context);
  row.reason = static_cast<std::uint32_t>(reason);
  row.samples = static_cast<std::uint16_t>(samples);
  FORETUNE_TRY_STATUS(check_row(row, dataset));
  const auto index = static_cast<RowIndex>(dataset.size());
  const std::uint64_t extras = reader.get_count(18);
  for (std::uint64_t i = 0; i < extras && reader.ok(); ++i) {
    FORETUNE_TRY(const MetricValue metric, decode_metric(reader));
    dataset.add_extra({index, metric});
  }
  FORETUNE_TRY_STATUS(decode_samples(reader, index, dataset));
  if (!reader.ok() || !reader.at_end()) {
    return corrupt("a row has another length than its content");
  }
  dataset.add_row(row);
  return {};
}

Status decode_columns(ByteReader& reader, std::span<Dataset::Row> rows) {
  const std::size_t n = rows.size();
  std::vector<std::uint8_t> has_median(n);
  std::vector<std::uint16_t> excess(n);
  const bool fits =
      get_column(reader, n, [&](std::size_t i, std::uint32_t v) { rows[i].problem = v; }) &&
      get_column(reader, n, [&](std::size_t i, std::uint32_t v) { rows[i].config = v; }) &&
      get_column(reader, n,
                 [&](std::size_t i, std::uint32_t v) {
                   rows[i].context = static_cast<std::uint16_t>(std::min(v, 0xffffU));
                 }) &&
      get_column(reader, n, [&](std::size_t i, std::uint32_t v) { unpack_outcome(v, rows[i]); }) &&
      get_column(reader, n,
                 [&](std::size_t i, std::uint32_t v) {
                   rows[i].flags = static_cast<std::uint8_t>(v);
                 }) &&
      get_column(reader, n, [&](std::size_t i, std::uint32_t v) { rows[i].reason = v; }) &&
      get_column(reader, n,
                 [&](std::size_t i, std::uint32_t v) {
                   rows[i].samples = static_cast<std::uint16_t>(v);
                 }) &&
      get_column(reader, n,
                 [&](std::size_t i, std::uint32_t v) {
                   has_median[i] = static_cast<std::uint8_t>(v);
                 }) &&
      get_column(reader, n,
                 [&](std::size_t i, std::uint32_t v) {
                   excess[i] = static_cast<std::uint16_t>(v);
                 }) &&
      get_column(reader, n, [&](std::size_t i, std::uint32_t v) {
        rows[i].spread = long_float(static_cast<std::uint16_t>(v));
      });
  const std::span<const std::byte> times = reader.get_bytes(n * sizeof(float));
  if (!fits || !reader.ok()) {
    return corrupt("a segment is shorter than its columns");
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::memcpy(&rows[i].time_ns, times.data() + i * sizeof(float), sizeof(float));
    rows[i].median_ns = median_from(rows[i].time_ns, excess[i], has_median[i] != 0);
  }
  return {};
}

// A constant column takes 5 bytes however many rows it stands for; times take 4 bytes a row.
constexpr std::size_t kMinBytesPerRow = sizeof(float);

Status decode_segment(ByteReader& reader, Dataset& dataset) {
  const std::uint64_t count = reader.get_count(kMinBytesPerRow);
  if (!reader.ok() || dataset.size() + count > std::numeric_limits<RowIndex>::max()) {
    return corrupt("a segment claims more rows than it can hold");
  }
  const std::size_t first = dataset.size();
  const std::span<Dataset::Row> rows = dataset.extend(static_cast<std::size_t>(count));
  FORETUNE_TRY_STATUS(decode_columns(reader, rows));
  for (const Dataset::Row& row : rows) {
    FORETUNE_TRY_STATUS(check_row(row, dataset));
  }
  const std::uint64_t extras = reader.get_count(19);
  for (std::uint64_t i = 0; i < extras && reader.ok(); ++i) {
    const std::uint64_t row = reader.get_varint();
    FORETUNE_TRY(const MetricValue metric, decode_metric(reader));
    if (row >= count) {
      return corrupt("a metric belongs to no row");
    }
    dataset.add_extra({static_cast<RowIndex>(first + row), metric});
  }
  const std::uint64_t sampled = reader.get_count(2);
  for (std::uint64_t i = 0; i < sampled && reader.ok(); ++i) {
    const std::uint64_t row = reader.get_varint();
    if (row >= count) {
      return corrupt("samples belong to no row");
    }
    FORETUNE_TRY_STATUS(decode_samples(reader, static_cast<RowIndex>(first + row), dataset));
  }
  return reader.ok() && reader.at_end()
             ? Status()
             : Status(corrupt("a segment has another length than its content"));
}

Status decode_baselines(ByteReader& reader, Dataset& dataset) {
  while (reader.ok() && !reader.at_end()) {
    Dataset::Baseline baseline;
    const std::uint64_t problem = reader.get_varint();
    baseline.name = reader.get_string();
    baseline.time_ns = reader.get<float>();
    if (!reader.ok() || problem >= dataset.problems().size() || !is_time(baseline.time_ns)) {
      return corrupt("a baseline makes no sense");
    }
    baseline.problem = static_cast<std::uint32_t>(problem);
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
      return decode_baselines(reader, dataset);
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
