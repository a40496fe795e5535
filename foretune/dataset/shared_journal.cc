#include "foretune/dataset/shared_journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "foretune/base/descriptor.h"
#include "foretune/base/file.h"
#include "foretune/base/system_error.h"
#include "foretune/dataset/internal/journal_record.h"
#include "foretune/dataset/journal.h"
#include "foretune/dataset/records.h"
#include "foretune/dataset/storable.h"

namespace foretune {
namespace {

using dataset_internal::BlockReader;
using dataset_internal::Defined;

constexpr std::chrono::seconds kPatience{10};

Result<std::vector<std::byte>> read_from(int file, std::size_t begin, std::size_t end) {
  std::vector<std::byte> bytes(end - begin);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        ::pread(file, bytes.data() + done, bytes.size() - done, static_cast<off_t>(begin + done));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return fail(ErrorCode::kIo, "cannot be read: ", last_error());
    }
    if (count == 0) {
      break;
    }
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace

struct SharedJournal::State {
  std::filesystem::path path;
  std::optional<DatasetHeader> wanted;
  // Everything up to byte `offset` of the file, and nothing else: readers number definitions by
  // their order in the file.
  Dataset tables{DatasetHeader()};
  std::size_t offset = 0;
  dev_t device = 0;
  ino_t inode = 0;
  std::uint64_t generation = 0;

  void forget() {
    generation += offset > 0 ? 1U : 0U;
    tables = Dataset(wanted.value_or(DatasetHeader()));
    offset = 0;
  }

  Result<Descriptor> locked(int flags, bool is_shared) const {
    return open_locked(path, flags, {.is_shared = is_shared, .patience = kPatience});
  }

  Status begin_reading(std::span<const std::byte> bytes) {
    FORETUNE_TRY(BlockReader reader, BlockReader::create(bytes));
    FORETUNE_TRY(const auto block, reader.next());
    if (!block || block->type != dataset_internal::BlockType::kHeader) {
      return fail(ErrorCode::kCorrupt, "the first block is not a header");
    }
    FORETUNE_TRY(DatasetHeader header, dataset_internal::decode_header(block->payload));
    if (wanted) {
      FORETUNE_TRY_STATUS(dataset_internal::check_same(header, *wanted));
    }
    tables = Dataset(std::move(header));
    offset = reader.position();
    return {};
  }

  Status read_new(int file) {
    struct stat status{};
    if (::fstat(file, &status) != 0) {
      return fail(ErrorCode::kIo, "cannot be read: ", last_error());
    }
    const auto size = static_cast<std::size_t>(status.st_size);
    if (status.st_dev != device || status.st_ino != inode || size < offset) {
      forget();
      device = status.st_dev;
      inode = status.st_ino;
    }
    const std::size_t begin = offset;
    FORETUNE_TRY(const std::vector<std::byte> bytes, read_from(file, begin, size));
    if (offset == 0) {
      if (dataset_internal::is_only_begun(bytes)) {
        return {};
      }
      FORETUNE_TRY_STATUS(begin_reading(bytes));
    }
    BlockReader reader = BlockReader::resume(std::span(bytes).subspan(offset - begin), offset);
    while (true) {
      FORETUNE_TRY(const auto block, reader.next());
      if (!block) {
        return {};
      }
      FORETUNE_TRY_STATUS(dataset_internal::decode_block(*block, tables));
      offset = reader.position();
    }
  }

  // Reads what is new in the file, which the caller has locked.
  Status catch_up(int file) {
    const Status status = read_new(file);
    if (!status) {
      forget();
      return fail_because(status.error(), path.string());
    }
    return {};
  }

  // Returns the records of an append, and adds their rows to the tables.
  Result<std::vector<std::byte>> records_of(std::span<const Measurement> measurements,
                                            const Notes& notes) {
    ByteWriter out;
    Defined defined = offset == 0 ? Defined() : Defined::all_of(tables);
    if (offset == 0) {
      if (!wanted) {
        return fail(ErrorCode::kNotFound, path.string(), " does not exist any more");
      }
      FORETUNE_TRY_STATUS(dataset_internal::check_header(*wanted));
      dataset_internal::append_beginning(out, *wanted);
    }
    if (wanted) {
      FORETUNE_TRY_STATUS(tables.declare_metrics(wanted->metrics));
    }
    FORETUNE_TRY_STATUS(dataset_internal::check_notes(notes));
    Notes unknown;
    for (const auto& [name, text] : notes) {
      const auto known = tables.notes().find(name);
      if (known == tables.notes().end() || known->second != text) {
        unknown.emplace(name, text);
        tables.set_note(name, text);
      }
    }
    dataset_internal::append_new_definitions(out, tables, defined);
    if (!unknown.empty()) {
      dataset_internal::append_notes(out, unknown);
    }
    const std::uint64_t schema_id = tables.header().config_schema.id();
    for (const Measurement& measurement : measurements) {
      defined = Defined::all_of(tables);
      FORETUNE_TRY_STATUS(dataset_internal::check_measurement(tables, schema_id, measurement));
      if (tables.size() >= dataset_internal::kMaxRows) {
        return fail(ErrorCode::kUnsupported, path.string(), " is full; begin another file");
      }
      tables.add(measurement);
      FORETUNE_TRY_STATUS(dataset_internal::append_row(
          out, tables, static_cast<RowIndex>(tables.size() - 1), defined));
    }
    return out.take();
  }

  Status write_at_end(int file, std::span<const std::byte> records) {
    // The lock is ours, so whatever stands behind the last whole record was left by a process that
    // died.
    if (::ftruncate(file, static_cast<off_t>(offset)) != 0) {
      return fail(ErrorCode::kIo, "cannot cut off the torn end of ", path.string(), ": ",
                  last_error());
    }
    FORETUNE_TRY_STATUS(write_fully(file, records, path.string()));
    offset += records.size();
    return {};
  }
};

SharedJournal::SharedJournal() : state_(std::make_unique<State>()) {}
SharedJournal::~SharedJournal() = default;

Result<std::unique_ptr<SharedJournal>> SharedJournal::open(
    const std::filesystem::path& path, const std::optional<DatasetHeader>& header) {
  std::unique_ptr<SharedJournal> journal(new SharedJournal());
  State& state = *journal->state_;
  state.path = path;
  state.wanted = header;
  state.forget();
  FORETUNE_TRY_STATUS(journal->refresh());
  if (!header && state.offset == 0) {
    return fail(ErrorCode::kNotFound, path.string(), " does not exist, or has no header yet");
  }
  return journal;
}

Status SharedJournal::refresh() {
  const auto file = state_->locked(O_RDONLY, true);
  if (!file) {
    if (file.error().code != ErrorCode::kNotFound) {
      return tl::unexpected<Error>(file.error());
    }
    state_->forget();
    return {};
  }
  return state_->catch_up(file->get());
}

Status SharedJournal::append(std::span<const Measurement> measurements, const Notes& notes) {
  State& state = *state_;
  FORETUNE_TRY(const Descriptor file, state.locked(O_RDWR | O_CREAT | O_APPEND, false));
  FORETUNE_TRY_STATUS(state.catch_up(file.get()));
  const auto records = state.records_of(measurements, notes);
  const Status written = records ? state.write_at_end(file.get(), *records)
                                 : Status(tl::unexpected<Error>(records.error()));
  if (!written) {
    // The tables may hold definitions that the file lacks: the next call reads it from its start.
    const bool is_torn = ::ftruncate(file.get(), static_cast<off_t>(state.offset)) != 0;
    static_cast<void>(is_torn);  // the next append cuts it off
    state.forget();
  }
  return written;
}

Status SharedJournal::remove_rows(const std::function<bool(const Dataset::Row& row)>& is_removed) {
  State& state = *state_;
  const auto file = state.locked(O_RDWR, false);
  if (!file) {
    return file.error().code == ErrorCode::kNotFound ? Status()
                                                     : Status(tl::unexpected<Error>(file.error()));
  }
  FORETUNE_TRY_STATUS(state.catch_up(file->get()));
  Dataset kept = state.tables;
  std::vector<bool> keep;
  for (const Dataset::Row& row : kept.rows()) {
    keep.push_back(!is_removed(row));
  }
  if (state.offset == 0 || kept.keep_rows(keep) == 0) {
    return {};
  }
  FORETUNE_TRY(const std::vector<std::byte> bytes, dataset_bytes(kept));
  FORETUNE_TRY_STATUS(write_file_atomically(state.path, bytes));
  // Those who wait for the lock of the old file notice that its name belongs to another one.
  state.forget();
  return refresh();
}

const Dataset& SharedJournal::dataset() const { return state_->tables; }
std::uint64_t SharedJournal::generation() const { return state_->generation; }

}  // namespace foretune
