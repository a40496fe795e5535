// The configs that are measured and chosen from by default: the ranks of the library's heuristic,
// and for a known kind of device the explicit configs that a pass over all of them found worth
// keeping. Thread safety: constant.
#pragma once

#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/space/config.h"

namespace foretune {

// For devices of this instruction set ("sm_90"); without a portfolio of theirs only the ranks.
std::vector<Config> cublaslt_portfolio(std::string_view isa);
// A config a line, as to_text() prints it; empty lines and those that begin with # are left out.
// Errors: kInvalidArgument with the line.
Result<std::vector<Config>> parse_cublaslt_configs(std::string_view text);

}  // namespace foretune
