// Storages as a tree of levels, in the manner of TACO: rows and columns are each split in an outer
// and an inner part, the four parts are ordered, and each becomes a level of its own kind.
//
//   LevelFormat format{.row_split = 1, .column_split = 1};        // CSR
//   format.levels = {{{LevelPart::kOuterRow, LevelKind::kDense},
//                     {LevelPart::kInnerRow, LevelKind::kDense},  // of extent 1: stores nothing
//                     {LevelPart::kOuterColumn, LevelKind::kCompressed},
//                     {LevelPart::kInnerColumn, LevelKind::kDense}}};
//   FORETUNE_TRY(const auto storage, pack_levels(matrix, format, {pool, size_limit}));
//
// A position of a level stands for a prefix of coordinates; the positions of the last level are the
// stored values. Thread safety: free functions; a pool runs one at a time. Cost: counting and
// packing sort the non-zeros, in 32 bytes of scratch memory a non-zero; rows that come first keep
// the sorting within the cache and spread it over the threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "foretune/base/result.h"
#include "foretune/sparse/array.h"
#include "foretune/sparse/csr.h"
#include "foretune/sparse/storage.h"

namespace foretune::sparse {

enum class LevelPart : std::uint8_t { kOuterRow, kInnerRow, kOuterColumn, kInnerColumn };

// The numbers are those of AutoSparse's schedules.
enum class LevelKind : std::uint8_t {
  kDense = 0,               // every coordinate; stores nothing
  kCompressed = 1,          // the coordinates that occur, and where those of each parent begin
  kCompressedRepeated = 2,  // a position for each non-zero, so that coordinates are repeated
  kSingleton = 3,           // one coordinate for each parent
  kSingletonRepeated = 4,   // the same, with further singletons behind it
};

struct Level {
  LevelPart part = LevelPart::kOuterRow;
  LevelKind kind = LevelKind::kDense;
  bool operator==(const Level&) const = default;
};

inline constexpr std::size_t kLevels = 4;

struct LevelFormat {
  std::int32_t row_split = 1;     // extent of the inner part of the rows, 1 to 65536
  std::int32_t column_split = 1;  // of the columns
  std::array<Level, kLevels> levels{};
  bool operator==(const LevelFormat&) const = default;
};

// Returns the extent of a part.
[[nodiscard]] std::int64_t extent_of(const LevelFormat& format, LevelPart part, std::int64_t rows,
                                     std::int64_t columns);

// Says whether a matrix of these sizes can be stored so. Every part occurs once, outer parts before
// inner ones. A level of extent 1 is dense. Beyond these, by the kind of the level above:
//
//   nothing, dense, compressed     dense, compressed, compressed repeated
//   compressed repeated            compressed; compressed repeated; singleton repeated unless last;
//                                  singleton if last
//   singleton repeated             the same
//
// A singleton repeated has no dense level above it.
Support can_store(const LevelFormat& format, std::int64_t rows, std::int64_t columns);

struct LevelArrays {
  std::int64_t extent = 1;
  std::int64_t positions = 1;
  Array<std::int64_t> starts;       // compressed kinds: positions of the level above + 1
  Array<std::int32_t> coordinates;  // all kinds but dense: one for each position
};

template <class T>
struct LevelStorage {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  LevelFormat format;
  std::array<LevelArrays, kLevels> levels;
  Array<T> values;  // one for each position of the last level
};

// The format has to be one that can_store() accepts. Errors: kUnsupported where memory is lacking,
// and for 2^32 non-zeros and more.
Result<StorageSize> count_levels(const PatternView& pattern, const LevelFormat& format,
                                 ThreadPool& pool);
// Errors: those of count_levels(); kUnsupported above the limit, with the bytes.
template <class T>
Result<LevelStorage<T>> pack_levels(const Csr<T>& matrix, const LevelFormat& format,
                                    const PackOptions& options);

extern template Result<LevelStorage<float>> pack_levels(const Csr<float>&, const LevelFormat&,
                                                        const PackOptions&);
extern template Result<LevelStorage<double>> pack_levels(const Csr<double>&, const LevelFormat&,
                                                         const PackOptions&);

}  // namespace foretune::sparse
