// The line below every page and figure that says where its numbers come from.
//
//   evaluation.source = source_line({data_source(path, dataset)}, machine.device);
//   // Foretune 0.1.0; data set shapes.ftd 3f2a91c05b1d; AMD EPYC; 2026-11-29
//
// Thread safety: free functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/hash.h"
#include "foretune/dataset/dataset.h"
#include "foretune/model/model_file.h"
#include "foretune/workflow/family_arguments.h"

namespace foretune::workflow {

// Returns "KIND NAME DIGEST": the name of the file, and the first digits of a digest that `foretune
// inspect` prints. An empty path leaves out the name, zeros leave out the digest.
std::string file_source(std::string_view kind, const std::string& path, const Digest& digest);
// The digest of the contents.
std::string data_source(const std::string& path, const Dataset& dataset);
// The digest of the data that the model was trained on.
std::string model_source(const std::string& path, const Model& model);

// The family, and the data set that it replays if there is one.
std::string family_source(const FamilyArguments& family);

// Joins the program with its version, the parts, the device and today's date. Empty parts are left
// out.
std::string source_line(const std::vector<std::string>& parts, const std::string& device);

}  // namespace foretune::workflow
