#include "foretune/loop/loop_actions.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/text.h"

namespace foretune::loop {
namespace {

// As nest.cc says.
constexpr std::int64_t kMostUnrolledRounds = 64;

constexpr std::array<std::string_view, LoopActions::kOperations - LoopActions::kSwap> kWords = {
    "swap",      "hoist",       "sink",  "merge",      "unroll",
    "vectorize", "parallelize", "block", "pack first", "pack second"};

bool is_parallel(const Nest& nest) {
  return !nest.loops.empty() && nest.loops[0].mark == Mark::kParallel;
}

}  // namespace

LoopActions::LoopActions(const Computation& computation, const VectorUnit& unit,
                         const Limits& limits)
    : computation_(computation), max_loops_(std::min(limits.max_loops, kLevels)) {
  for (std::size_t i = 0; i < kVectorSplits.size(); ++i) {
    factors_[kVectorSplit + i] = kVectorSplits[i] * unit.lanes;
  }
  for (std::size_t i = 0; i < kSplits.size(); ++i) {
    const bool is_vectors =
        std::find(factors_.begin() + kVectorSplit, factors_.end(), kSplits[i]) != factors_.end();
    factors_[kSplit + i] = is_vectors ? 0 : kSplits[i];
  }
  for (int input = 0; input < computation.combined; ++input) {
    const auto i = static_cast<std::size_t>(input);
    for (std::size_t v = 0; v < computation.vars.size(); ++v) {
      moves_[i][v] = computation.inputs[i].stride_of(v) != 0;
    }
  }
}

std::size_t LoopActions::outermost_level(const Nest& nest, std::size_t level) {
  std::size_t to = level;
  while (to > 0 && nest.loops[to - 1].var != nest.loops[level].var) {
    --to;
  }
  return to;
}

std::size_t LoopActions::innermost_level(const Nest& nest, std::size_t level) {
  std::size_t to = level;
  while (to + 1 < nest.loops.size() && nest.loops[to + 1].var != nest.loops[level].var) {
    ++to;
  }
  return to;
}

bool LoopActions::may_move(const Nest& nest, std::size_t from, std::size_t to) const {
  if (is_parallel(nest) && (from == 0 || to == 0)) {
    return false;
  }
  const std::size_t low = std::min(from, to);
  const std::size_t high = std::max(from, to);
  const auto goes_to = [=](std::size_t old) {
    return old == from ? to : old < low || old > high ? old : from < to ? old - 1 : old + 1;
  };
  const bool has_block = nest.block != Nest::kNoBlock;
  const std::size_t block = has_block ? goes_to(static_cast<std::size_t>(nest.block)) : 0;
  if (has_block && block == 0 && is_parallel(nest)) {
    return false;
  }
  for (const Pack& pack : nest.packs) {
    const std::size_t start = goes_to(pack.level);
    if (has_block && start > block) {
      return false;
    }
    bool is_moved = false;
    for (std::size_t old = 0; old < nest.loops.size() && !is_moved; ++old) {
      is_moved = moves(pack.input, nest.loops[old]) && goes_to(old) >= start;
    }
    if (!is_moved) {
      return false;
    }
  }
  return true;
}

bool LoopActions::may_merge(const Nest& nest, std::size_t level) const {
  std::size_t around = level;
  while (around > 0 && nest.loops[around - 1].var != nest.loops[level].var) {
    --around;
  }
  if (around == 0) {
    return false;
  }
  const bool is_last = level + 1 == nest.loops.size();
  if (is_last && std::cmp_equal(nest.block, level)) {
    return false;
  }
  for (const Pack& pack : nest.packs) {
    if (is_last && pack.level == level) {
      return false;
    }
    bool is_moved = false;
    for (std::size_t i = pack.level; i < nest.loops.size() && !is_moved; ++i) {
      is_moved = i != level && moves(pack.input, nest.loops[i]);
    }
    if (!is_moved) {
      return false;
    }
  }
  return true;
}

bool LoopActions::may_pack(const Nest& nest, std::size_t level, std::size_t input) const {
  if (std::cmp_greater_equal(input, computation_.combined) ||
      (nest.block != Nest::kNoBlock && std::cmp_greater(level, nest.block))) {
    return false;
  }
  for (const Pack& pack : nest.packs) {
    if (pack.input == input) {
      return false;
    }
  }
  for (std::size_t i = level; i < nest.loops.size(); ++i) {
    if (moves(input, nest.loops[i])) {
      return true;
    }
  }
  return false;
}

void LoopActions::mask_splits(const Nest& nest, std::size_t level,
                              std::span<std::uint8_t> row) const {
  if (nest.loops.size() >= max_loops_) {
    return;
  }
  const std::int64_t covers = nest.covers(computation_, level);
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    row[i] = factors_[i] > 0 && nest.loops[level].step * factors_[i] < covers ? 1 : 0;
  }
}

void LoopActions::mask_marks(const Nest& nest, std::size_t level,
                             std::span<std::uint8_t> row) const {
  const Loop& loop = nest.loops[level];
  if (loop.mark != Mark::kNone) {
    return;
  }
  const std::int64_t rounds = nest.rounds(computation_, level);
  row[kUnroll] = rounds <= kMostUnrolledRounds ? 1 : 0;
  row[kVectorize] =
      loop.step == 1 && std::none_of(nest.loops.begin(), nest.loops.end(),
                                     [](const Loop& other) { return other.mark == Mark::kVector; })
          ? 1
          : 0;
  row[kParallelize] =
      level == 0 && !computation_.vars[loop.var].is_reduction && rounds >= 2 && nest.block != 0 ? 1
                                                                                                : 0;
}

void LoopActions::write_mask(const Nest& nest, std::span<std::uint8_t> mask) const {
  FORETUNE_DCHECK(mask.size() == kCount);
  std::fill(mask.begin(), mask.end(), std::uint8_t{0});
  mask[kStop] = 1;
  const std::size_t count = nest.loops.size();
  for (std::size_t level = 0; level < std::min(count, kLevels); ++level) {
    const std::span<std::uint8_t> row = mask.subspan(level * kOperations, kOperations);
    mask_splits(nest, level, row);
    mask_marks(nest, level, row);
    const std::size_t out = outermost_level(nest, level);
    const std::size_t in = innermost_level(nest, level);
    row[kSwap] = in > level && may_move(nest, level, level + 1) ? 1 : 0;
    row[kHoist] = out + 1 < level && may_move(nest, level, out) ? 1 : 0;
    row[kSink] = in > level + 1 && may_move(nest, level, in) ? 1 : 0;
    row[kMerge] = may_merge(nest, level) ? 1 : 0;
    const bool is_inside_packs = std::all_of(nest.packs.begin(), nest.packs.end(),
                                             [&](const Pack& pack) { return pack.level <= level; });
    row[kBlock] =
        nest.block == Nest::kNoBlock && is_inside_packs && (level > 0 || !is_parallel(nest)) ? 1
                                                                                             : 0;
    row[kPackFirst] = may_pack(nest, level, 0) ? 1 : 0;
    row[kPackSecond] = may_pack(nest, level, 1) ? 1 : 0;
  }
}

std::optional<Action> LoopActions::action(const Nest& nest, std::size_t index) const {
  const std::size_t level = index / kOperations;
  const std::size_t operation = index % kOperations;
  if (index >= kStop || level >= nest.loops.size()) {
    return std::nullopt;
  }
  const int loop = static_cast<int>(level);
  if (operation < kSwap) {
    return Action::split(loop, factors_[operation]);
  }
  switch (operation) {
    case kSwap:
      return Action::swap(loop);
    case kHoist:
      return Action::move(loop, static_cast<int>(outermost_level(nest, level)));
    case kSink:
      return Action::move(loop, static_cast<int>(innermost_level(nest, level)));
    case kMerge:
      return Action::merge(loop);
    case kUnroll:
      return Action::unroll(loop);
    case kVectorize:
      return Action::vectorize(loop);
    case kParallelize:
      return Action::parallelize(loop);
    case kBlock:
      return Action::block(loop);
    default:
      return Action::pack(static_cast<int>(operation - kPackFirst), loop);
  }
}

Result<Nest> LoopActions::apply(const Nest& nest, std::size_t index) const {
  if (index == kStop) {
    return nest;
  }
  const std::optional<Action> chosen = action(nest, index);
  if (!chosen) {
    return fail(ErrorCode::kInvalidArgument, "there is no action ", index, " for a nest of ",
                nest.loops.size(), " loops");
  }
  return loop::apply(computation_, nest, *chosen, {.max_loops = max_loops_});
}

std::string LoopActions::text(std::size_t index) const {
  if (index >= kStop) {
    return "stop";
  }
  const std::size_t level = index / kOperations;
  const std::size_t operation = index % kOperations;
  return operation < kSwap ? concat("split ", level, " by ", factors_[operation])
                           : concat(kWords[operation - kSwap], " ", level);
}

}  // namespace foretune::loop
