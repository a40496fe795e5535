// AutoSparse's binary .csr, as its data sets have it.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "foretune/sparse/internal/readers.h"

namespace foretune::sparse::internal {
namespace {

class BinaryReader {
 public:
  explicit BinaryReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  // Fills `out` as far as the file reaches, and returns the bytes that were read.
  std::size_t read(std::span<std::byte> out) {
    const std::size_t count = std::min(rest_.size(), out.size());
    std::copy_n(rest_.begin(), count, out.begin());
    rest_ = rest_.subspan(count);
    return count;
  }
  // Sets `out` to `count` numbers of 4 bytes. A false count takes no memory.
  template <class Number>
  Status read_numbers(std::size_t count, std::vector<Number>& out) {
    static_assert(sizeof(Number) == 4 && std::endian::native == std::endian::little);
    if (count > rest_.size() / 4) {
      return fail(ErrorCode::kCorrupt, "the file ends too early: ", count,
                  " numbers were to come, ", rest_.size() / 4, " came");
    }
    out.resize(count);
    read(std::as_writable_bytes(std::span(out)));
    return {};
  }

 private:
  std::span<const std::byte> rest_;
};

Status check_structure(const Coordinates& matrix, std::span<const std::int32_t> starts,
                       std::int32_t entries) {
  if (starts.front() != 0 || starts.back() != entries ||
      !std::is_sorted(starts.begin(), starts.end())) {
    return fail(ErrorCode::kCorrupt, "the row starts do not rise from 0 to ", entries);
  }
  for (const std::int32_t column : matrix.indices[1]) {
    if (column < 0 || column >= matrix.extents[1]) {
      return fail(ErrorCode::kCorrupt, "column ", column, " lies outside of ", matrix.extents[1],
                  " columns");
    }
  }
  return {};
}

}  // namespace

Result<Coordinates> read_autosparse_csr(std::span<const std::byte> bytes) {
  BinaryReader reader(bytes);
  std::vector<std::int32_t> sizes;
  if (!reader.read_numbers(3, sizes)) {
    return fail(ErrorCode::kCorrupt,
                "the file is none of MatrixMarket's, FROSTT's or AutoSparse's");
  }
  Coordinates out;
  out.extents = {sizes[0], sizes[1], 1};
  const std::int32_t entries = sizes[2];
  if (const Status sound = check_sizes(std::span(out.extents).first(2), entries); !sound) {
    return fail(sound.error().code,
                "the file is neither MatrixMarket's nor FROSTT's, and as AutoSparse's: ",
                sound.error().message);
  }
  std::vector<std::int32_t> starts;
  FORETUNE_TRY_STATUS(reader.read_numbers(static_cast<std::size_t>(out.extents[0]) + 1, starts));
  FORETUNE_TRY_STATUS(reader.read_numbers(static_cast<std::size_t>(entries), out.indices[1]));
  FORETUNE_TRY_STATUS(check_structure(out, starts, entries));
  out.indices[0].resize(static_cast<std::size_t>(entries));
  for (std::size_t row = 0; row + 1 < starts.size(); ++row) {
    std::fill(out.indices[0].begin() + starts[row], out.indices[0].begin() + starts[row + 1],
              static_cast<std::int32_t>(row));
  }
  // Some files end here; others have the values.
  std::array<std::byte, 4> next{};
  const std::size_t more = reader.read(next);
  if (more == 0) {
    return out;
  }
  std::vector<float> values;
  if (more == next.size() && entries > 0) {
    FORETUNE_TRY_STATUS(reader.read_numbers(static_cast<std::size_t>(entries) - 1, values));
    values.insert(values.begin(), std::bit_cast<float>(next));
    if (reader.read(next) == 0) {
      for (const float value : values) {
        if (!std::isfinite(value)) {
          return fail(ErrorCode::kInvalidArgument, "a value is NaN or infinite");
        }
      }
      out.values.assign(values.begin(), values.end());
      return out;
    }
  }
  return fail(ErrorCode::kCorrupt, "the file goes on after its last non-zero");
}

}  // namespace foretune::sparse::internal
