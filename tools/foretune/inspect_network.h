// The part of `foretune inspect` that prints networks.
#pragma once

#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/workflow/invocation.h"
#include "tools/foretune/commands.h"

namespace foretune::cli {

// Prints the network of a file, operation by operation, and writes its counts to `json` unless that
// is empty. Errors: those of workflow::open_network() and of writing.
Status inspect_network(const std::string& file, const std::vector<std::string>& input_shapes,
                       const std::string& json, const Invocation& invocation);

}  // namespace foretune::cli
