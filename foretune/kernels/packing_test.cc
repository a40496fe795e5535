#include "foretune/kernels/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "foretune/base/rng.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/kernels/testing/guarded_buffer.h"

namespace foretune {
namespace {

constexpr std::uint64_t kSeed = 7;

std::ptrdiff_t draw(Rng& rng, std::int64_t low, std::int64_t high) {
  return static_cast<std::ptrdiff_t>(rng.between(low, high));
}

std::size_t size_of(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t stride,
                    bool by_columns) {
  return static_cast<std::size_t>(by_columns ? (columns - 1) * stride + rows
                                             : (rows - 1) * stride + columns);
}

// Returns the functions of all instruction sets that run here, in turn.
TransposePanel some_transpose(int trial) {
  const int best = static_cast<int>(best_cpu_isa());
  return transpose_panel_of(static_cast<CpuIsa>(trial % (best + 1)));
}

// Every source element has its own value, so that a misplaced one is seen.
void number(std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i + 1);
  }
}

TEST(PackingTest, PanelsOfAHoldEachElementInItsPlace) {
  Rng rng(kSeed);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::ptrdiff_t rows = draw(rng, 1, 40);
    const std::ptrdiff_t k = draw(rng, 1, 40);
    const std::ptrdiff_t panel = draw(rng, 1, 16);
    const bool by_columns = rng.below(2) == 0;
    const std::ptrdiff_t stride = (by_columns ? rows : k) + draw(rng, 0, 5);
    const GuardSide side = trial % 2 == 0 ? GuardSide::kEnd : GuardSide::kStart;
    GuardedBuffer a(size_of(rows, k, stride, by_columns), side);
    GuardedBuffer packed(static_cast<std::size_t>(rows * k), side);
    number(a.view());
    pack_a_panels(PackedWords::kF32, {a.data(), stride, by_columns}, rows, k, panel, packed.data(),
                  some_transpose(trial));
    for (std::ptrdiff_t i = 0; i < rows; ++i) {
      const std::ptrdiff_t first = i / panel * panel;
      const std::ptrdiff_t here = std::min(panel, rows - first);
      for (std::ptrdiff_t p = 0; p < k; ++p) {
        ASSERT_EQ(packed.data()[first * k + p * here + (i - first)],
                  a.data()[by_columns ? p * stride + i : i * stride + p])
            << "seed " << kSeed << " trial " << trial << " rows " << rows << " k " << k << " panel "
            << panel << " by columns " << by_columns << " at (" << i << ", " << p << ")";
      }
    }
  }
}

TEST(PackingTest, PanelsOfBHoldEachElementInItsPlaceAndZerosBehindTheLast) {
  Rng rng(kSeed);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::ptrdiff_t lanes = std::ptrdiff_t{4} << rng.below(3);
    const std::ptrdiff_t panel = lanes * draw(rng, 1, 8);
    const std::ptrdiff_t columns = draw(rng, 1, 200);
    const std::ptrdiff_t k = draw(rng, 1, 40);
    const bool by_columns = rng.below(2) == 0;
    const std::ptrdiff_t stride = (by_columns ? k : columns) + draw(rng, 0, 5);
    const GuardSide side = trial % 2 == 0 ? GuardSide::kEnd : GuardSide::kStart;
    GuardedBuffer b(size_of(k, columns, stride, by_columns), side);
    GuardedBuffer packed(
        static_cast<std::size_t>(packed_b_size(PackedWords::kF32, k, columns, lanes)), side);
    number(b.view());
    std::fill_n(packed.data(), packed.view().size(), std::numeric_limits<float>::quiet_NaN());
    pack_b_panels(PackedWords::kF32, {b.data(), stride, by_columns}, k, columns, panel, lanes,
                  packed.data(), some_transpose(trial));
    for (std::ptrdiff_t first = 0; first < columns; first += panel) {
      const std::ptrdiff_t here = std::min(panel, columns - first);
      const std::ptrdiff_t width = (here + lanes - 1) / lanes * lanes;
      for (std::ptrdiff_t p = 0; p < k; ++p) {
        for (std::ptrdiff_t j = 0; j < width; ++j) {
          const std::ptrdiff_t column = first + j;
          const float expected =
              j < here ? b.data()[by_columns ? column * stride + p : p * stride + column] : 0.0F;
          ASSERT_EQ(packed.data()[first * k + p * width + j], expected)
              << "seed " << kSeed << " trial " << trial << " columns " << columns << " k " << k
              << " panel " << panel << " lanes " << lanes;
        }
      }
    }
  }
}

TEST(AlignedBufferTest, IsAlignedAndRefusesWhatNoMemoryCanHold) {
  const auto buffer = AlignedBuffer::create(3);
  ASSERT_TRUE(buffer);
  EXPECT_EQ(buffer->size(), 3U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % AlignedBuffer::kAlignment, 0U);
  EXPECT_FALSE(AlignedBuffer::create(std::numeric_limits<std::size_t>::max()));
  EXPECT_FALSE(AlignedBuffer::create(std::size_t{1} << 60U));
  EXPECT_EQ(AlignedBuffer().data(), nullptr);
}

}  // namespace
}  // namespace foretune
