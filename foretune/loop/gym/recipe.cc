#include "foretune/loop/gym/recipe.h"

#include <array>

#include "foretune/loop/cursor_actions.h"

namespace foretune::loop::gym {

std::vector<Config> recipe_configs(const ScheduleSpace& space) {
  constexpr std::array kRecipe{CursorAction::kSplit4,   CursorAction::kSwapDown,
                               CursorAction::kSwapDown, CursorAction::kDown,
                               CursorAction::kSplit16,  CursorAction::kSwapUp,
                               CursorAction::kSwapUp,   CursorAction::kSplit8};
  State state = space.state(space.start()).value();
  std::vector<Config> out;
  for (const CursorAction action : kRecipe) {
    state = replay_published(space.computation(), state, {&action, 1}).state;
    out.push_back(space.config({.nest = state.nest, .cursor = 0}));
  }
  return out;
}

}  // namespace foretune::loop::gym
