// CSV tables, with schemas that are known and with one that the columns make.
#include <string_view>

#include "fuzz/dataset_fuzz.h"

namespace {

using foretune::fuzz::require;

void try_table(std::string_view text, const foretune::DatasetHeader& header) {
  foretune::ImportReport report;
  const auto dataset = foretune::import_csv_text(text, header, &report);
  if (foretune::fuzz::refused(dataset)) {
    return;
  }
  foretune::fuzz::require_accounted(report);
  // A record is a measurement or somebody else's choice.
  require(report.rows_kept == dataset->size() + dataset->baselines().size());
  foretune::fuzz::require_storable(*dataset);
  const auto written = foretune::export_csv_text(*dataset);
  if (foretune::fuzz::refused(written)) {
    return;
  }
  const auto again = foretune::import_csv_text(*written, dataset->header());
  require(again.has_value());
  foretune::fuzz::require_same_content(*again, *dataset);
  require(foretune::export_csv_text(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  foretune::DatasetHeader header;
  header.family = "fuzz";
  try_table(text, header);
  header.config_schema.name = "fuzz";
  header.config_schema.parameters = {{"block_m", {}}, {"pack", {"no", "yes"}}};
  try_table(text, header);
  header.config_schema = {
      .name = "layers", .kind = foretune::SchemaKind::kSequence, .parameters = {}};
  try_table(text, header);
  return 0;
}
