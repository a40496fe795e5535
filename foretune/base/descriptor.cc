#include "foretune/base/descriptor.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "foretune/base/system_error.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr int kMaxAttempts = 100;
// Writers that share a file hold its lock for some microseconds.
constexpr std::chrono::microseconds kLockPause{200};

}  // namespace

bool Descriptor::close() {
  const int value = std::exchange(value_, -1);
  return value < 0 || ::close(value) == 0;
}

Result<Descriptor> open_locked(const std::filesystem::path& path, int flags, const FileLock& lock) {
  const auto deadline = std::chrono::steady_clock::now() + lock.patience;
  const int operation = (lock.is_shared ? LOCK_SH : LOCK_EX) | LOCK_NB;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0644));
    if (!file.ok()) {
      return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "cannot open ",
                  path.string(), ": ", last_error());
    }
    struct stat opened{};
    if (::fstat(file.get(), &opened) == 0 && !S_ISREG(opened.st_mode)) {
      return fail(ErrorCode::kInvalidArgument, path.string(), " is not a regular file");
    }
    while (::flock(file.get(), operation) != 0) {
      if ((errno == EWOULDBLOCK || errno == EINTR) && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(kLockPause);
        continue;
      }
      return fail(ErrorCode::kIo, path.string(),
                  errno == EWOULDBLOCK ? std::string(" is being written by another process")
                                       : concat(" cannot be locked: ", last_error()));
    }
    // A lock on a file that was replaced would guard nothing.
    struct stat named{};
    if (::stat(path.c_str(), &named) == 0 && named.st_ino == opened.st_ino &&
        named.st_dev == opened.st_dev) {
      return file;
    }
  }
  return fail(ErrorCode::kIo, path.string(), " is being replaced all the time");
}

Status write_fully(int file, std::span<const std::byte> bytes, std::string_view name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      return fail(ErrorCode::kIo, "cannot write ", name, ": ", last_error());
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace foretune
