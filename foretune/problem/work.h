// How much a problem asks for: what turns a time into a rate.
// Thread safety: free functions without state. Cost: no allocation.
#pragma once

#include <optional>

#include "foretune/problem/problem.h"

namespace foretune {

struct ProblemWork {
  double flops = 0;  // floating-point (or integer) operations, a multiply-add as two
  double bytes = 0;  // every operand read or written once, however often a kernel touches it
};

// Nothing for a problem type whose work its fields do not say.
std::optional<ProblemWork> problem_work(const Problem& problem);

}  // namespace foretune
