#include "foretune/environment/cursor_space.h"

#include <string>
#include <utility>
#include <vector>

namespace foretune::environment {
namespace {

class CursorSpace final : public loop::ScheduleSpace {
 public:
  CursorSpace(const loop::Computation& computation, const ActionSet& actions,
              const loop::Limits& limits, loop::Nest start)
      : ScheduleSpace(computation, limits, std::move(start)) {
    // The action that ends an episode leads nowhere.
    for (const CursorAction action : actions.actions()) {
      if (action != CursorAction::kStop) {
        actions_.push_back(action);
      }
    }
  }
  std::size_t action_count() const override { return actions_.size(); }
  std::string action_text(std::size_t action) const override {
    return std::string(to_string(actions_[action]));
  }

 private:
  Result<State> step(const State& state, std::size_t action) const override {
    return environment::apply(computation(), state, actions_[action], limits());
  }
  bool is_legal(const State& state, std::size_t action) const override {
    return environment::is_legal(computation(), state, actions_[action], limits());
  }

  std::vector<CursorAction> actions_;
};

}  // namespace

std::unique_ptr<loop::ScheduleSpace> cursor_space(const loop::Computation& computation,
                                                  const ActionSet& actions,
                                                  const loop::Limits& limits) {
  return cursor_space(computation, actions, limits, loop::Nest::plain(computation));
}

std::unique_ptr<loop::ScheduleSpace> cursor_space(const loop::Computation& computation,
                                                  const ActionSet& actions,
                                                  const loop::Limits& limits, loop::Nest start) {
  return std::make_unique<CursorSpace>(computation, actions, limits, std::move(start));
}

}  // namespace foretune::environment
