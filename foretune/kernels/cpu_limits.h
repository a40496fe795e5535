// The options by which families of CPU kernels use less than the machine has.
// Thread safety: free functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"

namespace foretune {

// Returns as many threads as the hardware has cores, as far as kernels can use them (64).
int usable_threads(const Hardware& hardware);

// Applies the limit of threads (0: none) and the family's parameters threads=N, which means the
// same, and isa=NAME to the hardware facts: they become those of a machine with no more cores and
// no wider instructions. Errors: kInvalidArgument for any other parameter, for more than the
// machine has, and for two different numbers of threads.
Status apply_cpu_limits(std::string_view family, int threads,
                        std::span<const std::pair<std::string, std::string>> parameters,
                        Hardware& hardware);

}  // namespace foretune
