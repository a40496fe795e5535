#include "foretune/loop/register_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/loop/machine/interpreter.h"
#include "foretune/loop/machine/testing/loop_samples.h"

namespace foretune::loop {
namespace {

const VectorUnit kUnit = VectorUnit::of(CpuIsa::kAvx512);

TEST(RegisterTiles, FillTheRegistersWhereTheProductIsLarge) {
  const Computation product = *matmul({.m = 1008, .n = 960, .k = 512});
  const std::vector<RegisterTile> tiles = register_tiles(product, kUnit);
  ASSERT_FALSE(tiles.empty());
  const RegisterTile& best = tiles.front();
  EXPECT_EQ(product.vars[best.lane_var].name, "n");
  EXPECT_EQ(product.vars[best.row_var].name, "m");
  EXPECT_GE(best.vectors * best.rows, 16);
  EXPECT_LE(best.vectors * best.rows, 28);
  // Two multiply-adds a cycle and nothing in their way.
  EXPECT_DOUBLE_EQ(best.cycles, product.points() / 16 / 2);
  EXPECT_TRUE(std::is_sorted(tiles.begin(), tiles.end(),
                             [](const auto& a, const auto& b) { return a.cycles < b.cycles; }));
}

TEST(RegisterTiles, CountWhatRemaindersCost) {
  const Computation product = *matmul({.m = 97, .n = 64, .k = 100});
  for (const RegisterTile& tile : register_tiles(product, kUnit)) {
    // No block does better than two full vectors a cycle.
    EXPECT_GE(tile.cycles, product.points() / 16 / 2);
    if (tile.vectors == 4 && tile.rows == 6) {
      // 16 blocks of 12 cycles, and one row whose four sums wait for each other.
      EXPECT_DOUBLE_EQ(tile.cycles, 100 * (16 * 12 + 4));
    }
  }
}

TEST(RegisterTiles, AreNoneWithoutNeighboursInTheOutput) {
  EXPECT_TRUE(register_tiles(*reduction(64, 64, Op::kAdd, false), kUnit).empty());
}

TEST(TextbookNests, AreLegalDistinctAndMeanTheSame) {
  constexpr std::uint64_t kSeed = 5;
  const Jit jit(kUnit);
  int run = 0;
  for (int i = 0; i < 60; ++i) {
    Rng rng(kSeed + static_cast<std::uint64_t>(i));
    const Computation computation = random_computation(rng);
    SCOPED_TRACE(computation.name);
    const std::vector<std::vector<float>> values = whole_inputs(computation, rng);
    const Inputs inputs(values.begin(), values.end());
    const std::vector<double> expected = reference(computation, inputs);
    const std::vector<Nest> nests = textbook_nests(computation, kUnit, 24);
    for (std::size_t n = 0; n < nests.size(); ++n) {
      ASSERT_TRUE(check(computation, nests[n]));
      EXPECT_EQ(std::find(nests.begin(), nests.begin() + static_cast<std::ptrdiff_t>(n), nests[n]),
                nests.begin() + static_cast<std::ptrdiff_t>(n));
      const auto kernel = jit.compile(computation, nests[n]);
      if (best_cpu_isa() < CpuIsa::kAvx512 || !kernel) {
        continue;
      }
      std::vector<float> output(expected.size(), -1e30F);
      auto workspace = *kernel->make_workspace(1);
      kernel->run(inputs, output, workspace);
      EXPECT_EQ(difference(computation, expected, output), "") << tree_text(computation, nests[n]);
      ++run;
    }
  }
  EXPECT_TRUE(run > 200 || best_cpu_isa() < CpuIsa::kAvx512) << run;
}

}  // namespace
}  // namespace foretune::loop
