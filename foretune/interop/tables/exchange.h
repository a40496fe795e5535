// Imports and exports foreign formats: CSV, JSON (ours and torch-diode's, in both its schemas),
// MessagePack (torch-diode's), CK Tile's benchmarks, tables of sparse schedules (AutoSparse's and
// WACO's), operation shape sets. All input is untrusted:
// sizes, depth, numbers and names are checked. Errors name the file, the place and the expected
// content.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/problem/problem.h"

namespace foretune {

enum class ExchangeFormat : std::uint8_t {
  kForetune,
  kCsv,
  kJson,
  kMsgpack,
  kDiodeJson,
  kDiodeMsgpack,
  kCkJson,
  kCkLog,
  kCkCsv,
  kScheduleCsv
};
// Parses "foretune", "csv", "json", "msgpack", "diode-json", "diode-msgpack", "ck-json", "ck-log",
// "ck-csv" or "schedule-csv".
Result<ExchangeFormat> parse_exchange_format(std::string_view name);
std::string_view to_string(ExchangeFormat format);
// Detects the format by content (magic, first bytes), never by the name: torch-diode writes JSON
// text into files named .msgpack.
Result<ExchangeFormat> detect_format(const std::filesystem::path& path);
// Returns true when the file is a data set of any format; otherwise says what it is instead:
// another JSON document, a table without times. Errors: a file that cannot be read, is damaged, or
// is Parquet.
Result<Support> holds_dataset(const std::filesystem::path& path);

// Accounts for every row of an import or export: nothing is dropped silently.
struct ImportReport {
  std::uint64_t rows_read = 0;
  std::uint64_t rows_kept = 0;
  // reason (with the first place where it applied), count
  std::vector<std::pair<std::string, std::uint64_t>> dropped;
  // Changes to rows that were kept (with the first place where each applied), and their counts.
  std::vector<std::pair<std::string, std::uint64_t>> notes;
};

// Imports CSV with these columns in any order: the problem's fields and the schema's parameters by
// name (missing problem fields take their defaults; "config.k" is parameter k where a field or
// another column is also named k), then time_ns | time_us | time_ms, and optionally median_ns,
// spread, samples, outcome, stage, reason, flags, the context as machine, device, context_threads,
// cache, clock_mhz, fidelity, and further metrics as energy_j, energy_j_spread, energy_j_samples. A
// row whose first parameter holds a name and whose other parameters are empty (block_m = "cublas")
// is kept as the baseline of that name. Configs that are sequences are in one column,
// config:NAME:VERSION of their schema (or `config`, where the header has the schema), as
// "3,16,1,0"; a baseline there is "baseline:cublas". Gzipped files are inflated. When
// `header.config_schema` has no parameters, every other column becomes a parameter, with labels
// when it holds text, unless there is a column of sequences. When the header names no problem type,
// the type with the most fields among the columns is taken. Unusable rows are dropped and counted;
// it is an error when no row is usable.
Result<Dataset> import_csv(const std::filesystem::path& path, const DatasetHeader& header,
                           ImportReport* report = nullptr);
Result<Dataset> import_csv_text(std::string_view text, const DatasetHeader& header,
                                ImportReport* report = nullptr);
// Writes everything but the header and the samples, gzipped when the name ends in .gz. Errors:
// kUnsupported for problems with payloads, and for baselines or metrics that a reader would take
// for configs.
Status export_csv(const Dataset& dataset, const std::filesystem::path& path);
Result<std::string> export_csv_text(const Dataset& dataset);
// Returns the names of the columns that hold the parameters of configs, in the order of the schema;
// none for sequences.
std::vector<std::string> csv_parameter_columns(const DatasetHeader& header);

// Facts that foreign files do not contain.
struct ImportFacts {
  std::string family = "recorded";
  DatasetRole role = DatasetRole::kTraining;
  // The machine that ran CK Tile's benchmarks. Without a device here, the one that the file names,
  // if any.
  Fingerprint fingerprint;
  // Has the patterns of matrices that tables of sparse schedules name; borrowed, may be nullptr.
  PayloadStore* payloads = nullptr;
};

// Imports our JSON and MessagePack, which is one self-describing document (schemas, header, rows)
// without losses, or torch-diode's documents, which need `facts`.
Result<Dataset> import_json_bytes(std::span<const std::byte> bytes, ExchangeFormat format,
                                  ImportReport* report = nullptr, const ImportFacts& facts = {});
// Imports a file of the given format, or detects it. Tables of sparse schedules are read as
// import_schedule_file() does (sparse_schedules/schedule_records.h).
Result<Dataset> import_dataset(const std::filesystem::path& path,
                               std::optional<ExchangeFormat> format, ImportReport* report = nullptr,
                               const ImportFacts& facts = {});
// Exports a data set. JSON and MessagePack hold everything, CSV all but header and samples.
// torch-diode's format and CK's CSV hold only problems, configs and times; `report` counts the rows
// that they cannot hold. CK's JSON and logs cannot be written.
Status export_dataset(const Dataset& dataset, const std::filesystem::path& path,
                      ExchangeFormat format, ImportReport* report = nullptr);
// Exports to memory instead of a file.
Result<std::vector<std::byte>> export_bytes(const Dataset& dataset, ExchangeFormat format,
                                            ImportReport* report = nullptr);

// Returns true for the formats of CK Tile's benchmarks (ROCm's composable_kernel): JSON of one run
// or of a batch, logs with JSON between other output, CSV of GEMMs or grouped convolutions. Configs
// are of ck_gemm_schema() or ck_grouped_conv_schema(), parsed from the kernels' names. Times that
// were rounded away are restored from rates. Failed runs are kept as outcomes. Repeats of a problem
// and kernel become one row (docs/reference/file-formats/exchange.md); the rest is counted.
constexpr bool is_ck_format(ExchangeFormat format) {
  return format == ExchangeFormat::kCkJson || format == ExchangeFormat::kCkLog ||
         format == ExchangeFormat::kCkCsv;
}
// Returns the fingerprint of an architecture ("gfx950", "gfx942"): the built-in facts about the
// device, or else only its name.
Result<Fingerprint> ck_fingerprint(std::string_view arch);
Result<Dataset> import_ck(const std::filesystem::path& path, ExchangeFormat format,
                          const ImportFacts& facts, ImportReport* report = nullptr);
Result<Dataset> import_ck_text(std::string_view text, ExchangeFormat format,
                               const ImportFacts& facts, ImportReport* report = nullptr);

// Reads torch-diode's operation_shapeset.json: {"operations": {op: {"shapes": [...]}}}. It also
// accepts lines of m,n,k[,batch[,op]], with a line of column names when these have another order or
// there are more of them (b, op or name, dtype, layout, regime, which is skipped), and problems in
// text form. A repeated shape is dropped and counted. A shape whose result is stored transposed is
// kept as row-major, and noted. `payloads` has the files that problems in text form name
// (`payload=@NAME`); nullptr has none.
Result<std::vector<Problem>> read_shape_set(const std::filesystem::path& path,
                                            ImportReport* report = nullptr,
                                            PayloadStore* payloads = nullptr);
Result<std::vector<Problem>> parse_shape_set(std::string_view text, ImportReport* report = nullptr,
                                             PayloadStore* payloads = nullptr);

}  // namespace foretune
