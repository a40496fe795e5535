// Turns a network into the steps of a pass: chooses the order of each tensor's elements, joins
// biases, additions and ReLUs with the products before them, and element-wise operations with each
// other.
//
// Thread safety: free functions. Cost: every new layer is decided by a dispatcher (milliseconds).
#pragma once

#include <cstdint>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"
#include "foretune/graph/run/executor.h"
#include "foretune/graph/run/internal/pass.h"

namespace foretune::graph {

// `network` is simplified. Errors: kUnsupported when a kernel is missing or memory is short.
Result<Pass> lower(const Network& network, Executor& executor, std::int64_t images);

}  // namespace foretune::graph
