#include "foretune/interop/tables/dataset_folder.h"

#include <algorithm>
#include <cctype>
#include <system_error>

#include "foretune/base/text.h"

namespace foretune {
namespace {

// "data/x.CSV.gz" has the stem data/x and the extension csv.
struct FileName {
  std::filesystem::path stem;
  std::string extension;

  static FileName of(std::filesystem::path path) {
    if (path.extension() == ".gz" || path.extension() == ".zst") {
      path.replace_extension();
    }
    std::string extension = path.extension().string();
    std::transform(extension.begin(), extension.end(), extension.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    extension.erase(0, 1);
    return {path.replace_extension(), extension};
  }
};

std::vector<std::string> wanted_extensions(const std::vector<std::string>& given) {
  std::vector<std::string> out(kDatasetExtensions.begin(), kDatasetExtensions.end());
  if (!given.empty()) {
    out.clear();
    for (const std::string& extension : given) {
      // "json", ".json" and "json.gz" are one.
      out.push_back(
          FileName::of(concat("x", extension.starts_with('.') ? "" : ".", extension)).extension);
    }
  }
  return out;
}

Result<std::vector<std::filesystem::path>> files_below(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (auto it = std::filesystem::recursive_directory_iterator(folder, error);
       !error && it != std::filesystem::recursive_directory_iterator(); it.increment(error)) {
    if (it->is_regular_file(error)) {
      files.push_back(it->path());
    }
  }
  if (error) {
    return fail(ErrorCode::kIo, "cannot list ", folder.string(), ": ", error.message());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string nothing_found(const std::filesystem::path& folder,
                          const std::vector<std::string>& extensions, const DatasetFiles& found) {
  std::string out =
      concat("there is no data set (.", join(extensions, ", ."), ") below ", folder.string());
  if (!found.skipped.empty()) {
    const auto& [file, reason] = found.skipped.front();
    out += concat("; of the ", found.skipped.size(), " files with such names ", file.string(),
                  " is none: ", reason);
  }
  return out;
}

}  // namespace

Result<DatasetFiles> find_datasets(const std::filesystem::path& path,
                                   const std::vector<std::string>& extensions) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return fail(ErrorCode::kNotFound, path.string(), " does not exist");
  }
  DatasetFiles found;
  if (!std::filesystem::is_directory(path, error)) {
    found.datasets.push_back(path);
    return found;
  }
  const std::vector<std::string> wanted = wanted_extensions(extensions);
  const auto is_wanted = [&](std::string_view extension) {
    return std::find(wanted.begin(), wanted.end(), extension) != wanted.end();
  };
  FORETUNE_TRY(const std::vector<std::filesystem::path> files, files_below(path));
  for (const std::filesystem::path& file : files) {
    const FileName name = FileName::of(file);
    if (!is_wanted(name.extension)) {
      continue;
    }
    if (name.extension == "ftd") {
      found.datasets.push_back(file);
      continue;
    }
    std::filesystem::path journal = name.stem;
    journal += ".ftd";
    if (is_wanted("ftd") && std::binary_search(files.begin(), files.end(), journal)) {
      found.skipped.emplace_back(file, concat(journal.filename().string(), " beside it counts"));
      continue;
    }
    const Result<Support> holds = holds_dataset(file);
    // The caller may know how to read Parquet.
    const bool may_be_read = holds ? bool{*holds} : holds.error().code == ErrorCode::kUnsupported;
    if (may_be_read) {
      found.datasets.push_back(file);
    } else if (!holds) {
      return tl::unexpected<Error>(holds.error());
    } else {
      found.skipped.emplace_back(file, holds->reason());
    }
  }
  if (found.datasets.empty()) {
    return fail(ErrorCode::kNotFound, nothing_found(path, wanted, found));
  }
  return found;
}

Result<std::optional<Dataset>> merge_training_sets(const std::filesystem::path& path,
                                                   const FolderOptions& options) {
  FORETUNE_TRY(const DatasetFiles files, find_datasets(path, options.extensions));
  for (const auto& [file, reason] : files.skipped) {
    if (options.on_skip) {
      options.on_skip(file, reason);
    }
  }
  std::optional<Dataset> all;
  for (const std::filesystem::path& file : files.datasets) {
    ImportReport report;
    FORETUNE_TRY(Dataset dataset, options.read ? options.read(file, &report)
                                               : import_dataset(file, std::nullopt, &report));
    if (options.on_read) {
      options.on_read(file, dataset, report);
    }
    if (dataset.header().role == DatasetRole::kValidation) {
      continue;
    }
    if (!all) {
      all.emplace(std::move(dataset));
    } else if (const Status merged = all->merge(dataset); !merged) {
      return fail_because(merged.error(), file.string());
    }
  }
  return all;
}

}  // namespace foretune
