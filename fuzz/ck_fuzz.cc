// CK Tile's files: logs, documents and tables, whichever the bytes are.
#include <string_view>

#include "fuzz/dataset_fuzz.h"

namespace {

using foretune::ExchangeFormat;
using foretune::fuzz::require;

void try_format(std::string_view text, ExchangeFormat format) {
  foretune::ImportReport report;
  const auto dataset = foretune::import_ck_text(text, format, {}, &report);
  if (foretune::fuzz::refused(dataset)) {
    return;
  }
  foretune::fuzz::require_accounted(report);
  // Repeats of a run become one row.
  require(report.rows_kept >= dataset->size());
  foretune::fuzz::require_storable(*dataset);
  const auto written = foretune::export_bytes(*dataset, ExchangeFormat::kCkCsv);
  if (foretune::fuzz::refused(written)) {
    return;
  }
  const std::string_view csv(reinterpret_cast<const char*>(written->data()), written->size());
  const auto again = foretune::import_ck_text(csv, ExchangeFormat::kCkCsv, {});
  if (!foretune::fuzz::refused(again)) {
    require(again->size() <= dataset->size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const ExchangeFormat format :
       {ExchangeFormat::kCkLog, ExchangeFormat::kCkJson, ExchangeFormat::kCkCsv}) {
    try_format(text, format);
  }
  return 0;
}
