#include "foretune/dataset/ftd_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace foretune::ftd {
namespace {

std::string last_error() { return std::generic_category().message(errno); }

// Whether the path still names the opened file: sealing replaces it, and a lock on the old one
// would guard nothing.
bool is_current(int descriptor, const std::filesystem::path& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

Result<std::uint64_t> size_of(int descriptor, const std::string& name) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    return fail(ErrorCode::kIo, "cannot stat ", name, ": ", last_error());
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, name, " is not a regular file");
  }
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

Result<LockedFile> LockedFile::open(const std::filesystem::path& path, Mode mode) {
  const int flags = O_RDWR | O_APPEND | O_CLOEXEC | (mode == Mode::kCreate ? O_CREAT : 0);
  // More than a few replacements between opening and locking do not happen by chance.
  for (int attempt = 0; attempt < 100; ++attempt) {
    LockedFile file(::open(path.c_str(), flags, 0644), path.string());
    if (file.descriptor_ < 0) {
      return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "cannot open ",
                  path.string(), ": ", last_error());
    }
    FORETUNE_TRY(file.size_, size_of(file.descriptor_, file.name_));
    if (::flock(file.descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) {
        continue;
      }
      if (errno == EWOULDBLOCK) {
        return fail(ErrorCode::kIo, path.string(),
                    " is being written by another process; wait for it or choose another file");
      }
      return fail(ErrorCode::kIo, "cannot lock ", path.string(), ": ", last_error());
    }
    if (is_current(file.descriptor_, path)) {
      FORETUNE_TRY(file.size_, size_of(file.descriptor_, file.name_));
      return file;
    }
  }
  return fail(ErrorCode::kIo, path.string(), " is being replaced all the time");
}

LockedFile::LockedFile(LockedFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      name_(std::move(other.name_)),
      size_(other.size_),
      broken_(other.broken_) {}

LockedFile& LockedFile::operator=(LockedFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(name_, other.name_);
  std::swap(size_, other.size_);
  std::swap(broken_, other.broken_);
  return *this;
}

LockedFile::~LockedFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

Result<std::vector<std::byte>> LockedFile::read_all() {
  std::vector<std::byte> bytes(size_);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(descriptor_, bytes.data() + done, bytes.size() - done,
                                static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return fail(ErrorCode::kIo, "cannot read ", name_, ": ", last_error());
    }
    if (got == 0) {
      return fail(ErrorCode::kIo, name_, " became shorter while it was read");
    }
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

Status LockedFile::truncate(std::uint64_t bytes) {
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) {
    return fail(ErrorCode::kIo, "cannot cut ", name_, ": ", last_error());
  }
  size_ = bytes;
  return {};
}

Status LockedFile::append(std::span<const std::byte> bytes) {
  if (broken_) {
    return fail(ErrorCode::kIo, name_, " cannot be appended to after an incomplete write");
  }
  ssize_t written = 0;
  do {
    written = ::write(descriptor_, bytes.data(), bytes.size());
  } while (written < 0 && errno == EINTR);
  if (written >= 0 && static_cast<std::size_t>(written) == bytes.size()) {
    size_ += bytes.size();
    return {};
  }
  const std::string why = written < 0 ? last_error() : "the disk took only a part of it";
  if (written > 0) {
    broken_ = !truncate(size_);
  }
  return fail(ErrorCode::kIo, "cannot write ", name_, ": ", why);
}

Status LockedFile::sync() {
  if (::fdatasync(descriptor_) != 0) {
    return fail(ErrorCode::kIo, "cannot sync ", name_, ": ", last_error());
  }
  return {};
}

}  // namespace foretune::ftd
