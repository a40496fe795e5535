// A data set file on disk: opened, locked, appended to. Internal to the data set module.
// Thread safety: a value of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::ftd {

class LockedFile {
 public:
  enum class Mode : std::uint8_t { kCreate, kExisting };
  // Opens for reading and appending, and takes the lock that belongs to one writer; it goes with
  // the process. Errors: kNotFound, kIo when another writer holds it.
  static Result<LockedFile> open(const std::filesystem::path& path, Mode mode);
  LockedFile(LockedFile&& other) noexcept;
  LockedFile& operator=(LockedFile&& other) noexcept;
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  ~LockedFile();

  Result<std::vector<std::byte>> read_all();
  Status truncate(std::uint64_t bytes);
  // One write system call. When it fails or is incomplete, the file is cut back to what it was; if
  // even that fails, every later append is refused.
  Status append(std::span<const std::byte> bytes);
  Status sync();
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  LockedFile(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}
  int descriptor_ = -1;
  std::string name_;
  std::uint64_t size_ = 0;
  bool broken_ = false;
};

}  // namespace foretune::ftd
