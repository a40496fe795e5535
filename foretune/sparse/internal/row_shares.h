// Splits the rows of a matrix into consecutive shares with about as many non-zeros and rows each,
// for threads. Internal to the module.
// Thread safety: constant after construction. Cost: a binary search a share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "foretune/sparse/csr.h"

namespace foretune::sparse::internal {

class RowShares {
 public:
  // Every share but the last ends at a multiple of `multiple` rows.
  RowShares(const PatternView& pattern, std::size_t shares, std::size_t multiple = 1)
      : starts_(pattern.starts), bounds_{0} {
    const auto rows = static_cast<std::size_t>(pattern.rows);
    // A row costs about as much as a non-zero.
    const std::size_t all = static_cast<std::size_t>(pattern.size()) + rows;
    std::size_t low = 0;
    for (std::size_t share = 1; share < shares; ++share) {
      std::size_t high = rows;
      while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if ((static_cast<std::size_t>(starts_[middle]) + middle) * shares < all * share) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      bounds_.push_back(std::min(rows, (low + multiple - 1) / multiple * multiple));
    }
    bounds_.push_back(rows);
  }

  [[nodiscard]] std::size_t count() const { return bounds_.size() - 1; }
  [[nodiscard]] std::pair<std::size_t, std::size_t> rows(std::size_t share) const {
    return {bounds_[share], bounds_[share + 1]};
  }
  // Returns the bounds of the share's non-zeros.
  [[nodiscard]] std::pair<std::size_t, std::size_t> entries(std::size_t share) const {
    return {static_cast<std::size_t>(starts_[bounds_[share]]),
            static_cast<std::size_t>(starts_[bounds_[share + 1]])};
  }

 private:
  std::span<const std::int64_t> starts_;
  std::vector<std::size_t> bounds_;
};

}  // namespace foretune::sparse::internal
