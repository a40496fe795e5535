// A schedule of a sparse product as TACO's users write it: how the axes of the sparse operand are
// split and stored, in which order the loops run, and which loop the threads share. It is what
// AutoSparse's command strings and WACO's strings say (interop/sparse_schedules). The axes have
// names that do not depend on the operation: `r` the rows and `c` the columns of the sparse operand
// A, `d` the dense columns of spmm and the inner length of sddmm. Each is split in two: r0 is the
// outer part of the rows and r1 the inner one. The words of a config stand in this order:
//
//   inner_rows, inner_columns, inner_dense    extents of r1, c1 and d1, powers of two
//   order      loops, outermost first, as r0.c0.r1.c1.d0.d1; 96 labels, since an outer part comes
//              before its inner one and spmv and the sums have no d
//   levels     level formats of A in the order of storage, which is that of the loops: d dense,
//              s compressed, u compressed with repeated coordinates, q singleton, c singleton with
//              repeated coordinates; CSR is r0.r1.c0.c1 with ddsd
//   levels_b   of the second sparse operand (plus2, plus3), and levels_c of the third (plus3);
//              "-" without one. The output of a sum has the higher level of its inputs
//   parallel   the loop whose iterations threads take in chunks, or none
//   vector     the loop that is marked as vectorised, or none
//   unroll     the loop that is marked as unrolled, or none
//   chunk      iterations that a thread takes at once
//
//   FORETUNE_TRY(const SparseSchedule schedule, SparseSchedule::from(config));
//   FORETUNE_TRY_STATUS(check_sparse_schedule(schedule, sizes));
//
// Thread safety: plain values. Cost: no allocation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/base/small_vector.h"
#include "foretune/problem/sparse/sparse_problem.h"
#include "foretune/space/config.h"

namespace foretune {

// Words of configs: never renumber. Loop 2 * axis is the outer part of an axis, the next one the
// inner part.
enum class SparseLoop : std::uint8_t {
  kRow0 = 0,
  kRow1 = 1,
  kColumn0 = 2,
  kColumn1 = 3,
  kDense0 = 4,
  kDense1 = 5,
};
inline constexpr std::size_t kSparseLoops = 6;
enum class SparseAxis : std::uint8_t { kRows = 0, kColumns = 1, kDense = 2 };
inline constexpr std::size_t kSparseAxes = 3;

constexpr SparseAxis axis_of(SparseLoop loop) {
  return static_cast<SparseAxis>(static_cast<std::uint8_t>(loop) / 2);
}
constexpr bool is_inner(SparseLoop loop) { return static_cast<std::uint8_t>(loop) % 2 == 1; }
constexpr SparseLoop loop_of(SparseAxis axis, bool inner) {
  return static_cast<SparseLoop>(2 * static_cast<std::uint8_t>(axis) + (inner ? 1 : 0));
}
std::string_view to_string(SparseLoop loop);  // "r0"

// Numbers are AutoSparse's codes.
enum class SparseLevel : std::uint8_t {
  kDense = 0,
  kCompressed = 1,
  kCompressedRepeated = 2,
  kSingleton = 3,
  kSingletonRepeated = 4,
};
inline constexpr std::size_t kSparseLevelKinds = 5;
inline constexpr std::size_t kSparseLevels = 4;               // two axes, each in two parts
using SparseLevels = std::array<SparseLevel, kSparseLevels>;  // in the order of storage
std::string to_string(const SparseLevels& levels);            // "ddsd"

// Positions of the words.
enum class SparseScheduleField : std::uint8_t {
  kInnerRows,
  kInnerColumns,
  kInnerDense,
  kOrder,
  kLevels,
  kLevelsB,
  kLevelsC,
  kParallel,
  kVector,
  kUnroll,
  kChunk,
};
inline constexpr std::size_t kSparseScheduleWords = 11;

using SparseOrder = SmallVector<SparseLoop, kSparseLoops>;

// Returns all orders, in the order of their labels: 6 of four loops, then 90 of six.
std::span<const SparseOrder> sparse_orders();
// Returns true for spmm, gespmm and sddmm, whose loops run over a dense axis, too.
bool has_dense_loops(SparseOperation operation);
// Returns the number of sparse inputs with levels of their own: 1, 2 (plus2) or 3 (plus3); 0 for an
// operation that no schedule describes (mttkrp).
std::size_t scheduled_operands(SparseOperation operation);

struct SparseSchedule {
  std::array<std::int32_t, kSparseAxes> inner{1, 1, 1};  // by axis
  SparseOrder order;
  std::array<SparseLevels, 3> levels{};  // of A, B, C; dense for operands that are not there
  std::size_t operands = 1;              // that have levels
  std::optional<SparseLoop> parallel;
  std::optional<SparseLoop> vector;
  std::optional<SparseLoop> unroll;
  std::int32_t chunk = 1;

  // Errors: kMismatch for a config of another schema, kInvalidArgument for words without meaning.
  static Result<SparseSchedule> from(const Config& config);
  // Aborts for a schedule that check_sparse_schedule() refuses for every operation.
  [[nodiscard]] Config to_config() const;
  // Returns the order restricted to the loops of the sparse axes, in which A is stored.
  [[nodiscard]] std::array<SparseLoop, kSparseLevels> storage_order() const;
  bool operator==(const SparseSchedule&) const = default;
};

const ConfigSchema& sparse_schedule_schema();

// Returns how often a loop runs for each round of the loops around it: an inner part as often as it
// is long, an outer one as often as the axis has such parts, the last of which may be shorter.
std::int64_t loop_extent(const SparseSchedule& schedule, const SparseSizes& sizes, SparseLoop loop);
std::int64_t axis_extent(const SparseSizes& sizes, SparseAxis axis);

// Returns true when levels may follow each other in storage so. Where extents[i] is 1, level i may
// have any format that some choice for such levels makes legal.
bool are_levels_legal(const SparseLevels& levels,
                      const std::array<std::int64_t, kSparseLevels>& extents);

// Checks a schedule for one problem. Errors: kUnsupported for mttkrp, kInvalidArgument with the
// part that makes no sense there.
Status check_sparse_schedule(const SparseSchedule& schedule, const SparseSizes& sizes);

}  // namespace foretune
