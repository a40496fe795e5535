// FROSTT's text of tensors: a line for each non-zero, its indices from 1 and its value.
#include <algorithm>
#include <array>
#include <string_view>

#include "foretune/base/text.h"
#include "foretune/sparse/internal/number_text.h"
#include "foretune/sparse/internal/readers.h"

namespace foretune::sparse::internal {

Result<Coordinates> read_frostt(std::span<const std::byte> bytes) {
  LineReader lines(bytes);
  Coordinates out;
  std::size_t order = 0;
  std::string_view line;
  while (lines.next(line)) {
    std::string_view rest = line;
    if (is_used_up(rest) || line.front() == '#') {
      continue;
    }
    if (order == 0) {
      const std::size_t words = split_words(line).size();
      if (words != 3 && words != 4) {
        return fail(words > 4 ? ErrorCode::kUnsupported : ErrorCode::kCorrupt, "line ",
                    lines.number(), " has ", words,
                    " numbers; two or three indices and a value are read");
      }
      order = words - 1;
      out.is_tensor = order == 3;
    }
    std::array<std::int64_t, 3> index{1, 1, 1};
    bool is_good = true;
    for (std::size_t axis = 0; axis < order && is_good; ++axis) {
      is_good = take_number(rest, index[axis]);
    }
    double value = 0;
    if (!is_good || !take_value(rest, value) || !is_used_up(rest)) {
      return fail(ErrorCode::kCorrupt, "line ", lines.number(), " is ", quoted(line), ", not ",
                  order, " indices and a finite value");
    }
    for (std::size_t axis = 0; axis < order; ++axis) {
      if (index[axis] < 1 || index[axis] > kMaxExtent) {
        return fail(ErrorCode::kCorrupt, "line ", lines.number(), ": the index ", index[axis],
                    " is not between 1 and ", kMaxExtent);
      }
      out.extents[axis] = std::max(out.extents[axis], index[axis]);
      out.indices[axis].push_back(static_cast<std::int32_t>(index[axis] - 1));
    }
    out.values.push_back(value);
  }
  if (order == 0) {
    return fail(ErrorCode::kCorrupt, "the file has no non-zeros, and so no extents");
  }
  return out;
}

}  // namespace foretune::sparse::internal
