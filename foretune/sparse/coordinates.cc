#include "foretune/sparse/coordinates.h"

#include <algorithm>
#include <string_view>

#include "foretune/base/hash.h"
#include "foretune/sparse/internal/readers.h"

namespace foretune::sparse {
namespace {

// Part of what measurements mean: another seed is another matrix.
constexpr std::uint64_t kPatternSeed = 0x5eed0fa11c0de5ULL;

constexpr std::string_view kMatrixMarket = "%%matrixmarket";
constexpr std::string_view kGzip = "\x1f\x8b";

bool begins_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(), [](char wanted, std::byte byte) {
           const char letter = static_cast<char>(byte);
           return (letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter) == wanted;
         });
}

// Twelve numbers of a binary file are never all digits and blanks: its extents would be above 2^27.
bool begins_as_numbers(std::span<const std::byte> bytes) {
  constexpr std::string_view kLetters = "0123456789 \t\r\n.-+eE";
  const std::span<const std::byte> begin = bytes.first(std::min<std::size_t>(bytes.size(), 8));
  return !begin.empty() && std::all_of(begin.begin(), begin.end(), [&](std::byte byte) {
    return kLetters.find(static_cast<char>(byte)) != std::string_view::npos;
  });
}

}  // namespace

Status internal::check_sizes(std::span<const std::int64_t> extents, std::int64_t entries) {
  for (const std::int64_t extent : extents) {
    if (extent < 1) {
      return fail(ErrorCode::kInvalidArgument, "a dimension of extent ", extent,
                  " has no elements");
    }
    if (extent > kMaxExtent) {
      return fail(ErrorCode::kUnsupported, "a dimension has the extent ", extent,
                  ", the largest one is ", kMaxExtent);
    }
  }
  if (entries < 0) {
    return fail(ErrorCode::kCorrupt, "the number of non-zeros is ", entries);
  }
  return {};
}

Result<Coordinates> read_coordinates(std::span<const std::byte> bytes) {
  if (bytes.empty()) {
    return fail(ErrorCode::kCorrupt, "the file is empty");
  }
  if (begins_with(bytes, kGzip)) {
    return fail(ErrorCode::kUnsupported, "the file is compressed, and nothing here inflates it");
  }
  if (begins_with(bytes, kMatrixMarket)) {
    return internal::read_matrix_market(bytes);
  }
  if (bytes.front() == std::byte{'#'} || begins_as_numbers(bytes)) {
    return internal::read_frostt(bytes);
  }
  return internal::read_autosparse_csr(bytes);
}

double pattern_value(std::int64_t row, std::int64_t column, std::int64_t third) {
  const auto as_bits = [](std::int64_t index) { return static_cast<std::uint64_t>(index); };
  const std::uint64_t bits =
      mix64((as_bits(row) << 32U) ^ as_bits(column) ^ mix64(kPatternSeed + as_bits(third)));
  // Twenty-three bits, so that f32 holds the value exactly.
  const double magnitude = 0.5 + static_cast<double>(bits >> 41U) * 0x1p-23;
  return (bits & 1U) != 0 ? -magnitude : magnitude;
}

}  // namespace foretune::sparse
