#include "foretune/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace foretune {
namespace {

// The calling thread's last system error as text, without the shared buffer of strerror.
std::string last_error() { return std::generic_category().message(errno); }

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) {
      ::close(value_);
    }
  }
  [[nodiscard]] int get() const { return value_; }
  [[nodiscard]] bool ok() const { return value_ >= 0; }

 private:
  int value_;
};

Result<std::size_t> open_for_reading(const std::filesystem::path& path, const Descriptor& file) {
  if (!file.ok()) {
    return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "cannot open ",
                path.string(), ": ", last_error());
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) {
    return fail(ErrorCode::kIo, "cannot stat ", path.string(), ": ", last_error());
  }
  if (S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, path.string(), " is a directory, not a file");
  }
  return static_cast<std::size_t>(status.st_size);
}

Status write_fully(int file, std::span<const std::byte> bytes, const std::string& name) {
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

}  // namespace

Result<std::vector<std::byte>> read_file(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  FORETUNE_TRY(const std::size_t size, open_for_reading(path, file));
  std::vector<std::byte> bytes(size);
  std::size_t done = 0;
  // Pipes and files that grow say nothing useful about their size: read until the end.
  while (true) {
    if (done == bytes.size()) {
      bytes.resize(bytes.size() + std::size_t{65536});
    }
    const ssize_t got = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      return fail(ErrorCode::kIo, "cannot read ", path.string(), ": ", last_error());
    }
    if (got == 0) {
      break;
    }
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

Result<std::string> read_text_file(const std::filesystem::path& path) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, read_file(path));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const std::string temporary = concat(path.string(), ".tmp.", ::getpid());
  {
    const Descriptor file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file.ok()) {
      return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "cannot create ",
                  path.string(), ": ", last_error());
    }
    Status written = write_fully(file.get(), bytes, path.string());
    if (written && ::fsync(file.get()) != 0) {
      written = fail(ErrorCode::kIo, "cannot write ", path.string(), ": ", last_error());
    }
    if (!written) {
      ::unlink(temporary.c_str());
      return written;
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string reason = last_error();
    ::unlink(temporary.c_str());
    return fail(ErrorCode::kIo, "cannot replace ", path.string(), ": ", reason);
  }
  return {};
}

Status write_text_file_atomically(const std::filesystem::path& path, std::string_view text) {
  return write_file_atomically(path, std::as_bytes(std::span(text.data(), text.size())));
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  FORETUNE_TRY(const std::size_t size, open_for_reading(path, file));
  MappedFile mapped;
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
