// Reads a data set file into the table that the recorded family replays.
// Thread safety: free functions without state.
#pragma once

#include <filesystem>
#include <string>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/families/recorded/recorded.h"
#include "foretune/interop/tables/exchange.h"

namespace foretune {

// The facts that a CSV file does not contain.
struct CsvFacts {
  std::string family = "recorded";
  DatasetRole role = DatasetRole::kTraining;
  // The device on which the times were measured, for known_device(). "" when it is not known; the
  // device of the fingerprint then says so.
  std::string device;
};
// Reads a CSV file. Columns of Triton GEMM configs make it a data set of that schema with the space
// of the recorded family; its times count as measured on an H200 when no device is given, which the
// report notes. In any other file the columns are the parameters.
Result<Dataset> import_csv_file(const std::filesystem::path& path, const CsvFacts& facts,
                                ImportReport* report = nullptr);
// Reads any format that import_dataset knows, CSV as above.
Result<Dataset> import_measurements(const std::filesystem::path& path,
                                    ImportReport* report = nullptr, const CsvFacts& facts = {});
// Reads the same formats into a table. `device` as in CsvFacts.
Result<RecordedTable> load_recorded_table(const std::filesystem::path& path,
                                          const std::string& device = "");
// Makes the table from a data set in memory: rows that were re-measured interleaved replace
// ordinary ones.
Result<RecordedTable> recorded_table(const Dataset& dataset);

}  // namespace foretune
