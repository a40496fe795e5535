#include "foretune/formats/stored_zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include "foretune/base/byte_io.h"

namespace foretune::formats {
namespace {

constexpr std::uint32_t kLocalSignature = 0x04034b50;
constexpr std::uint32_t kDirectorySignature = 0x02014b50;
constexpr std::uint32_t kEndSignature = 0x06054b50;
constexpr std::uint32_t kEnd64Signature = 0x06064b50;
constexpr std::uint32_t kLocator64Signature = 0x07064b50;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kEnd64Bytes = 56;
constexpr std::size_t kLocator64Bytes = 20;

// Bits of an entry's flags: encrypted, strongly encrypted, names hidden; sizes follow the data.
constexpr unsigned kEncryptionFlags = 1U | 1U << 6U | 1U << 13U;
constexpr unsigned kSizesBehind = 1U << 3U;

// A field with this value has its number in a zip64 record.
template <class T>
constexpr T kElsewhere = std::numeric_limits<T>::max();

struct Directory {
  std::uint64_t entries = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
  bool operator==(const Directory&) const = default;
};

struct Entry {
  std::string_view name;
  std::uint64_t header = 0;  // of its local header
  std::uint64_t end = 0;     // of its data
  std::uint32_t size = 0;
  std::uint32_t checksum = 0;
  StoredEntry stored;
};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns the place of the end record; only its own comment may follow it.
std::optional<std::size_t> find_end(std::span<const std::byte> bytes) {
  constexpr std::size_t kMaxComment = 0xffff;
  for (std::size_t comment = 0; comment <= kMaxComment && comment + kEndBytes <= bytes.size();
       ++comment) {
    const std::size_t at = bytes.size() - comment - kEndBytes;
    ByteReader reader(bytes.subspan(at, kEndBytes));
    const bool is_end = reader.get<std::uint32_t>() == kEndSignature;
    reader.get_bytes(kEndBytes - 6);
    if (is_end && reader.get<std::uint16_t>() == comment) {
      return at;
    }
  }
  return std::nullopt;
}

Result<Directory> read_end(std::span<const std::byte> bytes, std::size_t end) {
  ByteReader reader(bytes.subspan(end, kEndBytes));
  reader.get<std::uint32_t>();
  const auto disk = reader.get<std::uint16_t>();
  const auto first_disk = reader.get<std::uint16_t>();
  const auto entries_here = reader.get<std::uint16_t>();
  const auto entries = reader.get<std::uint16_t>();
  const auto size = reader.get<std::uint32_t>();
  const auto offset = reader.get<std::uint32_t>();
  if (entries == kElsewhere<std::uint16_t> || size == kElsewhere<std::uint32_t> ||
      offset == kElsewhere<std::uint32_t>) {
    return fail(ErrorCode::kUnsupported, "the zip archive is too large to be read without zip64");
  }
  if (disk != 0 || first_disk != 0 || entries_here != entries) {
    return fail(ErrorCode::kUnsupported, "the zip archive is one of several parts");
  }
  return Directory{.entries = entries, .size = size, .offset = offset};
}

// Checks that the zip64 records between directory and end record, if any, agree with it.
Status check_zip64(std::span<const std::byte> bytes, const Directory& directory, std::size_t end) {
  const std::uint64_t at = directory.offset + directory.size;
  if (at == end) {
    return {};
  }
  if (at > end || end - at != kEnd64Bytes + kLocator64Bytes) {
    return fail(ErrorCode::kCorrupt, "the zip archive's directory does not end where its end ",
                "record begins");
  }
  ByteReader reader(bytes.subspan(at, kEnd64Bytes + kLocator64Bytes));
  const bool is_record = reader.get<std::uint32_t>() == kEnd64Signature &&
                         reader.get<std::uint64_t>() == kEnd64Bytes - 12;
  reader.get<std::uint32_t>();  // versions of the writer and for the reader
  const bool is_one_disk = reader.get<std::uint64_t>() == 0;
  const auto entries_here = reader.get<std::uint64_t>();
  Directory same;
  same.entries = reader.get<std::uint64_t>();
  same.size = reader.get<std::uint64_t>();
  same.offset = reader.get<std::uint64_t>();
  const bool is_locator =
      reader.get<std::uint32_t>() == kLocator64Signature && reader.get<std::uint32_t>() == 0;
  const bool points_back = reader.get<std::uint64_t>() == at;
  if (!is_record || !is_one_disk || entries_here != directory.entries || !(same == directory) ||
      !is_locator || !points_back || reader.get<std::uint32_t>() > 1) {
    return fail(ErrorCode::kCorrupt, "the zip archive's zip64 records contradict its end record");
  }
  return {};
}

Status check_readable(std::string_view name, unsigned flags, unsigned method) {
  if ((flags & kEncryptionFlags) != 0) {
    return fail(ErrorCode::kUnsupported, "the zip entry ", quoted(name, 60), " is encrypted");
  }
  if (method != 0) {
    return fail(ErrorCode::kUnsupported, "the zip entry ", quoted(name, 60),
                " is compressed; only stored entries are read");
  }
  return {};
}

// Reads one header of the directory.
Result<Entry> read_entry(ByteReader& reader) {
  const bool is_header = reader.get<std::uint32_t>() == kDirectorySignature;
  reader.get<std::uint32_t>();  // versions
  const auto flags = reader.get<std::uint16_t>();
  const auto method = reader.get<std::uint16_t>();
  reader.get<std::uint32_t>();  // time and date
  Entry entry;
  entry.checksum = reader.get<std::uint32_t>();
  const auto compressed = reader.get<std::uint32_t>();
  entry.size = reader.get<std::uint32_t>();
  const auto name = reader.get<std::uint16_t>();
  const auto extra = reader.get<std::uint16_t>();
  const auto comment = reader.get<std::uint16_t>();
  const auto disk = reader.get<std::uint16_t>();
  reader.get_bytes(6);  // attributes
  entry.header = reader.get<std::uint32_t>();
  entry.name = text_of(reader.get_bytes(name));
  reader.get_bytes(std::size_t{extra} + comment);
  if (!is_header || !reader.ok()) {
    return fail(ErrorCode::kCorrupt, "the zip archive's directory is damaged");
  }
  FORETUNE_TRY_STATUS(check_readable(entry.name, flags, method));
  if (compressed == kElsewhere<std::uint32_t> || entry.size == kElsewhere<std::uint32_t> ||
      entry.header == kElsewhere<std::uint32_t>) {
    return fail(ErrorCode::kUnsupported, "the zip entry ", quoted(entry.name, 60),
                " is too large to be read without zip64");
  }
  if (compressed != entry.size || disk != 0) {
    return fail(ErrorCode::kCorrupt, "the zip entry ", quoted(entry.name, 60),
                " contradicts itself in the directory");
  }
  return entry;
}

// Finds the entry's bytes behind its local header, which must agree with the directory.
Status locate(std::span<const std::byte> contents, Entry& entry) {
  if (entry.header > contents.size()) {
    return fail(ErrorCode::kCorrupt, "the zip entry ", quoted(entry.name, 60),
                " begins behind the end of the contents");
  }
  ByteReader reader(contents.subspan(entry.header));
  const bool is_header = reader.get<std::uint32_t>() == kLocalSignature;
  reader.get<std::uint16_t>();  // version
  const auto flags = reader.get<std::uint16_t>();
  const auto method = reader.get<std::uint16_t>();
  reader.get<std::uint32_t>();  // time and date
  const auto checksum = reader.get<std::uint32_t>();
  const auto compressed = reader.get<std::uint32_t>();
  const auto size = reader.get<std::uint32_t>();
  const auto name = reader.get<std::uint16_t>();
  const auto extra = reader.get<std::uint16_t>();
  const bool is_named = text_of(reader.get_bytes(name)) == entry.name;
  reader.get_bytes(extra);
  if (is_header) {
    FORETUNE_TRY_STATUS(check_readable(entry.name, flags, method));
  }
  const bool is_same = checksum == entry.checksum && compressed == entry.size && size == entry.size;
  entry.stored = {.name = entry.name, .bytes = reader.get_bytes(entry.size)};
  entry.end = entry.header + reader.position();
  if (!is_header || !is_named || !reader.ok() || (!is_same && (flags & kSizesBehind) == 0)) {
    return fail(ErrorCode::kCorrupt, "the zip entry ", quoted(entry.name, 60),
                " is cut off or another one than the directory says");
  }
  return {};
}

Status check_checksum(const Entry& entry) {
  const std::span<const std::byte> bytes = entry.stored.bytes;
  const uLong sum =
      crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (sum != entry.checksum) {
    return fail(ErrorCode::kCorrupt, "the checksum of the zip entry ", quoted(entry.name, 60),
                " does not match");
  }
  return {};
}

// Refuses entries that share bytes: they could make a small file cost much, and no writer makes
// them.
Status check_apart(const std::vector<Entry>& entries) {
  std::vector<const Entry*> sorted;
  for (const Entry& entry : entries) {
    sorted.push_back(&entry);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const Entry* a, const Entry* b) { return a->header < b->header; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i]->header < sorted[i - 1]->end) {
      return fail(ErrorCode::kCorrupt, "the zip entries ", quoted(sorted[i - 1]->name, 60), " and ",
                  quoted(sorted[i]->name, 60), " overlap");
    }
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const Entry* a, const Entry* b) { return a->name < b->name; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i]->name == sorted[i - 1]->name) {
      return fail(ErrorCode::kCorrupt, "the zip archive has ", quoted(sorted[i]->name, 60),
                  " twice");
    }
  }
  return {};
}

}  // namespace

bool is_zip(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const auto signature = reader.get<std::uint32_t>();
  return signature == kLocalSignature || signature == kEndSignature;
}

Result<std::vector<StoredEntry>> read_stored_zip(std::span<const std::byte> bytes) {
  const std::optional<std::size_t> end = is_zip(bytes) ? find_end(bytes) : std::nullopt;
  if (!end) {
    return fail(ErrorCode::kCorrupt,
                is_zip(bytes) ? "the zip archive is cut off" : "this is no zip archive");
  }
  FORETUNE_TRY(const Directory directory, read_end(bytes, *end));
  FORETUNE_TRY_STATUS(check_zip64(bytes, directory, *end));
  ByteReader reader(bytes.subspan(directory.offset, directory.size));
  std::vector<Entry> entries;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    FORETUNE_TRY(Entry entry, read_entry(reader));
    FORETUNE_TRY_STATUS(locate(bytes.first(directory.offset), entry));
    entries.push_back(entry);
  }
  if (!reader.at_end()) {
    return fail(ErrorCode::kCorrupt, "the zip archive's directory has more than its ",
                directory.entries, " entries");
  }
  FORETUNE_TRY_STATUS(check_apart(entries));
  std::vector<StoredEntry> out;
  for (const Entry& entry : entries) {
    FORETUNE_TRY_STATUS(check_checksum(entry));
    out.push_back(entry.stored);
  }
  return out;
}

}  // namespace foretune::formats
