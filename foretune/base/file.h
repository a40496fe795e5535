// Files: read whole, mapped, or replaced atomically (temporary file, fsync, rename).
//
//   FORETUNE_TRY(const std::string text, read_text_file("shapes.json"));
//   FORETUNE_TRY_STATUS(write_text_file_atomically("report.json", json));
//
// Thread safety: a MappedFile is immutable; several threads may call the functions at once, also to
// write the same file (one of the contents wins).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"

namespace foretune {

Result<std::vector<std::byte>> read_file(const std::filesystem::path& path);
Result<std::string> read_text_file(const std::filesystem::path& path);
// The old file stays until the new one is complete on disk; the new one gets its permissions. A
// symbolic link stays, and its target is replaced; a device or pipe is written to.
Status write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
Status write_text_file_atomically(const std::filesystem::path& path, std::string_view text);

class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace foretune
