#include "foretune/loop/cursor_space.h"

#include <string>
#include <utility>
#include <vector>

namespace foretune::loop {
namespace {

class CursorSpace final : public ScheduleSpace {
 public:
  CursorSpace(const Computation& computation, const VectorUnit& unit, const ActionSet& actions,
              const Limits& limits, std::optional<Nest> start)
      : ScheduleSpace(computation, unit, limits, std::move(start)) {
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
    return loop::apply(computation(), state, actions_[action], limits());
  }
  bool is_legal(const State& state, std::size_t action) const override {
    return loop::is_legal(computation(), state, actions_[action], limits());
  }

  std::vector<CursorAction> actions_;
};

}  // namespace

std::unique_ptr<ScheduleSpace> cursor_space(const Computation& computation, const VectorUnit& unit,
                                            const ActionSet& actions, std::optional<Nest> start,
                                            const Limits& limits) {
  return std::make_unique<CursorSpace>(computation, unit, actions, limits, std::move(start));
}

}  // namespace foretune::loop
