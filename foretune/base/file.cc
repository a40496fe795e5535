#include "foretune/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "foretune/base/descriptor.h"
#include "foretune/base/system_error.h"

namespace foretune {
namespace {

Result<struct stat> open_for_reading(const std::filesystem::path& path, const Descriptor& file) {
  if (!file.ok()) {
    return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "cannot open ",
                path.string(), ": ", last_error());
  }
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) {
    return fail(ErrorCode::kIo, "cannot stat ", path.string(), ": ", last_error());
  }
  if (S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, path.string(), " is a directory, not a file");
  }
  return status;
}

// The file that a path names. The target of a link is replaced, not the link; a device or pipe
// (such as /dev/stdout) can only be written to.
struct Target {
  std::filesystem::path path;
  mode_t mode = 0644;
  bool exists = false;
  bool replaceable = true;
};

Target resolve(const std::filesystem::path& path) {
  Target target{.path = path};
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return target;
  }
  target.replaceable = S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
  if (S_ISREG(status.st_mode)) {
    target.exists = true;
    target.mode = status.st_mode & 07777U;
    std::error_code error;
    std::filesystem::path resolved = std::filesystem::canonical(path, error);
    if (!error) {
      target.path = std::move(resolved);
    }
  }
  return target;
}

Status write_in_place(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.ok()) {
    return fail(ErrorCode::kIo, "cannot open ", path.string(), ": ", last_error());
  }
  return write_fully(file.get(), bytes, path.string());
}

Status write_new_file(const std::string& temporary, const Target& target,
                      std::span<const std::byte> bytes) {
  const std::string name = target.path.string();
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, target.mode));
  if (!file.ok()) {
    return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "cannot create ", name,
                ": ", last_error());
  }
  if (target.exists) {
    static_cast<void>(::fchmod(file.get(), target.mode));  // as it was, whatever the umask
  }
  FORETUNE_TRY_STATUS(write_fully(file.get(), bytes, name));
  if (::fsync(file.get()) != 0 || !file.close()) {
    return fail(ErrorCode::kIo, "cannot write ", name, ": ", last_error());
  }
  return {};
}

// Makes the new name itself survive a power cut. Ignores file systems that cannot do so.
void sync_folder(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const Descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.ok()) {
    static_cast<void>(::fsync(file.get()));
  }
}

}  // namespace

Result<std::vector<std::byte>> read_file(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  FORETUNE_TRY(const struct stat status, open_for_reading(path, file));
  try {
    // The size of a pipe or of a file that grows is no use, so every file is read until its end.
    // One byte more than the announced size shows the end without growing the buffer.
    std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size) + 1);
    std::size_t done = 0;
    while (true) {
      const ssize_t got = ::read(file.get(), bytes.data() + done, bytes.size() - done);
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got < 0) {
        return fail(ErrorCode::kIo, "cannot read ", path.string(), ": ", last_error());
      }
      if (got == 0) {
        break;
      }
      done += static_cast<std::size_t>(got);
      if (done == bytes.size()) {
        bytes.resize(2 * bytes.size() + std::size_t{65536});
      }
    }
    bytes.resize(done);
    return bytes;
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kIo, path.string(), " does not fit into memory");
  } catch (const std::length_error&) {
    return fail(ErrorCode::kIo, path.string(), " does not fit into memory");
  }
}

Result<std::string> read_text_file(const std::filesystem::path& path) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, read_file(path));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const Target target = resolve(path);
  if (!target.replaceable) {
    return write_in_place(path, bytes);
  }
  // The counter makes the name unique among the threads of this process too.
  static std::atomic<std::uint64_t> counter{0};
  const std::string temporary =
      concat(target.path.string(), ".tmp.", ::getpid(), ".", counter.fetch_add(1));
  if (Status written = write_new_file(temporary, target, bytes); !written) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (::rename(temporary.c_str(), target.path.c_str()) != 0) {
    const std::string reason = last_error();
    ::unlink(temporary.c_str());
    return fail(ErrorCode::kIo, "cannot replace ", path.string(), ": ", reason);
  }
  sync_folder(target.path);
  return {};
}

Status write_text_file_atomically(const std::filesystem::path& path, std::string_view text) {
  return write_file_atomically(path, std::as_bytes(std::span(text.data(), text.size())));
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  FORETUNE_TRY(const struct stat status, open_for_reading(path, file));
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, path.string(), " is not a file that can be mapped");
  }
  MappedFile mapped;
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) {
    return mapped;
  }
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    return fail(ErrorCode::kIo, "cannot map ", path.string(), ": ", last_error());
  }
  mapped.data_ = static_cast<const std::byte*>(data);
  mapped.size_ = size;
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    ::munmap(const_cast<std::byte*>(data_), size_);
  }
}

}  // namespace foretune
