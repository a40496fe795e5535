// A file by its descriptor: closed when it goes away, locked where one process may write at a time.
//
//   FORETUNE_TRY(const Descriptor file, open_locked(path, O_RDWR | O_CREAT));
//   FORETUNE_TRY_STATUS(write_fully(file.get(), bytes, path.string()));
//
// Thread safety: plain values.
#pragma once

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
  // Some file systems report a failed write only here: false.
  bool close();

 private:
  int value_ = -1;
};

// The regular file of this name, locked until the descriptor is closed; `flags` of open(2), new
// files get 0644. A file that is replaced meanwhile is not the file any more: it is looked at
// again. Errors: kNotFound, kInvalidArgument for what is no regular file, kIo, also where another
// process holds the lock.
Result<Descriptor> open_locked(const std::filesystem::path& path, int flags);

// All of it, however often the system is interrupted or takes a part. `name` is for the error, kIo.
Status write_fully(int file, std::span<const std::byte> bytes, std::string_view name);

}  // namespace foretune
