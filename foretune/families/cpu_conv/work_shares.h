// How the threads of a config share a convolution.
// Thread safety: free functions.
#pragma once

#include <cstddef>

#include "foretune/base/thread_pool.h"
#include "foretune/families/cpu_conv/input_slab.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune::cpu_conv {

// Calls work(thread, units, panels) for each thread that has a share: of the units, with
// split=points, or of the panels. Without other threads the caller's is the only one, and `pool`
// may be null.
template <class Work>
void share_work(const CpuConvConfig& config, ThreadPool* pool, std::ptrdiff_t units,
                std::ptrdiff_t panels, const Work& work) {
  const std::ptrdiff_t threads = config.threads;
  const auto run_share = [&](std::size_t index) {
    const auto thread = static_cast<std::ptrdiff_t>(index);
    const bool shares_points = config.split == ConvSplit::kPoints;
    const Range of_units = shares_points ? share_of(units, thread, threads) : Range{0, units};
    const Range of_panels = shares_points ? Range{0, panels} : share_of(panels, thread, threads);
    if (of_units.length() > 0 && of_panels.length() > 0) {
      work(index, of_units, of_panels);
    }
  };
  if (threads == 1) {
    run_share(0);
  } else {
    pool->run(static_cast<std::size_t>(threads), run_share);
  }
}

}  // namespace foretune::cpu_conv
