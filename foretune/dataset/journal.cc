#include "foretune/dataset/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/file.h"
#include "foretune/dataset/records.h"

namespace foretune {

using dataset_internal::append_block;
using dataset_internal::append_preamble;
using dataset_internal::Block;
using dataset_internal::BlockReader;
using dataset_internal::BlockType;
using dataset_internal::kPreambleSize;

namespace {

// Rows of one segment: bounds the memory of a reader and what one damaged block can cost.
constexpr std::size_t kSegmentRows = std::size_t{1} << 20U;

std::string last_error() { return std::generic_category().message(errno); }

class FileLock {
 public:
  FileLock() = default;
  FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() {
    if (file_ >= 0) {
      ::close(file_);
    }
  }

  static Result<FileLock> open(const std::filesystem::path& path, int flags) {
    FileLock lock;
    lock.file_ = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
    if (lock.file_ < 0) {
      return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "cannot open ",
                  path.string(), ": ", last_error());
    }
    if (::flock(lock.file_, LOCK_EX | LOCK_NB) != 0) {
      return fail(ErrorCode::kIo, path.string(), " is being written by another process");
    }
    return lock;
  }
  [[nodiscard]] int get() const { return file_; }

 private:
  int file_ = -1;
};

struct Loaded {
  Dataset dataset;
  std::size_t good_bytes = 0;
};

Result<DatasetHeader> read_header_block(BlockReader& reader) {
  FORETUNE_TRY(const std::optional<Block> block, reader.next());
  if (!block) {
    return fail(ErrorCode::kCorrupt, "the file ends before its header is complete");
  }
  if (block->type != BlockType::kHeader) {
    return fail(ErrorCode::kCorrupt, "the first block is not a header");
  }
  return dataset_internal::decode_header(block->payload);
}

Result<Loaded> load(std::span<const std::byte> bytes) {
  FORETUNE_TRY(BlockReader reader, BlockReader::create(bytes));
  FORETUNE_TRY(DatasetHeader header, read_header_block(reader));
  Loaded loaded{Dataset(std::move(header)), 0};
  while (true) {
    FORETUNE_TRY(const std::optional<Block> block, reader.next());
    if (!block) {
      loaded.good_bytes = reader.position();
      return loaded;
    }
    FORETUNE_TRY_STATUS(dataset_internal::decode_block(*block, loaded.dataset));
  }
}

Status check_same(const DatasetHeader& in_file, const DatasetHeader& wanted) {
  if (in_file.family != wanted.family) {
    return fail(ErrorCode::kMismatch, "it holds measurements of family '", in_file.family,
                "', not '", wanted.family, "'");
  }
  if (in_file.config_schema != wanted.config_schema) {
    return fail(ErrorCode::kMismatch, "its configs have another schema (", in_file.config_schema.name,
                " v", in_file.config_schema.version, ") than this version of the family (",
                wanted.config_schema.name, " v", wanted.config_schema.version, ")");
  }
  if (in_file.role != wanted.role) {
    return fail(ErrorCode::kMismatch, "it is a ", to_string(in_file.role), " set, not a ",
                to_string(wanted.role), " set");
  }
  if (in_file.fingerprint.digest() != wanted.fingerprint.digest()) {
    return fail(ErrorCode::kMismatch, "it was measured on another machine (",
                in_file.fingerprint.device, ")");
  }
  return {};
}

template <class Items, class Encode>
void append_definitions(ByteWriter& out, BlockType type, const Items& items, std::size_t first,
                        const Encode& encode) {
  if (items.size() <= first) {
    return;
  }
  ByteWriter payload;
  for (std::size_t i = first; i < items.size(); ++i) {
    encode(payload, items[i]);
  }
  append_block(out, type, payload.bytes());
}

}  // namespace

struct JournalWriter::State {
  explicit State(DatasetHeader header) : tables(std::move(header)) {}
  FileLock file;
  std::filesystem::path path;
  Dataset tables;  // interned definitions as the file numbers them; its rows are only the newest
  std::unordered_set<std::uint64_t> keys;
  std::uint64_t rows = 0;
  std::uint64_t recovered_bytes = 0;
  bool broken = false;  // a write failed half way: the file's end is not known any more

  Status write(std::span<const std::byte> bytes) {
    if (broken) {
      return fail(ErrorCode::kIo, path.string(), ": an earlier write failed");
    }
    while (true) {
      const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
      if (written == static_cast<ssize_t>(bytes.size())) {
        return {};
      }
      if (written < 0 && errno == EINTR) {
        continue;
      }
      // A partial record is what a reader takes for a torn tail; nothing may follow it.
      broken = true;
      return fail(ErrorCode::kIo, "cannot write ", path.string(), ": ",
                  written < 0 ? last_error() : std::string("the disk is full"));
    }
  }

  Status begin_file(const DatasetHeader& header) {
    ByteWriter out;
    append_preamble(out);
    ByteWriter payload;
    dataset_internal::encode_header(payload, header);
    append_block(out, BlockType::kHeader, payload.bytes());
    return write(out.bytes());
  }

  Status continue_file(const DatasetHeader& header, std::span<const std::byte> bytes) {
    FORETUNE_TRY(Loaded loaded, load(bytes));
    FORETUNE_TRY_STATUS(check_same(loaded.dataset.header(), header));
    recovered_bytes = bytes.size() - loaded.good_bytes;
    if (recovered_bytes > 0 &&
        ::ftruncate(file.get(), static_cast<off_t>(loaded.good_bytes)) != 0) {
      return fail(ErrorCode::kIo, "cannot cut off its torn end: ", last_error());
    }
    if (::lseek(file.get(), 0, SEEK_END) < 0) {
      return fail(ErrorCode::kIo, "cannot go to its end: ", last_error());
    }
    tables = std::move(loaded.dataset);
    rows = tables.size();
    keys.reserve(2 * tables.size());
    for (const Dataset::Row& row : tables.rows()) {
      keys.insert(resume_key(tables.problems()[row.problem], tables.configs()[row.config],
                             tables.contexts()[row.context]));
    }
    tables.drop_rows();
    return {};
  }
};

JournalWriter::JournalWriter() = default;
JournalWriter::~JournalWriter() = default;

Result<std::unique_ptr<JournalWriter>> JournalWriter::open(const std::filesystem::path& path,
                                                           const DatasetHeader& header) {
  std::unique_ptr<JournalWriter> writer(new JournalWriter());
  writer->state_ = std::make_unique<State>(header);
  State& state = *writer->state_;
  state.path = path;
  FORETUNE_TRY(state.file, FileLock::open(path, O_RDWR | O_CREAT));
  FORETUNE_TRY(const std::vector<std::byte> bytes, read_file(path));
  // A run killed while it wrote the very first block leaves a beginning without content.
  ByteWriter preamble;
  append_preamble(preamble);
  const std::size_t common = std::min(bytes.size(), preamble.size());
  const bool begun_only =
      std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(common),
                 preamble.bytes().begin()) &&
      [&] {
        if (bytes.size() < preamble.size()) {
          return true;
        }
        auto reader = BlockReader::create(bytes);
        if (!reader) {
          return false;
        }
        const auto first = reader->next();
        return first && !*first;
      }();
  if (begun_only) {
    state.recovered_bytes = bytes.size();
    if (::ftruncate(state.file.get(), 0) != 0) {
      return fail(ErrorCode::kIo, "cannot empty ", path.string(), ": ", last_error());
    }
    FORETUNE_TRY_STATUS(state.begin_file(header));
    return writer;
  }
  if (const Status continued = state.continue_file(header, bytes); !continued) {
    return fail_because(continued.error(), "cannot continue ", path.string());
  }
  return writer;
}

Status JournalWriter::append(const Measurement& measurement) {
  Dataset& tables = state_->tables;
  const std::size_t problems = tables.problems().size();
  const std::size_t configs = tables.configs().size();
  const std::size_t contexts = tables.contexts().size();
  const std::size_t reasons = tables.reason_count();
  tables.add(measurement);

  ByteWriter out;
  append_definitions(out, BlockType::kProblems, tables.problems(), problems,
                     &dataset_internal::encode_problem);
  append_definitions(out, BlockType::kConfigs, tables.configs(), configs,
                     &dataset_internal::encode_config);
  append_definitions(out, BlockType::kContexts, tables.contexts(), contexts,
                     &dataset_internal::encode_context);
  if (tables.reason_count() > reasons) {
    ByteWriter payload;
    payload.put_string(measurement.reason);
    append_block(out, BlockType::kReasons, payload.bytes());
  }
  ByteWriter payload;
  dataset_internal::encode_row(payload, tables.rows().back(), tables.extras(),
                               measurement.samples_ns);
  append_block(out, BlockType::kRow, payload.bytes());
  tables.drop_rows();
  FORETUNE_TRY_STATUS(state_->write(out.bytes()));
  ++state_->rows;
  state_->keys.insert(
      resume_key(measurement.problem, measurement.config, measurement.context));
  return {};
}

Status JournalWriter::sync() {
  if (::fsync(state_->file.get()) != 0) {
    return fail(ErrorCode::kIo, "cannot write ", state_->path.string(), " to disk: ", last_error());
  }
  return {};
}

bool JournalWriter::contains(const Problem& problem, const Config& config,
                             const Context& context) const {
  return state_->keys.contains(resume_key(problem, config, context));
}

std::uint64_t JournalWriter::row_count() const { return state_->rows; }
std::uint64_t JournalWriter::recovered_bytes() const { return state_->recovered_bytes; }

Result<Dataset> read_dataset_bytes(std::span<const std::byte> bytes, ReadReport* report) {
  FORETUNE_TRY(Loaded loaded, load(bytes));
  if (report != nullptr) {
    report->rows = loaded.dataset.size();
    report->torn_bytes = bytes.size() - loaded.good_bytes;
  }
  return std::move(loaded.dataset);
}

Result<Dataset> read_dataset(const std::filesystem::path& path, ReadReport* report) {
  FORETUNE_TRY(const MappedFile file, MappedFile::open(path));
  auto dataset = read_dataset_bytes(file.bytes(), report);
  if (!dataset) {
    return fail_because(dataset.error(), path.string());
  }
  return dataset;
}

Result<DatasetHeader> read_dataset_header(const std::filesystem::path& path) {
  FORETUNE_TRY(const MappedFile file, MappedFile::open(path));
  const auto header = [&]() -> Result<DatasetHeader> {
    FORETUNE_TRY(BlockReader reader, BlockReader::create(file.bytes()));
    return read_header_block(reader);
  }();
  if (!header) {
    return fail_because(header.error(), path.string());
  }
  return header;
}

std::vector<std::byte> dataset_bytes(const Dataset& dataset, const WriteOptions& options) {
  ByteWriter out;
  append_preamble(out);
  ByteWriter header;
  dataset_internal::encode_header(header, dataset.header());
  append_block(out, BlockType::kHeader, header.bytes());
  append_definitions(out, BlockType::kProblems, dataset.problems(), 0,
                     &dataset_internal::encode_problem);
  append_definitions(out, BlockType::kConfigs, dataset.configs(), 0,
                     &dataset_internal::encode_config);
  append_definitions(out, BlockType::kContexts, dataset.contexts(), 0,
                     &dataset_internal::encode_context);
  ByteWriter reasons;
  for (std::uint32_t i = 1; i < dataset.reason_count(); ++i) {
    reasons.put_string(dataset.reason(i));
  }
  if (reasons.size() > 0) {
    append_block(out, BlockType::kReasons, reasons.bytes());
  }
  append_definitions(out, BlockType::kBaselines, dataset.baselines(), 0,
                     &dataset_internal::encode_baseline);
  for (std::size_t begin = 0; begin < dataset.size(); begin += kSegmentRows) {
    ByteWriter payload;
    dataset_internal::encode_segment(payload, dataset, begin,
                                     std::min(dataset.size(), begin + kSegmentRows),
                                     options.keep_samples);
    append_block(out, BlockType::kSegment, payload.bytes());
  }
  return out.take();
}

Status write_dataset(const Dataset& dataset, const std::filesystem::path& path,
                     const WriteOptions& options) {
  return write_file_atomically(path, dataset_bytes(dataset, options));
}

Status seal(const std::filesystem::path& path) {
  FORETUNE_TRY(const FileLock lock, FileLock::open(path, O_RDWR));
  FORETUNE_TRY(const Dataset dataset, read_dataset(path));
  return write_dataset(dataset, path);
}

Result<std::vector<std::filesystem::path>> find_datasets(const std::filesystem::path& path) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::exists(path, error)) {
    return fail(ErrorCode::kNotFound, path.string(), " does not exist");
  }
  if (!std::filesystem::is_directory(path, error)) {
    files.push_back(path);
    return files;
  }
  for (auto it = std::filesystem::recursive_directory_iterator(path, error);
       !error && it != std::filesystem::recursive_directory_iterator(); it.increment(error)) {
    if (it->is_regular_file(error) && it->path().extension() == ".ftd") {
      files.push_back(it->path());
    }
  }
  if (error) {
    return fail(ErrorCode::kIo, "cannot list ", path.string(), ": ", error.message());
  }
  if (files.empty()) {
    return fail(ErrorCode::kNotFound, "there is no data set (.ftd) below ", path.string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace foretune
