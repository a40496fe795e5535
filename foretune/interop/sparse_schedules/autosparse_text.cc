// AutoSparse's command strings.
#include <algorithm>
#include <bit>

#include "foretune/interop/sparse_schedules/internal/schedule_names.h"
#include "foretune/interop/sparse_schedules/schedule_text.h"

namespace foretune {
namespace {

using interop_internal::AxisNames;
using interop_internal::WordReader;

// The names of an operation: axes, and the sparse operands, inputs first.
struct AutosparseNames {
  AxisNames axes;
  std::string_view operands;
};

Result<AutosparseNames> names_of(SparseOperation operation) {
  switch (operation) {
    case SparseOperation::kSpmv:
    case SparseOperation::kMmadd:
      return AutosparseNames{{"ij "}, "A"};
    case SparseOperation::kSpmm:
      return AutosparseNames{{"ikj"}, "A"};
    case SparseOperation::kSddmm:
      return AutosparseNames{{"ijk"}, "AD"};
    case SparseOperation::kPlus2:
      return AutosparseNames{{"ij "}, "ABC"};
    case SparseOperation::kPlus3:
      return AutosparseNames{{"ij "}, "ABCD"};
    default:
      return fail(ErrorCode::kUnsupported, "AutoSparse's notation has no ", to_string(operation));
  }
}

std::string autosparse_name(const AxisNames& axes, SparseLoop loop) {
  return axes.loop(loop, '1', '0');
}

// The number that the text prints for a loop, which for outer parts need not be their extent.
std::int64_t printed_extent(const SparseSchedule& schedule, const SparseSizes& sizes,
                            SparseLoop loop) {
  const SparseAxis axis = axis_of(loop);
  const std::int64_t inner = schedule.inner[static_cast<std::size_t>(axis)];
  const auto extent = static_cast<std::uint64_t>(axis_extent(sizes, axis));
  return is_inner(loop) ? inner : static_cast<std::int64_t>(std::bit_floor(extent)) / inner;
}

// Returns the levels of the output of a sum: the higher one of its inputs, each.
SparseLevels output_levels(const SparseSchedule& schedule) {
  SparseLevels out = schedule.levels[0];
  for (std::size_t operand = 1; operand < schedule.operands; ++operand) {
    for (std::size_t i = 0; i < kSparseLevels; ++i) {
      out[i] = std::max(out[i], schedule.levels[operand][i]);
    }
  }
  return out;
}

constexpr std::array kStoredLoops{SparseLoop::kRow0, SparseLoop::kRow1, SparseLoop::kColumn0,
                                  SparseLoop::kColumn1};

class Reader {
 public:
  Reader(std::string_view text, const SparseSizes& sizes, AutosparseNames names)
      : words_(text), sizes_(sizes), names_(names) {}

  Result<ScheduleText> read() {
    FORETUNE_TRY_STATUS(read_splits({SparseAxis::kRows, SparseAxis::kColumns}));
    FORETUNE_TRY_STATUS(read_orders());
    FORETUNE_TRY_STATUS(read_levels());
    if (has_dense_loops(sizes_.operation)) {
      FORETUNE_TRY_STATUS(read_splits({SparseAxis::kDense}));
    } else {
      FORETUNE_TRY_STATUS(words_.exactly("0"));
    }
    FORETUNE_TRY_STATUS(read_loops());
    FORETUNE_TRY(out_.schedule.parallel, optional_loop("a parallel loop or None"));
    FORETUNE_TRY(out_.schedule.vector, optional_loop("a vectorised loop or None"));
    FORETUNE_TRY(out_.schedule.unroll, optional_loop("an unrolled loop or None"));
    FORETUNE_TRY(const std::int32_t factor, words_.number("a factor"));
    FORETUNE_TRY(out_.threads, words_.number("a number of threads"));
    FORETUNE_TRY(out_.schedule.chunk, words_.number("a chunk"));
    if (!words_.at_end()) {
      return fail(ErrorCode::kCorrupt, "words follow the chunk");
    }
    FORETUNE_TRY_STATUS(check_sparse_schedule(out_.schedule, sizes_));
    FORETUNE_TRY_STATUS(check_storage());
    FORETUNE_TRY_STATUS(check_printed(factor));
    return out_;
  }

 private:
  Result<SparseAxis> axis(std::string_view wanted) {
    FORETUNE_TRY(const std::string_view name, words_.word(wanted));
    const auto found = name.size() == 1 ? names_.axes.find(name[0]) : std::nullopt;
    return found ? Result<SparseAxis>(*found) : words_.refuse(name, wanted);
  }

  std::optional<SparseLoop> loop_named(std::string_view name) const {
    const auto axis = name.size() == 2 ? names_.axes.find(name[0]) : std::nullopt;
    return axis && (name[1] == '0' || name[1] == '1')
               ? std::optional(loop_of(*axis, name[1] == '1'))
               : std::nullopt;
  }
  Result<SparseLoop> loop() {
    FORETUNE_TRY(const std::string_view name, words_.word("a loop"));
    const auto found = loop_named(name);
    return found ? Result<SparseLoop>(*found) : words_.refuse(name, "a loop");
  }
  Result<std::optional<SparseLoop>> optional_loop(std::string_view wanted) {
    FORETUNE_TRY(const std::string_view name, words_.word(wanted));
    const auto found = loop_named(name);
    return found || name == "None" ? Result<std::optional<SparseLoop>>(found)
                                   : words_.refuse(name, wanted);
  }

  // Reads the splits of these axes, each once, in any order.
  Status read_splits(std::vector<SparseAxis> axes) {
    FORETUNE_TRY_STATUS(words_.exactly(concat(axes.size())));
    while (!axes.empty()) {
      FORETUNE_TRY(const SparseAxis axis, this->axis("an axis to split"));
      if (std::erase(axes, axis) == 0) {
        return fail(ErrorCode::kCorrupt, "the axis ", std::string(1, names_.axes.of(axis)),
                    " is not split here, or twice");
      }
      FORETUNE_TRY_STATUS(words_.exactly("2"));
      FORETUNE_TRY_STATUS(words_.exactly(autosparse_name(names_.axes, loop_of(axis, false))));
      FORETUNE_TRY(outer_[static_cast<std::size_t>(axis)], words_.number("an outer part"));
      FORETUNE_TRY_STATUS(words_.exactly(autosparse_name(names_.axes, loop_of(axis, true))));
      FORETUNE_TRY(out_.schedule.inner[static_cast<std::size_t>(axis)],
                   words_.number("an inner part"));
    }
    return {};
  }

  Status read_orders() {
    FORETUNE_TRY_STATUS(words_.exactly(concat(names_.operands.size())));
    for (const char operand : names_.operands) {
      FORETUNE_TRY_STATUS(words_.exactly(std::string(1, operand)));
      FORETUNE_TRY_STATUS(words_.exactly(concat(kSparseLevels)));
      SparseOrder& order = orders_.emplace_back();
      for (std::size_t i = 0; i < kSparseLevels; ++i) {
        FORETUNE_TRY(const SparseLoop stored, loop());
        order.push_back(stored);
      }
    }
    return {};
  }

  Status read_levels() {
    for (const char operand : names_.operands) {
      FORETUNE_TRY_STATUS(words_.exactly(std::string(1, operand)));
      FORETUNE_TRY_STATUS(words_.exactly(concat(kSparseLevels)));
      SparseLevels levels{};
      std::array<bool, kSparseLevels> seen{};
      for (std::size_t i = 0; i < kSparseLevels; ++i) {
        FORETUNE_TRY(const SparseLoop stored, loop());
        FORETUNE_TRY(const std::int32_t code, words_.number("a code of a level"));
        if (code >= static_cast<std::int32_t>(kSparseLevelKinds)) {
          return words_.refuse(concat(code), "a code of a level from 0 to 4");
        }
        const SparseOrder& order = orders_[0];
        const auto place =
            static_cast<std::size_t>(std::find(order.begin(), order.end(), stored) - order.begin());
        if (place == kSparseLevels || seen[place]) {
          return fail(ErrorCode::kCorrupt, "the level of ", autosparse_name(names_.axes, stored),
                      " is given twice or not stored");
        }
        seen[place] = true;
        levels[place] = static_cast<SparseLevel>(code);
      }
      levels_.push_back(levels);
    }
    SparseSchedule& schedule = out_.schedule;
    schedule.operands = scheduled_operands(sizes_.operation);
    std::copy_n(levels_.begin(), schedule.operands, schedule.levels.begin());
    if (levels_.size() > schedule.operands && levels_.back() != output_levels(schedule)) {
      return fail(ErrorCode::kInvalidArgument, "the output has the levels ",
                  to_string(levels_.back()), ", its inputs make them ",
                  to_string(output_levels(schedule)));
    }
    return {};
  }

  Status read_loops() {
    const std::size_t count = has_dense_loops(sizes_.operation) ? kSparseLoops : kSparseLevels;
    FORETUNE_TRY_STATUS(words_.exactly(concat(count)));
    for (std::size_t i = 0; i < count; ++i) {
      FORETUNE_TRY(const SparseLoop next, loop());
      out_.schedule.order.push_back(next);
    }
    return {};
  }

  // Checks that every operand is stored in the order of the loops.
  Status check_storage() const {
    const auto stored = out_.schedule.storage_order();
    for (const SparseOrder& order : orders_) {
      if (!std::equal(order.begin(), order.end(), stored.begin())) {
        return fail(ErrorCode::kInvalidArgument,
                    "the order of storage is not that of the loops over it");
      }
    }
    return {};
  }

  // Checks the numbers that follow from the others.
  Status check_printed(std::int32_t factor) const {
    for (std::size_t i = 0; i < outer_.size(); ++i) {
      const SparseLoop outer = loop_of(static_cast<SparseAxis>(i), false);
      const bool is_split = i < 2 || has_dense_loops(sizes_.operation);
      const std::int64_t printed = printed_extent(out_.schedule, sizes_, outer);
      if (is_split && outer_[i] != printed) {
        return fail(ErrorCode::kInvalidArgument, autosparse_name(names_.axes, outer), " is ",
                    outer_[i], ", but an extent of ", axis_extent(sizes_, axis_of(outer)),
                    " makes it ", printed);
      }
    }
    const auto& unroll = out_.schedule.unroll;
    const std::int64_t wanted = unroll ? printed_extent(out_.schedule, sizes_, *unroll) : 0;
    if (factor != wanted) {
      return fail(ErrorCode::kInvalidArgument, "the unroll factor is ", factor,
                  ", but the unrolled loop makes it ", wanted);
    }
    return {};
  }

  WordReader words_;
  const SparseSizes& sizes_;
  AutosparseNames names_;
  ScheduleText out_;
  std::array<std::int32_t, kSparseAxes> outer_{};
  std::vector<SparseOrder> orders_;
  std::vector<SparseLevels> levels_;
};

}  // namespace

Result<ScheduleText> parse_autosparse_schedule(std::string_view text, const SparseSizes& sizes) {
  FORETUNE_TRY(const AutosparseNames names, names_of(sizes.operation));
  return Reader(text, sizes, names).read();
}

Result<std::string> autosparse_schedule(const SparseSchedule& schedule, const SparseSizes& sizes,
                                        std::int32_t threads) {
  FORETUNE_TRY(const AutosparseNames names, names_of(sizes.operation));
  FORETUNE_TRY_STATUS(check_sparse_schedule(schedule, sizes));
  const auto loop_name = [&](SparseLoop loop) { return autosparse_name(names.axes, loop); };
  const auto split_text = [&](SparseAxis axis) {
    std::string text = concat(" ", std::string(1, names.axes.of(axis)), " 2");
    for (const bool inner : {false, true}) {
      const SparseLoop loop = loop_of(axis, inner);
      text += concat(" ", loop_name(loop), " ", printed_extent(schedule, sizes, loop));
    }
    return text;
  };
  const auto marked_text = [&](const std::optional<SparseLoop>& loop) {
    return concat(" ", loop ? loop_name(*loop) : "None");
  };
  const auto stored = schedule.storage_order();
  std::string out = concat("2", split_text(SparseAxis::kRows), split_text(SparseAxis::kColumns),
                           " ", names.operands.size());
  for (const char operand : names.operands) {
    out += concat(" ", std::string(1, operand), " ", kSparseLevels);
    for (const SparseLoop loop : stored) {
      out += concat(" ", loop_name(loop));
    }
  }
  for (std::size_t i = 0; i < names.operands.size(); ++i) {
    const SparseLevels levels =
        i < schedule.operands ? schedule.levels[i] : output_levels(schedule);
    out += concat(" ", std::string(1, names.operands[i]), " ", kSparseLevels);
    for (const SparseLoop loop : kStoredLoops) {
      const auto place = std::find(stored.begin(), stored.end(), loop) - stored.begin();
      out += concat(" ", loop_name(loop), " ",
                    static_cast<int>(levels[static_cast<std::size_t>(place)]));
    }
  }
  out += has_dense_loops(sizes.operation) ? concat(" 1", split_text(SparseAxis::kDense)) : " 0";
  out += concat(" ", schedule.order.size());
  for (const SparseLoop loop : schedule.order) {
    out += concat(" ", loop_name(loop));
  }
  for (const auto& marked : {schedule.parallel, schedule.vector, schedule.unroll}) {
    out += marked_text(marked);
  }
  const std::int64_t factor =
      schedule.unroll ? printed_extent(schedule, sizes, *schedule.unroll) : 0;
  return concat(out, " ", factor, " ", threads, " ", schedule.chunk);
}

}  // namespace foretune
