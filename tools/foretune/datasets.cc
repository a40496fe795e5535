#include "tools/foretune/datasets.h"

#include <filesystem>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/families/load_recorded.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

void tell_losses(const std::string& file, const ImportReport& report) {
  for (const auto& [reason, count] : report.dropped) {
    warn(concat(file, ": dropped ", count_text(count), ": ", reason));
  }
  for (const auto& [note, count] : report.notes) {
    remark(concat(file, ": kept ", count_text(count), ": ", note));
  }
}

}  // namespace

Result<Dataset> read_measurements(const std::string& path) {
  ImportReport report;
  FORETUNE_TRY(Dataset dataset, import_measurements(path, &report));
  tell_losses(path, report);
  return dataset;
}

Status describe_payloads(Dataset& dataset, const PayloadArguments& payloads) {
  FORETUNE_TRY(const std::size_t unknown, payloads.describe(dataset));
  if (unknown > 0) {
    warn(concat(count_text(unknown),
                " problems have payloads, of which nothing is known without --payloads"));
  }
  return {};
}

Result<Dataset> read_training_sets(const std::string& path,
                                   const std::vector<std::string>& extensions) {
  FolderOptions options;
  options.extensions = extensions;
  options.read = [](const std::filesystem::path& file, ImportReport* report) {
    return import_measurements(file, report);
  };
  options.on_read = [](const std::filesystem::path& file, const Dataset& dataset,
                       const ImportReport& report) {
    tell_losses(file.string(), report);
    if (dataset.header().role == DatasetRole::kValidation) {
      remark(concat("skipped ", file.string(), ": a validation set"));
    } else {
      remark(concat("read ", file.string(), ": ", count_text(dataset.size()), " measurements of ",
                    count_text(dataset.problems().size()), " problems"));
    }
  };
  options.on_skip = [](const std::filesystem::path& file, const std::string& reason) {
    remark(concat("skipped ", file.string(), ": ", reason));
  };
  FORETUNE_TRY(std::optional<Dataset> all, merge_training_sets(path, options));
  if (!all) {
    return fail(ErrorCode::kNotFound, "no training data set below ", path);
  }
  return *std::move(all);
}

}  // namespace foretune::cli
