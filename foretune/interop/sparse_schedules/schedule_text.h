// Reads and writes schedules of sparse products in the notations of two projects: AutoSparse's
// command strings, "2 i 2 i0 256 i1 16 k 2 k0 512 k1 8 1 A 4 i0 i1 k0 k1 A 4 i0 1 ...", and WACO's,
// "32 4 8 i1 i0 j1 k1 k0 j0 1 0 0 1 i1 48 2". Both become the same SparseSchedule.
//
//   FORETUNE_TRY(const ScheduleText read, parse_autosparse_schedule(text, sizes));
//   const std::string canonical = autosparse_schedule(read.schedule, sizes, read.threads);
//
// A schedule has one canonical text: AutoSparse's list of splits has no order, and the canonical
// text sorts it by axis. AutoSparse prints as the outer part of a split 2^floor(log2(extent)) over
// the inner part, and unrolls a loop by the number that it prints for it; the reader checks both.
// Supported are spmv, spmm, sddmm and, in AutoSparse's notation, mmadd, plus2 and plus3.
//
// Thread safety: free functions without state. Cost: about a microsecond.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/problem/sparse/sparse_problem.h"
#include "foretune/space/schemas/sparse_schedule.h"

namespace foretune {

struct ScheduleText {
  SparseSchedule schedule;
  std::int32_t threads = 1;  // as the text says
  bool operator==(const ScheduleText&) const = default;
};

// Errors: kUnsupported for another operation, kCorrupt for a text that breaks the notation,
// kInvalidArgument for a schedule that check_sparse_schedule() refuses.
Result<ScheduleText> parse_autosparse_schedule(std::string_view text, const SparseSizes& sizes);
// Returns the canonical text of a schedule that check_sparse_schedule() accepts. Errors: those of
// that check, and kUnsupported for an operation that AutoSparse's notation lacks.
Result<std::string> autosparse_schedule(const SparseSchedule& schedule, const SparseSizes& sizes,
                                        std::int32_t threads);

// AutoSparse's port of WACO read the three inner sizes of sddmm in the order rows, inner length,
// columns, and a parallel `j1` as the inner part.
enum class WacoReading : std::uint8_t { kOriginal, kPort };

// Errors: as parse_autosparse_schedule(). A text of WACO marks no loop as vectorised or unrolled.
Result<ScheduleText> parse_waco_schedule(std::string_view text, const SparseSizes& sizes,
                                         WacoReading reading = WacoReading::kOriginal);
// Errors: as autosparse_schedule(), and kUnsupported for what WACO cannot say: levels other than
// dense and compressed, a serial schedule, a marked loop, and another parallel loop than one over
// rows or columns.
Result<std::string> waco_schedule(const SparseSchedule& schedule, const SparseSizes& sizes,
                                  std::int32_t threads,
                                  WacoReading reading = WacoReading::kOriginal);

}  // namespace foretune
