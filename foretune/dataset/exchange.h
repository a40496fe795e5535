// Foreign formats in and out: CSV, JSON (ours and torch-diode's, both its schemas), MessagePack
// (torch-diode's), operation shape sets. Everything read is untrusted: sizes, depth, numbers and
// names are checked; errors name the file, the place and what was expected.
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

enum class ExchangeFormat : std::uint8_t { kForetune, kCsv, kJson, kMsgpack, kDiodeJson, kDiodeMsgpack };
// "foretune", "csv", "json", "msgpack", "diode-json", "diode-msgpack".
Result<ExchangeFormat> parse_exchange_format(std::string_view name);
std::string_view to_string(ExchangeFormat format);
// By content first (magic, first bytes), by name second. Never trusts the extension alone:
// torch-diode writes JSON text into files named .msgpack.
Result<ExchangeFormat> detect_format(const std::filesystem::path& path);

// What an import did with every row: nothing is dropped silently.
struct ImportReport {
  std::uint64_t rows_read = 0;
  std::uint64_t rows_kept = 0;
  // reason, count
  std::vector<std::pair<std::string, std::uint64_t>> dropped;
};

// CSV columns: the problem's fields and the schema's parameters by name (missing problem fields
// take their defaults), then time_ns | time_us | time_ms, and optionally outcome, stage, reason,
// median_ns, spread, samples. A parameter column that holds text in the first columns of a
// `recorded` GPU file (block_m = "cublas") marks the vendor's row: kept under the given name as
// baseline. gzip (.gz) is read transparently. When `header.config_schema` has no parameters, every
// column that is neither a problem field nor a measurement becomes one.
Result<Dataset> import_csv(const std::filesystem::path& path, const DatasetHeader& header,
                           ImportReport* report = nullptr);
Result<Dataset> import_csv_text(std::string_view text, const DatasetHeader& header,
                                ImportReport* report = nullptr);
Status export_csv(const Dataset& dataset, const std::filesystem::path& path);

// Our JSON and MessagePack: one self-describing document (schemas, header, rows), lossless.
Result<Dataset> import_json_bytes(std::span<const std::byte> bytes, ExchangeFormat format,
                                  ImportReport* report = nullptr);
Result<Dataset> import_dataset(const std::filesystem::path& path,
                               std::optional<ExchangeFormat> format,
                               ImportReport* report = nullptr);
Status export_dataset(const Dataset& dataset, const std::filesystem::path& path,
                      ExchangeFormat format);

// torch-diode's operation_shapeset.json: {"operations": {op: {"shapes": [...]}}}; also accepts
// plain lines or CSV of m,n,k[,batch,op].
Result<std::vector<Problem>> read_shape_set(const std::filesystem::path& path,
                                            ImportReport* report = nullptr);
Result<std::vector<Problem>> parse_shape_set(std::string_view text, ImportReport* report = nullptr);

}  // namespace foretune
