// The kernels that a model of others, or a training, may choose from: names in a file, programs in
// a folder, or what ran in data sets. Thread safety: any thread may call these functions.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/interop/ck/foreign_models.h"
#include "foretune/space/config.h"
#include "foretune/workflow/data_filter.h"
#include "foretune/workflow/invocation.h"

namespace foretune::workflow {

// Returns the names in a file, one a line, or those of the programs and libraries in a folder.
// Blank lines and lines that begin with # are skipped, and so is what follows a '|', as in
// Composable Kernel's own lists.
Result<std::vector<std::string>> read_kernel_names(const std::filesystem::path& path);

// Returns those of the names that are kernels for the models. A remark counts the others. Errors:
// kNotFound when none is.
Result<std::vector<std::string>> kernels_for(const ForeignModels& models,
                                             const std::vector<std::string>& names,
                                             const Invocation& invocation);

// Returns configs of the data set's schema by composable_kernel's names of its kernels, for other
// schemas by the text of a config ("block_m=64 block_n=32 ..."). Errors: those of parsing, and
// kMismatch for a kernel of a data type, layout or direction that no problem of the data set has.
Result<std::vector<Config>> configs_of_kernels(std::span<const std::string> names,
                                               const Dataset& dataset);
// Returns the configs of the kernels in a file or folder. A remark counts the programs of a folder
// that are for other problems. Errors: those above, and kNotFound when a folder has no other.
Result<std::vector<Config>> read_candidates(const std::filesystem::path& path,
                                            const Dataset& dataset, const Invocation& invocation);

// Returns the names of all kernels that are known of the models' architecture; none where there are
// too many to list, or none is known.
std::vector<std::string> known_kernels(const ForeignModels& models);

// Measurements to keep. Empty members keep everything.
struct PoolFilter {
  const ConfigSchema* schema = nullptr;
  DataFilter data;
  std::string arch;  // "gfx950"; data sets of an unknown device pass, which those of `data` do not
  bool takes_validation = false;
};
// Reads all data sets below a folder, or that of a file, and returns the matching part as one;
// nothing when there is none. A remark names every file that is read. Errors: those of the files
// and of merging.
Result<std::optional<Dataset>> read_pool_data(const std::filesystem::path& path,
                                              const PoolFilter& filter,
                                              const Invocation& invocation);

}  // namespace foretune::workflow
