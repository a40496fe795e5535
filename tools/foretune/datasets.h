// The data sets that commands are given, in any format that `foretune convert` reads: what is lost
// or changed on the way is said on standard error.
// Thread safety: used by the main thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/dataset_folder.h"
#include "tools/foretune/payload_arguments.h"

namespace foretune::cli {

Result<Dataset> read_measurements(const std::string& path);
// Tells the problems what is known of their payloads; warns where --payloads was not given and a
// problem has one, since features miss it then.
Status describe_payloads(Dataset& dataset, const PayloadArguments& payloads);
// All training sets below a folder, or the one of a file. Errors: kNotFound without any.
Result<Dataset> read_training_sets(const std::string& path,
                                   const std::vector<std::string>& extensions = {});

}  // namespace foretune::cli
