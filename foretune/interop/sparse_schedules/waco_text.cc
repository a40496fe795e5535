// WACO's texts: the inner sizes, the loops, a bit for each level, the parallel loop, threads and
// chunk. The digit 1 behind an axis is its outer part.
#include <algorithm>
#include <array>

#include "foretune/interop/sparse_schedules/internal/schedule_names.h"
#include "foretune/interop/sparse_schedules/schedule_text.h"

namespace foretune {
namespace {

using interop_internal::AxisNames;
using interop_internal::WordReader;

struct WacoNames {
  AxisNames axes;
  std::vector<SparseAxis> sizes;  // the order in which the text begins with inner sizes
  bool may_share_columns = false;
};

Result<WacoNames> names_of(SparseOperation operation, WacoReading reading) {
  switch (operation) {
    case SparseOperation::kSpmv:
      return WacoNames{{"ik "}, {SparseAxis::kRows, SparseAxis::kColumns}, false};
    case SparseOperation::kSpmm:
      return WacoNames{
          {"ikj"}, {SparseAxis::kRows, SparseAxis::kColumns, SparseAxis::kDense}, false};
    case SparseOperation::kSddmm:
      return reading == WacoReading::kOriginal
                 ? WacoNames{{"ijk"},
                             {SparseAxis::kRows, SparseAxis::kColumns, SparseAxis::kDense},
                             true}
                 : WacoNames{{"ijk"},
                             {SparseAxis::kRows, SparseAxis::kDense, SparseAxis::kColumns},
                             true};
    default:
      return fail(ErrorCode::kUnsupported, "WACO's notation has no ", to_string(operation));
  }
}

constexpr std::array kBitLoops{SparseLoop::kRow0, SparseLoop::kRow1, SparseLoop::kColumn0,
                               SparseLoop::kColumn1};

std::string waco_name(const AxisNames& axes, SparseLoop loop) { return axes.loop(loop, '0', '1'); }

// Returns the place of the loop's level; kSparseLevels for a loop that is not stored.
std::size_t level_place(const std::array<SparseLoop, kSparseLevels>& stored, SparseLoop loop) {
  return static_cast<std::size_t>(std::find(stored.begin(), stored.end(), loop) - stored.begin());
}

// Returns the loop that threads share, by its name.
SparseLoop parallel_loop(SparseAxis axis, WacoReading reading) {
  return loop_of(axis, axis == SparseAxis::kColumns && reading == WacoReading::kPort);
}

Result<SparseLoop> read_loop(WordReader& words, const AxisNames& axes) {
  FORETUNE_TRY(const std::string_view name, words.word("a loop"));
  const auto axis = name.size() == 2 ? axes.find(name[0]) : std::nullopt;
  return axis && (name[1] == '0' || name[1] == '1')
             ? Result<SparseLoop>(loop_of(*axis, name[1] == '0'))
             : words.refuse(name, "a loop");
}

}  // namespace

Result<ScheduleText> parse_waco_schedule(std::string_view text, const SparseSizes& sizes,
                                         WacoReading reading) {
  FORETUNE_TRY(const WacoNames names, names_of(sizes.operation, reading));
  WordReader words(text);
  ScheduleText out;
  SparseSchedule& schedule = out.schedule;
  for (const SparseAxis axis : names.sizes) {
    FORETUNE_TRY(schedule.inner[static_cast<std::size_t>(axis)], words.number("an inner size"));
  }
  for (std::size_t i = 0; i < 2 * names.sizes.size(); ++i) {
    FORETUNE_TRY(const SparseLoop loop, read_loop(words, names.axes));
    schedule.order.push_back(loop);
  }
  const auto stored = schedule.storage_order();
  for (const SparseLoop loop : kBitLoops) {
    FORETUNE_TRY(const std::int32_t bit, words.number("a bit of a level"));
    if (bit > 1) {
      return words.refuse(concat(bit), "a bit of a level");
    }
    const std::size_t place = level_place(stored, loop);
    if (place == kSparseLevels) {
      return fail(ErrorCode::kInvalidArgument, "the loop ", waco_name(names.axes, loop),
                  " is missing");
    }
    schedule.levels[0][place] = bit == 1 ? SparseLevel::kDense : SparseLevel::kCompressed;
  }
  FORETUNE_TRY(const SparseLoop parallel, read_loop(words, names.axes));
  const SparseAxis axis = axis_of(parallel);
  if (is_inner(parallel) ||
      (axis != SparseAxis::kRows && (axis != SparseAxis::kColumns || !names.may_share_columns))) {
    return fail(ErrorCode::kInvalidArgument, "WACO does not share ",
                waco_name(names.axes, parallel), " among threads in ", to_string(sizes.operation));
  }
  schedule.parallel = parallel_loop(axis, reading);
  FORETUNE_TRY(out.threads, words.number("a number of threads"));
  FORETUNE_TRY(schedule.chunk, words.number("a chunk"));
  if (!words.at_end()) {
    return fail(ErrorCode::kCorrupt, "words follow the chunk");
  }
  FORETUNE_TRY_STATUS(check_sparse_schedule(schedule, sizes));
  return out;
}

Result<std::string> waco_schedule(const SparseSchedule& schedule, const SparseSizes& sizes,
                                  std::int32_t threads, WacoReading reading) {
  FORETUNE_TRY(const WacoNames names, names_of(sizes.operation, reading));
  FORETUNE_TRY_STATUS(check_sparse_schedule(schedule, sizes));
  if (schedule.vector || schedule.unroll) {
    return fail(ErrorCode::kUnsupported, "WACO's notation marks no vectorised or unrolled loop");
  }
  if (!schedule.parallel) {
    return fail(ErrorCode::kUnsupported, "WACO's notation has no serial schedules");
  }
  const SparseAxis axis = axis_of(*schedule.parallel);
  if (*schedule.parallel != parallel_loop(axis, reading) ||
      (axis != SparseAxis::kRows && (axis != SparseAxis::kColumns || !names.may_share_columns))) {
    return fail(ErrorCode::kUnsupported, "WACO's notation does not share ",
                to_string(*schedule.parallel), " among threads in ", to_string(sizes.operation));
  }
  std::string out;
  for (const SparseAxis size : names.sizes) {
    out += concat(schedule.inner[static_cast<std::size_t>(size)], " ");
  }
  for (const SparseLoop loop : schedule.order) {
    out += concat(waco_name(names.axes, loop), " ");
  }
  const auto stored = schedule.storage_order();
  for (const SparseLoop loop : kBitLoops) {
    const std::size_t place = level_place(stored, loop);
    const SparseLevel level = schedule.levels[0][place];
    if (level > SparseLevel::kCompressed) {
      return fail(ErrorCode::kUnsupported, "WACO's notation has dense and compressed levels, not ",
                  to_string(schedule.levels[0]));
    }
    out += level == SparseLevel::kDense ? "1 " : "0 ";
  }
  return concat(out, waco_name(names.axes, loop_of(axis, false)), " ", threads, " ",
                schedule.chunk);
}

}  // namespace foretune
