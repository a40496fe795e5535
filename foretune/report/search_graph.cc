#include "foretune/report/search_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/base/figures.h"
#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/report/internal/plot_parts.h"

namespace foretune::report_internal {
namespace {

struct Colour {
  int red;
  int green;
  int blue;
};
// From nothing to the peak: the plots' blues.
constexpr std::array kScale{Colour{0xf1, 0xf4, 0xf8}, Colour{0xb5, 0xd0, 0xef},
                            Colour{0x6f, 0xa5, 0xdf}, Colour{0x1c, 0x5c, 0xb8}};
// From here on letters are white.
constexpr double kDark = 0.75;

std::string colour_text(double share) {
  const double place = std::clamp(share, 0.0, 1.0) * (kScale.size() - 1);
  const auto from = std::min(static_cast<std::size_t>(place), kScale.size() - 2);
  const double part = place - static_cast<double>(from);
  std::string out = "#";
  for (int Colour::* channel : {&Colour::red, &Colour::green, &Colour::blue}) {
    const double low = kScale[from].*channel;
    const double high = kScale[from + 1].*channel;
    const auto value = static_cast<unsigned>(std::lround(low + part * (high - low)));
    constexpr std::string_view kDigits = "0123456789abcdef";
    out += kDigits[value / 16];
    out += kDigits[value % 16];
  }
  return out;
}

// A label of several lines, quotes included.
std::string lines_quoted(std::span<const std::string> lines) {
  std::string out = "\"";
  for (const std::string& line : lines) {
    const std::string quoted_line = dot_quoted(line);
    out += concat(out.size() > 1 ? "\\n" : "",
                  std::string_view(quoted_line).substr(1, quoted_line.size() - 2));
  }
  return out + "\"";
}

// A config that one change leads to, and the actions that do.
struct Changed {
  Config config;  // canonical
  std::string actions;
};

// Where configs are not built step by step: the neighbours, without words for what changes.
std::vector<Changed> neighbours_of(const Space& space, const Config& config) {
  std::vector<Changed> out;
  for (Config& neighbour : space.neighbours(config)) {
    out.push_back({space.canonical(neighbour), {}});
  }
  return out;
}

// In the order of the fewest actions. Some actions lead to states that mean the same, as moving a
// cursor does; from these the change is looked for in turn.
std::vector<Changed> changes_of(const Space& space, const Config& config, std::size_t max_steps) {
  const SequentialSpace* const walked = space.sequential();
  if (walked == nullptr) {
    return neighbours_of(space, config);
  }
  struct Reached {
    Config state;
    std::string actions;
    std::size_t steps;
  };
  std::vector<Changed> out;
  std::vector<Reached> open{{config, {}, 0}};
  std::unordered_set<Config> seen{config};
  for (std::size_t i = 0; i < open.size(); ++i) {
    const Reached here = open[i];
    if (here.steps == max_steps) {
      break;
    }
    const std::vector<bool> legal = walked->legal_actions(here.state);
    for (std::size_t action = 0; action < legal.size(); ++action) {
      if (!legal[action]) {
        continue;
      }
      const auto next = walked->apply(here.state, action);
      if (!next || !seen.insert(*next).second) {
        continue;
      }
      std::string actions =
          concat(here.actions, here.actions.empty() ? "" : ", ", walked->action_text(action));
      Config meaning = space.canonical(*next);
      if (meaning == config) {
        open.push_back({*next, std::move(actions), here.steps + 1});
      } else {
        out.push_back({std::move(meaning), std::move(actions)});
      }
    }
  }
  return out;
}

class SearchGraph {
 public:
  SearchGraph(const Space& space, const ContestTrace& trace, const GraphOptions& options)
      : space_(space), trace_(trace), options_(options), start_(start_of(space, trace)) {
    for (std::size_t i = 0; i < trace_.steps.size(); ++i) {
      numbers_.emplace(trace_.steps[i].config, i);
      fastest_ = std::max(fastest_, trace_.steps[i].speed);
    }
    has_best_ = trace_.best < trace_.steps.size() && trace_.steps[trace_.best].speed > 0;
    parents_.resize(trace_.steps.size());
    connect();
    choose();
  }

  [[nodiscard]] std::string text() const {
    std::string out =
        concat("digraph search {\n  rankdir=LR;\n  labelloc=t;\n  fontname=Helvetica;\n  label=",
               lines_quoted(title()),
               ";\n  node [shape=box, style=\"filled,rounded\", fontname=Helvetica, "
               "fontsize=11, color=\"#8a8f98\"];\n  edge [fontname=Helvetica, "
               "fontsize=10, color=\"#8a8f98\", fontcolor=\"#5b606b\"];\n");
    if (numbers_.find(start_) == numbers_.end()) {
      out += concat("  start [label=\"start\\nnot measured\", fillcolor=white",
                    has_best_ ? ", color=\"#c5321c\", penwidth=3" : "", "];\n");
    }
    for (const std::size_t step : shown_) {
      out += node(step);
    }
    for (const std::size_t step : shown_) {
      out += edge(step);
    }
    return out + "}\n";
  }

 private:
  // The start of a space that is built step by step, else what was measured first.
  static Config start_of(const Space& space, const ContestTrace& trace) {
    if (const SequentialSpace* const walked = space.sequential()) {
      return space.canonical(walked->start());
    }
    return trace.steps.empty() ? Config() : trace.steps.front().config;
  }

  static constexpr std::size_t kStart = static_cast<std::size_t>(-1);  // where it is not measured
  struct Parent {
    bool is_known = false;
    std::size_t step = 0;
    std::string actions;
  };

  // Every config to the first one that was measured before it. Those behind the last node that is
  // shown are of no use.
  void connect() {
    std::size_t end = std::min(trace_.steps.size(), options_.max_nodes);
    end = std::max(end, has_best_ ? trace_.best + 1 : 0);
    const auto adopt = [this, end](const Config& from, std::size_t step) {
      for (Changed& changed : changes_of(space_, from, options_.max_steps)) {
        const auto found = numbers_.find(changed.config);
        if (found == numbers_.end() || found->second >= end || parents_[found->second].is_known ||
            (step != kStart && found->second <= step)) {
          continue;
        }
        parents_[found->second] = {true, step, std::move(changed.actions)};
      }
    };
    if (numbers_.find(start_) == numbers_.end()) {
      adopt(start_, kStart);
    }
    for (std::size_t step = 0; step < end; ++step) {
      adopt(trace_.steps[step].config, step);
    }
  }

  [[nodiscard]] std::size_t start_step() const {
    const auto found = numbers_.find(start_);
    return found == numbers_.end() ? kStart : found->second;
  }
  [[nodiscard]] bool is_start(std::size_t step) const { return step == start_step(); }

  // The way to the fastest from its end, and the first ones for as long as there is room.
  void choose() {
    for (std::size_t step = trace_.best; has_best_ && step != kStart;) {
      on_way_.insert(step);
      if (is_start(step)) {
        break;
      }
      step = parents_[step].is_known ? parents_[step].step : start_step();
    }
    // Where edges begin that come from nowhere else.
    const auto has_to_be_there = [this](std::size_t step) {
      return on_way_.count(step) > 0 || is_start(step);
    };
    const std::size_t least =
        on_way_.size() + (start_step() != kStart && on_way_.count(start_step()) == 0 ? 1 : 0);
    std::size_t others = options_.max_nodes - std::min(options_.max_nodes, least);
    for (std::size_t step = 0; step < trace_.steps.size(); ++step) {
      // A config that was measured again is the node that it is already.
      if (numbers_.at(trace_.steps[step].config) != step) {
        continue;
      }
      if (has_to_be_there(step)) {
        shown_.push_back(step);
      } else if (others > 0) {
        shown_.push_back(step);
        --others;
      }
    }
  }

  [[nodiscard]] double scale() const { return options_.peak > 0 ? options_.peak : fastest_; }
  [[nodiscard]] std::string speed_text(double speed) const {
    return concat(short_number(speed), " ", options_.unit,
                  options_.peak > 0
                      ? concat(", ", fixed(100 * speed / options_.peak, 1), " % of the peak")
                      : std::string());
  }

  [[nodiscard]] std::vector<std::string> title() const {
    std::vector<std::string> out{options_.title,
                                 concat(count_of(numbers_.size(), "config"), " measured in ",
                                        duration_text(trace_.elapsed_s))};
    if (shown_.size() < numbers_.size()) {
      out.back() += concat(", ", shown_.size(), " of them here");
    }
    if (has_best_) {
      const double speed = trace_.steps[trace_.best].speed;
      // The best are timed again in turns, which may show another one to be the fastest.
      out.push_back(concat(speed < fastest_ ? "fastest when timed again: #" : "fastest: #",
                           trace_.best + 1, ", ", speed_text(speed),
                           speed < fastest_ ? " in the search" : ""));
    }
    if (!options_.source.empty()) {
      out.push_back(options_.source);
    }
    return out;
  }

  [[nodiscard]] std::string node(std::size_t step) const {
    const ContestStep& measured = trace_.steps[step];
    const bool is_refused = !(measured.speed > 0);
    const double share = is_refused ? 0 : measured.speed / scale();
    const std::array<std::string, 3> label{
        concat("#", step + 1, is_start(step) ? " start" : ""),
        is_refused ? std::string("refused") : speed_text(measured.speed),
        duration_text(measured.elapsed_s)};
    std::string out = concat("  ", step + 1, " [label=", lines_quoted(label),
                             ", tooltip=", dot_quoted(space_.describe(measured.config)));
    if (is_refused) {
      out += ", style=\"filled,rounded,dashed\", fillcolor=\"#ececec\", fontcolor=\"#70757f\"";
    } else {
      out += concat(", fillcolor=\"", colour_text(share), "\"",
                    share > kDark ? ", fontcolor=white" : "");
    }
    return out + (on_way_.count(step) > 0 ? ", color=\"#c5321c\", penwidth=3];\n" : "];\n");
  }

  [[nodiscard]] std::string edge(std::size_t step) const {
    const Parent& parent = parents_[step];
    if (is_start(step)) {
      return {};
    }
    // A list of configs may begin with others than the start.
    const std::size_t from = parent.is_known ? parent.step : start_step();
    std::string out = concat("  ", from == kStart ? std::string("start") : concat(from + 1), " -> ",
                             step + 1, " [");
    out += parent.is_known ? concat("label=", dot_quoted(parent.actions))
                           : std::string("style=dashed");
    return out + (on_way_.count(step) > 0 ? ", color=\"#c5321c\", penwidth=3];\n" : "];\n");
  }

  const Space& space_;
  const ContestTrace& trace_;
  GraphOptions options_;
  Config start_;
  std::unordered_map<Config, std::size_t> numbers_;  // of the steps that measured them first
  double fastest_ = 0;
  bool has_best_ = false;
  std::vector<Parent> parents_;  // of steps
  std::unordered_set<std::size_t> on_way_;
  std::vector<std::size_t> shown_;  // steps
};

}  // namespace
}  // namespace foretune::report_internal

namespace foretune {

std::string search_graph_dot(const Space& space, const ContestTrace& trace,
                             const GraphOptions& options) {
  return report_internal::SearchGraph(space, trace, options).text();
}

}  // namespace foretune
