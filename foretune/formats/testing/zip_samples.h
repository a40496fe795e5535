// Writes zip archives of stored entries, byte by byte: as torch.save() writes them, or in the
// simplest form. For tests. Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/byte_io.h"

namespace foretune::formats {

struct SampleEntry {
  std::string name;
  std::string bytes;
};

struct SampleZip {
  // Sizes behind the data, data at multiples of 64, zip64 records: torch's writer (miniz) does so.
  bool as_torch = true;
  std::uint16_t method = 0;
  std::uint16_t flags = 0;  // further ones
  std::string comment;
};

// Returns the CRC-32 of zip by its definition, a bit at a time.
inline std::uint32_t sample_crc32(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1U) != 0 ? crc >> 1U ^ 0xedb88320U : crc >> 1U;
    }
  }
  return ~crc;
}

inline void put_text(ByteWriter& writer, std::string_view text) {
  writer.put_bytes(std::as_bytes(std::span(text.data(), text.size())));
}

inline void put_local_entry(ByteWriter& writer, const SampleEntry& entry, const SampleZip& zip) {
  constexpr std::size_t kHeader = 30;
  constexpr std::size_t kAlignment = 64;
  const auto size = static_cast<std::uint32_t>(entry.bytes.size());
  const std::size_t unpadded = writer.size() + kHeader + entry.name.size() + 4;
  const std::size_t padding = zip.as_torch ? (kAlignment - unpadded % kAlignment) % kAlignment : 0;
  writer.put(std::uint32_t{0x04034b50});
  writer.put(std::uint16_t{0});
  writer.put(static_cast<std::uint16_t>(zip.flags | (zip.as_torch ? 0x808U : 0U)));
  writer.put(zip.method);
  writer.put(std::uint32_t{0});
  writer.put(zip.as_torch ? 0 : sample_crc32(entry.bytes));
  writer.put(zip.as_torch ? 0 : size);
  writer.put(zip.as_torch ? 0 : size);
  writer.put(static_cast<std::uint16_t>(entry.name.size()));
  writer.put(static_cast<std::uint16_t>(zip.as_torch ? padding + 4 : 0));
  put_text(writer, entry.name);
  if (zip.as_torch) {
    put_text(writer, "FB");
    writer.put(static_cast<std::uint16_t>(padding));
    put_text(writer, std::string(padding, 'Z'));
  }
  put_text(writer, entry.bytes);
  if (zip.as_torch) {
    writer.put(std::uint32_t{0x08074b50});
    writer.put(sample_crc32(entry.bytes));
    writer.put(size);
    writer.put(size);
  }
}

inline void put_directory_entry(ByteWriter& writer, const SampleEntry& entry, const SampleZip& zip,
                                std::size_t offset) {
  const auto size = static_cast<std::uint32_t>(entry.bytes.size());
  writer.put(std::uint32_t{0x02014b50});
  writer.put(std::uint32_t{0});
  writer.put(static_cast<std::uint16_t>(zip.flags | (zip.as_torch ? 0x808U : 0U)));
  writer.put(zip.method);
  writer.put(std::uint32_t{0});
  writer.put(sample_crc32(entry.bytes));
  writer.put(size);
  writer.put(size);
  writer.put(static_cast<std::uint16_t>(entry.name.size()));
  writer.put(std::uint16_t{0});  // further fields
  writer.put(std::uint16_t{0});  // comment
  writer.put(std::uint16_t{0});  // disk
  writer.put(std::uint16_t{0});  // attributes
  writer.put(std::uint32_t{0});
  writer.put(static_cast<std::uint32_t>(offset));
  put_text(writer, entry.name);
}

inline std::vector<std::byte> sample_zip(const std::vector<SampleEntry>& entries,
                                         const SampleZip& zip = {}) {
  ByteWriter writer;
  std::vector<std::size_t> offsets;
  for (const SampleEntry& entry : entries) {
    offsets.push_back(writer.size());
    put_local_entry(writer, entry, zip);
  }
  const std::size_t directory = writer.size();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    put_directory_entry(writer, entries[i], zip, offsets[i]);
  }
  const std::size_t end = writer.size();
  if (zip.as_torch) {
    writer.put(std::uint32_t{0x06064b50});
    writer.put(std::uint64_t{44});
    writer.put(std::uint32_t{0x002d031e});
    writer.put(std::uint64_t{0});
    writer.put(std::uint64_t{entries.size()});
    writer.put(std::uint64_t{entries.size()});
    writer.put(std::uint64_t{end - directory});
    writer.put(std::uint64_t{directory});
    writer.put(std::uint32_t{0x07064b50});
    writer.put(std::uint32_t{0});
    writer.put(std::uint64_t{end});
    writer.put(std::uint32_t{1});
  }
  writer.put(std::uint32_t{0x06054b50});
  writer.put(std::uint32_t{0});
  writer.put(static_cast<std::uint16_t>(entries.size()));
  writer.put(static_cast<std::uint16_t>(entries.size()));
  writer.put(static_cast<std::uint32_t>(end - directory));
  writer.put(static_cast<std::uint32_t>(directory));
  writer.put(static_cast<std::uint16_t>(zip.comment.size()));
  put_text(writer, zip.comment);
  return writer.take();
}

}  // namespace foretune::formats
