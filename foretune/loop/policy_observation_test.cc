#include "foretune/loop/policy_observation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/loop/machine/testing/loop_samples.h"
#include "foretune/loop/machine/testing/random_cases.h"

namespace foretune::loop {
namespace {

struct Seen {
  std::vector<float> loops =
      std::vector<float>(LoopActions::kLevels * PolicyObserver::kLoopColumns);
  std::vector<float> whole = std::vector<float>(PolicyObserver::kWholeColumns);
  bool compiles = false;
  bool operator==(const Seen&) const = default;
};

Seen observed(const Computation& computation, const Nest& nest, const VectorUnit& unit,
              const PolicyMachine& machine = {}) {
  Seen seen;
  seen.compiles =
      PolicyObserver(computation, unit, machine).observe(nest, 0.5, seen.loops, seen.whole);
  return seen;
}

TEST(PolicyObservationTest, ValuesAreSmallAndSayWhetherTheNestCompiles) {
  for_random_computations(50, 200, [](const Computation& computation, Rng& rng) {
    const VectorUnit unit = VectorUnit::of(rng.below(2) == 0 ? CpuIsa::kAvx2 : CpuIsa::kAvx512);
    const Nest nest = random_nest(computation, rng, LoopActions::kLevels);
    const Seen seen = observed(computation, nest, unit);
    EXPECT_EQ(seen.compiles, lower(computation, nest, unit).has_value());
    const auto is_small = [](float value) { return std::isfinite(value) && std::abs(value) <= 40; };
    EXPECT_TRUE(std::all_of(seen.loops.begin(), seen.loops.end(), is_small));
    EXPECT_TRUE(std::all_of(seen.whole.begin(), seen.whole.end(), is_small));
    const auto behind = seen.loops.begin() + static_cast<std::ptrdiff_t>(
                                                 nest.loops.size() * PolicyObserver::kLoopColumns);
    EXPECT_TRUE(std::all_of(behind, seen.loops.end(), [](float value) { return value == 0; }));
  });
}

// The same product with its variables listed in another order.
Computation relabelled(const Computation& from, const std::vector<std::size_t>& order) {
  Computation out = from;
  const auto permute = [&](Tensor& tensor) {
    for (Dimension& dimension : tensor.dimensions) {
      const std::vector<std::int64_t> old = dimension.coefficients;
      for (std::size_t v = 0; v < order.size(); ++v) {
        dimension.coefficients[v] = old[order[v]];
      }
    }
  };
  for (std::size_t v = 0; v < order.size(); ++v) {
    out.vars[v] = from.vars[order[v]];
  }
  permute(out.output);
  for (Tensor& input : out.inputs) {
    permute(input);
  }
  return out;
}

TEST(PolicyObservationTest, PositionsOfVariablesInTheComputationMeanNothing) {
  const Computation product = matmul({.m = 60, .n = 100, .k = 72}).value();
  const std::vector<std::size_t> order = {2, 0, 1};
  const Computation other = relabelled(product, order);
  ASSERT_TRUE(other.check());
  const VectorUnit unit = VectorUnit::of(CpuIsa::kAvx512);
  const auto actions = parse_schedule(product, "split m0 6, split n0 32, move n0 1, vectorize n1");
  ASSERT_TRUE(actions);
  const Nest nest = apply_all(product, *actions).value();
  Nest same = nest;
  for (Loop& loop : same.loops) {
    loop.var =
        static_cast<std::uint8_t>(std::find(order.begin(), order.end(), loop.var) - order.begin());
  }
  EXPECT_EQ(observed(product, nest, unit), observed(other, same, unit));
}

TEST(PolicyObservationTest, TheMachineIsSeen) {
  const Computation product = matmul({.m = 60, .n = 100, .k = 72}).value();
  const Nest nest = Nest::plain(product);
  const Seen seen = observed(product, nest, VectorUnit::of(CpuIsa::kAvx512));
  EXPECT_NE(seen, observed(product, nest, VectorUnit::of(CpuIsa::kAvx2)));
  EXPECT_NE(seen, observed(product, nest, VectorUnit::of(CpuIsa::kAvx512), {.l1_bytes = 1 << 20}));
}

TEST(PolicyObservationTest, ALoopThatTheCompilerCutsKeepsItsLanes) {
  // 1000 neighbours need more registers than there are, so that the compiler cuts the loop.
  const Computation product = matmul({.m = 8, .n = 1000, .k = 8}).value();
  const VectorUnit unit = VectorUnit::of(CpuIsa::kAvx512);
  const Nest nest = Nest::plain(product);
  const auto lowered = lower(product, nest, unit);
  ASSERT_TRUE(lowered);
  ASSERT_GT(lowered->nest.loops.size(), nest.loops.size());
  const Seen seen = observed(product, nest, unit);
  constexpr std::size_t kLanesAlong = kLoopFeatureColumns + 6;
  std::vector<std::size_t> lanes;
  for (std::size_t level = 0; level < nest.loops.size(); ++level) {
    if (seen.loops[level * PolicyObserver::kLoopColumns + kLanesAlong] == 1) {
      lanes.push_back(level);
    }
  }
  ASSERT_EQ(lanes.size(), 1U);
  EXPECT_EQ(product.vars[nest.loops[lanes[0]].var].name, "n");
}

}  // namespace
}  // namespace foretune::loop
