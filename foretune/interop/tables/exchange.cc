#include "foretune/interop/tables/exchange.h"

#include <algorithm>
#include <array>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/hash.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/dataset/records.h"
#include "foretune/dataset/storable.h"
#include "foretune/interop/ck/exchange_ck.h"
#include "foretune/interop/sparse_schedules/schedule_records.h"
#include "foretune/interop/tables/exchange_json.h"
#include "foretune/interop/tables/internal/csv_columns.h"
#include "foretune/interop/tables/internal/exchange_io.h"

namespace foretune {

using dataset_internal::Json;

namespace {

constexpr std::array<std::string_view, 10> kFormats{
    "foretune",      "csv",     "json",   "msgpack", "diode-json",
    "diode-msgpack", "ck-json", "ck-log", "ck-csv",  "schedule-csv"};

bool is_msgpack(ExchangeFormat format) {
  return format == ExchangeFormat::kMsgpack || format == ExchangeFormat::kDiodeMsgpack;
}

Result<ExchangeFormat> detect_bytes(std::span<const std::byte> bytes) {
  using dataset_internal::kMagic;
  if (bytes.size() >= kMagic.size() &&
      std::equal(kMagic.begin(), kMagic.end(), dataset_internal::text_of(bytes).begin())) {
    return ExchangeFormat::kForetune;
  }
  if (bytes.empty()) {
    return fail(ErrorCode::kCorrupt, "the file is empty");
  }
  if (dataset_internal::text_of(bytes).starts_with("PAR1")) {
    return fail(ErrorCode::kUnsupported,
                "a Parquet file; foretune-parquet of the Python package reads CK Tile's");
  }
  const auto first = static_cast<unsigned>(bytes[0]);
  // A MessagePack map; no text begins with such a byte.
  if ((first >= 0x80 && first <= 0x8f) || first == 0xde || first == 0xdf) {
    return ExchangeFormat::kMsgpack;
  }
  if (const auto ck = dataset_internal::detect_ck(dataset_internal::text_of(bytes))) {
    return *ck;
  }
  if (is_schedule_csv(dataset_internal::text_of(bytes))) {
    return ExchangeFormat::kScheduleCsv;
  }
  const std::string_view head = trim(dataset_internal::text_of(bytes).substr(0, 4096));
  if (!head.empty() && head.front() == '{') {
    return ExchangeFormat::kJson;
  }
  if (head.find(',') != std::string_view::npos) {
    return ExchangeFormat::kCsv;
  }
  return fail(ErrorCode::kCorrupt,
              "this is none of the known formats (.ftd, CSV, JSON, MessagePack, CK Tile's logs)");
}

}  // namespace

std::string_view to_string(ExchangeFormat format) {
  return kFormats.at(static_cast<std::size_t>(format));
}

Result<ExchangeFormat> parse_exchange_format(std::string_view name) {
  for (std::size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats.at(i) == name) {
      return static_cast<ExchangeFormat>(i);
    }
  }
  return fail(ErrorCode::kInvalidArgument, "'", name.substr(0, 40), "' is not a format (",
              join({kFormats.begin(), kFormats.end()}, ", "), ")");
}

Result<ExchangeFormat> detect_format(const std::filesystem::path& path) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, dataset_internal::read_maybe_compressed(path));
  auto format = detect_bytes(bytes);
  if (!format) {
    return fail_because(format.error(), path.string());
  }
  return format;
}

namespace {

bool has_times(std::string_view csv) {
  std::vector<std::string> names;
  return dataset_internal::next_csv_record(csv, names) &&
         std::any_of(names.begin(), names.end(), [](const std::string& name) {
           using dataset_internal::CsvRole;
           const auto column =
               dataset_internal::measurement_column(trim(name), ProblemSchema{}, common_metrics());
           return dataset_internal::declares_metric(trim(name)) ||
                  (column && (column->role == CsvRole::kTime || column->role == CsvRole::kMetric));
         });
}

Result<Support> bytes_hold_dataset(std::span<const std::byte> bytes) {
  const Result<ExchangeFormat> format = detect_bytes(bytes);
  if (!format) {
    return format.error().code == ErrorCode::kUnsupported
               ? Result<Support>(tl::unexpected<Error>(format.error()))
               : Support::no(format.error().message);
  }
  switch (*format) {
    case ExchangeFormat::kCsv:
      return has_times(dataset_internal::text_of(bytes)) ? Support::yes()
                                                         : Support::no("it has no column of times");
    case ExchangeFormat::kJson:
    case ExchangeFormat::kMsgpack: {
      FORETUNE_TRY(const Json document,
                   dataset_internal::parse_document(bytes, is_msgpack(*format)));
      return dataset_internal::is_own_document(document) ||
                     dataset_internal::is_diode_document(document) ||
                     dataset_internal::is_ck_document(document)
                 ? Support::yes()
                 : Support::no("the document is no data set");
    }
    default:
      return Support::yes();
  }
}

}  // namespace

Result<Support> holds_dataset(const std::filesystem::path& path) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, dataset_internal::read_maybe_compressed(path));
  auto holds = bytes_hold_dataset(bytes);
  return holds ? std::move(holds) : fail_because(holds.error(), path.string());
}

Result<Dataset> import_json_bytes(std::span<const std::byte> bytes, ExchangeFormat format,
                                  ImportReport* report, const ImportFacts& facts) {
  FORETUNE_TRY(const Json document, dataset_internal::parse_document(bytes, is_msgpack(format)));
  if (dataset_internal::is_own_document(document)) {
    return dataset_internal::import_own_document(document, report);
  }
  if (dataset_internal::is_diode_document(document)) {
    return dataset_internal::import_diode_document(document, facts, report);
  }
  if (dataset_internal::is_ck_document(document)) {
    return fail(ErrorCode::kUnsupported, "the document is of CK Tile: read it as ",
                to_string(ExchangeFormat::kCkJson));
  }
  return fail(ErrorCode::kCorrupt, "the document is neither a foretune nor a torch-diode data set");
}

Result<Dataset> import_dataset(const std::filesystem::path& path,
                               std::optional<ExchangeFormat> format, ImportReport* report,
                               const ImportFacts& facts) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, dataset_internal::read_maybe_compressed(path));
  const auto imported = [&]() -> Result<Dataset> {
    if (!format) {
      FORETUNE_TRY(format, detect_bytes(bytes));
    }
    switch (*format) {
      case ExchangeFormat::kForetune: {
        ReadReport read;
        FORETUNE_TRY(Dataset dataset, read_dataset_bytes(bytes, &read));
        if (report != nullptr) {
          *report = {.rows_read = read.rows, .rows_kept = read.rows, .dropped = {}, .notes = {}};
          if (read.torn_bytes > 0) {
            report->dropped.emplace_back(
                concat("a torn record of ", read.torn_bytes, " bytes at the end"), 1);
          }
        }
        return dataset;
      }
      case ExchangeFormat::kCsv: {
        DatasetHeader header;
        header.family = facts.family;
        header.role = facts.role;
        return import_csv_text(dataset_internal::text_of(bytes), header, report);
      }
      case ExchangeFormat::kCkJson:
      case ExchangeFormat::kCkLog:
      case ExchangeFormat::kCkCsv:
        return import_ck_text(dataset_internal::text_of(bytes), *format, facts, report);
      case ExchangeFormat::kScheduleCsv: {
        FORETUNE_TRY(const ScheduleTable table, parse_schedule_table(path.filename().string()));
        return import_schedule_text(
            dataset_internal::text_of(bytes), table,
            {.family = facts.family, .role = facts.role, .payloads = facts.payloads}, report);
      }
      default:
        return import_json_bytes(bytes, *format, report, facts);
    }
  };
  auto dataset = imported();
  if (!dataset) {
    return fail_because(dataset.error(), path.string());
  }
  return dataset;
}

Result<Dataset> import_ck_text(std::string_view text, ExchangeFormat format,
                               const ImportFacts& facts, ImportReport* report) {
  switch (format) {
    case ExchangeFormat::kCkJson:
      return dataset_internal::import_ck_json(text, facts, report);
    case ExchangeFormat::kCkLog:
      return dataset_internal::import_ck_log(text, facts, report);
    case ExchangeFormat::kCkCsv:
      return dataset_internal::import_ck_csv(text, facts, report);
    default:
      return fail(ErrorCode::kInvalidArgument, to_string(format), " is not a format of CK Tile");
  }
}

Result<Dataset> import_ck(const std::filesystem::path& path, ExchangeFormat format,
                          const ImportFacts& facts, ImportReport* report) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, dataset_internal::read_maybe_compressed(path));
  auto dataset = import_ck_text(dataset_internal::text_of(bytes), format, facts, report);
  if (!dataset) {
    return fail_because(dataset.error(), path.string());
  }
  return dataset;
}

namespace {

std::vector<std::byte> bytes_of_text(const std::string& text) {
  const std::span<const std::byte> raw = bytes_of(text);
  return {raw.begin(), raw.end()};
}

std::vector<std::byte> document_bytes(const Json& document, bool msgpack) {
  if (msgpack) {
    const std::vector<std::uint8_t> bytes = Json::to_msgpack(document);
    const std::span<const std::byte> raw = std::as_bytes(std::span(bytes));
    return {raw.begin(), raw.end()};
  }
  // Bytes that are no UTF-8 (a compiler's message, cut off) become U+FFFD: JSON has no others.
  return bytes_of_text(document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace

Result<std::vector<std::byte>> export_bytes(const Dataset& dataset, ExchangeFormat format,
                                            ImportReport* report) {
  if (report != nullptr) {
    *report = {
        .rows_read = dataset.size(), .rows_kept = dataset.size(), .dropped = {}, .notes = {}};
  }
  switch (format) {
    case ExchangeFormat::kForetune:
      return dataset_bytes(dataset);
    case ExchangeFormat::kCsv: {
      FORETUNE_TRY(const std::string text, export_csv_text(dataset));
      return bytes_of_text(text);
    }
    case ExchangeFormat::kJson:
    case ExchangeFormat::kMsgpack: {
      FORETUNE_TRY_STATUS(dataset_internal::check_dataset(dataset));
      const bool msgpack = is_msgpack(format);
      return document_bytes(dataset_internal::export_own_document(dataset, !msgpack), msgpack);
    }
    case ExchangeFormat::kDiodeJson:
    case ExchangeFormat::kDiodeMsgpack: {
      FORETUNE_TRY(const Json document, dataset_internal::export_diode_document(dataset, report));
      if (is_msgpack(format)) {
        return document_bytes(document, true);
      }
      return bytes_of_text(dataset_internal::diode_text(document));
    }
    case ExchangeFormat::kCkCsv: {
      FORETUNE_TRY(const std::string text, dataset_internal::export_ck_csv_text(dataset, report));
      return bytes_of_text(text);
    }
    case ExchangeFormat::kCkJson:
    case ExchangeFormat::kCkLog:
      return fail(ErrorCode::kUnsupported, "CK Tile's data is written as ck-csv only");
    case ExchangeFormat::kScheduleCsv:
      return fail(ErrorCode::kUnsupported, "tables of sparse schedules are read, not written");
  }
  return fail(ErrorCode::kInvalidArgument, "unknown format");
}

Status export_dataset(const Dataset& dataset, const std::filesystem::path& path,
                      ExchangeFormat format, ImportReport* report) {
  if (format == ExchangeFormat::kForetune) {
    return write_dataset(dataset, path);
  }
  auto bytes = export_bytes(dataset, format, report);
  if (!bytes) {
    return fail_because(bytes.error(), "cannot write ", path.string());
  }
  if (path.extension() == ".gz") {
    *bytes = dataset_internal::deflate_gzip(*bytes);
  }
  return write_file_atomically(path, *bytes);
}

}  // namespace foretune
