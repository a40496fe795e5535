#include "foretune/loop/canonical_schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "foretune/base/check.h"

namespace foretune::loop {
namespace {

// Where a loop ends up; marks follow later.
struct Place {
  std::uint8_t var = 0;
  std::int64_t step = 1;
  bool operator==(const Place&) const = default;
};

// Each split is of the innermost loop over the variable, which moves by 1: so the factor is the
// step, and any steps that get smaller can be had, whether or not they divide each other.
std::vector<Place> split_all(const Computation& computation, const Nest& nest,
                             std::vector<Action>& actions) {
  std::vector<Place> places;
  for (std::size_t v = 0; v < computation.vars.size(); ++v) {
    const auto var = static_cast<std::uint8_t>(v);
    for (const Loop& loop : nest.loops) {
      if (loop.var == var && loop.step > 1) {
        actions.push_back(
            Action::split(static_cast<int>(places.size()), static_cast<int>(loop.step)));
        places.push_back({var, loop.step});
      }
    }
    places.push_back({var, 1});
  }
  return places;
}

// Loops over the same variable are in their order already, so none has to pass another.
void arrange(const Nest& nest, std::vector<Place>& places, std::vector<Action>& actions) {
  const auto count = std::min(places.size(), nest.loops.size());
  for (std::size_t level = 0; level < count; ++level) {
    const Place wanted{nest.loops[level].var, nest.loops[level].step};
    const auto target = places.begin() + static_cast<std::ptrdiff_t>(level);
    const auto found = std::find(target, places.end(), wanted);
    FORETUNE_DCHECK(found != places.end());
    if (found == places.end() || found == target) {
      continue;
    }
    const int from = static_cast<int>(found - places.begin());
    const int to = static_cast<int>(level);
    actions.push_back(from == to + 1 ? Action::swap(to) : Action::move(from, to));
    std::rotate(target, found, found + 1);
  }
}

void mark(const Nest& nest, std::vector<Action>& actions) {
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    const int level = static_cast<int>(i);
    switch (nest.loops[i].mark) {
      case Mark::kNone:
        break;
      case Mark::kUnroll:
        actions.push_back(Action::unroll(level));
        break;
      case Mark::kVector:
        actions.push_back(Action::vectorize(level));
        break;
      case Mark::kParallel:
        actions.push_back(Action::parallelize(level));
        break;
    }
  }
}

}  // namespace

std::vector<Action> schedule_of(const Computation& computation, const Nest& nest) {
  FORETUNE_DCHECK(check(computation, nest).has_value());
  std::vector<Action> actions;
  std::vector<Place> places = split_all(computation, nest, actions);
  arrange(nest, places, actions);
  mark(nest, actions);
  if (nest.block != Nest::kNoBlock) {
    actions.push_back(Action::block(nest.block));
  }
  for (const Pack& pack : nest.packs) {
    actions.push_back(Action::pack(pack.input, pack.level));
  }
  return actions;
}

}  // namespace foretune::loop
