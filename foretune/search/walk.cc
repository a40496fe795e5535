#include "foretune/search/walk.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "foretune/search/picking.h"

namespace foretune {
WalkContext::Awaitable WalkContext::measure(const std::vector<Config>& states) {
  for (const Config& state : states) {
    Config config = space_.canonical(state);
    // A state on the way need not be a config.
    if (known_.emplace(config, std::nullopt).second && space_.why_not(config)) {
      wanted_.push_back(std::move(config));
    }
  }
  return {.is_ready = wanted_.empty()};
}

double WalkContext::value(const Config& state) const {
  const auto found = known_.find(space_.canonical(state));
  return found == known_.end() || !found->second ? std::numeric_limits<double>::infinity()
                                                 : *found->second;
}

bool WalkContext::is_known(const Config& state) const {
  return known_.contains(space_.canonical(state));
}

std::vector<WalkNode> WalkContext::children(const WalkNode& node) const {
  std::vector<WalkNode> out;
  if (node.steps >= max_steps_) {
    return out;
  }
  const std::vector<bool> legal = steps_.legal_actions(node.state);
  for (std::size_t action = 0; action < legal.size(); ++action) {
    if (legal[action]) {
      if (Result<Config> next = steps_.apply(node.state, action)) {
        out.push_back({*std::move(next), node.steps + 1});
      }
    }
  }
  return out;
}

std::vector<WalkNode> WalkContext::changed(const WalkNode& node, std::size_t changes) const {
  struct Reached {
    WalkNode node;
    Config meaning;
    std::size_t changes;
  };
  std::vector<WalkNode> out;
  const Config origin = space_.canonical(node.state);
  std::unordered_set<Config> states{node.state};
  std::unordered_set<Config> meanings{origin};
  std::deque<Reached> open;
  open.push_back({node, origin, 0});
  while (!open.empty()) {
    const Reached here = std::move(open.front());
    open.pop_front();
    for (WalkNode& child : children(here.node)) {
      Config meaning = space_.canonical(child.state);
      const std::size_t count = here.changes + (meaning == here.meaning ? 0 : 1);
      if (count > changes || !states.insert(child.state).second) {
        continue;
      }
      if (meanings.insert(meaning).second) {
        out.push_back(child);
      }
      open.push_back({std::move(child), std::move(meaning), count});
    }
  }
  return out;
}

std::optional<std::size_t> WalkContext::random_action(const WalkNode& node) {
  if (node.steps >= max_steps_) {
    return std::nullopt;
  }
  const std::vector<bool> legal = steps_.legal_actions(node.state);
  const auto open = static_cast<std::size_t>(std::count(legal.begin(), legal.end(), true));
  if (open == 0) {
    return std::nullopt;
  }
  std::size_t left = rng_->below(open);
  std::size_t action = 0;
  while (!legal[action] || left-- > 0) {
    ++action;
  }
  return action;
}

std::optional<WalkNode> WalkContext::random_child(const WalkNode& node) {
  const std::optional<std::size_t> action = random_action(node);
  if (!action) {
    return std::nullopt;
  }
  Result<Config> next = steps_.apply(node.state, *action);
  return next ? std::optional(WalkNode{*std::move(next), node.steps + 1}) : std::nullopt;
}

WalkNode WalkContext::random_walk() {
  WalkNode node = start();
  for (std::size_t length = 1 + rng_->below(max_steps_); length > 0; --length) {
    std::optional<WalkNode> next = random_child(node);
    if (!next) {
      break;
    }
    node = *std::move(next);
  }
  return node;
}

std::vector<Config> states_of(std::span<const WalkNode> nodes) {
  std::vector<Config> states;
  states.reserve(nodes.size());
  for (const WalkNode& node : nodes) {
    states.push_back(node.state);
  }
  return states;
}

WalkStrategy::WalkStrategy(const Space& space, const StrategyOptions& options, Function function)
    : context_(space, *space.sequential(),
               options.max_steps > 0 ? options.max_steps : space.sequential()->usual_steps()),
      walk_(function(context_, options)),
      limit_(options.sample_size) {}

std::vector<Config> WalkStrategy::ask(std::size_t count, Rng& rng) {
  context_.rng_ = &rng;
  while (context_.wanted_.empty() && outstanding_ == 0 && !walk_.is_done()) {
    walk_.resume();
  }
  std::vector<Config> out;
  while (out.size() < count && !context_.wanted_.empty() && (limit_ == 0 || asked_ < limit_)) {
    out.push_back(std::move(context_.wanted_.front()));
    context_.wanted_.pop_front();
    ++asked_;
    ++outstanding_;
  }
  return out;
}

void WalkStrategy::tell(std::span<const Trial> finished) {
  for (const Trial& trial : finished) {
    context_.known_.insert_or_assign(trial.config, value_of(trial));
    outstanding_ -= std::min<std::size_t>(outstanding_, 1);
  }
}

}  // namespace foretune
