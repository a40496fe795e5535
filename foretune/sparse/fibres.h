// A tensor of order 3 as fibres: for each row the columns that occur, and for each of these the
// depths (CSF). Made from the matrix that csr_from() returns for a tensor, whose column is
// column * depth + depth index; the values stay there.
//
//   FORETUNE_TRY(const sparse::Fibres fibres, sparse::fibres_of(matrix.pattern(), depth));
//
// Thread safety: plain values. Cost: 4 bytes a non-zero, 12 a fibre, 8 a row; one pass.
#pragma once

#include <cstdint>

#include "foretune/base/result.h"
#include "foretune/sparse/array.h"
#include "foretune/sparse/csr.h"

namespace foretune::sparse {

struct Fibres {
  Array<std::int64_t> row_starts;  // rows + 1, into the fibres
  Array<std::int64_t> starts;      // fibres + 1, into the non-zeros
  Array<std::int32_t> column_of;   // of each fibre, rising within a row
  Array<std::int32_t> depth_of;    // of each non-zero, rising within a fibre

  [[nodiscard]] std::uint64_t bytes() const {
    return row_starts.bytes() + starts.bytes() + column_of.bytes() + depth_of.bytes();
  }
};

// Errors: kInvalidArgument for a depth below 1; kUnsupported where memory is lacking.
Result<Fibres> fibres_of(const PatternView& pattern, std::int64_t depth);

}  // namespace foretune::sparse
