// Foreign formats in and out: CSV, JSON (ours and torch-diode's, both its schemas), MessagePack
// (torch-diode's), CK Tile's benchmarks, operation shape sets. Everything read is untrusted: sizes,
// depth, numbers and names are checked; errors name the file, the place and what was expected.
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
  kCkCsv
};
// "foretune", "csv", "json", "msgpack", "diode-json", "diode-msgpack", "ck-json", "ck-log",
// "ck-csv".
Result<ExchangeFormat> parse_exchange_format(std::string_view name);
std::string_view to_string(ExchangeFormat format);
// By content (magic, first bytes), never by the name: torch-diode writes JSON text into files named
// .msgpack.
Result<ExchangeFormat> detect_format(const std::filesystem::path& path);
// Whether that is a data set of any format, or why it is something else: another JSON document, a
// table without times. Errors: a file that cannot be read, is damaged, or is Parquet.
Result<Support> holds_dataset(const std::filesystem::path& path);

// What an import or export did with every row: nothing is dropped silently.
struct ImportReport {
  std::uint64_t rows_read = 0;
  std::uint64_t rows_kept = 0;
  // reason (with the first place where it applied), count
  std::vector<std::pair<std::string, std::uint64_t>> dropped;
  // What was kept, but is not quite what the file says; likewise.
  std::vector<std::pair<std::string, std::uint64_t>> notes;
};

// CSV columns, in any order: the problem's fields and the schema's parameters by name (missing
// problem fields take their defaults; "config.k" is parameter k where a field or a column below is
// called so, too), then time_ns | time_us | time_ms, and optionally median_ns, spread, samples,
// outcome, stage, reason, flags, the context as machine, device, context_threads, cache, clock_mhz,
// fidelity, and further metrics as energy_j, energy_j_spread, energy_j_samples. A row whose first
// parameter holds a name and whose other parameters are empty (block_m = "cublas") is kept as
// baseline of that name. Configs that are sequences stand in one column, config:NAME:VERSION of
// their schema (or `config`, where the header has the schema), as "3,16,1,0"; a baseline there is
// "baseline:cublas". gzip is read transparently. When `header.config_schema` has no parameters,
// every column that is none of these becomes one, of labels when it holds text, unless there is a
// column of sequences. When the header names no type of problem, it is the one with the most fields
// among the columns. Rows that cannot be used are dropped and counted; when none can, that is an
// error.
Result<Dataset> import_csv(const std::filesystem::path& path, const DatasetHeader& header,
                           ImportReport* report = nullptr);
Result<Dataset> import_csv_text(std::string_view text, const DatasetHeader& header,
                                ImportReport* report = nullptr);
// Everything but the header and the samples. Gzipped when the name ends in .gz. Errors:
// kUnsupported for problems with payloads, and for baselines or metrics that a reader would take
// for configs.
Status export_csv(const Dataset& dataset, const std::filesystem::path& path);
Result<std::string> export_csv_text(const Dataset& dataset);
// The names of the columns that hold the parameters of configs, in the order of the schema: none
// for sequences.
std::vector<std::string> csv_parameter_columns(const DatasetHeader& header);

// What files of others do not say of themselves.
struct ImportFacts {
  std::string family = "recorded";
  DatasetRole role = DatasetRole::kTraining;
  // Of CK Tile's benchmarks: where they ran. Without a device that is what the file says, if it
  // does.
  Fingerprint fingerprint;
};

// Our JSON and MessagePack: one self-describing document (schemas, header, rows), lossless.
// torch-diode's documents take `facts`.
Result<Dataset> import_json_bytes(std::span<const std::byte> bytes, ExchangeFormat format,
                                  ImportReport* report = nullptr, const ImportFacts& facts = {});
// A file of any format; without one it is found out.
Result<Dataset> import_dataset(const std::filesystem::path& path,
                               std::optional<ExchangeFormat> format, ImportReport* report = nullptr,
                               const ImportFacts& facts = {});
// JSON and MessagePack hold everything; CSV all but header and samples; torch-diode's format
// and CK's CSV only problems, configs and times: `report` counts the rows that cannot be in it.
// CK's JSON and logs are not written.
Status export_dataset(const Dataset& dataset, const std::filesystem::path& path,
                      ExchangeFormat format, ImportReport* report = nullptr);
// The same in memory.
Result<std::vector<std::byte>> export_bytes(const Dataset& dataset, ExchangeFormat format,
                                            ImportReport* report = nullptr);

// What the benchmarks of CK Tile (ROCm's composable_kernel) write: JSON of one run or of a batch,
// logs of JSON between other output, CSV of GEMMs or grouped convolutions. Configs are of
// ck_gemm_schema() or ck_grouped_conv_schema(), by the kernels' names. Times are restored from
// rates where they were rounded away; failed runs are kept as outcomes; repeats of a problem and
// kernel become one row (docs/file-formats.md). Lost and repaired rows are counted.
constexpr bool is_ck_format(ExchangeFormat format) {
  return format == ExchangeFormat::kCkJson || format == ExchangeFormat::kCkLog ||
         format == ExchangeFormat::kCkCsv;
}
// Of "gfx950", "gfx942": what is built in about the device, or else nothing but its name.
Result<Fingerprint> ck_fingerprint(std::string_view arch);
Result<Dataset> import_ck(const std::filesystem::path& path, ExchangeFormat format,
                          const ImportFacts& facts, ImportReport* report = nullptr);
Result<Dataset> import_ck_text(std::string_view text, ExchangeFormat format,
                               const ImportFacts& facts, ImportReport* report = nullptr);

// torch-diode's operation_shapeset.json: {"operations": {op: {"shapes": [...]}}}; also accepts
// lines of m,n,k[,batch[,op]], with a line of column names when they come in another order or have
// more (b, op or name, dtype, layout, regime, which is skipped), and problems in text form. A
// repeated shape is dropped and counted; one whose result is stored transposed is kept as if it
// were not, and noted. `payloads` knows the files that problems in text form name
// (`payload=@NAME`); nullptr knows none.
Result<std::vector<Problem>> read_shape_set(const std::filesystem::path& path,
                                            ImportReport* report = nullptr,
                                            PayloadStore* payloads = nullptr);
Result<std::vector<Problem>> parse_shape_set(std::string_view text, ImportReport* report = nullptr,
                                             PayloadStore* payloads = nullptr);

}  // namespace foretune
