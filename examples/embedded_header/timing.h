// Checks and times one kernel.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "kernels.h"

// Returns the shortest of some runs, in microseconds; ends the program where the result is wrong.
inline double microseconds(Kernel run, int m, int n, int k) {
  const std::vector<float> a(static_cast<std::size_t>(m) * static_cast<std::size_t>(k), 1.0F);
  const std::vector<float> b(static_cast<std::size_t>(k) * static_cast<std::size_t>(n), 1.0F);
  std::vector<float> c(static_cast<std::size_t>(m) * static_cast<std::size_t>(n));
  double best = 1e12;
  for (int i = 0; i < 7; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run(m, n, k, a.data(), b.data(), c.data());
    const std::chrono::duration<double, std::micro> elapsed =
        std::chrono::steady_clock::now() - start;
    best = std::min(best, elapsed.count());
  }
  if (std::any_of(c.begin(), c.end(), [k](float value) { return value != float(k); })) {
    std::fprintf(stderr, "a kernel computes a wrong product of %d x %d x %d\n", m, n, k);
    std::exit(1);
  }
  return best;
}
