// Files: read whole, mapped, or replaced atomically (temporary file, fsync, rename).
// Thread safety: a MappedFile is immutable; the functions have no state.
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
// The old file stays until the new one is complete on disk.
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
