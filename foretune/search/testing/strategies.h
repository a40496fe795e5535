// Lists of strategies for tests. Thread safety: free functions without state.
#pragma once

#include <vector>

#include "foretune/search/strategy.h"

namespace foretune::testing_support {

// Returns the strategies that search any space, without those that only build configs in steps.
inline std::vector<StrategyEntry> strategies_of_spaces() {
  std::vector<StrategyEntry> out;
  for (const StrategyEntry* const row : strategies()) {
    if (!row->steps_only) {
      out.push_back(*row);
    }
  }
  return out;
}

}  // namespace foretune::testing_support
