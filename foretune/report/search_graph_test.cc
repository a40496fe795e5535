#include "foretune/report/search_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/families/loop_nest/loop_nest.h"
#include "foretune/loop/computation_text.h"
#include "foretune/loop/cursor_actions.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/measure/testing/measurers.h"
#include "foretune/search/walk.h"

namespace foretune {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_support::HashMeasurer;

constexpr std::size_t kMaxSteps = 10;

// Returns LoopTune's actions on a product, or the actions that name their loop.
NestBench small_product(bool names_loops = false) {
  LoopNestOptions options{.has_textbook_defaults = false};
  if (!names_loops) {
    options.actions = loop::ActionSet();
  }
  return make_nest_bench(loop::parse_computation("mm m=16 n=16 k=16").value(), options).value();
}

class SearchGraphTest : public testing::Test {
 protected:
  explicit SearchGraphTest(bool names_loops = false)
      : bench_(small_product(names_loops)),
        owned_(bench_.family->space(bench_.problem).value()),
        space_(dynamic_cast<const loop::ScheduleSpace*>(owned_.get())) {}

  [[nodiscard]] ContestTrace search(std::string_view method, std::size_t measurements) const {
    HashMeasurer measurer(7);
    double now = 0;
    ContestOptions options;
    options.tune.seed = 3;
    options.tune.max_steps = kMaxSteps;
    options.tune.budget.measurements = measurements;
    CollectHooks hooks;
    hooks.now_s = [&now] { return now += 0.01; };
    return run_contest(*bench_.family, measurer, nullptr, bench_.problem,
                       Contestant::parse_list(method).value(), options, hooks)
        .value()
        .entries.front()
        .trace;
  }

  NestBench bench_;
  std::unique_ptr<Space> owned_;
  const loop::ScheduleSpace* space_;
};

class SearchGraphOfLoopsTest : public SearchGraphTest {
 protected:
  SearchGraphOfLoopsTest() : SearchGraphTest(true) {}
};

struct Node {
  std::string text;  // between the brackets
  bool is_red = false;
};
struct Edge {
  std::string from;
  std::string actions;
  bool is_dashed = false;
  bool is_red = false;
};
// The drawn graph: nodes by name, edges by the node where they end.
struct Drawn {
  std::map<std::string, Node> nodes;
  std::map<std::string, Edge> edges;
};

Drawn read(const std::string& dot) {
  Drawn out;
  for (const std::string_view line : split(dot, '\n')) {
    const std::vector<std::string_view> words = split_words(line);
    if (words.size() < 2 || words[0] == "node" || words[0] == "edge" || !line.starts_with("  ")) {
      continue;
    }
    const bool is_red = line.find("color=\"#c5321c\", penwidth=3") != std::string_view::npos;
    if (words[1] == "->") {
      Edge edge{.from = std::string(words[0]),
                .is_dashed = line.find("style=dashed") != std::string_view::npos,
                .is_red = is_red};
      if (const std::size_t label = line.find("label=\""); label != std::string_view::npos) {
        edge.actions = line.substr(label + 7, line.find('"', label + 7) - label - 7);
      }
      EXPECT_TRUE(out.edges.emplace(words[2], edge).second) << line;
    } else if (words[1].starts_with('[')) {
      EXPECT_TRUE(out.nodes.emplace(words[0], Node{std::string(line), is_red}).second) << line;
    }
  }
  return out;
}

// Finds parents by the definition, with another module's notion of one change.
std::map<std::size_t, std::size_t> parents_by_definition(const loop::ScheduleSpace& space,
                                                         const ContestTrace& trace) {
  const WalkContext context(space, space, kMaxSteps);
  std::map<std::size_t, std::size_t> out;
  for (std::size_t from = 0; from < trace.steps.size(); ++from) {
    for (const WalkNode& node : context.changed({trace.steps[from].config, 0}, 1)) {
      for (std::size_t to = from + 1; to < trace.steps.size(); ++to) {
        if (trace.steps[to].config == context.canonical(node.state)) {
          out.emplace(to, from);
        }
      }
    }
  }
  return out;
}

TEST_F(SearchGraphTest, EdgesComeFromTheFirstScheduleOneChangeAway) {
  for (const char* method : {"beam2bfs", "random", "greedy2"}) {
    const ContestTrace trace = search(method, 80);
    const Drawn drawn =
        read(search_graph_dot(*space_, trace, {.peak = 100, .max_steps = kMaxSteps}));
    EXPECT_EQ(drawn.nodes.size(), trace.steps.size());
    EXPECT_EQ(drawn.edges.size() + 1, trace.steps.size());
    const auto parents = parents_by_definition(*space_, trace);
    for (std::size_t step = 1; step < trace.steps.size(); ++step) {
      const Edge& edge = drawn.edges.at(concat(step + 1));
      const auto parent = parents.find(step);
      EXPECT_EQ(edge.is_dashed, parent == parents.end());
      EXPECT_EQ(edge.from, concat(parent == parents.end() ? 1 : parent->second + 1));
    }
  }
}

TEST_F(SearchGraphTest, ActionsOfAnEdgeLeadAlongIt) {
  const ContestTrace trace = search("beam2bfs", 80);
  const Drawn drawn = read(search_graph_dot(*space_, trace, {}));
  std::size_t checked = 0;
  for (const auto& [to, edge] : drawn.edges) {
    if (edge.is_dashed) {
      continue;
    }
    const auto step_of = [&trace](const std::string& name) {
      return trace.steps[static_cast<std::size_t>(*parse_int(name)) - 1];
    };
    auto state = space_->state(step_of(edge.from).config);
    ASSERT_TRUE(state);
    const auto actions = loop::parse_actions(edge.actions);
    ASSERT_TRUE(actions) << edge.actions;
    const auto there = loop::replay(space_->computation(), *state, *actions);
    ASSERT_TRUE(there) << there.error().message;
    EXPECT_EQ(space_->canonical(space_->config(*there)), step_of(to).config);
    ++checked;
  }
  EXPECT_GT(checked, 30U);
}

TEST_F(SearchGraphTest, TheWayToTheFastestIsRed) {
  const ContestTrace trace = search("beam2bfs", 80);
  const Drawn drawn = read(search_graph_dot(*space_, trace, {.peak = 100}));
  std::set<std::string> way;
  for (std::string at = concat(trace.best + 1);; at = drawn.edges.at(at).from) {
    way.insert(at);
    if (at == "1") {
      break;
    }
  }
  EXPECT_GT(way.size(), 2U);
  for (const auto& [name, node] : drawn.nodes) {
    EXPECT_EQ(node.is_red, way.count(name) > 0) << name;
  }
  for (const auto& [name, edge] : drawn.edges) {
    EXPECT_EQ(edge.is_red, way.count(name) > 0) << name;
  }
}

TEST_F(SearchGraphTest, NodesTellSpeedAndTimeAndWhatWasRefused) {
  ContestTrace trace = search("random", 60);
  trace.steps[3].speed = 0;
  trace.steps[4].speed = 50;
  trace.steps[5].speed = 100;
  trace.steps[5].elapsed_s = 1.25;
  const Drawn drawn = read(search_graph_dot(*space_, trace, {.peak = 100}));
  EXPECT_THAT(drawn.nodes.at("1").text, HasSubstr("label=\"#1 start\\n"));
  EXPECT_THAT(drawn.nodes.at("1").text, HasSubstr("tooltip=\"the plain nest\""));
  EXPECT_THAT(drawn.nodes.at("4").text, HasSubstr("refused"));
  EXPECT_THAT(drawn.nodes.at("4").text, HasSubstr("dashed"));
  EXPECT_THAT(drawn.nodes.at("5").text, HasSubstr("50.0 GFLOP/s, 50.0 % of the peak"));
  EXPECT_THAT(drawn.nodes.at("5").text, Not(HasSubstr("dashed")));
  EXPECT_THAT(drawn.nodes.at("6").text, HasSubstr("fillcolor=\"#1c5cb8\", fontcolor=white"));
  EXPECT_THAT(drawn.nodes.at("6").text, HasSubstr("\\n1.2 s\""));
  EXPECT_THAT(drawn.nodes.at("6").text, HasSubstr("split"));
}

TEST_F(SearchGraphTest, OfTooManyTheFirstAndTheWayToTheFastestStay) {
  ContestTrace trace = search("mcts", 120);
  ASSERT_EQ(trace.steps.size(), 120U);
  trace.best = 110;
  trace.steps[110].speed = 1000;
  const std::string all = search_graph_dot(*space_, trace, {});
  const Drawn drawn = read(all);
  const std::string some = search_graph_dot(*space_, trace, {.max_nodes = 20});
  const Drawn bounded = read(some);
  EXPECT_EQ(bounded.nodes.size(), 20U);
  EXPECT_THAT(some, HasSubstr("20 of them here"));
  EXPECT_THAT(all, Not(HasSubstr("of them here")));
  std::size_t red = 0;
  for (const auto& [name, node] : bounded.nodes) {
    EXPECT_EQ(node.text, drawn.nodes.at(name).text);
    red += node.is_red ? 1 : 0;
    if (name != "1") {
      EXPECT_EQ(bounded.edges.at(name).from, drawn.edges.at(name).from);
      EXPECT_EQ(bounded.nodes.count(bounded.edges.at(name).from), 1U);
    }
  }
  EXPECT_EQ(bounded.nodes.count("111"), 1U);
  EXPECT_EQ(bounded.nodes.count("10"), 1U);
  // The path is complete even where it is too long.
  EXPECT_EQ(read(search_graph_dot(*space_, trace, {.max_nodes = 1})).nodes.size(), red);
}

TEST_F(SearchGraphTest, AStartThatWasNotMeasuredIsThereAllTheSame) {
  ContestTrace trace = search("greedy1", 30);
  trace.steps.erase(trace.steps.begin());
  trace.best -= 1;
  const Drawn drawn = read(search_graph_dot(*space_, trace, {}));
  EXPECT_EQ(drawn.nodes.size(), trace.steps.size() + 1);
  EXPECT_THAT(drawn.nodes.at("start").text, HasSubstr("not measured"));
  EXPECT_TRUE(drawn.nodes.at("start").is_red);
  EXPECT_EQ(drawn.edges.at("1").from, "start");
  EXPECT_FALSE(drawn.edges.at("1").is_dashed);
}

TEST_F(SearchGraphTest, TheTitleSaysWhenAnotherOneWasFasterInTheSearch) {
  ContestTrace trace = search("greedy1", 30);
  trace.steps[trace.best].speed = 1000;
  EXPECT_THAT(search_graph_dot(*space_, trace, {}),
              HasSubstr(concat("fastest: #", trace.best + 1)));
  trace.steps[trace.best == 0 ? 1 : 0].speed = 2000;
  EXPECT_THAT(search_graph_dot(*space_, trace, {}),
              HasSubstr(concat("fastest when timed again: #", trace.best + 1)));
}

TEST_F(SearchGraphTest, AStartThatWasMeasuredLateIsShownInAnyCase) {
  ContestTrace trace = search("greedy1", 30);
  std::swap(trace.steps.front(), trace.steps.back());
  trace.best = 0;
  trace.steps[0].speed = 1000;
  const Drawn drawn = read(search_graph_dot(*space_, trace, {.max_nodes = 3}));
  EXPECT_EQ(drawn.nodes.size(), 3U);
  EXPECT_EQ(drawn.nodes.count(concat(trace.steps.size())), 1U);
  for (const auto& [name, edge] : drawn.edges) {
    EXPECT_EQ(drawn.nodes.count(edge.from), 1U);
  }
}

TEST_F(SearchGraphOfLoopsTest, IsTheSameTextForTheSameSearchOfAnySpace) {
  const ContestTrace trace = search("random", 40);
  const std::string dot = search_graph_dot(*space_, trace, {});
  EXPECT_EQ(dot, search_graph_dot(*space_, trace, {}));
  EXPECT_EQ(read(dot).nodes.size(), trace.steps.size());
  EXPECT_THAT(dot, HasSubstr("label=\"split loop"));
  EXPECT_EQ(read(search_graph_dot(*space_, {}, {})).nodes.size(), 1U);
}

}  // namespace
}  // namespace foretune
