#include "foretune/model/model_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "foretune/base/byte_io.h"
#include "foretune/base/file.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/internal/model_sections.h"
#include "foretune/model/model_columns.h"
#include "foretune/model/model_kind.h"

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

constexpr std::size_t kMinNameBytes = 4;  // the least of a string

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
                                                const std::vector<Entry>& entries, std::uint32_t id,
                                                std::string_view name) {
  const auto same = [&](const Entry& entry) { return entry.id == id; };
  const auto found = std::find_if(entries.begin(), entries.end(), same);
  if (found == entries.end() || std::find_if(found + 1, entries.end(), same) != entries.end()) {
    return fail(ErrorCode::kCorrupt, "it has ", found == entries.end() ? "no" : "more than one",
                " section '", name, "'");
  }
  const std::span<const std::byte> body = bytes.subspan(found->offset, found->length);
  if (crc32c(body) != found->crc) {
    return fail(ErrorCode::kCorrupt, "the checksum of its section '", name, "' does not match");
  }
  return body;
}

// Names of all columns, for a table that has later ones than its first.
std::vector<std::byte> columns_section(const Model& model) {
  ByteWriter writer;
  const Result<const FeatureTable*> table = feature_table_of(model);
  if (table && has_later_columns(**table)) {
    writer.put_varint((*table)->columns().size());
    for (const FeatureInfo& column : (*table)->columns()) {
      writer.put_string(column.name);
    }
  }
  return writer.take();
}

bool is_among(const SectionIds& ids, std::uint32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// Sections in the order in which they are added.
class FileBuilder {
 public:
  void add(std::uint32_t id, std::span<const std::byte> content) {
    body_.align(kAlignment);
    entries_.push_back(
        {.id = id, .crc = crc32c(content), .offset = body_.size(), .length = content.size()});
    body_.put_bytes(content);
  }

  [[nodiscard]] std::vector<std::byte> take() const {
    const std::size_t base = kHeaderBytes + entries_.size() * kEntryBytes;
    ByteWriter table;
    for (const Entry& entry : entries_) {
      table.put(entry.id);
      table.put(entry.crc);
      table.put(base + entry.offset);
      table.put(entry.length);
    }
    ByteWriter out;
    out.put_bytes(std::as_bytes(std::span(kMagic)));
    out.put(kMajor);
    out.put(kMinor);
    out.put(static_cast<std::uint32_t>(entries_.size()));
    out.put(static_cast<std::uint64_t>(base + body_.size()));
    out.put(crc32c(table.bytes(), crc32c(out.bytes())));
    out.put(std::uint32_t{0});
    out.put_bytes(table.bytes());
    out.put_bytes(body_.bytes());
    return out.take();
  }

 private:
  std::vector<Entry> entries_;
  ByteWriter body_;
};

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
  FORETUNE_TRY(const std::span<const std::byte> body,
               find_section(bytes, entries, kColumnsId, "columns"));
  ByteReader reader(body);
  names.resize(reader.get_count(kMinNameBytes));
  for (std::string& name : names) {
    name = reader.get_string();
  }
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "its section 'columns' is damaged");
  }
  return names;
}

// The map from the columns of the file to those of this version.
ColumnMap columns_of_file(const Model& header, std::span<const std::string> names) {
  const auto table = feature_table_of(header);
  return table ? ColumnMap::create(**table, names) : ColumnMap();
}

// Where the sections of the body lie, in the order of the kind.
using BodyBytes = std::vector<std::span<const std::byte>>;

// Reads all but the body. The model has the sections of `taken_over` already.
struct Contents {
  BodyBytes body;
  std::vector<std::string> columns;
};
Result<Contents> read_header(std::span<const std::byte> bytes, const SectionIds& taken_over,
                             Model& model) {
  FORETUNE_TRY(const std::vector<Entry> entries, read_table(bytes));
  for (const Entry& entry : entries) {
    if (is_among(taken_over, entry.id)) {
      return fail(ErrorCode::kCorrupt, "it has a section that it cannot have");
    }
  }
  for (const ModelSection& section : model_sections()) {
    const bool is_there = std::any_of(entries.begin(), entries.end(),
                                      [&](const Entry& entry) { return entry.id == section.id; });
    if (!is_there && (section.is_present != nullptr || is_among(taken_over, section.id))) {
      continue;
    }
    FORETUNE_TRY(const std::span<const std::byte> body,
                 find_section(bytes, entries, section.id, section.name));
    FORETUNE_TRY_STATUS(read_section(section, body, model));
  }
  Contents out;
  FORETUNE_TRY(const ModelKind* const kind, find_model_kind(model.kind));
  if (kind->is_transient) {
    return fail(ErrorCode::kUnsupported, "models of kind '", kind->name,
                "' call back into the program that trained them: no file holds one");
  }
  for (const BodySection& section : kind->sections) {
    FORETUNE_TRY(out.body.emplace_back(), find_section(bytes, entries, section.id, section.name));
  }
  FORETUNE_TRY(out.columns, read_columns(bytes, entries));
  FORETUNE_TRY_STATUS(columns_of_file(model, out.columns).apply(model));
  return out;
}

Status make_body(const BodyBytes& body, std::span<const std::string> columns, Model& model) {
  FORETUNE_TRY(const ModelKind* const kind, find_model_kind(model.kind));
  FORETUNE_TRY(model.body, kind->read(model, body, columns_of_file(model, columns)));
  return {};
}

}  // namespace

bool has_section(const ModelSection& section, const Model& model) {
  return section.is_present == nullptr || section.is_present(model);
}

std::vector<std::byte> file_bytes(const Model& model, const SectionIds& left_out) {
  FileBuilder file;
  const auto add = [&](const auto& section) {
    ByteWriter writer;
    section.put(writer, model);
    file.add(section.id, writer.bytes());
  };
  const auto kind = find_model_kind(model.kind);
  std::span<const BodySection> body;
  if (kind) {
    body = (*kind)->sections;
  }
  for (const ModelSection& section : model_sections()) {
    // The first part of a body stands where forests stood in the first version.
    if (section.id == kBodyBefore && !body.empty()) {
      add(body.front());
    }
    if (has_section(section, model) && !is_among(left_out, section.id)) {
      add(section);
    }
  }
  for (const BodySection& section : body.subspan(body.empty() ? 0 : 1)) {
    add(section);
  }
  if (const std::vector<std::byte> columns = columns_section(model); !columns.empty()) {
    file.add(kColumnsId, columns);
  }
  return file.take();
}

Status read_file(std::span<const std::byte> bytes, const SectionIds& taken_over, Model& model) {
  FORETUNE_TRY(const Contents contents, read_header(bytes, taken_over, model));
  return make_body(contents.body, contents.columns, model);
}

std::vector<std::byte> model_bytes(const Model& model) { return file_bytes(model, {}); }

Result<Model> parse_model(std::span<const std::byte> bytes) {
  Model model;
  FORETUNE_TRY_STATUS(read_file(bytes, {}, model));
  return model;
}

Status write_model(const Model& model, const std::filesystem::path& path) {
  if (const Status status = check_model(model); !status) {
    return fail_because(status.error(), "the model is not written to ", path.string());
  }
  FORETUNE_TRY_STATUS(check_lasting(model));
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
  auto read = read_header(file.bytes(), {}, parts.model);
  if (!read) {
    return fail_because(read.error(), "cannot use the model ", path.string());
  }
  for (const std::span<const std::byte> section : read->body) {
    parts.body.emplace_back(section.begin(), section.end());
  }
  parts.columns = std::move(read->columns);
  return parts;
}

Status read_body(ModelParts& parts) {
  FORETUNE_TRY_STATUS(
      make_body(BodyBytes(parts.body.begin(), parts.body.end()), parts.columns, parts.model));
  parts.body.clear();
  return {};
}

}  // namespace foretune
