#include "foretune/loop/cursor_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/loop/canonical_schedule.h"
#include "foretune/loop/computation_text.h"
#include "foretune/search/strategy.h"

namespace foretune::loop {
namespace {

using ::testing::HasSubstr;

Computation computation(std::string_view text) { return parse_computation(text).value(); }

VectorUnit unit() { return VectorUnit::of(CpuIsa::kAvx2); }

std::vector<std::unique_ptr<ScheduleSpace>> spaces() {
  std::vector<std::unique_ptr<ScheduleSpace>> all;
  for (const char* text : {"mm m=48 n=40 k=33", "mm m=12 n=20 k=16 batch=3 ta bias relu",
                           "conv c=8 h=9 w=9 o=16 r=3 s=3 pad=1 nhwc", "reduce r=64 c=100"}) {
    all.push_back(cursor_space(computation(text), unit(), ActionSet()));
    all.push_back(cursor_space(computation(text), unit(), ActionSet::all()));
    all.push_back(ScheduleSpace::of_loops(computation(text), unit()));
  }
  return all;
}

TEST(ScheduleSpace, WalksStayLegalAndRoundTrip) {
  Rng rng(11);
  for (const auto& space : spaces()) {
    SCOPED_TRACE(concat(space->computation().name, ", ", space->action_count(), " actions"));
    for (int walk = 0; walk < 30; ++walk) {
      Config here = space->start();
      for (int step = 0; step < 12; ++step) {
        ASSERT_TRUE(space->why_not(here));
        const State state = space->state(here).value();
        EXPECT_EQ(space->config(state), here);
        EXPECT_EQ(space->nest(space->canonical(here)).value(), state.nest);
        EXPECT_EQ(space->canonical(space->canonical(here)), space->canonical(here));
        EXPECT_EQ(parse_config(space->schema(), to_text(space->schema(), here)).value(), here);
        const std::vector<bool> legal = space->legal_actions(here);
        ASSERT_EQ(legal.size(), space->action_count());
        std::vector<Config> next;
        for (std::size_t action = 0; action < legal.size(); ++action) {
          auto applied = space->apply(here, action);
          EXPECT_FALSE(space->action_text(action).empty());
          if (legal[action]) {
            ASSERT_TRUE(applied) << space->action_text(action) << ": " << applied.error().message;
            EXPECT_NE(*applied, here);
            next.push_back(*std::move(applied));
          }
        }
        EXPECT_EQ(space->neighbours(here), next);
        if (next.empty()) {
          break;
        }
        here = next[rng.below(next.size())];
      }
    }
  }
}

TEST(ScheduleSpace, CursorsDoWhatTheEnvironmentDoes) {
  const Computation product = computation("mm m=64 n=64 k=64");
  const ActionSet actions;
  const auto space = cursor_space(product, unit(), actions);
  EXPECT_EQ(space->action_count(), actions.size() - 1);  // no stop
  Rng rng(5);
  State state = State::start(product);
  Config config = space->start();
  for (int step = 0; step < 200; ++step) {
    const std::size_t action = rng.below(space->action_count());
    const auto expected = apply(product, state, actions[action]);
    const auto next = space->apply(config, action);
    ASSERT_EQ(next.has_value(), expected.has_value());
    if (next) {
      state = *expected;
      config = *next;
      EXPECT_EQ(space->state(config).value(), state);
    } else {
      EXPECT_EQ(next.error().message, expected.error().message);
    }
  }
}

TEST(ScheduleSpace, WhereTheCursorIsHasNoMeaning) {
  const auto space = cursor_space(computation("mm m=64 n=64 k=64"), unit(), ActionSet());
  const Config moved = space->apply(space->start(), 1).value();  // down
  EXPECT_NE(moved, space->start());
  EXPECT_EQ(space->canonical(moved), space->start());
}

TEST(ScheduleSpace, DifferentWaysToANestAreOneConfig) {
  const auto space = ScheduleSpace::of_loops(computation("mm m=64 n=64 k=64"), unit());
  const auto config = [&](std::string_view schedule) {
    const Computation& product = space->computation();
    const auto nest = apply_all(product, parse_schedule(product, schedule).value());
    return space->config({.nest = nest.value(), .cursor = 0});
  };
  EXPECT_EQ(config("split m0 4, split m0 2"), config("split m0 8, split m1 4"));
  EXPECT_NE(config("split m0 4"), config("split m0 8"));
  EXPECT_EQ(space->text(config("split m0 4, split m0 2")), "split m0 8, split m1 4");
}

TEST(ScheduleSpace, StartsWhereItIsTold) {
  const Computation product = computation("mm m=64 n=64 k=64");
  const Nest swapped = apply(product, Nest::plain(product), Action::swap(0)).value();
  const auto space = cursor_space(product, unit(), ActionSet(), swapped);
  EXPECT_EQ(space->nest(space->start()).value(), swapped);
}

TEST(ScheduleSpace, ExhaustiveWalksFindEveryNestOnce) {
  const Computation product = computation("mm m=16 n=32 k=8");
  const ActionSet actions;
  const auto space = cursor_space(product, unit(), actions);
  // Finds the states that four actions reach, by the environment alone.
  std::set<std::string> states;
  std::vector<State> open{State::start(product)};
  for (int step = 0; step <= 4; ++step) {
    std::vector<State> next;
    for (const State& state : open) {
      states.insert(to_text(product, schedule_of(product, state.nest)));
      for (std::size_t action = 0; action + 1 < actions.size(); ++action) {
        if (auto applied = apply(product, state, actions[action])) {
          next.push_back(*std::move(applied));
        }
      }
    }
    open = std::move(next);
  }
  const auto walk = create_walk("exhaustive", *space, {.max_steps = 4}).value();
  Rng rng(1);
  std::unordered_set<Config> asked;
  for (auto batch = walk->ask(64, rng); !batch.empty(); batch = walk->ask(64, rng)) {
    std::vector<Trial> trials;
    for (const Config& config : batch) {
      EXPECT_TRUE(asked.insert(config).second);
      trials.push_back({.config = config, .value = 1});
    }
    walk->tell(trials);
  }
  EXPECT_EQ(asked.size(), states.size());
}

TEST(ScheduleSpace, RefusesWhatIsNoSchedule) {
  const auto space = cursor_space(computation("mm m=64 n=64 k=64"), unit(), ActionSet());
  const auto reason = [&](std::initializer_list<std::int32_t> words) {
    return space->why_not(Config{space->schema().id(), Config::Words(words)}).reason();
  };
  EXPECT_EQ(reason({1, 0}), "the config is no schedule of loops");
  EXPECT_EQ(space->why_not(Config{7, {}}).reason(), "the config is no schedule of loops");
  EXPECT_FALSE(reason({}).empty());
  const Config start = space->start();
  const auto with = [&](std::initializer_list<std::int32_t> words) {
    Config config = start;
    for (const std::int32_t word : words) {
      config.words.push_back(word);
    }
    return space->why_not(config).reason();
  };
  EXPECT_EQ(with({7, 9, 0}), "the cursor is at no loop");
  EXPECT_EQ(with({7, 1, 0, 5, 1, 0}), "the config is no schedule of loops");  // out of order
  EXPECT_EQ(with({99, 0, 0}), "the config is no schedule of loops");
  EXPECT_EQ(with({0, 0, 0}), "the config is no schedule of loops");
  EXPECT_FALSE(with({5, 77, 0}).empty());   // a block at no loop
  EXPECT_FALSE(with({6, 9, 0}).empty());    // of no input
  EXPECT_FALSE(with({1, 0, 64}).empty());   // a loop that goes nowhere
  EXPECT_FALSE(with({1, 200, 1}).empty());  // over no variable
  EXPECT_THAT(space->apply(space->start(), 99).error().message, HasSubstr("no action 99"));
  // Any values give a reason or a schedule.
  Rng rng(3);
  for (int i = 0; i < 20000; ++i) {
    Config config = i % 2 == 0 ? start : Config{space->schema().id(), {}};
    for (std::uint64_t left = rng.below(13); left > 0; --left) {
      config.words.push_back(static_cast<std::int32_t>(rng.below(20)) - 3);
    }
    if (const Support support = space->why_not(config); !support) {
      EXPECT_FALSE(support.reason().empty());
    } else {
      EXPECT_TRUE(space->why_not(space->canonical(config)));
    }
  }
}

}  // namespace
}  // namespace foretune::loop
