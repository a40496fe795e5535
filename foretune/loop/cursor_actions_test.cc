#include "foretune/loop/cursor_actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/loop/machine/testing/loop_samples.h"
#include "foretune/loop/machine/testing/random_cases.h"

namespace foretune::loop {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

loop::Computation product(std::int64_t size = 128) {
  return loop::matmul({.m = size, .n = size, .k = size}).value();
}

Result<State> replayed(const loop::Computation& computation, std::string_view actions,
                       const loop::Limits& limits = kLoopTuneLimits) {
  FORETUNE_TRY(const std::vector<CursorAction> parsed, parse_actions(actions));
  return replay(computation, State::start(computation), parsed, limits);
}

// Each loop as name/step, the cursor's between brackets.
std::vector<std::string> loops_of(const loop::Computation& computation, const State& state) {
  constexpr std::array<std::string_view, 4> kMarks = {"", " unroll", " vector", " parallel"};
  std::vector<std::string> out;
  for (std::size_t level = 0; level < state.nest.loops.size(); ++level) {
    const loop::Loop& loop = state.nest.loops[level];
    const std::string text = concat(loop::loop_name(computation, state.nest, level), "/", loop.step,
                                    kMarks[static_cast<std::size_t>(loop.mark)]);
    out.push_back(level == state.cursor ? concat("[", text, "]") : text);
  }
  return out;
}

std::vector<std::string> after(std::string_view actions,
                               const loop::Computation& computation = product()) {
  const Result<State> state = replayed(computation, actions);
  EXPECT_TRUE(state) << actions << ": " << state.error().message;
  return state ? loops_of(computation, *state) : std::vector<std::string>();
}

std::string refusal(std::string_view actions, const loop::Computation& computation = product(),
                    const loop::Limits& limits = kLoopTuneLimits) {
  const Result<State> state = replayed(computation, actions, limits);
  EXPECT_FALSE(state) << actions << " is legal";
  return state ? "" : state.error().message;
}

TEST(CursorActions, StartAtTheOutermostLoopOfThePlainNest) {
  EXPECT_THAT(after(""), ElementsAre("[m0/1]", "k0/1", "n0/1"));
}

TEST(CursorActions, MoveTheCursor) {
  EXPECT_THAT(after("down"), ElementsAre("m0/1", "[k0/1]", "n0/1"));
  EXPECT_THAT(after("down down up"), ElementsAre("m0/1", "[k0/1]", "n0/1"));
  EXPECT_EQ(refusal("up"), "action 1 'up': m0 is the outermost loop");
  EXPECT_EQ(refusal("down,down,down"), "action 3 'down': n0 is the innermost loop");
}

TEST(CursorActions, SwapAndTheCursorFollows) {
  EXPECT_THAT(after("swap_down"), ElementsAre("k0/1", "[m0/1]", "n0/1"));
  EXPECT_THAT(after("down,down,swap_up"), ElementsAre("m0/1", "[n0/1]", "k0/1"));
  EXPECT_EQ(after("down,swap_down,swap_up"), after("down"));
  EXPECT_EQ(refusal("swap_up"), "action 1 'swap_up': m0 is the outermost loop");
  EXPECT_EQ(refusal("down,down,swap_down"), "action 3 'swap_down': n0 is the innermost loop");
}

TEST(CursorActions, DoNotSwapLoopsOverTheSameVariable) {
  EXPECT_THAT(refusal("split_4,swap_down"), HasSubstr("over the same variable"));
  EXPECT_THAT(refusal("split_4,down,swap_up"), HasSubstr("over the same variable"));
}

TEST(CursorActions, SplitPutsALoopInsideAndStaysOutside) {
  EXPECT_THAT(after("split_4"), ElementsAre("[m0/4]", "m1/1", "k0/1", "n0/1"));
  EXPECT_THAT(after("split_4,split_8"), ElementsAre("[m0/32]", "m1/4", "m2/1", "k0/1", "n0/1"));
  EXPECT_THAT(after("split_16,down,split_2"),
              ElementsAre("m0/16", "[m1/2]", "m2/1", "k0/1", "n0/1"));
  const auto computation = product(100);
  const State state = replayed(computation, "split_16").value();
  EXPECT_EQ(state.nest.rounds(computation, 0), 7);
  EXPECT_EQ(state.nest.remainder(computation, 0), 4);
}

TEST(CursorActions, SplitBelowTheNumberOfRounds) {
  EXPECT_TRUE(replayed(product(65), "split_64"));
  EXPECT_THAT(refusal("split_64", product(64)), HasSubstr("would have 1 round"));
  EXPECT_TRUE(replayed(product(65), "split_16,split_4"));  // 5 rounds, the last one shorter
  EXPECT_THAT(refusal("split_16,split_4", product(64)), HasSubstr("would have 1 round"));
}

TEST(CursorActions, SplitUpToTheLimitOfLoops) {
  EXPECT_TRUE(replayed(product(), "split_2", {.max_loops = 4}));
  EXPECT_THAT(refusal("split_2,split_2", product(), {.max_loops = 4}),
              HasSubstr("there are 4 loops already, and may be 4"));
  EXPECT_EQ(kLoopTuneLimits.max_loops, 10U);
}

TEST(CursorActions, MergeAndTheCursorFollows) {
  EXPECT_THAT(after("split_4,down,swap_down,merge"), ElementsAre("[m0/1]", "k0/1", "n0/1"));
  EXPECT_THAT(after("split_4,split_8,down,merge"), ElementsAre("[m0/4]", "m1/1", "k0/1", "n0/1"));
  EXPECT_THAT(refusal("merge"), HasSubstr("no loop around m0"));
}

TEST(CursorActions, MarkTheLoopOnce) {
  EXPECT_THAT(after("down,down,split_4,down,unroll,up,up,vectorize"),
              ElementsAre("m0/1", "[k0/1 vector]", "n0/4", "n1/1 unroll"));
  EXPECT_THAT(refusal("down,vectorize,vectorize"), HasSubstr("marked already"));
  EXPECT_THAT(refusal("vectorize,down,vectorize"), HasSubstr("second vectorized loop"));
  EXPECT_THAT(refusal("unroll"), HasSubstr("has 128 rounds, and at most 64 are unrolled"));
}

TEST(CursorActions, StopChangesNothingAndIsLast) {
  EXPECT_EQ(after("down,stop"), after("down"));
  EXPECT_EQ(refusal("stop,up"), "action 2 'up' follows a stop");
}

TEST(CursorActions, RefuseWhatIsNoActionOrNoState) {
  const auto computation = product();
  const auto unknown = static_cast<CursorAction>(99);
  const auto result = apply(computation, State::start(computation), unknown);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "there is no action 99");
  EXPECT_FALSE(is_legal(computation, State::start(computation), unknown));
  EXPECT_EQ(to_string(unknown), "no action");
  State beyond = State::start(computation);
  beyond.cursor = 3;
  for (const CursorAction action : all_cursor_actions()) {
    EXPECT_FALSE(apply(computation, beyond, action));
    EXPECT_FALSE(is_legal(computation, beyond, action));
  }
  EXPECT_TRUE(replay_published(computation, beyond, all_cursor_actions()).actions.empty());
}

TEST(CursorActions, HaveNamesThatParseBack) {
  for (const CursorAction action : all_cursor_actions()) {
    EXPECT_EQ(parse_cursor_action(to_string(action)).value(), action);
  }
  EXPECT_EQ(parse_cursor_action("terminate").value(), CursorAction::kStop);
  EXPECT_EQ(to_text(all_cursor_actions()),
            "up,down,swap_up,swap_down,split_2,split_4,split_8,split_16,split_32,split_64,"
            "split_128,split_256,split_512,split_1024,merge,unroll,vectorize,stop");
  EXPECT_EQ(parse_actions(to_text(all_cursor_actions())).value(),
            std::vector<CursorAction>(all_cursor_actions().begin(), all_cursor_actions().end()));
}

TEST(CursorActions, ParseCommasAndBlanks) {
  for (const std::string_view text :
       {"split_4,down,swap_up", "split_4 down swap_up", " split_4 , down,\tswap_up "}) {
    EXPECT_EQ(to_text(parse_actions(text).value()), "split_4,down,swap_up") << text;
  }
  EXPECT_TRUE(parse_actions("")->empty());
  EXPECT_TRUE(parse_actions("  ")->empty());
}

TEST(CursorActions, ParsingNamesTheWordThatIsWrong) {
  const auto wrong = parse_actions("split_4,split_3 down");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message,
              HasSubstr("action 2: 'split_3' is no action; the actions are up down "));
  EXPECT_FALSE(parse_actions("up,,down"));
  EXPECT_FALSE(parse_actions("up,"));
  EXPECT_FALSE(parse_actions(","));
  EXPECT_FALSE(parse_actions("Up"));
}

TEST(ActionSet, IsLoopTunesBySeedAndStop) {
  EXPECT_EQ(ActionSet().text(), "up,down,swap_up,swap_down,split_4,split_8,split_16,stop");
  EXPECT_EQ(ActionSet().find(CursorAction::kSplit8), 5U);
  EXPECT_EQ(ActionSet().find(CursorAction::kMerge), std::nullopt);
  EXPECT_EQ(ActionSet::all().size(), 18U);
}

TEST(ActionSet, IsChosenByNamesInTheirOrder) {
  const ActionSet set = ActionSet::parse("split_2, up, merge").value();
  EXPECT_EQ(set[0], CursorAction::kSplit2);
  EXPECT_EQ(set[2], CursorAction::kMerge);
  EXPECT_EQ(ActionSet::parse("up,down,up").error().message, "the action up is there twice");
  EXPECT_EQ(ActionSet::parse("").error().message, "a set of actions has at least one");
  EXPECT_THAT(ActionSet::parse("up,jump").error().message, HasSubstr("'jump' is no action"));
  EXPECT_FALSE(ActionSet::create(std::vector{static_cast<CursorAction>(0)}));
}

// The recipe that most of LoopTune's published trajectories begin with.
TEST(PublishedRecipe, MakesTheRegisterTileOfMAndN) {
  const auto computation = product();
  const State start = State::start(computation);
  ASSERT_THAT(loops_of(computation, start), ElementsAre("[m0/1]", "k0/1", "n0/1"));

  const auto published = parse_actions("split_4,swap_down,swap_down,down,split_16").value();
  const PublishedReplay replay_of_it = replay_published(computation, start, published);
  EXPECT_THAT(loops_of(computation, replay_of_it.state),
              ElementsAre("m0/4", "k0/1", "m1/1", "[n0/16]", "n1/1"));
  EXPECT_EQ(to_text(replay_of_it.actions), "split_4,down,swap_down,down,split_16");

  const auto legal = replay(computation, start, replay_of_it.actions);
  ASSERT_TRUE(legal);
  EXPECT_EQ(*legal, replay_of_it.state);
  // The list itself has a swap that changes nothing.
  const auto as_published = replay(computation, start, published);
  ASSERT_FALSE(as_published);
  EXPECT_THAT(as_published.error().message, HasSubstr("action 2 'swap_down'"));
}

TEST(PublishedRecipe, LeavesOutWhatIsNotLegal) {
  const auto computation = product(8);
  const auto published = parse_actions("up,split_16,swap_up,split_4,swap_down,stop,up").value();
  const PublishedReplay done = replay_published(computation, State::start(computation), published);
  EXPECT_EQ(to_text(done.actions), "split_4,down,stop");
  EXPECT_THAT(loops_of(computation, done.state), ElementsAre("m0/4", "[m1/1]", "k0/1", "n0/1"));
}

TEST(State, RoundTripsThroughItsText) {
  const auto computation = product();
  const State state = replayed(computation, "split_4,down,swap_down,unroll").value();
  EXPECT_EQ(to_text(computation, state), "split m0 4, swap m1, unroll m1 @ m1");
  EXPECT_EQ(to_text(computation, State::start(computation)), "@ m0");
  EXPECT_EQ(parse_state(computation, "@ m0").value(), State::start(computation));
  EXPECT_EQ(parse_state(computation, to_text(computation, state)).value(), state);
}

TEST(State, RefusesATextThatIsNone) {
  const auto computation = product();
  EXPECT_THAT(parse_state(computation, "split m0 4").error().message, HasSubstr("has no @"));
  EXPECT_THAT(parse_state(computation, "split m0 4 @ m7").error().message,
              HasSubstr("'m7' is no loop for the cursor; the loops are m0 m1 k0 n0"));
  EXPECT_THAT(parse_state(computation, "split q0 4 @ m0").error().message, HasSubstr("'q0'"));
}

TEST(State, HashesTheNestAndTheCursor) {
  const auto computation = product();
  const State start = State::start(computation);
  const State down = replayed(computation, "down").value();
  const State split = replayed(computation, "split_4").value();
  EXPECT_EQ(start.hash(), replayed(computation, "down,up")->hash());
  EXPECT_NE(start.hash(), down.hash());
  EXPECT_NE(start.hash(), split.hash());
  EXPECT_NE(start, down);
}

// Any state that loop actions can make, with packs, blocks and parallel loops.
State random_state(const loop::Computation& computation, Rng& rng) {
  State state{.nest = loop::random_nest(computation, rng, 8)};
  state.cursor = rng.below(state.nest.loops.size());
  return state;
}

TEST(CursorActions, TheMaskTellsExactlyWhatIsLegal) {
  const ActionSet all = ActionSet::all();
  std::size_t legal = 0;
  loop::for_random_computations(8811, 4000, [&](const loop::Computation& computation, Rng& rng) {
    const State state = random_state(computation, rng);
    const loop::Limits limits{.max_loops = 1 + rng.below(14)};
    const std::vector<bool> mask = legal_actions(computation, state, all, limits);
    for (std::size_t a = 0; a < all.size(); ++a) {
      const Result<State> next = apply(computation, state, all[a], limits);
      ASSERT_EQ(mask[a], next.has_value())
          << to_text(computation, state) << ": " << to_string(all[a]);
      ASSERT_EQ(mask[a], is_legal(computation, state, all[a], limits));
      legal += next ? 1 : 0;
    }
  });
  EXPECT_GT(legal, 10000U);
}

TEST(CursorActions, WhatIsLegalChangesSomethingAndStaysValid) {
  loop::for_random_computations(4417, 2000, [&](const loop::Computation& computation, Rng& rng) {
    const State state = random_state(computation, rng);
    for (const CursorAction action : all_cursor_actions()) {
      const Result<State> next = apply(computation, state, action);
      if (!next) {
        EXPECT_FALSE(next.error().message.empty());
        continue;
      }
      ASSERT_EQ(*next == state, action == CursorAction::kStop) << to_string(action);
      ASSERT_TRUE(loop::check(computation, next->nest)) << to_string(action);
      ASSERT_LT(next->cursor, next->nest.loops.size());
      ASSERT_EQ(parse_state(computation, to_text(computation, *next), {.max_loops = 99}).value(),
                *next);
    }
  });
}

TEST(CursorActions, UndoEachOther) {
  constexpr std::array<std::pair<CursorAction, CursorAction>, 2> kPairs = {
      {{CursorAction::kUp, CursorAction::kDown}, {CursorAction::kSwapUp, CursorAction::kSwapDown}}};
  loop::for_random_computations(99, 500, [&](const loop::Computation& computation, Rng& rng) {
    const State state = random_state(computation, rng);
    for (const auto& [there, back] : kPairs) {
      if (const Result<State> next = apply(computation, state, there)) {
        ASSERT_EQ(apply(computation, *next, back).value(), state);
      }
      if (const Result<State> next = apply(computation, state, back)) {
        ASSERT_EQ(apply(computation, *next, there).value(), state);
      }
    }
  });
}

}  // namespace
}  // namespace foretune::loop
