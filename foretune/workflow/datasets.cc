#include "foretune/workflow/datasets.h"

#include <filesystem>
#include <utility>

#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/families/load_recorded.h"
#include "foretune/workflow/outside_program.h"

namespace foretune::workflow {
namespace {

void tell_losses(const std::string& file, const ImportReport& report,
                 const Invocation& invocation) {
  for (const auto& [reason, count] : report.dropped) {
    invocation.warn(concat(file, ": dropped ", count_text(count), ": ", reason));
  }
  for (const auto& [note, count] : report.notes) {
    invocation.remark(concat(file, ": kept ", count_text(count), ": ", note));
  }
}

}  // namespace

Result<Dataset> import_any(const std::filesystem::path& path, ImportReport* report,
                           const Invocation& invocation) {
  return is_parquet(path) ? read_parquet(path, {}, invocation) : import_measurements(path, report);
}

Result<Dataset> read_measurements(const std::string& path, const Invocation& invocation) {
  ImportReport report;
  FORETUNE_TRY(Dataset dataset, import_any(path, &report, invocation));
  tell_losses(path, report, invocation);
  return dataset;
}

Status describe_payloads(Dataset& dataset, const PayloadArguments& payloads,
                         const Invocation& invocation) {
  FORETUNE_TRY(const std::size_t unknown, payloads.describe(dataset));
  if (unknown > 0) {
    invocation.warn(concat(count_of(unknown, "problem"),
                           word_for(unknown, " has a payload", " have payloads"),
                           ", of which nothing is known without --payloads"));
  }
  return {};
}

Result<Dataset> read_training_sets(const std::string& path, const Invocation& invocation,
                                   const std::vector<std::string>& extensions,
                                   const DataFilter& filter) {
  FolderOptions options;
  options.extensions = extensions;
  options.read = [&](const std::filesystem::path& file, ImportReport* report) -> Result<Dataset> {
    FORETUNE_TRY(Dataset dataset, import_any(file, report, invocation));
    return filter.apply(std::move(dataset));
  };
  options.on_read = [&invocation](const std::filesystem::path& file, const Dataset& dataset,
                                  const ImportReport& report) {
    tell_losses(file.string(), report, invocation);
    if (dataset.header().role == DatasetRole::kValidation) {
      invocation.remark(concat("skipped ", file.string(), ": a validation set"));
    } else {
      invocation.remark(concat("read ", file.string(), ": ",
                               count_of(dataset.size(), "measurement"), " of ",
                               count_of(dataset.problems().size(), "problem")));
    }
  };
  options.on_skip = [&invocation](const std::filesystem::path& file, const std::string& reason) {
    invocation.remark(concat("skipped ", file.string(), ": ", reason));
  };
  FORETUNE_TRY(std::optional<Dataset> all, merge_training_sets(path, options));
  if (!all) {
    return fail(ErrorCode::kNotFound, "no training data set below ", path);
  }
  return *std::move(all);
}

}  // namespace foretune::workflow
