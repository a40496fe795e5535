// Tests of a property on many random computations. Thread safety: a free function.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "foretune/base/rng.h"
#include "foretune/loop/machine/testing/loop_samples.h"

namespace foretune::loop {

// Calls `check(computation, rng)` for `count` seeds from `seed` on. Failures name their seed. Stops
// after a fatal failure.
template <class Check>
void for_random_computations(std::uint64_t seed, std::uint64_t count, const Check& check) {
  for (std::uint64_t i = 0; i < count && !testing::Test::HasFatalFailure(); ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed + i);
    Rng rng(seed + i);
    const Computation computation = random_computation(rng);
    check(computation, rng);
  }
}

}  // namespace foretune::loop
