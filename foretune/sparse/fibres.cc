#include "foretune/sparse/fibres.h"

#include <cstddef>

namespace foretune::sparse {
namespace {

// Calls begin_fibre(i, column) for the first non-zero of each fibre of a row.
template <class BeginFibre>
void walk(const PatternView& pattern, std::size_t row, std::int64_t depth,
          const BeginFibre& begin_fibre) {
  std::int64_t last = -1;
  for (std::int64_t i = pattern.starts[row]; i < pattern.starts[row + 1]; ++i) {
    const std::int64_t column = pattern.column_of[static_cast<std::size_t>(i)] / depth;
    if (column != last) {
      begin_fibre(i, column);
      last = column;
    }
  }
}

}  // namespace

Result<Fibres> fibres_of(const PatternView& pattern, std::int64_t depth) {
  if (depth < 1) {
    return fail(ErrorCode::kInvalidArgument, "a tensor of depth ", depth, " has no element");
  }
  const auto rows = static_cast<std::size_t>(pattern.rows);
  Fibres out;
  FORETUNE_TRY(out.row_starts, Array<std::int64_t>::zeros(rows + 1));
  for (std::size_t row = 0; row < rows; ++row) {
    std::int64_t count = 0;
    walk(pattern, row, depth, [&](std::int64_t, std::int64_t) { ++count; });
    out.row_starts[row + 1] = out.row_starts[row] + count;
  }
  const auto fibres = static_cast<std::size_t>(out.row_starts[rows]);
  FORETUNE_TRY(out.starts, Array<std::int64_t>::create(fibres + 1));
  FORETUNE_TRY(out.column_of, Array<std::int32_t>::create(fibres));
  FORETUNE_TRY(out.depth_of, Array<std::int32_t>::create(static_cast<std::size_t>(pattern.size())));
  std::size_t at = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    walk(pattern, row, depth, [&](std::int64_t i, std::int64_t column) {
      out.starts[at] = i;
      out.column_of[at++] = static_cast<std::int32_t>(column);
    });
  }
  out.starts[fibres] = pattern.size();
  for (std::size_t i = 0; i < out.depth_of.size(); ++i) {
    out.depth_of[i] = static_cast<std::int32_t>(pattern.column_of[i] % depth);
  }
  return out;
}

}  // namespace foretune::sparse
