#include "foretune/sparse/fibres.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/sparse/testing/random_matrix.h"

namespace foretune::sparse {
namespace {

using Place = std::tuple<std::int64_t, std::int64_t, std::int64_t, double>;

TEST(FibresTest, HoldEveryNonZeroInItsPlace) {
  Rng rng(17);
  for (int trial = 0; trial < 200; ++trial) {
    const Coordinates tensor = random_tensor(12, rng);
    const auto matrix = csr_from<double>(tensor).value();
    const std::int64_t depth = tensor.extents[2];
    const Fibres fibres = fibres_of(matrix.pattern(), depth).value();
    std::vector<Place> found;
    for (std::int64_t row = 0; row < matrix.rows; ++row) {
      const auto first = static_cast<std::size_t>(fibres.row_starts[static_cast<std::size_t>(row)]);
      const auto last =
          static_cast<std::size_t>(fibres.row_starts[static_cast<std::size_t>(row) + 1]);
      for (std::size_t fibre = first; fibre < last; ++fibre) {
        ASSERT_LT(fibres.starts[fibre], fibres.starts[fibre + 1]);
        if (fibre > first) {
          ASSERT_LT(fibres.column_of[fibre - 1], fibres.column_of[fibre]);
        }
        for (auto i = static_cast<std::size_t>(fibres.starts[fibre]);
             i < static_cast<std::size_t>(fibres.starts[fibre + 1]); ++i) {
          found.emplace_back(row, fibres.column_of[fibre], fibres.depth_of[i], matrix.values[i]);
        }
      }
    }
    std::vector<Place> expected;
    for (std::size_t i = 0; i < tensor.size(); ++i) {
      expected.emplace_back(tensor.indices[0][i], tensor.indices[1][i], tensor.indices[2][i],
                            tensor.values[i]);
    }
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(found, expected);
  }
}

TEST(FibresTest, RefusesADepthOfNothing) {
  Rng rng(1);
  const auto matrix = csr_from<float>(random_matrix(5, rng)).value();
  EXPECT_EQ(fibres_of(matrix.pattern(), 0).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace foretune::sparse
