// MatrixMarket's exchange format, by its description (Boisvert, Pozo, Remington 1996).
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/sparse/internal/number_text.h"
#include "foretune/sparse/internal/readers.h"

namespace foretune::sparse::internal {
namespace {

enum class Symmetry : std::uint8_t { kGeneral, kSymmetric, kSkew };

struct Banner {
  bool is_array = false;
  bool is_pattern = false;
  Symmetry symmetry = Symmetry::kGeneral;
};

Result<Banner> parse_banner(std::string_view line) {
  const std::string lower = to_lower(line);
  const std::vector<std::string_view> words = split_words(lower);
  if (words.size() != 5 || words[1] != "matrix") {
    return fail(ErrorCode::kCorrupt, "line 1 is ", quoted(line),
                ", not '%%MatrixMarket matrix FORM VALUES SYMMETRY'");
  }
  Banner banner;
  if (words[2] != "coordinate" && words[2] != "array") {
    return fail(ErrorCode::kCorrupt, "the form is ", quoted(words[2]),
                ", not 'coordinate' or 'array'");
  }
  banner.is_array = words[2] == "array";
  if (words[3] == "complex") {
    return fail(ErrorCode::kUnsupported,
                "the values are complex; real, integer and pattern are read");
  }
  if (words[3] != "real" && words[3] != "double" && words[3] != "integer" &&
      words[3] != "pattern") {
    return fail(ErrorCode::kCorrupt, "the values are ", quoted(words[3]),
                ", not 'real', 'integer' or 'pattern'");
  }
  banner.is_pattern = words[3] == "pattern";
  if (words[4] == "hermitian") {
    return fail(
        ErrorCode::kUnsupported,
        "the matrix is hermitian, which complex values alone can be; general, symmetric and "
        "skew-symmetric are read");
  }
  if (words[4] == "symmetric") {
    banner.symmetry = Symmetry::kSymmetric;
  } else if (words[4] == "skew-symmetric") {
    banner.symmetry = Symmetry::kSkew;
  } else if (words[4] != "general") {
    return fail(ErrorCode::kCorrupt, "the symmetry is ", quoted(words[4]),
                ", not 'general', 'symmetric' or 'skew-symmetric'");
  }
  if (banner.is_pattern && (banner.is_array || banner.symmetry == Symmetry::kSkew)) {
    return fail(ErrorCode::kCorrupt, "a pattern cannot be ",
                banner.is_array ? "an array" : "skew-symmetric");
  }
  return banner;
}

void put(Coordinates& out, std::int64_t row, std::int64_t column, double value, bool is_pattern) {
  out.indices[0].push_back(static_cast<std::int32_t>(row));
  out.indices[1].push_back(static_cast<std::int32_t>(column));
  if (!is_pattern) {
    out.values.push_back(value);
  }
}

// Puts an entry and, of a matrix with a symmetry, its mirror image.
void put_with_mirror(Coordinates& out, std::int64_t row, std::int64_t column, double value,
                     const Banner& banner) {
  put(out, row, column, value, banner.is_pattern);
  if (banner.symmetry != Symmetry::kGeneral && row != column) {
    put(out, column, row, banner.symmetry == Symmetry::kSkew ? -value : value, banner.is_pattern);
  }
}

tl::unexpected<Error> bad_line(const LineReader& lines, std::string_view line,
                               std::string_view wanted) {
  return fail(ErrorCode::kCorrupt, "line ", lines.number(), " is ", quoted(line), ", not ", wanted);
}

Status read_entries(LineReader& lines, const Banner& banner, std::int64_t entries,
                    Coordinates& out) {
  std::int64_t count = 0;
  std::string_view line;
  while (true) {
    if (!lines.next(line)) {
      break;
    }
    std::string_view rest = line;
    if (is_used_up(rest) || line.front() == '%') {
      continue;
    }
    if (count == entries) {
      return fail(ErrorCode::kCorrupt, "line ", lines.number(), " follows the last of ", entries,
                  " entries");
    }
    std::int64_t row = 0;
    std::int64_t column = 0;
    double value = 1;
    if (!take_number(rest, row) || !take_number(rest, column) ||
        (!banner.is_pattern && !take_value(rest, value)) || !is_used_up(rest)) {
      return bad_line(
          lines, line,
          banner.is_pattern ? "a row and a column" : "a row, a column and a finite value");
    }
    if (row < 1 || row > out.extents[0] || column < 1 || column > out.extents[1]) {
      return fail(ErrorCode::kCorrupt, "line ", lines.number(), ": row ", row, ", column ", column,
                  " lies outside of ", out.extents[0], " x ", out.extents[1]);
    }
    if (banner.symmetry == Symmetry::kSkew && row == column && value != 0) {
      return fail(ErrorCode::kCorrupt, "line ", lines.number(), ": the diagonal of a ",
                  "skew-symmetric matrix is zero");
    }
    put_with_mirror(out, row - 1, column - 1, value, banner);
    ++count;
  }
  if (count < entries) {
    return fail(ErrorCode::kCorrupt, "the file has ", count, " of ", entries, " entries");
  }
  return {};
}

// Reads every element, column by column, and keeps those that are not zero. In a matrix with a
// symmetry, the columns begin at (symmetric) or below (skew-symmetric) the diagonal.
Status read_array(LineReader& lines, const Banner& banner, Coordinates& out) {
  const auto first_row = [&](std::int64_t column) {
    return banner.symmetry == Symmetry::kGeneral ? 0
                                                 : column + (banner.symmetry == Symmetry::kSkew);
  };
  std::int64_t column = 0;
  std::int64_t row = first_row(0);
  std::string_view line;
  while (true) {
    while (column < out.extents[1] && row >= out.extents[0]) {
      ++column;
      row = first_row(column);
    }
    if (!lines.next(line)) {
      break;
    }
    std::string_view rest = line;
    for (; !is_used_up(rest) && line.front() != '%'; ++row) {
      while (column < out.extents[1] && row >= out.extents[0]) {
        ++column;
        row = first_row(column);
      }
      double value = 0;
      if (column == out.extents[1]) {
        return fail(ErrorCode::kCorrupt, "line ", lines.number(), " follows the last element");
      }
      if (!take_value(rest, value)) {
        return bad_line(lines, line, "a finite value");
      }
      if (value != 0) {
        put_with_mirror(out, row, column, value, banner);
      }
    }
  }
  if (column < out.extents[1]) {
    return fail(ErrorCode::kCorrupt, "the file ends in column ", column + 1, " of ",
                out.extents[1]);
  }
  return {};
}

}  // namespace

Result<Coordinates> read_matrix_market(std::span<const std::byte> bytes) {
  LineReader lines(bytes);
  std::string_view line;
  lines.next(line);
  FORETUNE_TRY(const Banner banner, parse_banner(line));
  bool has_line = false;
  do {
    has_line = lines.next(line);
  } while (has_line && (is_used_up(line) || line.front() == '%'));
  if (!has_line) {
    return fail(ErrorCode::kCorrupt, "the file ends before the line of sizes");
  }
  Coordinates out;
  std::int64_t entries = 0;
  std::string_view rest = line;
  if (!take_number(rest, out.extents[0]) || !take_number(rest, out.extents[1]) ||
      (!banner.is_array && !take_number(rest, entries)) || !is_used_up(rest)) {
    return bad_line(lines, line,
                    banner.is_array ? "rows and columns" : "rows, columns and entries");
  }
  FORETUNE_TRY_STATUS(check_sizes(std::span(out.extents).first(2), entries));
  if (banner.symmetry != Symmetry::kGeneral && out.extents[0] != out.extents[1]) {
    return fail(ErrorCode::kCorrupt, "a matrix of ", out.extents[0], " x ", out.extents[1],
                " cannot be symmetric");
  }
  if (banner.is_array) {
    FORETUNE_TRY_STATUS(read_array(lines, banner, out));
    return out;
  }
  // An entry takes four bytes at least, so that a false number of entries reserves little.
  const std::size_t reserved = std::min(static_cast<std::size_t>(entries), bytes.size() / 4 + 1) *
                               (banner.symmetry == Symmetry::kGeneral ? 1 : 2);
  constexpr std::size_t kMaxReserved = std::size_t{1} << 24U;
  for (std::vector<std::int32_t>* indices : {&out.indices[0], &out.indices[1]}) {
    indices->reserve(std::min(reserved, kMaxReserved));
  }
  out.values.reserve(banner.is_pattern ? 0 : std::min(reserved, kMaxReserved));
  FORETUNE_TRY_STATUS(read_entries(lines, banner, entries, out));
  return out;
}

}  // namespace foretune::sparse::internal
