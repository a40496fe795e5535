// Which configs of a problem a collection measures: the fixed first ones, then the strategy's.
// Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/collect/collect.h"
#include "foretune/family/family.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

// Why a problem is skipped that stands in the list twice.
inline constexpr std::string_view kRepeatedProblem = "repeated in the list of problems";

// Depends on the seed, the problem, the space and the options, never on what was measured before.
// Errors: kUnsupported with the reason when the problem has to be left out.
Result<std::vector<Config>> select_configs(const Family& family, const Problem& problem,
                                           const CollectOptions& options);

}  // namespace foretune
