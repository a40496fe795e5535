#include "foretune/sparse/levels.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string_view>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/sparse/internal/row_shares.h"
#include "foretune/sparse/internal/storage_bytes.h"

namespace foretune::sparse {
namespace {

constexpr std::int32_t kMaxSplit = 65536;

bool is_of_rows(LevelPart part) {
  return part == LevelPart::kOuterRow || part == LevelPart::kInnerRow;
}
bool is_inner(LevelPart part) {
  return part == LevelPart::kInnerRow || part == LevelPart::kInnerColumn;
}
bool has_starts(LevelKind kind) {
  return kind == LevelKind::kCompressed || kind == LevelKind::kCompressedRepeated;
}

// The coordinates of a non-zero, those of the first level in the highest bits, and its number.
struct Keyed {
  std::uint64_t key;
  std::uint32_t number;
};

// Where each level's coordinate stands in a key.
class KeyLayout {
 public:
  KeyLayout(const LevelFormat& format, std::int64_t rows, std::int64_t columns)
      : row_split_(static_cast<std::uint32_t>(format.row_split)),
        column_split_(static_cast<std::uint32_t>(format.column_split)) {
    unsigned shift = 0;
    for (std::size_t level = kLevels; level > 0; --level) {
      const LevelPart part = format.levels[level - 1].part;
      const std::int64_t extent = extent_of(format, part, rows, columns);
      shifts_[level - 1] = shift;
      part_shifts_[static_cast<std::size_t>(part)] = shift;
      shift += static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(extent - 1)));
      masks_[level - 1] = (std::uint64_t{1} << (shift - shifts_[level - 1])) - 1;
    }
    // Extents of 2^28 and 2^31, each rounded up by a split.
    FORETUNE_CHECK(shift <= 62);
  }

  [[nodiscard]] std::uint64_t row_bits(std::uint32_t row) const {
    return (std::uint64_t{row / row_split_} << part_shifts_[0]) |
           (std::uint64_t{row % row_split_} << part_shifts_[1]);
  }
  [[nodiscard]] std::uint64_t column_bits(std::uint32_t column) const {
    return (std::uint64_t{column / column_split_} << part_shifts_[2]) |
           (std::uint64_t{column % column_split_} << part_shifts_[3]);
  }
  [[nodiscard]] std::int64_t coordinate(std::uint64_t key, std::size_t level) const {
    return static_cast<std::int64_t>((key >> shifts_[level]) & masks_[level]);
  }
  // Returns the first level at which two keys differ, kLevels for equal ones.
  [[nodiscard]] std::size_t first_difference(std::uint64_t a, std::uint64_t b) const {
    std::size_t level = 0;
    while (level < kLevels && ((a ^ b) >> shifts_[level]) == 0) {
      ++level;
    }
    return level;
  }

 private:
  std::uint32_t row_split_;
  std::uint32_t column_split_;
  std::array<unsigned, kLevels> shifts_{};
  std::array<std::uint64_t, kLevels> masks_{};
  std::array<unsigned, kLevels> part_shifts_{};  // by LevelPart
};

// Sorts by key, digit by digit from the lowest, and skips the digits that are the same in all.
void radix_sort(std::span<Keyed> keys, std::span<Keyed> scratch) {
  std::uint64_t varying = 0;
  bool is_sorted = true;
  for (std::size_t i = 1; i < keys.size(); ++i) {
    varying |= keys[i].key ^ keys[0].key;
    is_sorted = is_sorted && keys[i - 1].key <= keys[i].key;
  }
  if (is_sorted) {
    return;
  }
  std::span<Keyed> from = keys;
  std::span<Keyed> to = scratch;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    if (((varying >> shift) & 0xffU) == 0) {
      continue;
    }
    std::array<std::size_t, 257> places{};
    for (const Keyed& keyed : from) {
      ++places[((keyed.key >> shift) & 0xffU) + 1];
    }
    for (std::size_t i = 1; i < places.size(); ++i) {
      places[i] += places[i - 1];
    }
    for (const Keyed& keyed : from) {
      to[places[(keyed.key >> shift) & 0xffU]++] = keyed;
    }
    std::swap(from, to);
  }
  if (from.data() != keys.data()) {
    std::copy(from.begin(), from.end(), keys.begin());
  }
}

// Returns the non-zeros in the order of the levels.
Result<Array<Keyed>> sorted_keys(const PatternView& pattern, const LevelFormat& format,
                                 const KeyLayout& layout, ThreadPool& pool) {
  const auto size = static_cast<std::size_t>(pattern.size());
  if (size > std::numeric_limits<std::uint32_t>::max()) {
    return fail(ErrorCode::kUnsupported, "levels hold fewer than 2^32 non-zeros, the matrix has ",
                size);
  }
  FORETUNE_TRY(auto keys, Array<Keyed>::create(size));
  FORETUNE_TRY(auto scratch, Array<Keyed>::create(size));
  // Outer parts of rows that come first are in order, so that a few of them are sorted at a time,
  // within the cache.
  const bool rows_first = format.levels[0].part == LevelPart::kOuterRow;
  constexpr std::size_t kEntriesPerStep = 8192;
  const std::size_t steps = rows_first ? size / kEntriesPerStep + 1 : 1;
  const internal::RowShares shares(pattern, steps, static_cast<std::size_t>(format.row_split));
  pool.run(shares.count(), [&](std::size_t share) {
    const auto [first_row, last_row] = shares.rows(share);
    for (std::size_t row = first_row; row < last_row; ++row) {
      const std::uint64_t row_bits = layout.row_bits(static_cast<std::uint32_t>(row));
      for (auto i = static_cast<std::size_t>(pattern.starts[row]);
           i < static_cast<std::size_t>(pattern.starts[row + 1]); ++i) {
        keys[i] = {row_bits | layout.column_bits(static_cast<std::uint32_t>(pattern.column_of[i])),
                   static_cast<std::uint32_t>(i)};
      }
    }
    const auto [first, last] = shares.entries(share);
    radix_sort(keys.view().subspan(first, last - first),
               scratch.view().subspan(first, last - first));
  });
  return keys;
}

// Positions of each level. A product beyond 2^62 is cut there, which no memory holds.
std::array<std::int64_t, kLevels> count_positions(
    std::span<const Keyed> keys, const LevelFormat& format, const KeyLayout& layout,
    const std::array<std::int64_t, kLevels>& extents) {
  std::array<std::int64_t, kLevels> begins{};  // of a new prefix at this level or above
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t level = i == 0 ? 0 : layout.first_difference(keys[i - 1].key, keys[i].key);
         level < kLevels; ++level) {
      ++begins[level];
    }
  }
  constexpr std::int64_t kMaxPositions = std::int64_t{1} << 62U;
  std::array<std::int64_t, kLevels> positions{};
  std::int64_t above = 1;
  bool is_repeated = false;
  for (std::size_t level = 0; level < kLevels; ++level) {
    const LevelKind kind = format.levels[level].kind;
    is_repeated = is_repeated || kind == LevelKind::kCompressedRepeated;
    if (kind == LevelKind::kDense) {
      above = above > kMaxPositions / extents[level] ? kMaxPositions : above * extents[level];
    } else {
      above = is_repeated ? static_cast<std::int64_t>(keys.size()) : begins[level];
    }
    positions[level] = above;
  }
  return positions;
}

StorageSize size_of(const LevelFormat& format, const std::array<std::int64_t, kLevels>& positions) {
  StorageSize size;
  std::uint64_t above = 1;
  for (std::size_t level = 0; level < kLevels; ++level) {
    const auto here = static_cast<std::uint64_t>(positions[level]);
    const LevelKind kind = format.levels[level].kind;
    size.index_bytes += has_starts(kind) ? (above + 1) * internal::kStartBytes : 0;
    size.index_bytes += kind != LevelKind::kDense ? here * internal::kIndexBytes : 0;
    above = here;
  }
  size.values = above;
  return size;
}

std::array<std::int64_t, kLevels> extents_of(const LevelFormat& format, std::int64_t rows,
                                             std::int64_t columns) {
  std::array<std::int64_t, kLevels> extents{};
  for (std::size_t level = 0; level < kLevels; ++level) {
    extents[level] = extent_of(format, format.levels[level].part, rows, columns);
  }
  return extents;
}

// Fills the arrays of all levels; `place` is told the position of each non-zero's value.
template <class T, class Place>
void fill_levels(std::span<const Keyed> keys, const KeyLayout& layout, LevelStorage<T>& out,
                 const Place& place) {
  std::size_t first_repeated = kLevels;
  for (std::size_t level = kLevels; level > 0; --level) {
    if (out.format.levels[level - 1].kind == LevelKind::kCompressedRepeated) {
      first_repeated = level - 1;
    }
  }
  std::array<std::int64_t, kLevels> position{};
  std::array<std::int64_t, kLevels> next{};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint64_t key = keys[i].key;
    const std::size_t begin =
        i == 0 ? 0 : std::min(first_repeated, layout.first_difference(keys[i - 1].key, key));
    for (std::size_t level = begin; level < kLevels; ++level) {
      LevelArrays& arrays = out.levels[level];
      const std::int64_t above = level == 0 ? 0 : position[level - 1];
      const std::int64_t coordinate = layout.coordinate(key, level);
      const LevelKind kind = out.format.levels[level].kind;
      if (kind == LevelKind::kDense) {
        position[level] = above * arrays.extent + coordinate;
        continue;
      }
      position[level] = has_starts(kind) ? next[level]++ : above;
      if (has_starts(kind)) {
        ++arrays.starts[static_cast<std::size_t>(above) + 1];
      }
      arrays.coordinates[static_cast<std::size_t>(position[level])] =
          static_cast<std::int32_t>(coordinate);
    }
    place(keys[i].number, static_cast<std::size_t>(position[kLevels - 1]));
  }
  for (LevelArrays& arrays : out.levels) {
    for (std::size_t i = 1; i < arrays.starts.size(); ++i) {
      arrays.starts[i] += arrays.starts[i - 1];
    }
  }
}

Support check_kind(LevelKind above, bool is_first, LevelKind kind, bool is_last) {
  const bool is_repeated = !is_first && (above == LevelKind::kCompressedRepeated ||
                                         above == LevelKind::kSingletonRepeated);
  if (kind == LevelKind::kCompressed || kind == LevelKind::kCompressedRepeated) {
    return Support::yes();
  }
  if (kind == LevelKind::kDense) {
    return is_repeated ? Support::no("a dense level cannot follow repeated coordinates")
                       : Support::yes();
  }
  if (!is_repeated) {
    return Support::no("a singleton has to follow repeated coordinates");
  }
  if ((kind == LevelKind::kSingleton) != is_last) {
    return is_last ? Support::no("the last level cannot repeat its singletons")
                   : Support::no("a singleton without repetition has to be the last level");
  }
  return Support::yes();
}

}  // namespace

std::int64_t extent_of(const LevelFormat& format, LevelPart part, std::int64_t rows,
                       std::int64_t columns) {
  const std::int64_t split = is_of_rows(part) ? format.row_split : format.column_split;
  const std::int64_t whole = is_of_rows(part) ? rows : columns;
  return is_inner(part) ? split : (whole + split - 1) / split;
}

Support can_store(const LevelFormat& format, std::int64_t rows, std::int64_t columns) {
  for (const std::int32_t split : {format.row_split, format.column_split}) {
    if (split < 1 || split > kMaxSplit) {
      return Support::no("an inner part has an extent from 1 to ", kMaxSplit, ", not ", split);
    }
  }
  unsigned seen = 0;
  const Level* above = nullptr;
  bool has_dense = false;
  std::size_t last = kLevels;
  for (std::size_t level = 0; level < kLevels; ++level) {
    if (extent_of(format, format.levels[level].part, rows, columns) > 1) {
      last = level;
    }
  }
  for (std::size_t i = 0; i < kLevels; ++i) {
    const Level& level = format.levels[i];
    const unsigned bit = 1U << static_cast<unsigned>(level.part);
    if ((seen & bit) != 0) {
      return Support::no("a part occurs twice");
    }
    if (is_inner(level.part) && (seen & (bit >> 1U)) == 0) {
      return Support::no("an inner part comes before its outer part");
    }
    seen |= bit;
    if (extent_of(format, level.part, rows, columns) == 1) {
      if (level.kind != LevelKind::kDense) {
        return Support::no("a level of extent 1 is dense");
      }
      continue;
    }
    if (const Support fits = check_kind(above == nullptr ? LevelKind::kDense : above->kind,
                                        above == nullptr, level.kind, i == last);
        !fits) {
      return fits;
    }
    if (level.kind == LevelKind::kSingletonRepeated && has_dense) {
      return Support::no("a repeated singleton cannot stand below a dense level");
    }
    has_dense = has_dense || level.kind == LevelKind::kDense;
    above = &level;
  }
  return Support::yes();
}

Result<StorageSize> count_levels(const PatternView& pattern, const LevelFormat& format,
                                 ThreadPool& pool) {
  FORETUNE_CHECK(can_store(format, pattern.rows, pattern.columns));
  const KeyLayout layout(format, pattern.rows, pattern.columns);
  FORETUNE_TRY(const Array<Keyed> keys, sorted_keys(pattern, format, layout, pool));
  return size_of(format, count_positions(keys.view(), format, layout,
                                         extents_of(format, pattern.rows, pattern.columns)));
}

template <class T>
Result<LevelStorage<T>> pack_levels(const Csr<T>& matrix, const LevelFormat& format,
                                    const PackOptions& options) {
  FORETUNE_CHECK(can_store(format, matrix.rows, matrix.columns));
  const KeyLayout layout(format, matrix.rows, matrix.columns);
  const auto extents = extents_of(format, matrix.rows, matrix.columns);
  FORETUNE_TRY(const Array<Keyed> keys,
               sorted_keys(matrix.pattern(), format, layout, options.pool));
  const auto positions = count_positions(keys.view(), format, layout, extents);
  const StorageSize size = size_of(format, positions);
  constexpr std::uint64_t kMaxValues = std::uint64_t{1} << 40U;
  FORETUNE_TRY_STATUS(check_fits(
      "a tree of levels",
      size.values > kMaxValues ? std::numeric_limits<std::uint64_t>::max() : size.bytes(sizeof(T)),
      std::min(options.max_bytes, kMaxValues)));
  LevelStorage<T> out;
  out.rows = matrix.rows;
  out.columns = matrix.columns;
  out.format = format;
  std::size_t above = 1;
  for (std::size_t level = 0; level < kLevels; ++level) {
    LevelArrays& arrays = out.levels[level];
    arrays.extent = extents[level];
    arrays.positions = positions[level];
    const auto here = static_cast<std::size_t>(positions[level]);
    if (has_starts(format.levels[level].kind)) {
      FORETUNE_TRY(arrays.starts, Array<std::int64_t>::zeros(above + 1));
    }
    if (format.levels[level].kind != LevelKind::kDense) {
      FORETUNE_TRY(arrays.coordinates, Array<std::int32_t>::create(here));
    }
    above = here;
  }
  FORETUNE_TRY(out.values, above == keys.size() ? Array<T>::create(above) : Array<T>::zeros(above));
  fill_levels(keys.view(), layout, out, [&](std::uint32_t number, std::size_t position) {
    out.values[position] = matrix.values[number];
  });
  return out;
}

template Result<LevelStorage<float>> pack_levels(const Csr<float>&, const LevelFormat&,
                                                 const PackOptions&);
template Result<LevelStorage<double>> pack_levels(const Csr<double>&, const LevelFormat&,
                                                  const PackOptions&);

}  // namespace foretune::sparse
