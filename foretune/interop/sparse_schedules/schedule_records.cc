#include "foretune/interop/sparse_schedules/schedule_records.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/dataset/storable.h"
#include "foretune/interop/sparse_schedules/schedule_text.h"
#include "foretune/interop/tables/internal/csv_columns.h"
#include "foretune/interop/tables/internal/exchange_io.h"
#include "foretune/space/schemas/sparse_schedule.h"

namespace foretune {
namespace {

using dataset_internal::ImportCounter;
using dataset_internal::next_csv_record;

constexpr std::int64_t kUsualWidth = 128;
constexpr std::int64_t kMaskWidth = 256;
constexpr std::int64_t kWacoWidth = 256;
constexpr std::string_view kWacoDevice = "xeon_e5_2680v3";
constexpr std::string_view kNameForm =
    "OPERATION[_early][_waco][_nn][_nWIDTH]_MACHINE.csv, where the operation is spmv, spmm, sddmm, "
    "mmadd, plus2 or plus3";

enum class Column : std::uint8_t { kMatrix, kRows, kColumns, kNonZeros, kSchedule, kTime };
constexpr std::array<std::string_view, 6> kColumnNames{"matrix", "rows",     "cols",
                                                       "nnz",    "schedule", "time_ms"};
using Places = std::array<std::size_t, kColumnNames.size()>;

// Returns the places of the columns, or nothing when one is missing.
std::optional<Places> places_of(const std::vector<std::string>& header) {
  Places out{};
  for (std::size_t i = 0; i < kColumnNames.size(); ++i) {
    const auto found = std::find(header.begin(), header.end(), kColumnNames[i]);
    if (found == header.end()) {
      return std::nullopt;
    }
    out[i] = static_cast<std::size_t>(found - header.begin());
  }
  return out;
}

std::string_view without_endings(std::string_view name) {
  for (const std::string_view ending : {".zst", ".gz", ".csv"}) {
    if (name.size() > ending.size() && name.ends_with(ending)) {
      name.remove_suffix(ending.size());
    }
  }
  return name;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::optional<SparseOperation> operation_named(std::string_view name) {
  const auto labels = sparse_operation_labels();
  const auto found = std::find(labels.begin(), labels.end(), name);
  const auto operation = static_cast<SparseOperation>(found - labels.begin());
  const bool is_told = found != labels.end() && operation != SparseOperation::kGespmv &&
                       operation != SparseOperation::kGespmm &&
                       operation != SparseOperation::kMttkrp;
  return is_told ? std::optional(operation) : std::nullopt;
}

// The number of the matrix that stays together with this one: its original, its network, or those
// that its generator made.
std::int64_t group_of_matrix(std::string_view matrix) {
  constexpr std::string_view kLayer = "encoder.layer.";
  constexpr std::string_view kGenerated = "net";
  if (matrix.starts_with(kLayer)) {
    return sparse_origin(kLayer);
  }
  return matrix.starts_with(kGenerated) && is_number(matrix.substr(kGenerated.size()))
             ? sparse_origin(kGenerated)
             : sparse_origin(matrix);
}

class Importer {
 public:
  Importer(const ScheduleTable& table, const ScheduleImportOptions& options, DatasetHeader header)
      : table_(table), options_(options), dataset_(std::move(header)) {
    context_ = {.machine = table.fingerprint.digest(),
                .device = table.fingerprint.device,
                .threads = 1,
                .fidelity = table.is_superseded ? 1 : 0};
    const Hardware& hardware = table.fingerprint.hardware;
    machine_threads_ = static_cast<std::int32_t>(hardware.get(HardwareValue::kCores) *
                                                 hardware.get(HardwareValue::kThreadsPerCore));
  }

  Status add(const std::vector<std::string>& cells, const Places& places,
             const std::string& place) {
    const auto cell = [&](Column column) {
      return trim(cells[places[static_cast<std::size_t>(column)]]);
    };
    FORETUNE_TRY(const Known* known,
                 matrix(cell(Column::kMatrix),
                        {cell(Column::kRows), cell(Column::kColumns), cell(Column::kNonZeros)}));
    const auto time_ms = parse_double(cell(Column::kTime));
    if (!time_ms || !(*time_ms > 0) ||
        !(*time_ms * 1e6 <= static_cast<double>(dataset_internal::kLongestNs))) {
      return fail(ErrorCode::kCorrupt, "its time is no number of milliseconds above 0");
    }
    const std::string_view text = cell(Column::kSchedule);
    const WacoReading reading = table_.is_of_networks && table_.operation == SparseOperation::kSddmm
                                    ? WacoReading::kPort
                                    : WacoReading::kOriginal;
    FORETUNE_TRY(const ScheduleText read, table_.is_waco
                                              ? parse_waco_schedule(text, known->sizes, reading)
                                              : parse_autosparse_schedule(text, known->sizes));
    context_.threads = read.threads;
    if (table_.is_waco && machine_threads_ > 0 && machine_threads_ != read.threads) {
      context_.threads = machine_threads_;
      counter.note(
          concat("its text says ", read.threads, " threads, the machine used ", machine_threads_),
          place);
    }
    if (!table_.is_waco && text.size() > 2 && text[2] != 'i') {
      counter.note("its list of splits has another order than the canonical text", place);
    }
    const std::uint32_t problem = dataset_.intern_problem(known->problem);
    const std::uint32_t config = dataset_.intern_config(read.schedule.to_config());
    const std::uint64_t pair = (static_cast<std::uint64_t>(problem) << 32U) | config;
    if (!seen_.insert(pair).second && !options_.keep_repeats) {
      counter.note("it repeats a schedule, whose row has the median of the times", place);
    }
    dataset_.add_row({.problem = problem,
                      .config = config,
                      .context = static_cast<std::uint16_t>(dataset_.intern_context(context_)),
                      .outcome = Outcome::kOk,
                      .flags = kFlagImported,
                      .samples = 1,
                      .time_ns = static_cast<float>(*time_ms * 1e6)});
    return {};
  }

  Dataset finish() {
    if (!options_.keep_repeats) {
      dataset_.deduplicate();
    }
    return std::move(dataset_);
  }

  // The error of a pattern that does not fit, which ends the import.
  [[nodiscard]] const std::optional<Error>& pattern_error() const { return pattern_error_; }

  ImportCounter counter;

 private:
  struct Known {
    std::array<std::string, 3> cells;  // rows, columns, non-zeros, as the table has them
    SparseSizes sizes;
    Problem problem;
  };

  // Returns the facts about a matrix, which its first row made known.
  Result<const Known*> matrix(std::string_view name, const std::array<std::string_view, 3>& cells) {
    const auto found = matrices_.find(std::string(name));
    if (found != matrices_.end()) {
      if (!std::equal(cells.begin(), cells.end(), found->second.cells.begin())) {
        return fail(ErrorCode::kCorrupt, "its matrix has other sizes than in rows before");
      }
      return &found->second;
    }
    std::array<std::int64_t, 3> numbers{};
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto number = parse_int(cells[i]);
      if (!number) {
        return fail(ErrorCode::kCorrupt, "a size of its matrix is no number");
      }
      numbers[i] = *number;
    }
    SparseSizes sizes{.operation = table_.operation,
                      .rows = numbers[0],
                      .columns = numbers[1],
                      .non_zeros = numbers[2],
                      .width = table_.width > 0           ? table_.width
                               : numbers[0] == numbers[1] ? kMaskWidth
                                                          : numbers[0],
                      .dtype = DataType::kF32,
                      .origin = group_of_matrix(name)};
    FORETUNE_TRY_STATUS(find_pattern(name, sizes));
    FORETUNE_TRY(const SparseProblem typed, SparseProblem::create(sizes));
    Problem problem = typed.to_problem();
    if (problem.has_payload()) {
      auto resolved = options_.payloads->resolve(std::move(problem));
      if (!resolved) {
        pattern_error_ = Error{resolved.error().code,
                               concat("the pattern of ", name, ": ", resolved.error().message)};
        return fail(ErrorCode::kMismatch, pattern_error_->message);
      }
      problem = *std::move(resolved);
    }
    return &matrices_
                .emplace(std::string(name),
                         Known{.cells = {std::string(cells[0]), std::string(cells[1]),
                                         std::string(cells[2])},
                               .sizes = sizes,
                               .problem = std::move(problem)})
                .first->second;
  }

  Status find_pattern(std::string_view name, SparseSizes& sizes) const {
    if (options_.payloads == nullptr) {
      return {};
    }
    for (const std::string_view ending : {".mtx.gz", ".mtx", ".csr"}) {
      const auto digest = options_.payloads->find(concat(name, ending));
      if (digest) {
        sizes.payload = *digest;
        return {};
      }
      if (digest.error().code != ErrorCode::kNotFound) {
        return tl::unexpected<Error>(digest.error());
      }
    }
    return {};
  }

  const ScheduleTable& table_;
  const ScheduleImportOptions& options_;
  Dataset dataset_;
  Context context_;
  std::int32_t machine_threads_ = 0;
  std::unordered_map<std::string, Known> matrices_;
  std::unordered_set<std::uint64_t> seen_;  // pairs of problem and config
  std::optional<Error> pattern_error_;
};

}  // namespace

Result<ScheduleTable> parse_schedule_table(std::string_view file_name) {
  const std::string_view name = without_endings(file_name);
  std::vector<std::string_view> words = split(name, '_');
  ScheduleTable out;
  const auto operation = operation_named(words.front());
  if (!operation || words.size() < 2) {
    return fail(ErrorCode::kInvalidArgument, "the name ", quoted(file_name, 60),
                " does not tell what was measured; it must be ", kNameForm);
  }
  out.operation = *operation;
  out.width = has_dense_loops(out.operation) ? kUsualWidth : 1;
  std::size_t next = 1;
  std::optional<std::int64_t> stated;
  for (; next < words.size(); ++next) {
    const std::string_view word = words[next];
    if (word == "early") {
      out.is_superseded = true;
    } else if (word == "waco") {
      out.is_waco = true;
    } else if (word == "nn") {
      out.is_of_networks = true;
    } else if (word.starts_with('n') && is_number(word.substr(1)) &&
               has_dense_loops(out.operation)) {
      stated = parse_int(word.substr(1));
    } else {
      break;
    }
  }
  std::string machine;
  for (; next < words.size(); ++next) {
    machine += concat(machine.empty() ? "" : "_", words[next]);
  }
  auto known = known_device(machine);
  if (!known) {
    return fail_because(known.error(), "the name ", quoted(file_name, 60), " must be ", kNameForm);
  }
  out.fingerprint = *std::move(known);
  if (has_dense_loops(out.operation)) {
    if (stated) {
      out.width = *stated;
    } else if (out.is_of_networks) {
      out.width = out.operation == SparseOperation::kSddmm ? kMaskWidth : 0;
    } else if (out.is_waco && machine == kWacoDevice) {
      out.width = kWacoWidth;
    }
  }
  return out;
}

bool is_schedule_csv(std::string_view text) {
  std::string_view line = text.substr(0, std::min<std::size_t>(text.find('\n'), 4096));
  std::vector<std::string> cells;
  return next_csv_record(line, cells) && places_of(cells).has_value();
}

Result<Dataset> import_schedule_text(std::string_view text, const ScheduleTable& table,
                                     const ScheduleImportOptions& options, ImportReport* report) {
  std::vector<std::string> cells;
  const auto places =
      !text.empty() && next_csv_record(text, cells) ? places_of(cells) : std::optional<Places>();
  if (!places) {
    return fail(ErrorCode::kCorrupt, "the table lacks one of the columns ",
                join({kColumnNames.begin(), kColumnNames.end()}, ", "));
  }
  const std::size_t columns = cells.size();
  DatasetHeader header;
  header.family = options.family;
  header.role = options.role;
  header.problem_type = kSparseProblem;
  header.config_schema = sparse_schedule_schema();
  header.fingerprint = table.fingerprint;
  FORETUNE_TRY_STATUS(dataset_internal::check_header(header));
  Importer importer(table, options, std::move(header));
  ImportCounter& counter = importer.counter;
  while (!text.empty()) {
    const std::string place = concat("row ", counter.report().rows_read + 1);
    if (!next_csv_record(text, cells)) {
      return fail(ErrorCode::kCorrupt, place, " of the table has a quote that is never closed");
    }
    if (cells.size() == 1 && trim(cells[0]).empty()) {
      continue;
    }
    counter.read();
    const Status added = cells.size() == columns
                             ? importer.add(cells, *places, place)
                             : Status(fail(ErrorCode::kCorrupt,
                                           "it has another number of columns than the first line"));
    if (importer.pattern_error()) {
      return fail(ErrorCode::kMismatch, importer.pattern_error()->message);
    }
    if (added) {
      counter.keep();
    } else {
      counter.drop(added.error().message, place);
    }
  }
  if (table.is_superseded && counter.report().rows_kept > 0) {
    counter.note(
        "the table is superseded by a later one of the same machine: its context has "
        "fidelity 1");
  }
  FORETUNE_TRY_STATUS(counter.finish(report));
  return importer.finish();
}

Result<Dataset> import_schedule_file(const std::filesystem::path& path,
                                     const ScheduleImportOptions& options, ImportReport* report) {
  FORETUNE_TRY(const ScheduleTable table, parse_schedule_table(path.filename().string()));
  FORETUNE_TRY(const std::vector<std::byte> bytes, dataset_internal::read_maybe_compressed(path));
  auto dataset = import_schedule_text(dataset_internal::text_of(bytes), table, options, report);
  if (!dataset) {
    return fail_because(dataset.error(), path.string());
  }
  return dataset;
}

}  // namespace foretune
