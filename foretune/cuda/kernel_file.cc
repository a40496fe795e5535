#include "foretune/cuda/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "foretune/base/byte_io.h"
#include "foretune/base/descriptor.h"
#include "foretune/base/hash.h"
#include "foretune/base/system_error.h"
#include "foretune/base/text.h"

namespace foretune::cuda {
namespace {

constexpr std::array<char, 8> kMagic{'F', 'T', 'K', 'E', 'R', 'N', '1', '\n'};
// The head of a record: the bytes of its words and of its image, and the checksum of both.
constexpr std::size_t kRecordHead = 3 * sizeof(std::uint32_t);
constexpr std::uint32_t kMaxWords = 1U << 16U;
constexpr std::uint32_t kMaxImage = 1U << 28U;

std::vector<std::byte> record(std::span<const std::byte> words, std::span<const std::byte> image) {
  ByteWriter out;
  out.put(static_cast<std::uint32_t>(words.size()), static_cast<std::uint32_t>(image.size()),
          crc32c(image, crc32c(words)));
  out.put_bytes(words);
  out.put_bytes(image);
  return out.take();
}

std::vector<std::byte> words_of(const CompiledKernel& kernel) {
  ByteWriter out;
  out.put_string(kernel.key);
  out.put_string(kernel.error);
  out.put_string(kernel.function);
  out.put(kernel.threads, kernel.shared_bytes, kernel.scratch_bytes);
  return out.take();
}

std::vector<std::byte> words_of(const KernelFileHeader& header) {
  ByteWriter out;
  out.put_string(header.target);
  out.put_string(header.compiler);
  return out.take();
}

struct Record {
  std::span<const std::byte> words;
  std::span<const std::byte> image;
  std::size_t bytes = 0;
};

// Returns the record at the beginning of `bytes`; nothing when it is torn: the file ends inside of
// it, or it is the last record and its checksum is wrong. Errors: kCorrupt.
Result<std::optional<Record>> take_record(std::span<const std::byte> bytes, std::size_t position) {
  if (bytes.size() < kRecordHead) {
    return std::optional<Record>();
  }
  ByteReader head(bytes.first(kRecordHead));
  const auto words = head.get<std::uint32_t>();
  const auto image = head.get<std::uint32_t>();
  const auto checksum = head.get<std::uint32_t>();
  if (words > kMaxWords || image > kMaxImage) {
    return fail(ErrorCode::kCorrupt, "damaged at byte ", position, ": a record of ", words, " and ",
                image, " bytes");
  }
  const std::size_t size = kRecordHead + words + image;
  if (bytes.size() < size) {
    return std::optional<Record>();
  }
  Record record{bytes.subspan(kRecordHead, words), bytes.subspan(kRecordHead + words, image), size};
  if (crc32c(record.image, crc32c(record.words)) != checksum) {
    if (bytes.size() == size) {
      return std::optional<Record>();
    }
    return fail(ErrorCode::kCorrupt, "damaged at byte ", position, ": wrong checksum");
  }
  return std::optional(record);
}

Result<CompiledKernel> read_kernel(const Record& record, std::size_t position) {
  ByteReader words(record.words);
  CompiledKernel kernel;
  kernel.key = words.get_string();
  kernel.error = words.get_string();
  kernel.function = words.get_string();
  kernel.threads = words.get<std::uint32_t>();
  kernel.shared_bytes = words.get<std::uint32_t>();
  kernel.scratch_bytes = words.get<std::uint32_t>();
  if (!words.ok() || words.remaining() != 0 || record.image.empty() == kernel.error.empty()) {
    return fail(ErrorCode::kCorrupt, "the record at byte ", position, " is not of a kernel");
  }
  return kernel;
}

Error failed(std::string_view call, const std::filesystem::path& path) {
  return {ErrorCode::kIo, concat(call, " ", path.string(), ": ", last_error())};
}

}  // namespace

Result<std::shared_ptr<const KernelFile>> KernelFile::open(const std::filesystem::path& path) {
  auto file = std::make_shared<KernelFile>();
  FORETUNE_TRY(file->file_, MappedFile::open(path));
  if (const Status status = file->read(file->file_.bytes()); !status) {
    return fail_because(status.error(), path.string());
  }
  return file;
}

Result<std::shared_ptr<const KernelFile>> KernelFile::parse(std::span<const std::byte> bytes) {
  auto file = std::make_shared<KernelFile>();
  FORETUNE_TRY_STATUS(file->read(bytes));
  return file;
}

Status KernelFile::read(std::span<const std::byte> bytes) {
  if (bytes.size() < kMagic.size() ||
      !std::ranges::equal(bytes.first(kMagic.size()), std::as_bytes(std::span(kMagic)))) {
    return fail(ErrorCode::kCorrupt, "not a file of compiled kernels");
  }
  std::size_t position = kMagic.size();
  FORETUNE_TRY(const std::optional<Record> first, take_record(bytes.subspan(position), position));
  if (!first) {
    return fail(ErrorCode::kCorrupt, "the file ends in its header");
  }
  ByteReader words(first->words);
  header_.target = words.get_string();
  header_.compiler = words.get_string();
  if (!words.ok() || words.remaining() != 0 || !first->image.empty()) {
    return fail(ErrorCode::kCorrupt, "damaged header");
  }
  position += first->bytes;
  for (;;) {
    FORETUNE_TRY(const std::optional<Record> next, take_record(bytes.subspan(position), position));
    if (!next) {
      break;
    }
    FORETUNE_TRY(CompiledKernel kernel, read_kernel(*next, position));
    places_[kernel.key] = kernels_.size();
    kernels_.push_back(std::move(kernel));
    images_.push_back(next->image);
    position += next->bytes;
  }
  whole_bytes_ = position;
  return {};
}

const CompiledKernel* KernelFile::find(std::string_view key) const {
  const auto found = places_.find(std::string(key));
  return found == places_.end() ? nullptr : &kernels_[found->second];
}

std::span<const std::byte> KernelFile::image(const CompiledKernel& kernel) const {
  return images_[static_cast<std::size_t>(&kernel - kernels_.data())];
}

Result<std::unique_ptr<KernelFileWriter>> KernelFileWriter::open(const std::filesystem::path& path,
                                                                 const KernelFileHeader& header) {
  FORETUNE_TRY(Descriptor file, open_locked(path, O_RDWR | O_CREAT));
  std::unique_ptr<KernelFileWriter> writer(new KernelFileWriter(std::move(file), path.string()));
  FORETUNE_TRY_STATUS(writer->start(path, header));
  return writer;
}

Status KernelFileWriter::start(const std::filesystem::path& path, const KernelFileHeader& header) {
  const off_t size = ::lseek(file_.get(), 0, SEEK_END);
  if (size < 0) {
    return tl::unexpected(failed("seek", path));
  }
  ByteWriter begin;
  begin.put_bytes(std::as_bytes(std::span(kMagic)));
  begin.put_bytes(record(words_of(header), {}));
  std::vector<std::byte> there(std::min(begin.size(), static_cast<std::size_t>(size)));
  if (::pread(file_.get(), there.data(), there.size(), 0) != size && there.size() < begin.size()) {
    return tl::unexpected(failed("read", path));
  }
  // The file is new, or the process that made it was killed during the first write.
  if (there.size() < begin.size() && std::ranges::equal(there, begin.bytes().first(there.size()))) {
    if (::ftruncate(file_.get(), 0) != 0 || ::lseek(file_.get(), 0, SEEK_SET) != 0) {
      return tl::unexpected(failed("truncate", path));
    }
    return write_fully(file_.get(), begin.bytes(), name_);
  }
  FORETUNE_TRY(const std::shared_ptr<const KernelFile> old, KernelFile::open(path));
  if (old->header() != header) {
    return fail(ErrorCode::kMismatch, path.string(), " holds kernels for ", old->header().target,
                " by ", old->header().compiler, ", not for ", header.target, " by ",
                header.compiler);
  }
  for (const CompiledKernel& kernel : old->kernels()) {
    keys_.insert(kernel.key);
  }
  const auto whole = static_cast<off_t>(old->whole_bytes());
  if (::ftruncate(file_.get(), whole) != 0 || ::lseek(file_.get(), whole, SEEK_SET) != whole) {
    return tl::unexpected(failed("truncate", path));
  }
  return {};
}

Status KernelFileWriter::append(const CompiledKernel& kernel) {
  if (kernel.image.empty() == kernel.error.empty()) {
    return fail(ErrorCode::kInvalidArgument, "the kernel '", kernel.key,
                "' needs either code or a reason why it has none");
  }
  const std::vector<std::byte> words = words_of(kernel);
  if (words.size() > kMaxWords || kernel.image.size() > kMaxImage) {
    return fail(ErrorCode::kInvalidArgument, "the kernel ", foretune::quoted(kernel.key),
                " is too large");
  }
  const off_t before = ::lseek(file_.get(), 0, SEEK_CUR);
  if (Status written = write_fully(file_.get(), record(words, kernel.image), name_); !written) {
    // Half a record in the middle would make all records after it unreadable.
    if (::ftruncate(file_.get(), before) != 0 || ::lseek(file_.get(), before, SEEK_SET) != before) {
      return fail(ErrorCode::kIo, written.error().message, "; the end of the file is torn");
    }
    return written;
  }
  keys_.insert(kernel.key);
  return {};
}

}  // namespace foretune::cuda
