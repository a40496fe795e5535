// Reads the data sets of use cases, in any format that `foretune convert` reads. Remarks and
// warnings name rows that are lost or changed, and files that are skipped.
// Thread safety: any thread may call these functions.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/interop/tables/dataset_folder.h"
#include "foretune/workflow/data_filter.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/payload_arguments.h"

namespace foretune::workflow {

// Reads a data set without telling what is lost; `report` may be nullptr. Parquet goes through
// foretune-parquet.
Result<Dataset> import_any(const std::filesystem::path& path, ImportReport* report,
                           const Invocation& invocation);
Result<Dataset> read_measurements(const std::string& path, const Invocation& invocation);
// Adds the known facts of payloads to the problems. Warns when --payloads was not given and a
// problem has one, since features miss it then.
Status describe_payloads(Dataset& dataset, const PayloadArguments& payloads,
                         const Invocation& invocation);
// Reads all training sets below a folder, or that of a file, and of each what passes the filter.
// Errors: kNotFound without any.
Result<Dataset> read_training_sets(const std::string& path, const Invocation& invocation,
                                   const std::vector<std::string>& extensions = {},
                                   const DataFilter& filter = {});

}  // namespace foretune::workflow
