// One column of whole numbers in a segment: constant, runs, or differences from the least value in
// one to four bytes, whichever is smallest. Internal to the data set module.
// Thread safety: values of one thread. Cost: reading is about a nanosecond a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "foretune/base/byte_io.h"

namespace foretune::dataset_internal {

void put_column(ByteWriter& out, std::span<const std::uint32_t> values);

// Reads a column a piece at a time, so that rows can be put together while they are in the cache.
class ColumnReader {
 public:
  // Takes the column of `rows` values from `in`, which turns bad when it is not one.
  ColumnReader(ByteReader& in, std::size_t rows);
  // The next values; never more than the column has in all.
  void next(std::span<std::uint32_t> out);

 private:
  void next_runs(std::span<std::uint32_t> out);

  std::uint8_t encoding_ = 0;
  std::uint32_t base_ = 0;
  std::span<const std::byte> plain_;
  std::size_t position_ = 0;                                   // in plain_, or in runs_
  std::vector<std::pair<std::uint32_t, std::uint32_t>> runs_;  // length that is left, value
};

}  // namespace foretune::dataset_internal
