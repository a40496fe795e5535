// Reads layers of real networks, one file each in the folder networks/ of a problem type, as shape
// sets. A file names its source and its role; a layer is a problem of one image or one token:
//
//   # foretune networks 1
//   # ResNet-50: He et al., Deep Residual Learning for Image Recognition, 2016
//   # role: training
//   layer1_reduce  conv n=1 c=64 k=64 hi=56 wi=56 y=1 x=1
//
// A network is in the training list or in the validation list, never in both, and no layer of the
// second has the weights (GroupKey::kWeights) of one of the first. A file with the role `shapes` is
// a list of whole problems that belongs to neither.
// Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/embedded_text.h"
#include "foretune/base/result.h"
#include "foretune/problem/problem_type.h"

namespace foretune {

enum class NetworkRole : std::uint8_t { kTraining, kValidation, kShapes };

struct NetworkLayers {
  std::string_view name;   // of the file
  std::string_view title;  // network and source
  NetworkRole role = NetworkRole::kTraining;
  std::vector<Problem> layers;
};

// Errors: kCorrupt, with the line.
Result<NetworkLayers> parse_network_layers(const EmbeddedText& file);

// Says how the layers of a set become problems.
struct NetworkExpansion {
  std::string prefix;       // of the sets' names: "conv-"
  std::string suffix;       // "-backward-data", or nothing
  std::string description;  // for help: "forward convolutions"
  std::function<std::vector<Problem>(std::span<const Problem>)> expand;
};

// Adds the sets PREFIXnetworks-trainSUFFIX and PREFIXnetworks-validationSUFFIX of all networks, and
// one of each network and list of shapes alone (PREFIXNAMESUFFIX).
void add_network_sets(std::span<const EmbeddedText> files, const NetworkExpansion& expansion,
                      std::vector<NamedShapeSet>& sets);

// Returns true for the name of a built-in set of any problem type.
bool is_named_shape_set(std::string_view name);
// Returns the built-in set of that name. Errors: kNotFound, with the existing names.
Result<std::vector<Problem>> named_shape_set(std::string_view name);

}  // namespace foretune
