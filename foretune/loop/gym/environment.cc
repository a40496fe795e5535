#include "foretune/loop/gym/environment.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "foretune/base/check.h"

namespace foretune::loop::gym {
namespace {

Status check_loop_count(const loop::Nest& nest, const EnvironmentOptions& options) {
  if (nest.loops.size() > options.max_loops) {
    return fail(ErrorCode::kUnsupported, "the nest to start with has ", nest.loops.size(),
                " loops, and there may be ", options.max_loops);
  }
  return {};
}

}  // namespace

Environment::Environment(loop::Computation computation, ActionSet actions, Evaluator& evaluator,
                         double peak_gflops, EnvironmentOptions options)
    : computation_(std::move(computation)),
      actions_(std::move(actions)),
      evaluator_(&evaluator),
      peak_gflops_(peak_gflops),
      options_(options) {}

Result<Environment> Environment::create(loop::Computation computation, ActionSet actions,
                                        Evaluator& evaluator, double peak_gflops,
                                        EnvironmentOptions options) {
  if (!std::isfinite(peak_gflops) || peak_gflops <= 0) {
    return fail(ErrorCode::kInvalidArgument, "a peak of ", peak_gflops,
                " GFLOPS, and it is above 0");
  }
  if (options.max_steps == 0) {
    return fail(ErrorCode::kInvalidArgument, "an episode has at least one step");
  }
  if (Status status = computation.check(); !status) {
    return fail_because(status.error(), computation.name);
  }
  if (Status status = check_loop_count(loop::Nest::plain(computation), options); !status) {
    return fail_because(status.error(), computation.name);
  }
  Environment out(std::move(computation), std::move(actions), evaluator, peak_gflops, options);
  out.reset();
  return out;
}

const State& Environment::reset() {
  begin(State::start(computation_));
  return state_;
}

Status Environment::reset(State start) {
  FORETUNE_TRY_STATUS(loop::check(computation_, start.nest));
  FORETUNE_TRY_STATUS(check_loop_count(start.nest, options_));
  if (start.cursor >= start.nest.loops.size()) {
    return fail(ErrorCode::kInvalidArgument, "the cursor is at level ", start.cursor, " of ",
                start.nest.loops.size(), " loops");
  }
  begin(std::move(start));
  return {};
}

void Environment::begin(State start) {
  state_ = std::move(start);
  history_.clear();
  evaluate();
  best_ = {.state = state_, .gflops = gflops_, .seconds = evaluated_.seconds, .steps = 0};
  is_over_ = !find_legal();
}

void Environment::evaluate() {
  evaluated_ = evaluator_->evaluate(state_.nest);
  gflops_ = evaluated_.counted_gflops();
}

bool Environment::find_legal() {
  legal_.assign(actions_.size(), false);
  bool any = false;
  for (std::size_t i = 0; i < actions_.size(); ++i) {
    const bool is = is_legal(computation_, state_, actions_[i], {.max_loops = options_.max_loops});
    legal_[i] = is;
    any = any || is;
  }
  return any;
}

Result<StepResult> Environment::step(CursorAction action) {
  if (is_over_) {
    return fail(ErrorCode::kInvalidArgument, "the episode is over after ", history_.size(),
                " steps, and the next one starts with a reset");
  }
  if (!actions_.find(action)) {
    return fail(ErrorCode::kInvalidArgument, "the action ", to_string(action),
                " is not among those of the environment, ", actions_.text());
  }
  FORETUNE_TRY(State next, apply(computation_, state_, action, {.max_loops = options_.max_loops}));
  const double before = gflops_;
  const bool is_new = next.nest != state_.nest;
  state_ = std::move(next);
  if (is_new) {
    evaluate();
  }
  StepResult out{.reward = (gflops_ - before) / peak_gflops_};
  history_.push_back({.action = action, .gflops = gflops_, .reward = out.reward});
  if (gflops_ > best_.gflops) {
    best_ = {.state = state_,
             .gflops = gflops_,
             .seconds = evaluated_.seconds,
             .steps = history_.size()};
  }
  const bool has_legal = find_legal();
  out.done = action == CursorAction::kStop || !has_legal;
  out.truncated = !out.done && history_.size() >= options_.max_steps;
  is_over_ = out.done || out.truncated;
  if (is_over_) {
    legal_.assign(actions_.size(), false);
  }
  if (!evaluated_.ok) {
    out.reason = evaluated_.reason;
  }
  return out;
}

double Environment::runtime_seconds() const {
  return gflops_ > 0 ? evaluated_.seconds : std::numeric_limits<double>::infinity();
}

std::vector<CursorAction> Environment::actions_taken() const {
  std::vector<CursorAction> out;
  out.reserve(history_.size());
  for (const Taken& taken : history_) {
    out.push_back(taken.action);
  }
  return out;
}

}  // namespace foretune::loop::gym
