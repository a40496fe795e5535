// Reads a data set file into the table that the recorded family replays.
// Thread safety: free functions without state.
#pragma once

#include <filesystem>
#include <string>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/exchange.h"
#include "foretune/families/recorded/recorded.h"

namespace foretune {

// What a CSV file does not say of itself.
struct CsvFacts {
  std::string family = "recorded";
  DatasetRole role = DatasetRole::kTraining;
  // Where the times were measured, for known_device(); "" when that is not known, which the device
  // of the fingerprint then says.
  std::string device;
};
// Columns of Triton GEMM configs make it a data set of that schema with the space of the recorded
// family; those on an H200 when no device is given, which the report notes. The parameters of any
// other file are its columns.
Result<Dataset> import_csv_file(const std::filesystem::path& path, const CsvFacts& facts,
                                ImportReport* report = nullptr);
// Any format that import_dataset knows, CSV as above.
Result<Dataset> import_measurements(const std::filesystem::path& path,
                                    ImportReport* report = nullptr, const CsvFacts& facts = {});
// The same as a table. `device` as in CsvFacts.
Result<RecordedTable> load_recorded_table(const std::filesystem::path& path,
                                          const std::string& device = "");
// The same from memory: rows that were re-measured interleaved replace ordinary ones.
Result<RecordedTable> recorded_table(const Dataset& dataset);

}  // namespace foretune
