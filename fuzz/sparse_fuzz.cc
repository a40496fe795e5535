// Any bytes as a sparse matrix: read or refused, and what was read is canonical once it is a
// matrix.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "foretune/sparse/coordinates.h"
#include "foretune/sparse/csr.h"

namespace {

using namespace foretune::sparse;  // NOLINT(google-build-using-namespace): all is about it

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

void require_canonical(const Csr<float>& matrix) {
  require(matrix.starts[0] == 0);
  require(matrix.column_of.size() == static_cast<std::size_t>(matrix.size()));
  for (std::size_t row = 0; row < static_cast<std::size_t>(matrix.rows); ++row) {
    require(matrix.starts[row] <= matrix.starts[row + 1]);
    for (std::int64_t i = matrix.starts[row]; i < matrix.starts[row + 1]; ++i) {
      const std::int32_t column = matrix.column_of[static_cast<std::size_t>(i)];
      require(column >= 0 && column < matrix.columns);
      require(i == matrix.starts[row] ||
              matrix.column_of[static_cast<std::size_t>(i - 1)] < column);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto coordinates = read_coordinates(std::as_bytes(std::span(data, size)));
  // A file may state more rows than a fuzzer has memory for.
  constexpr std::int64_t kMaxRows = 1 << 16;
  if (!coordinates || coordinates->extents[0] > kMaxRows) {
    return 0;
  }
  for (std::size_t axis = 0; axis < (coordinates->is_tensor ? 3U : 2U); ++axis) {
    require(coordinates->indices[axis].size() == coordinates->size());
    for (const std::int32_t index : coordinates->indices[axis]) {
      require(index >= 0 && index < coordinates->extents[axis]);
    }
  }
  if (const auto matrix = csr_from<float>(*coordinates)) {
    require_canonical(*matrix);
  }
  return 0;
}
