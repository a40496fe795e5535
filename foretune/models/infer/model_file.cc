#include "foretune/models/infer/model_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "foretune/base/byte_io.h"
#include "foretune/base/file.h"
#include "foretune/features/feature_table.h"
#include "foretune/models/infer/forest_coding.h"
#include "foretune/models/infer/model_columns.h"

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

constexpr std::size_t kStringBytes = 4;  // the least of a string

constexpr std::uint32_t section_id(const char (&name)[5]) {  // NOLINT(modernize-avoid-c-arrays)
  std::uint32_t id = 0;
  for (unsigned i = 0; i < 4; ++i) {
    id |= static_cast<std::uint32_t>(static_cast<unsigned char>(name[i])) << (8 * i);
  }
  return id;
}

// ---- sections: a pair of functions each, which must mirror each other ---------------------------

void put_identity(ByteWriter& writer, const Model& model) {
  writer.put_string(model.kind);
  writer.put_string(model.family);
  writer.put(static_cast<std::uint16_t>(model.problem_type));
  writer.put(model.problem_schema);
  writer.put_string(model.feature_table);
  writer.put(model.feature_table_id);
  writer.put_string(model.target);
  writer.put(model.residual_std);
  writer.put(model.seed);
  writer.put(model.data_fingerprint.high);
  writer.put(model.data_fingerprint.low);
}

Status get_identity(ByteReader& reader, Model& model) {
  model.kind = reader.get_string();
  model.family = reader.get_string();
  model.problem_type = static_cast<ProblemType>(reader.get<std::uint16_t>());
  model.problem_schema = reader.get<std::uint64_t>();
  model.feature_table = reader.get_string();
  model.feature_table_id = reader.get<std::uint64_t>();
  model.target = reader.get_string();
  model.residual_std = reader.get<double>();
  model.seed = reader.get<std::uint64_t>();
  model.data_fingerprint.high = reader.get<std::uint64_t>();
  model.data_fingerprint.low = reader.get<std::uint64_t>();
  return {};
}

void put_schema(ByteWriter& writer, const Model& model) {
  const ConfigSchema& schema = model.config_schema;
  writer.put_string(schema.name);
  writer.put(schema.version);
  writer.put(static_cast<std::uint8_t>(schema.kind));
  writer.put_varint(schema.parameters.size());
  for (const Parameter& parameter : schema.parameters) {
    writer.put_string(parameter.name);
    writer.put_varint(parameter.labels.size());
    for (const std::string& label : parameter.labels) {
      writer.put_string(label);
    }
  }
}

Status get_schema(ByteReader& reader, Model& model) {
  ConfigSchema& schema = model.config_schema;
  schema.name = reader.get_string();
  schema.version = reader.get<std::uint32_t>();
  const auto kind = reader.get<std::uint8_t>();
  if (kind > static_cast<std::uint8_t>(SchemaKind::kSequence)) {
    return fail(ErrorCode::kUnsupported, "config schemas of kind ", kind,
                " are not known to this version");
  }
  schema.kind = static_cast<SchemaKind>(kind);
  schema.parameters.resize(reader.get_count(kStringBytes + 1));
  for (Parameter& parameter : schema.parameters) {
    parameter.name = reader.get_string();
    parameter.labels.resize(reader.get_count(kStringBytes));
    for (std::string& label : parameter.labels) {
      label = reader.get_string();
    }
  }
  return {};
}

void put_space(ByteWriter& writer, const Model& model) { writer.put_string(model.space_text); }

Status get_space(ByteReader& reader, Model& model) {
  model.space_text = reader.get_string();
  return {};
}

void put_machine(ByteWriter& writer, const Model& model) {
  writer.put_string(model.fingerprint.device);
  writer.put_string(model.fingerprint.isa);
  writer.put_string(model.fingerprint.system);
  writer.put_string(model.fingerprint.hardware.text());
}

Status get_machine(ByteReader& reader, Model& model) {
  model.fingerprint.device = reader.get_string();
  model.fingerprint.isa = reader.get_string();
  model.fingerprint.system = reader.get_string();
  FORETUNE_TRY(model.fingerprint.hardware, Hardware::parse(reader.get_string()));
  return {};
}

void put_pool(ByteWriter& writer, const Model& model) {
  writer.put_varint(model.pool.size());
  for (const Config& config : model.pool) {
    writer.put_varint(config.words.size());
    for (const std::int32_t word : config.words.view()) {
      writer.put_zigzag(word);
    }
  }
}

Status get_pool(ByteReader& reader, Model& model) {
  const std::uint64_t schema = model.config_schema.id();
  const bool fixed = model.config_schema.kind == SchemaKind::kParametric;
  const std::size_t width = model.config_schema.parameters.size();
  const std::uint64_t count = reader.get_count(fixed ? 1 + width : 1);
  model.pool.reserve(fixed ? count : 0);
  for (std::uint64_t i = 0; i < count && reader.ok(); ++i) {
    const std::uint64_t words = reader.get_count(1);
    if (fixed && words != width) {
      return fail(ErrorCode::kCorrupt, "candidate ", i, " has ", words, " words instead of ",
                  width);
    }
    Config config{.schema = schema, .words = Config::Words(static_cast<std::size_t>(words))};
    for (std::int32_t& word : config.words) {
      const std::int64_t value = reader.get_zigzag();
      if (value < INT32_MIN || value > INT32_MAX) {
        reader.fail();
      }
      word = static_cast<std::int32_t>(value);
    }
    model.pool.push_back(std::move(config));
  }
  return {};
}

void put_portfolio(ByteWriter& writer, const Model& model) {
  writer.put_varint(model.portfolio.size());
  for (const std::uint32_t position : model.portfolio) {
    writer.put_varint(position);
  }
}

Status get_portfolio(ByteReader& reader, Model& model) {
  model.portfolio.resize(reader.get_count(1));
  for (std::uint32_t& position : model.portfolio) {
    const std::uint64_t value = reader.get_varint();
    if (value > UINT32_MAX) {
      reader.fail();
    }
    position = static_cast<std::uint32_t>(value);
  }
  return {};
}

void put_forests(ByteWriter& writer, const Model& model) {
  writer.put_varint(model.forests.size());
  for (const Forest& forest : model.forests) {
    put_forest(writer, forest);
  }
}

Status get_forests(ByteReader& reader, Model& model) {
  const std::uint64_t count = reader.get_count(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    FORETUNE_TRY(Forest forest, get_forest(reader));
    model.forests.push_back(std::move(forest));
  }
  return {};
}

void put_ranges(ByteWriter& writer, const Model& model) {
  writer.put_varint(model.problem_range.size());
  for (const auto& [low, high] : model.problem_range) {
    writer.put(low);
    writer.put(high);
  }
}

Status get_ranges(ByteReader& reader, Model& model) {
  model.problem_range.resize(reader.get_count(2 * sizeof(double)));
  for (auto& [low, high] : model.problem_range) {
    low = reader.get<double>();
    high = reader.get<double>();
  }
  return {};
}

void put_card(ByteWriter& writer, const Model& model) { writer.put_string(model.card_json); }

Status get_card(ByteReader& reader, Model& model) {
  model.card_json = reader.get_string();
  return {};
}

void put_hull(ByteWriter& writer, const Model& model) { put_training_hull(writer, *model.hull); }

Status get_hull(ByteReader& reader, Model& model) {
  FORETUNE_TRY(model.hull, get_training_hull(reader));
  return {};
}

void put_fast(ByteWriter& writer, const Model& model) { put_fast_model(writer, *model.fast); }

Status get_fast(ByteReader& reader, Model& model) {
  FORETUNE_TRY(model.fast, get_fast_model(reader));
  return {};
}

void put_networks(ByteWriter& writer, const Model& model) {
  writer.put(model.network_share);
  writer.put_varint(model.networks.size());
  for (const Network& network : model.networks) {
    put_network(writer, network);
  }
}

Status get_networks(ByteReader& reader, Model& model) {
  constexpr std::size_t kLeastBytes = 16;
  model.network_share = reader.get<double>();
  const std::uint64_t count = reader.get_count(kLeastBytes);
  for (std::uint64_t i = 0; i < count; ++i) {
    FORETUNE_TRY(Network network, get_network(reader));
    model.networks.push_back(std::move(network));
  }
  return {};
}

struct Section {
  std::uint32_t id;
  std::string_view name;
  void (*put)(ByteWriter& writer, const Model& model);
  Status (*get)(ByteReader& reader, Model& model);
  // Whether the model has what belongs there; nothing for a section that every file has.
  bool (*is_present)(const Model& model) = nullptr;
};

// Written and read beside the others, because it tells how to read them.
constexpr std::uint32_t kColumnsId = section_id("COLS");

constexpr Section kForests{section_id("TREE"), "forests", &put_forests, &get_forests};

// In the order in which they are read, but the forests last: the pool needs the config schema.
constexpr std::array kSections{
    Section{section_id("IDEN"), "identity", &put_identity, &get_identity},
    Section{section_id("CONF"), "config schema", &put_schema, &get_schema},
    Section{section_id("SPAC"), "space", &put_space, &get_space},
    Section{section_id("MACH"), "machine", &put_machine, &get_machine},
    Section{section_id("POOL"), "pool", &put_pool, &get_pool},
    Section{section_id("PORT"), "portfolio", &put_portfolio, &get_portfolio},
    kForests,
    Section{section_id("RANG"), "problem ranges", &put_ranges, &get_ranges},
    Section{section_id("CARD"), "model card", &put_card, &get_card},
    Section{section_id("HULL"), "training hull", &put_hull, &get_hull,
            [](const Model& model) { return model.hull.has_value(); }},
    Section{section_id("FAST"), "fast model", &put_fast, &get_fast,
            [](const Model& model) { return model.fast.has_value(); }},
    Section{section_id("NETW"), "networks", &put_networks, &get_networks,
            [](const Model& model) { return !model.networks.empty(); }},
};

// ---- the container ------------------------------------------------------------------------------

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
                                                const Section& section) {
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

}  // namespace

std::vector<std::byte> model_bytes(const Model& model) {
  std::vector<Entry> entries;
  ByteWriter body;
  const auto is_written = [&](const Section& section) {
    return section.is_present == nullptr || section.is_present(model);
  };
  const std::vector<std::byte> columns = columns_section(model);
  const auto count =
      std::count_if(kSections.begin(), kSections.end(), is_written) + (columns.empty() ? 0 : 1);
  const std::size_t base = kHeaderBytes + static_cast<std::size_t>(count) * kEntryBytes;
  const auto append = [&](std::uint32_t id, std::span<const std::byte> content) {
    body.align(kAlignment);
    entries.push_back(
        {.id = id, .crc = crc32c(content), .offset = base + body.size(), .length = content.size()});
    body.put_bytes(content);
  };
  for (const Section& section : kSections) {
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

namespace {

Status read_section(const Section& section, std::span<const std::byte> body, Model& model) {
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
  const Section section{kColumnsId, "columns", nullptr, nullptr};
  FORETUNE_TRY(const std::span<const std::byte> body, find_section(bytes, entries, section));
  ByteReader reader(body);
  names.resize(reader.get_count(kStringBytes));
  for (std::string& name : names) {
    name = reader.get_string();
  }
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "its section 'columns' is damaged");
  }
  return names;
}

// Reads all sections but the forests, whose bytes are returned, with the columns of both.
struct ReadParts {
  std::span<const std::byte> forests;
  std::vector<std::string> columns;
};
Result<ReadParts> read_but_forests(std::span<const std::byte> bytes, Model& model) {
  FORETUNE_TRY(const std::vector<Entry> entries, read_table(bytes));
  std::span<const std::byte> forests;
  for (const Section& section : kSections) {
    if (section.is_present != nullptr &&
        std::none_of(entries.begin(), entries.end(),
                     [&](const Entry& entry) { return entry.id == section.id; })) {
      continue;
    }
    FORETUNE_TRY(const std::span<const std::byte> body, find_section(bytes, entries, section));
    if (section.id == kForests.id) {
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
  FORETUNE_TRY_STATUS(read_section(kForests, bytes, model));
  if (const auto table = find_feature_table(model.feature_table)) {
    const ColumnMap map = ColumnMap::create(**table, columns);
    for (Forest& forest : model.forests) {
      FORETUNE_TRY_STATUS(map.apply(forest));
    }
  }
  return {};
}

}  // namespace

Result<Model> parse_model(std::span<const std::byte> bytes) {
  Model model;
  FORETUNE_TRY(const ReadParts parts, read_but_forests(bytes, model));
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
  auto read = read_but_forests(file.bytes(), parts.model);
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
