// Finds the values in NumPy's files (.npy, versions 1.0 and 2.0) of matrices of floats.
// Thread safety: a free function. Cost: reads the header only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "foretune/base/result.h"

namespace foretune::problem_internal {

// A matrix of little-endian f32 values.
struct NpyMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool by_columns = false;            // Fortran's order
  std::span<const std::byte> values;  // 4 * rows * columns bytes, at any address
};

// Returns true when the bytes begin as NumPy's files do.
bool is_npy(std::span<const std::byte> bytes);
// Errors: kCorrupt for a file that is cut off or not NumPy's, kUnsupported for values of another
// type and for any number of dimensions but two.
Result<NpyMatrix> parse_npy(std::span<const std::byte> bytes);

}  // namespace foretune::problem_internal
