// The clock for budgets and progress.
// Thread safety: any thread may read it.
#pragma once

#include <chrono>

namespace foretune {

// Returns seconds since an unspecified moment; never goes back.
inline double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace foretune
