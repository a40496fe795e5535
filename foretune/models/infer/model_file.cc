#include "foretune/models/infer/model_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "foretune/base/byte_io.h"
#include "foretune/base/file.h"
#include "foretune/features/feature_table.h"
#include "foretune/models/infer/model_columns.h"
#include "foretune/models/infer/model_sections.h"

namespace foretune {
namespace {

// As PNG's: a byte no text has, and line ends that a text transfer would change.
constexpr std::array<std::uint8_t, 8> kMagic{0x89, 'F', 'T', 'M', 0x0d, 0x0a, 0x1a, 0x0a};
constexpr std::uint16_t kMajor = 1;
constexpr std::uint16_t kMinor = 0;
constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kCheckedHeaderBytes = 24;
constexpr std::size_t kEntryBytes = 24;
constexpr std::size_t kAlignment = 8;
constexpr std::uint32_t kMaxSections = 1024;

constexpr std::size_t kLeastNameBytes = 4;  // the least of a string

struct Entry {
  std::uint32_t id = 0;
  std::uint32_t crc = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

Status check_version(ByteReader& reader) {
  const auto major = reader.get<std::uint16_t>();
  const auto minor = reader.get<std::uint16_t>();
  if (major > kMajor) {
    return fail(ErrorCode::kUnsupported, "it is a model file of version ", major, ".", minor,
                ", this version reads up to ", kMajor);
  }
  if (major == 0) {
    return fail(ErrorCode::kCorrupt, "it claims the version 0.", minor, ", which never was");
  }
  return {};
}

bool begins_as_model(ByteReader& reader) {
  const std::span<const std::byte> magic = reader.get_bytes(kMagic.size());
  return reader.ok() &&
         std::equal(magic.begin(), magic.end(), std::as_bytes(std::span(kMagic)).begin());
}

Result<std::vector<Entry>> read_table(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  if (!begins_as_model(reader)) {
    return fail(ErrorCode::kCorrupt, "it is not a Foretune model file");
  }
  FORETUNE_TRY_STATUS(check_version(reader));
  const auto count = reader.get<std::uint32_t>();
  const auto length = reader.get<std::uint64_t>();
  const auto crc = reader.get<std::uint32_t>();
  static_cast<void>(reader.get<std::uint32_t>());
  if (!reader.ok() || length != bytes.size()) {
    return fail(ErrorCode::kCorrupt, "it has ", bytes.size(), " bytes",
                reader.ok() ? concat(" instead of ", length) : " only");
  }
  if (count > kMaxSections || count > reader.remaining() / kEntryBytes) {
    return fail(ErrorCode::kCorrupt, "it claims ", count, " sections");
  }
  const std::span<const std::byte> table = bytes.subspan(kHeaderBytes, count * kEntryBytes);
  if (crc32c(table, crc32c(bytes.first(kCheckedHeaderBytes))) != crc) {
    return fail(ErrorCode::kCorrupt, "the checksum of its header does not match");
  }
  std::vector<Entry> entries(count);
  for (Entry& entry : entries) {
    entry.id = reader.get<std::uint32_t>();
    entry.crc = reader.get<std::uint32_t>();
    entry.offset = reader.get<std::uint64_t>();
    entry.length = reader.get<std::uint64_t>();
    if (entry.offset > bytes.size() || entry.length > bytes.size() - entry.offset) {
      return fail(ErrorCode::kCorrupt, "one of its sections ends after the end of the file");
    }
  }
  return entries;
}

Result<std::span<const std::byte>> find_section(std::span<const std::byte> bytes,
                                                const std::vector<Entry>& entries,
                                                const ModelSection& section) {
  const auto same = [&](const Entry& entry) { return entry.id == section.id; };
  const auto found = std::find_if(entries.begin(), entries.end(), same);
  if (found == entries.end() || std::find_if(found + 1, entries.end(), same) != entries.end()) {
    return fail(ErrorCode::kCorrupt, "it has ", found == entries.end() ? "no" : "more than one",
                " section '", section.name, "'");
  }
  const std::span<const std::byte> body = bytes.subspan(found->offset, found->length);
  if (crc32c(body) != found->crc) {
    return fail(ErrorCode::kCorrupt, "the checksum of its section '", section.name,
                "' does not match");
  }
  return body;
}

// Names of all columns, for a table that has later ones than its first.
std::vector<std::byte> columns_section(const Model& model) {
  ByteWriter writer;
  const Result<const FeatureTable*> table = find_feature_table(model.feature_table);
  if (table && has_later_columns(**table)) {
    writer.put_varint((*table)->columns().size());
    for (const FeatureInfo& column : (*table)->columns()) {
      writer.put_string(column.name);
    }
  }
  return writer.take();
}

bool has_section(const ModelSection& section, const Model& model) {
  return section.is_present == nullptr || section.is_present(model);
}

using SectionIds = std::vector<std::uint32_t>;

bool is_among(const SectionIds& ids, std::uint32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// A file without the sections of `left_out`.
std::vector<std::byte> file_bytes(const Model& model, const SectionIds& left_out) {
  std::vector<Entry> entries;
  ByteWriter body;
  const auto is_written = [&](const ModelSection& section) {
    return has_section(section, model) && !is_among(left_out, section.id);
  };
  const std::vector<std::byte> columns = columns_section(model);
  const auto count = std::count_if(model_sections().begin(), model_sections().end(), is_written) +
                     (columns.empty() ? 0 : 1);
  const std::size_t base = kHeaderBytes + static_cast<std::size_t>(count) * kEntryBytes;
  const auto append = [&](std::uint32_t id, std::span<const std::byte> content) {
    body.align(kAlignment);
    entries.push_back(
        {.id = id, .crc = crc32c(content), .offset = base + body.size(), .length = content.size()});
    body.put_bytes(content);
  };
  for (const ModelSection& section : model_sections()) {
    if (is_written(section)) {
      ByteWriter writer;
      section.put(writer, model);
      append(section.id, writer.bytes());
    }
  }
  if (!columns.empty()) {
    append(kColumnsId, columns);
  }
  ByteWriter table;
  for (const Entry& entry : entries) {
    table.put(entry.id);
    table.put(entry.crc);
    table.put(entry.offset);
    table.put(entry.length);
  }
  ByteWriter out;
  out.put_bytes(std::as_bytes(std::span(kMagic)));
  out.put(kMajor);
  out.put(kMinor);
  out.put(static_cast<std::uint32_t>(entries.size()));
  out.put(static_cast<std::uint64_t>(base + body.size()));
  out.put(crc32c(table.bytes(), crc32c(out.bytes())));
  out.put(std::uint32_t{0});
  out.put_bytes(table.bytes());
  out.put_bytes(body.bytes());
  return out.take();
}

Status read_section(const ModelSection& section, std::span<const std::byte> body, Model& model) {
  ByteReader reader(body);
  if (const Status status = section.get(reader, model); !status) {
    return fail_because(status.error(), "its section '", section.name, "'");
  }
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "its section '", section.name, "' is damaged");
  }
  return {};
}

// The names of the columns that the model was written with; none for those of the first version.
Result<std::vector<std::string>> read_columns(std::span<const std::byte> bytes,
                                              const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  if (std::none_of(entries.begin(), entries.end(),
                   [](const Entry& entry) { return entry.id == kColumnsId; })) {
    return names;
  }
  const ModelSection section{kColumnsId, "columns", nullptr, nullptr};
  FORETUNE_TRY(const std::span<const std::byte> body, find_section(bytes, entries, section));
  ByteReader reader(body);
  names.resize(reader.get_count(kLeastNameBytes));
  for (std::string& name : names) {
    name = reader.get_string();
  }
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "its section 'columns' is damaged");
  }
  return names;
}

// Reads all sections but the forests, whose bytes are returned, with the columns of both. The model
// has those of `taken_over` already.
struct ReadParts {
  std::span<const std::byte> forests;
  std::vector<std::string> columns;
};
Result<ReadParts> read_but_forests(std::span<const std::byte> bytes, const SectionIds& taken_over,
                                   Model& model) {
  FORETUNE_TRY(const std::vector<Entry> entries, read_table(bytes));
  std::span<const std::byte> forests;
  for (const ModelSection& section : model_sections()) {
    const bool is_there = std::any_of(entries.begin(), entries.end(),
                                      [&](const Entry& entry) { return entry.id == section.id; });
    if (!is_there && (section.is_present != nullptr || is_among(taken_over, section.id))) {
      continue;
    }
    FORETUNE_TRY(const std::span<const std::byte> body, find_section(bytes, entries, section));
    if (section.id == kForestsId) {
      forests = body;
    } else {
      FORETUNE_TRY_STATUS(read_section(section, body, model));
    }
  }
  FORETUNE_TRY(std::vector<std::string> columns, read_columns(bytes, entries));
  if (const auto table = find_feature_table(model.feature_table)) {
    FORETUNE_TRY_STATUS(ColumnMap::create(**table, columns).apply(model));
  }
  return ReadParts{forests, std::move(columns)};
}

Status read_forests(std::span<const std::byte> bytes, std::span<const std::string> columns,
                    Model& model) {
  FORETUNE_TRY_STATUS(read_section(*find_model_section(kForestsId), bytes, model));
  if (const auto table = find_feature_table(model.feature_table)) {
    const ColumnMap map = ColumnMap::create(**table, columns);
    for (Forest& forest : model.forests) {
      FORETUNE_TRY_STATUS(map.apply(forest));
    }
  }
  return {};
}

// ---- models of several metrics ------------------------------------------------------------------

constexpr std::size_t kMostMetrics = 32;

// Sections of the whole that a metric's model has to the byte, so that they are written once.
SectionIds shared_sections(const Model& whole, const Model& part) {
  SectionIds out;
  for (const ModelSection& section : model_sections()) {
    if (section.share == nullptr || !has_section(section, whole) || !has_section(section, part)) {
      continue;
    }
    ByteWriter of_whole;
    ByteWriter of_part;
    section.put(of_whole, whole);
    section.put(of_part, part);
    if (std::equal(of_whole.bytes().begin(), of_whole.bytes().end(), of_part.bytes().begin(),
                   of_part.bytes().end())) {
      out.push_back(section.id);
    }
  }
  return out;
}

MetricModel get_metric_model(ByteReader& reader) {
  MetricModel out;
  out.metric.name = reader.get_string();
  out.metric.unit = reader.get_string();
  out.metric.direction = static_cast<Direction>(reader.get<std::uint8_t>());
  out.metric.stage = static_cast<MetricStage>(reader.get<std::uint8_t>());
  out.scale.kind = static_cast<ValueScale::Kind>(reader.get<std::uint8_t>());
  out.scale.offset = reader.get<double>();
  out.scale.reference = reader.get<double>();
  out.scale.step = reader.get<double>();
  return out;
}

// The model of one metric: a file without the sections that it takes over from the whole.
Result<std::shared_ptr<const Model>> get_part(ByteReader& reader, const Model& whole) {
  auto part = std::make_shared<Model>();
  SectionIds taken_over(reader.get_count(sizeof(std::uint32_t)));
  for (std::uint32_t& id : taken_over) {
    id = reader.get<std::uint32_t>();
    const ModelSection* const section = find_model_section(id);
    if (section == nullptr || section->share == nullptr || !has_section(*section, whole)) {
      return fail(ErrorCode::kCorrupt, "it takes over a section that is not there");
    }
    section->share(whole, *part);
  }
  const std::span<const std::byte> bytes =
      reader.get_bytes(static_cast<std::size_t>(reader.get<std::uint64_t>()));
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "it is cut short");
  }
  FORETUNE_TRY(const std::vector<Entry> entries, read_table(bytes));
  for (const Entry& entry : entries) {
    if (entry.id == kMetricsId || is_among(taken_over, entry.id)) {
      return fail(ErrorCode::kCorrupt, "it has a section that it cannot have");
    }
  }
  FORETUNE_TRY(const ReadParts parts, read_but_forests(bytes, taken_over, *part));
  FORETUNE_TRY_STATUS(read_forests(parts.forests, parts.columns, *part));
  return part;
}

}  // namespace

void put_metric_models(ByteWriter& writer, const Model& model) {
  writer.put_varint(model.metrics.size());
  for (const MetricModel& part : model.metrics) {
    writer.put_string(part.metric.name);
    writer.put_string(part.metric.unit);
    writer.put(static_cast<std::uint8_t>(part.metric.direction));
    writer.put(static_cast<std::uint8_t>(part.metric.stage));
    writer.put(static_cast<std::uint8_t>(part.scale.kind));
    writer.put(part.scale.offset);
    writer.put(part.scale.reference);
    writer.put(part.scale.step);
    const SectionIds shared = shared_sections(model, *part.model);
    writer.put_varint(shared.size());
    for (const std::uint32_t id : shared) {
      writer.put(id);
    }
    const std::vector<std::byte> bytes = file_bytes(*part.model, shared);
    writer.put(static_cast<std::uint64_t>(bytes.size()));
    writer.put_bytes(bytes);
  }
}

Status get_metric_models(ByteReader& reader, Model& model) {
  constexpr std::size_t kLeastBytes = 44;
  const std::uint64_t count = reader.get_count(kLeastBytes);
  if (count > kMostMetrics) {
    return fail(ErrorCode::kCorrupt, "it claims ", count, " metrics");
  }
  std::vector<MetricModel> metrics;
  for (std::uint64_t i = 0; i < count; ++i) {
    MetricModel metric = get_metric_model(reader);
    auto part = get_part(reader, model);
    if (!part) {
      return fail_because(part.error(), "the model of metric ", i);
    }
    metric.model = *std::move(part);
    metrics.push_back(std::move(metric));
  }
  model.metrics = std::move(metrics);
  return {};
}

bool MetricModel::operator==(const MetricModel& other) const {
  return metric == other.metric && scale == other.scale &&
         (model == other.model ||
          (model != nullptr && other.model != nullptr && *model == *other.model));
}

std::vector<std::byte> model_bytes(const Model& model) { return file_bytes(model, {}); }

Result<Model> parse_model(std::span<const std::byte> bytes) {
  Model model;
  FORETUNE_TRY(const ReadParts parts, read_but_forests(bytes, {}, model));
  FORETUNE_TRY_STATUS(read_forests(parts.forests, parts.columns, model));
  return model;
}

Status write_model(const Model& model, const std::filesystem::path& path) {
  if (const Status status = check_model(model); !status) {
    return fail_because(status.error(), "the model is not written to ", path.string());
  }
  return write_file_atomically(path, model_bytes(model));
}

Result<Model> read_model(const std::filesystem::path& path) {
  FORETUNE_TRY(const MappedFile file, MappedFile::open(path));
  Result<Model> model = parse_model(file.bytes());
  if (!model) {
    return fail_because(model.error(), "cannot use the model ", path.string());
  }
  return model;
}

bool is_model_file(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  if (!file) {
    return false;
  }
  ByteReader reader(file->bytes());
  return begins_as_model(reader);
}

Result<ModelParts> read_model_parts(const std::filesystem::path& path) {
  FORETUNE_TRY(const MappedFile file, MappedFile::open(path));
  ModelParts parts;
  auto read = read_but_forests(file.bytes(), {}, parts.model);
  if (!read) {
    return fail_because(read.error(), "cannot use the model ", path.string());
  }
  parts.forests.assign(read->forests.begin(), read->forests.end());
  parts.columns = std::move(read->columns);
  return parts;
}

Status parse_forests(ModelParts& parts) {
  return read_forests(parts.forests, parts.columns, parts.model);
}

}  // namespace foretune
