// One reader for each form of file. Internal to the module; read_coordinates() chooses.
// Thread safety: free functions.
#pragma once

#include <cstddef>
#include <span>

#include "foretune/base/result.h"
#include "foretune/sparse/coordinates.h"
#include "foretune/sparse/internal/line_reader.h"

namespace foretune::sparse::internal {

// Errors: those of read_coordinates().
Result<Coordinates> read_matrix_market(std::span<const std::byte> bytes);
Result<Coordinates> read_autosparse_csr(std::span<const std::byte> bytes);
Result<Coordinates> read_frostt(std::span<const std::byte> bytes);

// Refuses extents below 1 and above kMaxExtent, and entries below 0.
Status check_sizes(std::span<const std::int64_t> extents, std::int64_t entries);

}  // namespace foretune::sparse::internal
