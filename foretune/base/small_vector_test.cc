#include "foretune/base/small_vector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

using Small = SmallVector<std::int32_t, 4>;

bool same(const Small& small, const std::vector<std::int32_t>& reference) {
  return std::equal(small.begin(), small.end(), reference.begin(), reference.end()) &&
         small.size() == reference.size() && small.empty() == reference.empty();
}

TEST(SmallVector, ConstructorsSayWhatTheyHold) {
  EXPECT_TRUE(same(Small(), {}));
  EXPECT_TRUE(same(Small{1, 2, 3}, {1, 2, 3}));
  EXPECT_TRUE(same(Small{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(same(Small(std::size_t{3}), {0, 0, 0}));
  EXPECT_TRUE(same(Small(std::size_t{6}, 9), {9, 9, 9, 9, 9, 9}));
  const std::vector<std::int32_t> source{5, 6, 7, 8, 9};
  EXPECT_TRUE(same(Small(std::span<const std::int32_t>(source)), source));
}

TEST(SmallVector, StaysInsideUpToItsInlineCapacity) {
  Small values{1, 2, 3, 4};
  const auto* object = reinterpret_cast<const char*>(&values);
  const auto inside = [&] {
    const auto* data = reinterpret_cast<const char*>(values.data());
    return data >= object && data < object + sizeof(values);
  };
  EXPECT_TRUE(inside());
  values.push_back(5);
  EXPECT_FALSE(inside());
  EXPECT_TRUE(same(values, {1, 2, 3, 4, 5}));
}

TEST(SmallVector, AMovedFromVectorIsEmptyAndUsable) {
  for (const std::size_t size : {std::size_t{3}, std::size_t{4}, std::size_t{5}, std::size_t{40}}) {
    Small source(size, 7);
    Small target(std::move(source));
    EXPECT_TRUE(same(target, std::vector<std::int32_t>(size, 7)));
    // NOLINTBEGIN(bugprone-use-after-move,clang-analyzer-cplusplus.Move): what is tested
    EXPECT_TRUE(source.empty());
    for (std::int32_t i = 0; i < 9; ++i) {
      source.push_back(i);
    }
    // NOLINTEND(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
    EXPECT_TRUE(same(source, {0, 1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_TRUE(same(target, std::vector<std::int32_t>(size, 7)));
  }
}

TEST(SmallVector, AssigningToItselfChangesNothing) {
  Small values{1, 2, 3, 4, 5};
  Small& alias = values;
  values = alias;
  EXPECT_TRUE(same(values, {1, 2, 3, 4, 5}));
  values = std::move(alias);
  EXPECT_TRUE(same(values, {1, 2, 3, 4, 5}));
}

TEST(SmallVector, ComparesLikeAVector) {
  Rng rng(3);
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<std::int32_t> a(rng.below(7));
    std::vector<std::int32_t> b(rng.below(7));
    for (std::int32_t& value : a) {
      value = static_cast<std::int32_t>(rng.between(-1, 1));
    }
    for (std::int32_t& value : b) {
      value = static_cast<std::int32_t>(rng.between(-1, 1));
    }
    const Small small_a{std::span<const std::int32_t>(a)};
    const Small small_b{std::span<const std::int32_t>(b)};
    ASSERT_EQ(small_a == small_b, a == b);
    ASSERT_EQ(small_a < small_b, a < b);
    ASSERT_EQ(small_a >= small_b, a >= b);
  }
}

TEST(SmallVector, FollowsAVectorThroughRandomOperations) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(concat("seed ", seed));
    Rng rng(seed);
    std::vector<Small> small(3);
    std::vector<std::vector<std::int32_t>> reference(3);
    for (int step = 0; step < 400; ++step) {
      const std::size_t i = rng.below(3);
      const std::size_t j = rng.below(3);
      const auto value = static_cast<std::int32_t>(rng.below(1000));
      switch (rng.below(8)) {
        case 0:
          small[i] = small[j];
          reference[i] = reference[j];
          break;
        case 1:
          if (i != j) {
            small[i] = std::move(small[j]);
            reference[i] = std::exchange(reference[j], {});
          }
          break;
        case 2: {
          Small copy(small[j]);
          small[i] = std::move(copy);
          reference[i] = reference[j];
          break;
        }
        case 3: {
          const std::size_t size = rng.below(12);
          small[i].resize(size, value);
          reference[i].resize(size, value);
          break;
        }
        case 4:
          small[i].clear();
          reference[i].clear();
          break;
        case 5:
          if (!small[i].empty()) {
            const std::size_t at = rng.below(small[i].size());
            small[i][at] = value;
            reference[i][at] = value;
          }
          break;
        default:
          small[i].push_back(value);
          reference[i].push_back(value);
      }
      for (std::size_t k = 0; k < small.size(); ++k) {
        ASSERT_TRUE(same(small[k], reference[k])) << "step " << step;
      }
    }
  }
}

TEST(SmallVector, PushBackOfAnOwnElementSurvivesTheMoveToTheHeap) {
  Small values{1, 2, 3, 4};
  values.push_back(values[0]);
  EXPECT_TRUE(same(values, {1, 2, 3, 4, 1}));
}

}  // namespace
}  // namespace foretune
