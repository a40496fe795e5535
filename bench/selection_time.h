// Times a selector on problems that its cache does not hold.
#pragma once

#include <vector>

#include "bench/bench_json.h"
#include "foretune/base/statistics.h"
#include "foretune/select/select.h"

namespace foretune::bench {

// Returns the median over the problems and `runs` rounds, in us; 0 when none is answered. `is_fast`
// times the fast mode.
inline double selection_us(const Selector& selector, const std::vector<Problem>& problems, int runs,
                           bool is_fast) {
  std::vector<double> each_us;
  for (int run = 0; run < runs; ++run) {
    for (const Problem& problem : problems) {
      const double begin_s = seconds_now();
      const bool is_answered = is_fast ? selector.select_fast(problem).choice.has_candidate
                                       : selector.select_uncached(problem).has_candidate;
      if (is_answered) {
        each_us.push_back(1e6 * (seconds_now() - begin_s));
      }
    }
  }
  return each_us.empty() ? 0 : median(each_us);
}

}  // namespace foretune::bench
