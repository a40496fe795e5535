#include "foretune/dataset/journal.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/dataset/ftd_file.h"
#include "foretune/dataset/ftd_format.h"
#include "foretune/dataset/ftd_rows.h"

namespace foretune {
namespace {

// A set of numbers by open addressing: 16 bytes an entry or less, where a node-based one takes 40.
class NumberSet {
 public:
  NumberSet() : slots_(64, kFree) {}

  void insert(std::uint64_t number) {
    if (2 * (size_ + 1) > slots_.size()) {
      grow();
    }
    std::uint64_t& slot = slots_[find(slots_, number)];
    size_ += slot == kFree ? 1U : 0U;
    slot = number;
  }
  [[nodiscard]] bool contains(std::uint64_t number) const {
    return slots_[find(slots_, number)] == number;
  }

 private:
  // No pair of ids: there are fewer than 2^32 - 1 of each.
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};

  // The slot of the number, or the free one where it belongs.
  static std::size_t find(const std::vector<std::uint64_t>& slots, std::uint64_t number) {
    std::size_t slot = mix64(number) & (slots.size() - 1);
    while (slots[slot] != kFree && slots[slot] != number) {
      slot = (slot + 1) & (slots.size() - 1);
    }
    return slot;
  }
  void grow() {
    std::vector<std::uint64_t> bigger(2 * slots_.size(), kFree);
    for (const std::uint64_t number : slots_) {
      if (number != kFree) {
        bigger[find(bigger, number)] = number;
      }
    }
    slots_ = std::move(bigger);
  }

  std::vector<std::uint64_t> slots_;
  std::size_t size_ = 0;
};

std::uint64_t pair_of(std::uint32_t problem, std::uint32_t config) {
  return std::uint64_t{problem} << 32U | config;
}

Status check_same(const DatasetHeader& existing, const DatasetHeader& wanted) {
  if (existing.family != wanted.family) {
    return fail(ErrorCode::kMismatch, "it holds measurements of family '", existing.family,
                "', not of '", wanted.family, "'");
  }
  if (existing.problem_type != wanted.problem_type) {
    return fail(ErrorCode::kMismatch, "it holds problems of another type");
  }
  if (existing.config_schema != wanted.config_schema) {
    return fail(ErrorCode::kMismatch, "its configs are of schema ", existing.config_schema.name,
                " v", existing.config_schema.version, ", not of this ", wanted.config_schema.name,
                " v", wanted.config_schema.version);
  }
  if (existing.role != wanted.role) {
    return fail(ErrorCode::kMismatch, "it is a ", to_string(existing.role), " set, not a ",
                to_string(wanted.role), " set");
  }
  if (existing.fingerprint.digest() != wanted.fingerprint.digest()) {
    return fail(ErrorCode::kMismatch, "it was measured on another machine (",
                existing.fingerprint.device, ", ", existing.fingerprint.hardware.text(), ")");
  }
  return {};
}

Status check_samples(std::span<const float> samples) {
  // The comparison is false for what is not a number, too.
  if (samples.empty() || !std::all_of(samples.begin(), samples.end(), [](float value) {
        return std::abs(value) <= ftd::kMaxTimeNs;
      })) {
    return fail(ErrorCode::kInvalidArgument, "a sample of the time is not a finite number");
  }
  return {};
}

}  // namespace

struct JournalWriter::State {
  State(ftd::LockedFile opened, DatasetHeader header)
      : file(std::move(opened)), schema_id(header.config_schema.id()), interned(std::move(header)) {}

  void remember(const Dataset::Row& row) {
    if (seen.size() <= row.context) {
      seen.resize(row.context + std::size_t{1});
    }
    seen[row.context].insert(pair_of(row.problem, row.config));
  }

  ftd::LockedFile file;
  std::uint64_t schema_id = 0;
  // The interned values of the file; between calls it has no rows. What lies behind `written` was
  // interned for a record that did not reach the file.
  Dataset interned;
  ftd::Watermark written;
  std::vector<NumberSet> seen;  // by context: (problem, config)
  std::unordered_map<Problem, std::uint32_t> problem_ids;
  std::unordered_map<Config, std::uint32_t> config_ids;
  std::uint64_t rows = 0;
  std::uint64_t recovered_bytes = 0;
};

JournalWriter::JournalWriter() = default;
JournalWriter::~JournalWriter() = default;

Result<std::unique_ptr<JournalWriter>> JournalWriter::open(const std::filesystem::path& path,
                                                           const DatasetHeader& header) {
  FORETUNE_TRY(const std::vector<std::byte> new_header, ftd::encode_file_header(header));
  FORETUNE_TRY(ftd::LockedFile file, ftd::LockedFile::open(path, ftd::LockedFile::Mode::kCreate));
  FORETUNE_TRY(std::vector<std::byte> bytes, file.read_all());
  auto existing = ftd::decode_file_header(bytes);
  if (!existing) {
    return fail_because(existing.error(), path.string());
  }
  std::unique_ptr<JournalWriter> writer(new JournalWriter());
  if (!existing->header) {
    // New, or killed before its header was complete: there is nothing to lose.
    const std::uint64_t recovered = file.size();
    FORETUNE_TRY_STATUS(file.truncate(0));
    FORETUNE_TRY_STATUS(file.append(new_header));
    FORETUNE_TRY_STATUS(file.sync());
    writer->state_ = std::make_unique<State>(std::move(file), header);
    writer->state_->recovered_bytes = recovered;
    return writer;
  }
  if (const Status same = check_same(*existing->header, header); !same) {
    return fail_because(same.error(), path.string(), " cannot be continued");
  }
  ReadReport report;
  auto dataset = read_dataset_bytes(bytes, &report);
  if (!dataset) {
    return fail_because(dataset.error(), path.string());
  }
  if (report.torn_bytes > 0) {
    FORETUNE_TRY_STATUS(file.truncate(file.size() - report.torn_bytes));
  }
  writer->state_ = std::make_unique<State>(std::move(file), *existing->header);
  State& state = *writer->state_;
  state.recovered_bytes = report.torn_bytes;
  state.rows = dataset->size();
  for (const Dataset::Row& row : dataset->rows()) {
    state.remember(row);
  }
  dataset->clear_rows();
  state.interned = *std::move(dataset);
  state.written = ftd::Watermark::of(state.interned);
  return writer;
}

Status JournalWriter::append(const Measurement& measurement) {
  State& state = *state_;
  const DatasetHeader& header = state.interned.header();
  FORETUNE_TRY_STATUS(ftd::check_problem(header, measurement.problem));
  FORETUNE_TRY_STATUS(ftd::check_config(header, state.schema_id, measurement.config));
  FORETUNE_TRY_STATUS(ftd::check_context(measurement.context));
  if (!measurement.samples_ns.empty()) {
    FORETUNE_TRY_STATUS(check_samples(measurement.samples_ns));
  }
  if (state.rows >= ftd::kMaxRows ||
      state.interned.contexts().size() >= ftd::kMaxContexts) {
    return fail(ErrorCode::kUnsupported, "the file is full; begin another one");
  }
  state.interned.clear_rows();
  state.interned.add(measurement);
  const Dataset::Row row = state.interned.rows()[0];
  FORETUNE_TRY_STATUS(ftd::check_row(row));
  for (const Dataset::ExtraMetric& extra : state.interned.extras()) {
    FORETUNE_TRY_STATUS(ftd::check_extra(extra.value));
  }
  const std::vector<std::byte> payload = ftd::encode_row(state.interned, state.written);
  if (payload.size() > ftd::kMaxBlockBytes) {
    return fail(ErrorCode::kInvalidArgument, "the measurement takes ", payload.size(), " bytes");
  }
  FORETUNE_TRY_STATUS(
      state.file.append(ftd::encode_block(ftd::BlockKind::kRow, 1, payload)));
  state.written = ftd::Watermark::of(state.interned);
  state.remember(row);
  ++state.rows;
  return {};
}

Status JournalWriter::sync() { return state_->file.sync(); }

bool JournalWriter::contains(const Problem& problem, const Config& config,
                             const Context& context) const {
  const Dataset& known = state_->interned;
  const std::optional<std::uint32_t> problem_id = known.find_problem(problem);
  const std::optional<std::uint32_t> config_id = known.find_config(config);
  const std::optional<std::uint32_t> context_id = known.find_context(context);
  return problem_id && config_id && context_id && *context_id < state_->seen.size() &&
         state_->seen[*context_id].contains(pair_of(*problem_id, *config_id));
}

std::uint64_t JournalWriter::row_count() const { return state_->rows; }
std::uint64_t JournalWriter::recovered_bytes() const { return state_->recovered_bytes; }

Result<Dataset> read_dataset_bytes(std::span<const std::byte> bytes, ReadReport* report) {
  FORETUNE_TRY(ftd::FileHeader header, ftd::decode_file_header(bytes));
  if (!header.header) {
    return fail(ErrorCode::kCorrupt, "the file ends inside its header and holds no measurements");
  }
  FORETUNE_TRY(const ftd::BlockList list, ftd::list_blocks(bytes, header.bytes));
  Dataset dataset(*std::move(header.header));
  dataset.reserve(list.rows);
  for (const ftd::Block& block : list.blocks) {
    if (crc32c(block.payload) != block.checksum) {
      return fail(ErrorCode::kCorrupt, "the checksum of the block at byte ", block.position,
                  " does not match");
    }
    if (const Status status = ftd::decode_block(block, dataset); !status) {
      return fail_because(status.error(), "block at byte ", block.position);
    }
  }
  if (report != nullptr) {
    report->rows = list.rows;
    report->torn_bytes = bytes.size() - list.end;
  }
  return dataset;
}

Result<Dataset> read_dataset(const std::filesystem::path& path, ReadReport* report) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, read_file(path));
  auto dataset = read_dataset_bytes(bytes, report);
  if (!dataset) {
    return fail_because(dataset.error(), path.string());
  }
  return dataset;
}

}  // namespace foretune
