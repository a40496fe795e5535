// A file descriptor, closed by its destructor, and locked where one process may write at a time.
//
//   FORETUNE_TRY(const Descriptor file, open_locked(path, O_RDWR | O_CREAT));
//   FORETUNE_TRY_STATUS(write_fully(file.get(), bytes, path.string()));
//
// Thread safety: plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "foretune/base/result.h"

namespace foretune {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }

  [[nodiscard]] int get() const { return value_; }
  [[nodiscard]] bool ok() const { return value_ >= 0; }
  // Returns false on an error: some file systems report a failed write only here.
  bool close();

 private:
  int value_ = -1;
};

// Opens the regular file of this name and locks it until the descriptor is closed; `flags` are
// those of open(2), new files get 0644. Opens the file again when it is replaced meanwhile. Errors:
// kNotFound, kInvalidArgument for a file that is not regular, kIo, also when another process holds
// the lock, and goes on to hold it for `lock.patience`.
struct FileLock {
  bool is_shared = false;                // with other readers
  std::chrono::milliseconds patience{};  // zero: an error at once
};
Result<Descriptor> open_locked(const std::filesystem::path& path, int flags,
                               const FileLock& lock = {});

// Writes all bytes, even when the system is interrupted or takes only a part at a time. `name` is
// for the error, kIo.
Status write_fully(int file, std::span<const std::byte> bytes, std::string_view name);

}  // namespace foretune
