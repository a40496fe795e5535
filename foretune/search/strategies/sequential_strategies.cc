// Strategies for spaces built step by step only: greedy, beams, Monte Carlo tree search, and all
// states one after the other.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/search/picking.h"
#include "foretune/search/strategies/strategy_rows.h"
#include "foretune/search/walk.h"

namespace foretune {
namespace {

// After this many rounds without anything to measure, the remaining states are rare, or there are
// none.
constexpr int kMaxIdleRounds = 2000;

// Sorts nodes, best first; equal ones stay in their order.
void sort_by_value(const WalkContext& context, std::vector<WalkNode>& nodes) {
  std::stable_sort(nodes.begin(), nodes.end(), [&](const WalkNode& a, const WalkNode& b) {
    return context.value(a.state) < context.value(b.state);
  });
}

// Moves to the best state that at most `lookahead` changes lead to, as long as that is an
// improvement.
Walk walk_greedily(WalkContext& context, StrategyOptions options) {
  WalkNode here = context.start();
  co_await context.measure(states_of({&here, 1}));
  while (true) {
    std::vector<WalkNode> around =
        context.changed(here, std::max<std::size_t>(1, options.lookahead));
    co_await context.measure(states_of(around));
    sort_by_value(context, around);
    if (around.empty() || !(context.value(around.front().state) < context.value(here.state))) {
      co_return;
    }
    here = around.front();
  }
}

// Keeps the best `width` of all states that one change of the previous `width` states leads to,
// even if they are worse than these.
Walk walk_beam(WalkContext& context, StrategyOptions options) {
  std::vector<WalkNode> beam{context.start()};
  // The fewest steps to each state. A state reached in fewer steps is worth another visit, since
  // more steps are left from there.
  std::unordered_map<Config, std::size_t> seen{{context.canonical(beam.front().state), 0}};
  co_await context.measure(states_of(beam));
  while (!beam.empty()) {
    std::vector<WalkNode> next;
    std::unordered_map<Config, std::size_t> places;  // in next
    for (const WalkNode& node : beam) {
      for (WalkNode& child : context.changed(node, 1)) {
        Config meaning = context.canonical(child.state);
        const auto [found, is_new] = seen.emplace(meaning, child.steps);
        if (!is_new && found->second <= child.steps) {
          continue;
        }
        found->second = child.steps;
        const auto [place, is_first] = places.emplace(std::move(meaning), next.size());
        if (is_first) {
          next.push_back(std::move(child));
        } else {
          next[place->second] = std::move(child);
        }
      }
    }
    co_await context.measure(states_of(next));
    sort_by_value(context, next);
    next.resize(std::min(next.size(), std::max<std::size_t>(1, options.width)));
    beam = std::move(next);
  }
}

// Visits the best `width` states that one change leads to, each with all its successors before the
// next one.
Walk walk_depth_first(WalkContext& context, StrategyOptions options) {
  std::vector<WalkNode> open{context.start()};  // the last one is next
  // A state is worth another visit when it was reached in fewer steps.
  std::unordered_map<Config, std::size_t> seen;
  co_await context.measure(states_of(open));
  while (!open.empty()) {
    const WalkNode here = std::move(open.back());
    open.pop_back();
    const auto [found, is_new] = seen.emplace(context.canonical(here.state), here.steps);
    if (!is_new && found->second <= here.steps) {
      continue;
    }
    found->second = here.steps;
    std::vector<WalkNode> around = context.changed(here, 1);
    co_await context.measure(states_of(around));
    sort_by_value(context, around);
    around.resize(std::min(around.size(), std::max<std::size_t>(1, options.width)));
    std::move(around.rbegin(), around.rend(), std::back_inserter(open));
  }
}

// Visits every state, in the order of the number of actions.
Walk walk_everywhere(WalkContext& context, StrategyOptions /*options*/) {
  std::vector<WalkNode> level{context.start()};
  std::unordered_set<Config> seen{level.front().state};
  co_await context.measure(states_of(level));
  while (!level.empty()) {
    std::vector<WalkNode> next;
    for (const WalkNode& node : level) {
      // Works node by node, since a level of a long sequence has more states than memory holds.
      const std::size_t before = next.size();
      for (WalkNode& child : context.children(node)) {
        if (seen.insert(child.state).second) {
          next.push_back(std::move(child));
        }
      }
      co_await context.measure(states_of(std::span(next).subspan(before)));
    }
    level = std::move(next);
  }
}

// Measures the ends of random walks.
Walk walk_randomly(WalkContext& context, StrategyOptions /*options*/) {
  const WalkNode start = context.start();
  co_await context.measure(states_of({&start, 1}));
  for (int idle = 0; idle < kMaxIdleRounds; ++idle) {
    const WalkNode end = context.random_walk();
    idle = context.is_known(end.state) ? idle : -1;
    co_await context.measure(states_of({&end, 1}));
  }
}

// A node of the tree: a state, with the results of the tree below it.
struct TreeNode {
  WalkNode node;
  std::vector<WalkNode> untried;
  std::vector<std::size_t> children;
  double best = std::numeric_limits<double>::infinity();
  double visits = 0;
  bool is_exhausted = false;
};

// UCT (Kocsis and Szepesvari 2006, "Bandit based Monte-Carlo planning") for one player: the worth
// of a node is the best value found below it, on a logarithmic scale between the best and the worst
// of all.
class Tree {
 public:
  Tree(WalkContext& context, const WalkNode& root) : context_(context) { add(root); }

  // Returns the path from the root to a new node, or to one that turned out to have none left below
  // it.
  std::vector<std::size_t> descend() {
    std::vector<std::size_t> path{0};
    while (nodes_[path.back()].untried.empty()) {
      const std::optional<std::size_t> child = choose(path.back());
      if (!child) {
        nodes_[path.back()].is_exhausted = true;
        return path;
      }
      path.push_back(*child);
    }
    TreeNode& parent = nodes_[path.back()];
    const std::size_t index = context_.rng().below(parent.untried.size());
    std::swap(parent.untried[index], parent.untried.back());
    const WalkNode node = std::move(parent.untried.back());
    parent.untried.pop_back();
    const std::size_t added = add(node);
    nodes_[path.back()].children.push_back(added);
    path.push_back(added);
    return path;
  }

  void update(const std::vector<std::size_t>& path, double value) {
    if (std::isfinite(value)) {
      lowest_ = std::min(lowest_, value);
      highest_ = std::max(highest_, value);
    }
    for (const std::size_t index : path) {
      nodes_[index].best = std::min(nodes_[index].best, value);
      nodes_[index].visits += 1;
    }
  }

  [[nodiscard]] const WalkNode& node(std::size_t index) const { return nodes_[index].node; }
  [[nodiscard]] bool is_exhausted() const { return nodes_.front().is_exhausted; }

 private:
  static constexpr double kExploration = 0.35;

  std::size_t add(const WalkNode& node) {
    TreeNode added{.node = node, .untried = context_.children(node), .children = {}};
    nodes_.push_back(std::move(added));
    return nodes_.size() - 1;
  }

  [[nodiscard]] double worth(const TreeNode& node) const {
    if (!std::isfinite(node.best)) {
      return 0;
    }
    // Times are positive; other values are compared without a logarithm.
    const bool is_ratio = lowest_ > 0;
    const double range = is_ratio ? std::log(highest_ / lowest_) : highest_ - lowest_;
    const double above = is_ratio ? std::log(highest_ / node.best) : highest_ - node.best;
    return range > 0 ? above / range : 1;
  }

  [[nodiscard]] std::optional<std::size_t> choose(std::size_t index) const {
    const TreeNode& parent = nodes_[index];
    std::optional<std::size_t> best;
    double best_bound = 0;
    for (const std::size_t child : parent.children) {
      const TreeNode& node = nodes_[child];
      if (node.is_exhausted) {
        continue;
      }
      const double bound =
          worth(node) + kExploration * std::sqrt(std::log(parent.visits) / node.visits);
      if (!best || bound > best_bound) {
        best = child;
        best_bound = bound;
      }
    }
    return best;
  }

  WalkContext& context_;
  std::vector<TreeNode> nodes_;
  double lowest_ = std::numeric_limits<double>::infinity();
  double highest_ = -std::numeric_limits<double>::infinity();
};

// Measures a new node and the end of a random walk from it; the better one counts.
Walk walk_tree(WalkContext& context, StrategyOptions /*options*/) {
  const WalkNode root = context.start();
  co_await context.measure(states_of({&root, 1}));
  Tree tree(context, root);
  tree.update({0}, context.value(root.state));
  for (int idle = 0; idle < kMaxIdleRounds && !tree.is_exhausted(); ++idle) {
    const std::vector<std::size_t> path = tree.descend();
    std::vector<WalkNode> visited{tree.node(path.back())};
    const std::size_t length = context.rng().below(context.max_steps() + 1 - visited[0].steps);
    WalkNode end = visited[0];
    for (std::size_t step = 0; step < length; ++step) {
      std::optional<WalkNode> next = context.random_child(end);
      if (!next) {
        break;
      }
      end = *std::move(next);
    }
    visited.push_back(std::move(end));
    const std::size_t before = context.measured();
    co_await context.measure(states_of(visited));
    idle = context.measured() > before ? -1 : idle;
    tree.update(path, std::min(context.value(visited[0].state), context.value(visited[1].state)));
  }
}

constexpr std::array<std::pair<std::string_view, WalkStrategy::Function>, 9> kWalks{
    {{"random", walk_randomly},
     {"exhaustive", walk_everywhere},
     {"evolution", walk_evolution},
     {"annealing", walk_annealing},
     {"greedy", walk_greedily},
     {"beam-bfs", walk_beam},
     {"beam-dfs", walk_depth_first},
     {"mcts", walk_tree},
     {"guided", walk_guided}}};

// Makes a walk, which needs no problem.
template <WalkStrategy::Function kFunction>
StrategyResult make_walk(const Problem& /*problem*/, const Space& space,
                         const StrategyOptions& options) {
  const auto* const found = std::find_if(kWalks.begin(), kWalks.end(),
                                         [](const auto& walk) { return walk.second == kFunction; });
  return create_walk(found->first, space, options);
}

}  // namespace

const StrategyEntry& greedy_strategy() {
  static const StrategyEntry entry{"greedy", "to the best that a few changes lead to",
                                   make_walk<walk_greedily>, true};
  return entry;
}

const StrategyEntry& beam_bfs_strategy() {
  static const StrategyEntry entry{"beam-bfs", "from the best few of each level to the next",
                                   make_walk<walk_beam>, true};
  return entry;
}

const StrategyEntry& beam_dfs_strategy() {
  static const StrategyEntry entry{"beam-dfs", "the best few of each state, depth first",
                                   make_walk<walk_depth_first>, true};
  return entry;
}

const StrategyEntry& mcts_strategy() {
  static const StrategyEntry entry{"mcts", "Monte Carlo tree search", make_walk<walk_tree>, true};
  return entry;
}

const StrategyEntry& guided_strategy() {
  static const StrategyEntry entry{"guided",
                                   "a beam along a model that learns from what is measured",
                                   make_walk<walk_guided>, true};
  return entry;
}

Result<std::unique_ptr<Strategy>> create_walk(std::string_view name, const Space& space,
                                              const StrategyOptions& options) {
  FORETUNE_TRY_STATUS(check_walkable(name, space));
  if (name == "guided" && options.learner == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "the strategy 'guided' needs what learns");
  }
  std::vector<std::string> names;
  for (const auto& [known, function] : kWalks) {
    if (known == name) {
      return std::unique_ptr<Strategy>(std::make_unique<WalkStrategy>(space, options, function));
    }
    names.emplace_back(known);
  }
  return no_strategy(name, names);
}

}  // namespace foretune
