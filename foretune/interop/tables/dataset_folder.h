// All data sets below a folder, whatever format each file has, as one.
//
//   FORETUNE_TRY(std::optional<Dataset> all, merge_training_sets("data", {.on_skip = tell}));
//
// Files are looked at by their names first (kDatasetExtensions, each also with .gz or .zst), then
// by their content: what is well-formed but no data set (a report, a loss curve, a spec of a model)
// is passed over with a reason, what is damaged is an error that names the file. A file beside a
// journal of the same stem is what the journal was exported to, and is passed over, too.
// Thread safety: free functions without state.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/interop/tables/exchange.h"

namespace foretune {

inline constexpr std::array<std::string_view, 7> kDatasetExtensions{"ftd", "json", "msgpack", "csv",
                                                                    "log", "txt",  "parquet"};

struct DatasetFiles {
  std::vector<std::filesystem::path> datasets;                         // sorted
  std::vector<std::pair<std::filesystem::path, std::string>> skipped;  // and why
};
// The data sets below a directory, or the file itself. `extensions`, with or without a dot in
// front, instead of kDatasetExtensions. Parquet files are among them, though nothing here reads
// them. Errors: kNotFound when there is none, and those of a file that cannot be read.
Result<DatasetFiles> find_datasets(const std::filesystem::path& path,
                                   const std::vector<std::string>& extensions = {});

struct FolderOptions {
  std::vector<std::string> extensions;
  // Reads one of them; import_dataset where empty.
  std::function<Result<Dataset>(const std::filesystem::path& file, ImportReport* report)> read;
  // Hear of every file that was read, validation sets included, or passed over, where not empty.
  std::function<void(const std::filesystem::path& file, const Dataset& dataset,
                     const ImportReport& report)>
      on_read;
  std::function<void(const std::filesystem::path& file, const std::string& reason)> on_skip;
};
// The data sets below `path` as one, validation sets excepted; nothing when there is no other.
// Errors: those of finding, reading and merging.
Result<std::optional<Dataset>> merge_training_sets(const std::filesystem::path& path,
                                                   const FolderOptions& options = {});

}  // namespace foretune
