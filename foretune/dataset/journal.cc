#include "foretune/dataset/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/descriptor.h"
#include "foretune/base/file.h"
#include "foretune/base/system_error.h"
#include "foretune/dataset/internal/journal_record.h"
#include "foretune/dataset/records.h"
#include "foretune/dataset/storable.h"

namespace foretune {

using dataset_internal::append_baselines;
using dataset_internal::append_block;
using dataset_internal::append_new_definitions;
using dataset_internal::append_notes;
using dataset_internal::Block;
using dataset_internal::BlockReader;
using dataset_internal::BlockType;
using dataset_internal::check_same;
using dataset_internal::Defined;

namespace {

// The number of rows in one segment. It bounds the memory of a reader and the loss by one damaged
// block.
constexpr std::size_t kSegmentRows = std::size_t{1} << 20U;
constexpr std::size_t kMaxSegmentBytes = std::size_t{1} << 30U;
// The texts of a header and the labels of a schema are bounded (storable.h).
constexpr std::size_t kMaxHeaderBytes = std::size_t{256} << 20U;

struct Loaded {
  Dataset dataset;
  std::size_t good_bytes = 0;
};

Result<DatasetHeader> header_in(const std::optional<Block>& block) {
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
  FORETUNE_TRY(const std::optional<Block> first, reader.next());
  FORETUNE_TRY(DatasetHeader header, header_in(first));
  Loaded loaded{Dataset(std::move(header)), 0};
  bool is_reserved = false;
  while (true) {
    FORETUNE_TRY(const std::optional<Block> block, reader.next());
    if (!block) {
      loaded.good_bytes = reader.position();
      return loaded;
    }
    FORETUNE_TRY_STATUS(dataset_internal::decode_block(*block, loaded.dataset));
    if (block->type == BlockType::kSegment && !is_reserved) {
      // More segments like the first one will follow, so this reserves room for all of them at
      // once.
      const double share =
          static_cast<double>(bytes.size()) / static_cast<double>(reader.position());
      loaded.dataset.reserve(
          static_cast<std::size_t>(static_cast<double>(loaded.dataset.size()) * share * 1.02));
      is_reserved = true;
    }
  }
}

std::uint64_t pair_of(std::uint32_t problem, std::uint32_t config) {
  return std::uint64_t{problem} << 32U | config;
}

}  // namespace

struct JournalWriter::State {
  explicit State(DatasetHeader header)
      : tables(std::move(header)), schema_id(tables.header().config_schema.id()) {}
  Descriptor file;
  std::filesystem::path path;
  Dataset tables;  // interned definitions, numbered as in the file; the only row is the newest
  std::uint64_t schema_id;
  Defined defined;  // how much of the tables is in the file
  // By context: the pairs (problem, config) that were measured, those for which a later stage
  // yielded a metric, by metric, and those for which it failed.
  struct Keys {
    std::unordered_set<std::uint64_t> measured;
    std::map<MetricIndex, std::unordered_set<std::uint64_t>> evaluated;
    std::unordered_set<std::uint64_t> failed;
  };
  std::vector<Keys> keys;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::uint64_t recovered_bytes = 0;
  bool broken = false;  // a write failed half way and could not be undone

  void remember(const Dataset::Row& row, std::span<const Dataset::ExtraMetric> extras) {
    if (keys.size() <= row.context) {
      keys.resize(std::size_t{row.context} + 1);
    }
    Keys& known = keys[row.context];
    const std::uint64_t pair = pair_of(row.problem, row.config);
    if (!row.is_evaluation()) {
      known.measured.insert(pair);
    } else if (row.outcome != Outcome::kOk) {
      known.failed.insert(pair);
    }
    for (const Dataset::ExtraMetric& extra : extras) {
      known.evaluated[extra.metric].insert(pair);
    }
  }

  Status write(std::span<const std::byte> record) {
    if (broken) {
      return fail(ErrorCode::kIo, path.string(), ": an earlier write failed");
    }
    ssize_t written = 0;
    do {
      written = ::write(file.get(), record.data(), record.size());
    } while (written < 0 && errno == EINTR);
    if (written == static_cast<ssize_t>(record.size())) {
      bytes += record.size();
      return {};
    }
    const std::string why = written < 0 ? last_error() : std::string("the disk is full");
    // A reader takes a partial record for a torn tail, so nothing may follow it.
    broken = written > 0 && ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0;
    return fail(ErrorCode::kIo, "cannot write ", path.string(), ": ", why);
  }

  Status begin_file(const DatasetHeader& header) {
    ByteWriter out;
    dataset_internal::append_beginning(out, header);
    bytes = 0;
    return write(out.bytes());
  }

  Status continue_file(const DatasetHeader& header, std::span<const std::byte> content) {
    FORETUNE_TRY(Loaded loaded, load(content));
    FORETUNE_TRY_STATUS(check_same(loaded.dataset.header(), header));
    recovered_bytes = content.size() - loaded.good_bytes;
    if (recovered_bytes > 0 &&
        ::ftruncate(file.get(), static_cast<off_t>(loaded.good_bytes)) != 0) {
      return fail(ErrorCode::kIo, "cannot cut off its torn end: ", last_error());
    }
    bytes = loaded.good_bytes;
    tables = std::move(loaded.dataset);
    rows = tables.size();
    for (std::size_t i = 0, extra = 0; i < tables.size(); ++i) {
      const std::size_t first = extra;
      while (extra < tables.extras().size() && tables.extras()[extra].row == i) {
        ++extra;
      }
      remember(tables.rows()[i], tables.extras().subspan(first, extra - first));
    }
    tables.drop_rows();
    defined = Defined::all_of(tables);
    // This version of the family declares these metrics. The next row's append defines them in the
    // file.
    return tables.declare_metrics(header.metrics);
  }
};

namespace {

Result<Descriptor> open_for_append(const std::filesystem::path& path, JournalLock lock) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_APPEND;
  if (lock == JournalLock::kExclusive) {
    return open_locked(path, kFlags);
  }
  Descriptor file(::open(path.c_str(), kFlags | O_CLOEXEC, 0644));
  if (!file.ok()) {
    return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "cannot open ",
                path.string(), ": ", last_error());
  }
  return file;
}

}  // namespace

JournalWriter::JournalWriter() = default;
JournalWriter::~JournalWriter() = default;

Result<std::unique_ptr<JournalWriter>> JournalWriter::open(const std::filesystem::path& path,
                                                           const DatasetHeader& header,
                                                           JournalLock lock) {
  std::unique_ptr<JournalWriter> writer(new JournalWriter());
  writer->state_ = std::make_unique<State>(header);
  State& state = *writer->state_;
  state.path = path;
  FORETUNE_TRY_STATUS(dataset_internal::check_header(header));
  FORETUNE_TRY(state.file, open_for_append(path, lock));
  FORETUNE_TRY(const std::vector<std::byte> bytes, read_file(path));
  // A run killed while it wrote the very first block leaves an incomplete beginning.
  if (dataset_internal::is_only_begun(bytes)) {
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
  State& state = *state_;
  Dataset& tables = state.tables;
  FORETUNE_TRY_STATUS(dataset_internal::check_measurement(tables, state.schema_id, measurement));
  if (state.rows >= dataset_internal::kMaxRows) {
    return fail(ErrorCode::kUnsupported, state.path.string(), " is full; begin another file");
  }
  // Values interned by a failed append stay in the tables, and the next append defines them.
  tables.drop_rows();
  tables.add(measurement);
  ByteWriter out;
  FORETUNE_TRY_STATUS(dataset_internal::append_row(out, tables, 0, state.defined));
  FORETUNE_TRY_STATUS(state.write(out.bytes()));
  state.defined = Defined::all_of(tables);
  state.remember(tables.rows()[0], tables.extras());
  ++state.rows;
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
  const Dataset& tables = state_->tables;
  const std::optional<std::uint32_t> problem_id = tables.find_problem(problem);
  const std::optional<std::uint32_t> config_id = tables.find_config(config);
  const std::optional<std::uint32_t> context_id = tables.find_context(context);
  return problem_id && config_id && context_id && *context_id < state_->keys.size() &&
         state_->keys[*context_id].measured.contains(pair_of(*problem_id, *config_id));
}

bool JournalWriter::contains(const Problem& problem, const Config& config, const Context& context,
                             std::string_view metric) const {
  const Dataset& tables = state_->tables;
  const std::optional<std::uint32_t> problem_id = tables.find_problem(problem);
  const std::optional<std::uint32_t> config_id = tables.find_config(config);
  const std::optional<std::uint32_t> context_id = tables.find_context(context);
  const std::optional<MetricIndex> index = tables.find_metric(metric);
  if (!problem_id || !config_id || !context_id || *context_id >= state_->keys.size()) {
    return false;
  }
  const State::Keys& known = state_->keys[*context_id];
  const std::uint64_t pair = pair_of(*problem_id, *config_id);
  const auto evaluated = index ? known.evaluated.find(*index) : known.evaluated.end();
  return known.failed.contains(pair) ||
         (evaluated != known.evaluated.end() && evaluated->second.contains(pair));
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
  // The file is not mapped, since a writer that cuts off a torn tail would remove pages.
  FORETUNE_TRY(const std::vector<std::byte> bytes, read_file(path));
  auto dataset = read_dataset_bytes(bytes, report);
  if (!dataset) {
    return fail_because(dataset.error(), path.string());
  }
  return dataset;
}

Result<bool> is_only_begun(const std::filesystem::path& path) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, read_file(path));
  return dataset_internal::is_only_begun(bytes);
}

Result<DatasetHeader> read_dataset_header(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return fail(ErrorCode::kNotFound, path.string(), " does not exist");
  }
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) {
    return fail(ErrorCode::kIo, "cannot read ", path.string(), ": ", error.message());
  }
  std::ifstream file(path, std::ios::binary);
  // The first piece holds nearly every header.
  for (const std::size_t most : {std::size_t{1} << 16U, kMaxHeaderBytes}) {
    const std::size_t wanted = std::min<std::uintmax_t>(most, size);
    std::vector<char> piece(wanted);
    file.clear();
    file.seekg(0);
    file.read(piece.data(), static_cast<std::streamsize>(wanted));
    if (!file && !file.eof()) {
      return fail(ErrorCode::kIo, "cannot read ", path.string());
    }
    piece.resize(static_cast<std::size_t>(file.gcount()));
    const auto header = [&]() -> Result<std::optional<DatasetHeader>> {
      FORETUNE_TRY(BlockReader reader, BlockReader::create(std::as_bytes(std::span(piece))));
      FORETUNE_TRY(const std::optional<Block> block, reader.next());
      if (!block && wanted < size && most < kMaxHeaderBytes) {
        return std::optional<DatasetHeader>();
      }
      FORETUNE_TRY(DatasetHeader found, header_in(block));
      return std::optional(std::move(found));
    }();
    if (!header) {
      return fail_because(header.error(), path.string());
    }
    if (*header) {
      return **header;
    }
  }
  return fail(ErrorCode::kCorrupt, path.string(), ": the header is too long");
}

Result<std::vector<std::byte>> dataset_bytes(const Dataset& dataset, const WriteOptions& options) {
  FORETUNE_TRY_STATUS(dataset_internal::check_dataset(dataset));
  ByteWriter out;
  dataset_internal::append_beginning(out, dataset.header());
  append_new_definitions(out, dataset, Defined());
  append_baselines(out, dataset);
  if (!dataset.notes().empty()) {
    append_notes(out, dataset.notes());
  }
  std::size_t limit = kSegmentRows;
  for (std::size_t begin = 0; begin < dataset.size();) {
    const std::size_t end = std::min(dataset.size(), begin + limit);
    ByteWriter payload;
    dataset_internal::encode_segment(payload, dataset, begin, end, options.keep_samples);
    if (payload.size() > kMaxSegmentBytes && limit > 1) {
      limit /= 2;  // long lists of samples
      continue;
    }
    append_block(out, BlockType::kSegment, payload.bytes());
    begin = end;
  }
  return out.take();
}

namespace {

Status replace_file(const Dataset& dataset, const std::filesystem::path& path,
                    const WriteOptions& options) {
  const auto bytes = dataset_bytes(dataset, options);
  if (!bytes) {
    return fail_because(bytes.error(), "cannot write ", path.string());
  }
  return write_file_atomically(path, *bytes);
}

}  // namespace

Status write_dataset(const Dataset& dataset, const std::filesystem::path& path,
                     const WriteOptions& options) {
  // Replacing a file while a writer has it open would lose all its later records.
  const auto lock = open_locked(path, O_RDWR);
  if (!lock && lock.error().code != ErrorCode::kNotFound) {
    return tl::unexpected<Error>(lock.error());
  }
  return replace_file(dataset, path, options);
}

Status seal(const std::filesystem::path& path) {
  FORETUNE_TRY(const Descriptor lock, open_locked(path, O_RDWR));
  FORETUNE_TRY(const Dataset dataset, read_dataset(path));
  return replace_file(dataset, path, {});
}

}  // namespace foretune
