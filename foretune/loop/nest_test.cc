#include "foretune/loop/nest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/loop/machine/testing/loop_samples.h"

namespace foretune::loop {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Big enough for every action, with a remainder in n; its variables are m, n, k here.
Computation nest_product() {
  return reduction_last(matmul({.m = 192, .n = 100, .k = 64, .epilogue = {.bias = true}}).value());
}

Result<Nest> scheduled(const Computation& computation, std::string_view text) {
  const Result<std::vector<Action>> actions = parse_schedule(computation, text);
  EXPECT_TRUE(actions) << text << ": " << actions.error().message;
  return actions ? apply_all(computation, *actions) : Nest::plain(computation);
}

Nest nest_after(std::string_view text) { return scheduled(nest_product(), text).value(); }

std::string nest_refusal(std::string_view text, const Computation& computation = nest_product()) {
  const Result<std::vector<Action>> actions = parse_schedule(computation, text);
  EXPECT_FALSE(actions) << text << " is legal";
  return actions ? "" : actions.error().message;
}

std::string nest_refusal(const Action& action, std::string_view before = "") {
  const Result<Nest> nest = apply(nest_product(), nest_after(before), action);
  EXPECT_FALSE(nest);
  return nest ? "" : nest.error().message;
}

std::string nest_refusal(const Nest& nest) {
  const Status status = check(nest_product(), nest);
  EXPECT_FALSE(status);
  return status ? "" : status.error().message;
}

std::vector<std::string> loops_of(const Nest& nest) {
  const Computation computation = nest_product();
  std::vector<std::string> out;
  for (std::size_t level = 0; level < nest.loops.size(); ++level) {
    const Loop& loop = nest.loops[level];
    const std::vector<std::string_view> marks = {"", " unroll", " vector", " parallel"};
    out.push_back(concat(loop_name(computation, nest, level), "/", loop.step,
                         marks[static_cast<std::size_t>(loop.mark)]));
  }
  return out;
}

std::string pack_text(const Nest& nest) {
  std::string out;
  for (const Pack& pack : nest.packs) {
    out += concat(nest_product().inputs[pack.input].name, "@", pack.level, " ");
  }
  return nest.block == Nest::kNoBlock ? out : concat(out, "block@", nest.block);
}

TEST(Nest, StartsWithOneLoopPerVariable) {
  EXPECT_THAT(loops_of(nest_after("")), ElementsAre("m0/1", "n0/1", "k0/1"));
  EXPECT_EQ(nest_after(""), Nest::plain(nest_product()));
  EXPECT_TRUE(check(nest_product(), Nest::plain(nest_product())));
  EXPECT_TRUE(check(matmul({}).value(), Nest::plain(matmul({}).value())));
}

TEST(Nest, TellsWhatALoopCovers) {
  const Computation computation = nest_product();
  const Nest nest = nest_after("split n0 7, split n0 5, swap n2");
  EXPECT_THAT(loops_of(nest), ElementsAre("m0/1", "n0/35", "n1/7", "k0/1", "n2/1"));
  EXPECT_EQ(nest.covers(computation, 0), 192);
  EXPECT_EQ(nest.covers(computation, 1), 100);
  EXPECT_EQ(nest.rounds(computation, 1), 3);
  EXPECT_EQ(nest.remainder(computation, 1), 30);
  EXPECT_EQ(nest.covers(computation, 2), 35);
  EXPECT_EQ(nest.rounds(computation, 2), 5);
  EXPECT_EQ(nest.remainder(computation, 2), 0);
  EXPECT_EQ(nest.covers(computation, 4), 7);
  EXPECT_EQ(nest.rounds(computation, 4), 7);
}

TEST(Nest, SplitPutsALoopAround) {
  EXPECT_THAT(loops_of(nest_after("split n0 16")), ElementsAre("m0/1", "n0/16", "n1/1", "k0/1"));
  EXPECT_THAT(loops_of(nest_after("split n0 16, split n0 3")),
              ElementsAre("m0/1", "n0/48", "n1/16", "n2/1", "k0/1"));
  EXPECT_THAT(loops_of(nest_after("split n0 16, split n1 4")),
              ElementsAre("m0/1", "n0/16", "n1/4", "n2/1", "k0/1"));
}

TEST(Nest, SplitLeavesMarksWhereTheyBelong) {
  EXPECT_THAT(loops_of(nest_after("vectorize n0, split n0 16, parallelize m0, split m0 4")),
              ElementsAre("m0/4 parallel", "m1/1", "n0/16", "n1/1 vector", "k0/1"));
  EXPECT_THAT(loops_of(nest_after("split k0 4, unroll k1, split k1 2")),
              ElementsAre("m0/1", "n0/1", "k0/4", "k1/2", "k2/1 unroll"));
}

TEST(Nest, SplitRefusesAFactorThatCoversAll) {
  EXPECT_THAT(nest_refusal("split n0 100"),
              HasSubstr("n0 covers 100, and a loop around it in steps of "
                        "100 would have 1 round"));
  EXPECT_THAT(nest_refusal("split n0 16, split n1 16"),
              HasSubstr("n1 covers 16, and a loop around it"));
  EXPECT_THAT(nest_refusal("split n0 16, split n0 7"), HasSubstr("in steps of 112"));
  EXPECT_THAT(nest_refusal("split n0 2147483647"), HasSubstr("in steps of 2147483647"));
  EXPECT_EQ(nest_after("split n0 99").rounds(nest_product(), 1), 2);
  EXPECT_THAT(nest_refusal("split m0 2", matmul({}).value()), HasSubstr("m0 covers 1"));
}

TEST(Nest, SplitRefusesFactorsBelowTwo) {
  for (const int factor : {1, 0, -1, -2147483647}) {
    EXPECT_THAT(nest_refusal(Action::split(0, factor)), HasSubstr("factors start at 2"));
  }
}

TEST(Nest, SplitRefusesMoreLoopsThanTheLimit) {
  const Computation computation = nest_product();
  const Result<Nest> four =
      apply(computation, nest_after(""), Action::split(0, 2), {.max_loops = 4});
  ASSERT_TRUE(four);
  const Result<Nest> five = apply(computation, *four, Action::split(0, 2), {.max_loops = 4});
  ASSERT_FALSE(five);
  EXPECT_EQ(five.error().message, "there are 4 loops already, and may be 4");
  EXPECT_TRUE(apply(computation, *four, Action::swap(2), {.max_loops = 3}));
}

TEST(Nest, SwapExchangesNeighbours) {
  EXPECT_THAT(loops_of(nest_after("swap m0")), ElementsAre("n0/1", "m0/1", "k0/1"));
  EXPECT_EQ(nest_after("swap m0, swap n0"), nest_after(""));
}

TEST(Nest, SwapRefusesTheInnermostAndTheSameVariable) {
  EXPECT_THAT(nest_refusal("swap k0"), HasSubstr("k0 is the innermost loop"));
  EXPECT_THAT(nest_refusal("split n0 16, swap n0"),
              HasSubstr("n0 and n1 are loops over the same variable"));
}

TEST(Nest, MovePassesTheLoopsBetween) {
  EXPECT_THAT(loops_of(nest_after("move k0 0")), ElementsAre("k0/1", "m0/1", "n0/1"));
  EXPECT_THAT(loops_of(nest_after("move m0 2")), ElementsAre("n0/1", "k0/1", "m0/1"));
  EXPECT_EQ(nest_after("split m0 4, swap n0, pack b k0, move m1 3"),
            nest_after("split m0 4, swap n0, pack b k0, swap m1, swap m1"));
}

TEST(Nest, MoveRefusesToPassTheSameVariable) {
  EXPECT_THAT(nest_refusal("split m0 4, swap m1, move m1 0"),
              HasSubstr("m1 and m0 are loops over the same variable"));
  EXPECT_THAT(nest_refusal("split m0 4, move m0 3"),
              HasSubstr("m0 and m1 are loops over the same"));
}

TEST(Nest, MoveRefusesLevelsThatAreNotThereOrItsOwn) {
  EXPECT_THAT(nest_refusal("move m0 3"), HasSubstr("there is no level 3 in a nest of 3 loops"));
  EXPECT_THAT(nest_refusal("move m0 -1"), HasSubstr("there is no level -1"));
  EXPECT_THAT(nest_refusal("move n0 1"), HasSubstr("n0 is at level 1 already"));
}

TEST(Nest, MergeUndoesASplit) {
  EXPECT_EQ(nest_after("split n0 16, merge n1"), nest_after(""));
  EXPECT_THAT(loops_of(nest_after("split n0 4, split n0 4, merge n1")),
              ElementsAre("m0/1", "n0/4", "n1/1", "k0/1"));
  EXPECT_THAT(loops_of(nest_after("split n0 4, split n0 4, merge n2")),
              ElementsAre("m0/1", "n0/16", "n1/1", "k0/1"));
}

TEST(Nest, MergeGoesToTheEnclosingLoopAndDropsTheMarksOfBoth) {
  EXPECT_THAT(loops_of(nest_after("split m0 4, move m1 3, parallelize m0, vectorize m1, merge m1")),
              ElementsAre("m0/1", "n0/1", "k0/1"));
  EXPECT_THAT(
      loops_of(nest_after("split m0 4, split m0 4, parallelize m0, vectorize m2, merge m1")),
      ElementsAre("m0/4", "m1/1 vector", "n0/1", "k0/1"));
}

TEST(Nest, MergeRefusesTheOutermostLoopOfAVariable) {
  EXPECT_THAT(nest_refusal("merge n0"), HasSubstr("no loop around n0 is over the same variable"));
  EXPECT_THAT(nest_refusal("split n0 4, merge n0"), HasSubstr("no loop around n0"));
}

TEST(Nest, MergeRefusesToTakeTheLoopFromAPackAtTheEnd) {
  EXPECT_THAT(nest_refusal("split k0 4, pack a k1, merge k1"),
              HasSubstr("a pack or the register block starts at k1, and no loop follows it"));
  EXPECT_THAT(nest_refusal("split k0 4, block k1, merge k1"), HasSubstr("no loop follows it"));
  EXPECT_EQ(pack_text(nest_after("split m0 4, swap m1, pack b m1, block m1, merge m1")),
            "b@2 block@2");
}

TEST(Nest, VectorizeTakesOneLoopThatMovesByOne) {
  EXPECT_THAT(loops_of(nest_after("split n0 16, vectorize n1")),
              ElementsAre("m0/1", "n0/16", "n1/1 vector", "k0/1"));
  EXPECT_THAT(nest_refusal("split n0 16, vectorize n0"), HasSubstr("n0 moves by 16"));
  EXPECT_THAT(nest_refusal("vectorize n0, vectorize k0"),
              HasSubstr("k0 would be the second vectorized loop, behind n0"));
  EXPECT_THAT(nest_refusal("vectorize n0, vectorize m0"), HasSubstr("second vectorized loop"));
}

TEST(Nest, MarksExcludeEachOther) {
  for (const std::string first : {"unroll", "vectorize", "parallelize"}) {
    for (const std::string second : {"unroll", "vectorize", "parallelize"}) {
      const Computation small = matmul({.m = 8, .n = 8, .k = 8}).value();
      EXPECT_THAT(nest_refusal(concat(first, " m0, ", second, " m0"), small),
                  HasSubstr("m0 is marked already"));
    }
  }
}

TEST(Nest, UnrollTakesAtMostSixtyFourRounds) {
  EXPECT_THAT(loops_of(nest_after("unroll k0")), ElementsAre("m0/1", "n0/1", "k0/1 unroll"));
  EXPECT_THAT(nest_refusal("unroll n0"),
              HasSubstr("n0 has 100 rounds, and at most 64 are unrolled"));
  EXPECT_TRUE(scheduled(nest_product(), "split n0 2, unroll n0"));
}

TEST(Nest, ParallelizeTakesTheOutermostLoopThatIsNoReduction) {
  EXPECT_THAT(loops_of(nest_after("parallelize m0")), ElementsAre("m0/1 parallel", "n0/1", "k0/1"));
  EXPECT_THAT(nest_refusal("parallelize n0"), HasSubstr("n0 would be parallel at level 1"));
  EXPECT_THAT(nest_refusal("move k0 0, parallelize k0"),
              HasSubstr("k0 is over a reduction variable"));
  EXPECT_THAT(nest_refusal("parallelize m0", matmul({.n = 4}).value()),
              HasSubstr("m0 has 1 round, nothing to share"));
}

TEST(Nest, AParallelLoopStaysOutermost) {
  EXPECT_THAT(nest_refusal("parallelize m0, swap m0"),
              HasSubstr("m0 would be parallel at level 1"));
  EXPECT_THAT(nest_refusal("parallelize m0, move m0 2"),
              HasSubstr("m0 would be parallel at level 2"));
  EXPECT_THAT(nest_refusal("parallelize m0, move k0 0"),
              HasSubstr("m0 would be parallel at level 1"));
  EXPECT_TRUE(scheduled(nest_product(), "parallelize m0, split m0 4, move k0 1"));
}

TEST(Nest, PackTakesACombinedInputOnce) {
  EXPECT_EQ(pack_text(nest_after("pack b k0")), "b@2 ");
  EXPECT_EQ(pack_text(nest_after("pack b k0, pack a m0")), "a@0 b@2 ");
  EXPECT_THAT(nest_refusal("pack b k0, pack b m0"), HasSubstr("b is packed already, at k0"));
  EXPECT_THAT(nest_refusal("pack bias m0"), HasSubstr("bias is read by a step"));
  EXPECT_THAT(nest_refusal(Action::pack(3, 0)), HasSubstr("there is no input 3 of 3"));
  EXPECT_THAT(nest_refusal(Action::pack(-1, 0)), HasSubstr("there is no input -1 of 3"));
}

TEST(Nest, PackRefusesWhereNoLoopMovesOverTheInput) {
  EXPECT_THAT(nest_refusal("move m0 2, pack b m0"), HasSubstr("no loop from m0 on moves over b"));
  EXPECT_THAT(nest_refusal("pack a n0, move k0 0"), HasSubstr("no loop from n0 on moves over a"));
}

TEST(Nest, PacksStartBeforeTheRegisterBlock) {
  EXPECT_EQ(pack_text(nest_after("pack b k0, block k0")), "b@2 block@2");
  EXPECT_THAT(nest_refusal("pack b k0, block n0"),
              HasSubstr("the pack of b starts at k0, inside of the register block of n0"));
  EXPECT_THAT(nest_refusal("block n0, pack b k0"), HasSubstr("inside of the register block of n0"));
  EXPECT_TRUE(scheduled(nest_product(), "block k0, pack b n0"));
}

TEST(Nest, ThereIsOneRegisterBlockWithoutAParallelLoop) {
  EXPECT_THAT(nest_refusal("block n0, block k0"),
              HasSubstr("there is a register block already, at n0"));
  EXPECT_THAT(nest_refusal("parallelize m0, block m0"),
              HasSubstr("the parallel loop m0 is inside of the register block of m0"));
  EXPECT_THAT(nest_refusal("block m0, parallelize m0"),
              HasSubstr("the parallel loop m0 is inside"));
  EXPECT_TRUE(scheduled(nest_product(), "parallelize m0, block n0"));
}

TEST(Nest, PacksAndTheBlockStayWithTheirLoops) {
  const std::string start = "pack a m0, pack b n0, block k0, ";
  EXPECT_EQ(pack_text(nest_after(start + "split m0 4")), "a@0 b@2 block@3");
  EXPECT_EQ(pack_text(nest_after(start + "split n0 4")), "a@0 b@1 block@3");
  EXPECT_EQ(pack_text(nest_after(start + "split k0 4")), "a@0 b@1 block@2");
  EXPECT_EQ(pack_text(nest_after(start + "swap m0")), "a@1 b@0 block@2");
  EXPECT_EQ(pack_text(nest_after("pack a m0, block n0, move k0 0")), "a@1 block@2");
  EXPECT_EQ(pack_text(nest_after("pack a m0, move m0 2")), "a@2 ");
  EXPECT_EQ(pack_text(nest_after("pack b k0, move k0 0")), "b@0 ");
}

TEST(Nest, MergeTakesWhatStartsDeeperAlong) {
  EXPECT_EQ(pack_text(nest_after("split m0 4, pack a k0, block k0, merge m1")), "a@2 block@2");
  EXPECT_EQ(pack_text(nest_after("split n0 4, pack b n0, merge n1")), "b@1 ");
}

TEST(Nest, StructureRefusesWhatItWouldBreak) {
  EXPECT_THAT(nest_refusal("pack b n0, block k0, swap n0"),
              HasSubstr("the pack of b starts at n0, inside of the register block of k0"));
  EXPECT_THAT(nest_refusal("split k0 4, split m0 4, move m1 4, pack b k1, merge k1"),
              HasSubstr("no loop from m1 on moves over b"));
}

TEST(Nest, RefusesActionsAboutNothing) {
  EXPECT_THAT(nest_refusal(Action::swap(3)),
              HasSubstr("there is no loop at level 3 in a nest of 3"));
  EXPECT_THAT(nest_refusal(Action::pack(0, -1)), HasSubstr("there is no loop at level -1"));
  EXPECT_THAT(nest_refusal(Action{static_cast<ActionKind>(0), 0, 0}),
              HasSubstr("there is no action 0"));
  EXPECT_THAT(nest_refusal(Action{static_cast<ActionKind>(10), 0, 0}),
              HasSubstr("there is no action 10"));
  EXPECT_THAT(nest_refusal(Action{ActionKind::kUnroll, 2, 1}),
              HasSubstr("unroll takes no argument, and has 1"));
}

TEST(Check, RefusesLoopsThatDoNotCoverTheirVariables) {
  Nest nest = Nest::plain(nest_product());
  nest.loops[1].step = 4;
  EXPECT_EQ(nest_refusal(nest), "no loop over n moves by 1");
  nest.loops[1] = {.var = 0};
  EXPECT_EQ(nest_refusal(nest), "a loop over m covers 1 in steps of 1");
  nest.loops[1].var = 3;
  EXPECT_EQ(nest_refusal(nest), "a loop is over variable 3 of 3");
  nest = Nest::plain(nest_product());
  nest.loops[0].step = 192;
  EXPECT_EQ(nest_refusal(nest), "a loop over m covers 192 in steps of 192");
  nest.loops[0].step = 0;
  EXPECT_EQ(nest_refusal(nest), "a loop over m covers 192 in steps of 0");
  nest.loops.resize(300);
  EXPECT_EQ(nest_refusal(nest), "there are 300 loops, more than 255");
  EXPECT_EQ(nest_refusal(Nest{}), "no loop over m moves by 1");
}

TEST(Check, RefusesLevelsAndMarksThatAreNone) {
  Nest nest = Nest::plain(nest_product());
  nest.loops[0].mark = static_cast<Mark>(4);
  EXPECT_EQ(nest_refusal(nest), "a loop has the unknown mark 4");
  nest = Nest::plain(nest_product());
  nest.block = 3;
  EXPECT_EQ(nest_refusal(nest), "the register block starts at level 3 of 3 loops");
  nest.block = -2;
  EXPECT_EQ(nest_refusal(nest), "the register block starts at level -2 of 3 loops");
  nest = Nest::plain(nest_product());
  nest.packs = {{.input = 1, .level = 3}};
  EXPECT_EQ(nest_refusal(nest), "the pack of b starts at level 3 of 3 loops");
  nest.packs = {{.input = 2, .level = 0}};
  EXPECT_EQ(nest_refusal(nest), "input 2 is packed, and only the first 2 may be");
  nest.packs = {{.input = 1, .level = 0}, {.input = 0, .level = 0}};
  EXPECT_EQ(nest_refusal(nest), "packs are not in the order of their inputs");
}

TEST(Nest, HashTellsNestsApartAndStaysTheSame) {
  EXPECT_EQ(nest_after("split n0 4, merge n1").hash(), nest_after("").hash());
  EXPECT_EQ(nest_after("").hash(), 9471894498499859530U);
  std::set<std::uint64_t> hashes;
  const std::vector<std::string> schedules = {
      "",          "split n0 4", "split n0 8",   "split m0 4",     "swap m0",
      "unroll k0", "pack a m0",  "vectorize n0", "pack b m0",      "pack b n0",
      "block m0",  "block n0",   "block k0",     "parallelize m0", "pack a m0, pack b m0"};
  for (const std::string& schedule : schedules) {
    hashes.insert(nest_after(schedule).hash());
  }
  EXPECT_EQ(hashes.size(), schedules.size());
}

TEST(ScheduleText, NamesEveryAction) {
  const std::string text =
      "split m0 16, split n0 16, split k0 8, swap m1, move n1 4, merge k1, unroll m1, "
      "vectorize n1, parallelize m0, pack b k0, block k0";
  const std::vector<Action> actions = parse_schedule(nest_product(), text).value();
  EXPECT_EQ(actions.size(), 11U);
  EXPECT_EQ(actions[3], Action::swap(1));
  EXPECT_EQ(actions[4], Action::move(3, 4));
  EXPECT_EQ(actions[9], Action::pack(1, 3));
  EXPECT_EQ(to_text(nest_product(), actions), text);
}

TEST(ScheduleText, MayHaveBlanksAndBeEmpty) {
  EXPECT_EQ(parse_schedule(nest_product(), "  swap   m0 ,unroll  k0").value(),
            (std::vector<Action>{Action::swap(0), Action::unroll(2)}));
  EXPECT_TRUE(parse_schedule(nest_product(), " ").value().empty());
  EXPECT_EQ(to_text(nest_product(), std::vector<Action>{}), "");
}

TEST(ScheduleText, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(nest_refusal("swap m0, spilt n0 4"),
            "action 2: 'spilt' is no action; the actions are split swap move merge unroll "
            "vectorize parallelize pack block");
  EXPECT_EQ(nest_refusal("swap m1"), "action 1: 'm1' is no loop; the loops are m0 n0 k0");
  EXPECT_THAT(nest_refusal("swap m00"), HasSubstr("'m00' is no loop"));
  EXPECT_THAT(nest_refusal("swap m"), HasSubstr("'m' is no loop"));
  EXPECT_EQ(nest_refusal("pack x m0"), "action 1: 'x' is no input; the inputs are a b bias");
  EXPECT_EQ(nest_refusal("split m0 four"), "action 1: 'four' is no factor");
  EXPECT_EQ(nest_refusal("split m0 2147483648"), "action 1: '2147483648' is no factor");
  EXPECT_EQ(nest_refusal("move m0 1.0"), "action 1: '1.0' is no level");
  EXPECT_EQ(nest_refusal("split m0"),
            "action 1: split takes a loop and a factor, unlike 'split m0'");
  EXPECT_EQ(nest_refusal("swap m0 n0"), "action 1: swap takes a loop, unlike 'swap m0 n0'");
  EXPECT_EQ(nest_refusal("pack m0"), "action 1: pack takes a tensor and a loop, unlike 'pack m0'");
  EXPECT_EQ(nest_refusal("swap m0,"), "action 2: an action is missing next to a comma");
  EXPECT_EQ(nest_refusal("unroll k0,  unroll n0 "),
            "action 2 'unroll n0': n0 has 100 rounds, and at most 64 are unrolled");
}

TEST(ScheduleText, EndsBeforeAnIllegalAction) {
  const std::vector<Action> actions = {Action::swap(0), Action::merge(0), Action::swap(0)};
  EXPECT_EQ(to_text(nest_product(), actions), "swap m0");
  EXPECT_EQ(apply_all(nest_product(), actions).error().message,
            "action 2 'merge n0': no loop around n0 is over the same variable");
  const Nest nest = Nest::plain(nest_product());
  EXPECT_EQ(to_text(nest_product(), nest, Action::pack(7, 9)), "pack #7 #9");
  EXPECT_EQ(to_text(nest_product(), nest, {static_cast<ActionKind>(77), -1, 0}), "#77 #-1");
}

TEST(TreeText, ShowsLoopsMarksPacksAndRemainders) {
  EXPECT_EQ(
      tree_text(nest_product(), nest_after("split n0 16, parallelize m0, vectorize n1, pack b n1, "
                                           "pack a n1, block k0")),
      "for m0 in 192 by 1, parallel\n"
      " for n0 in 100 by 16, remainder 4\n"
      "  pack a\n"
      "  pack b\n"
      "  for n1 in 16 by 1, vector\n"
      "   block\n"
      "   for k0 in 64 by 1\n");
}

// How often the nest visits each point, counted the slow way.
void visit(const Nest& nest, std::size_t level, std::vector<std::int64_t>& base,
           std::vector<std::int64_t>& left, std::map<std::vector<std::int64_t>, int>& visits) {
  if (level == nest.loops.size()) {
    ++visits[base];
    return;
  }
  const Loop& loop = nest.loops[level];
  const std::int64_t start = base[loop.var];
  const std::int64_t covers = left[loop.var];
  for (std::int64_t done = 0; done < covers; done += loop.step) {
    base[loop.var] = start + done;
    left[loop.var] = std::min(loop.step, covers - done);
    visit(nest, level + 1, base, left, visits);
  }
  base[loop.var] = start;
  left[loop.var] = covers;
}

void expect_every_point_once(const Computation& computation, const Nest& nest) {
  std::vector<std::int64_t> base(computation.vars.size(), 0);
  std::vector<std::int64_t> left;
  for (const Var& var : computation.vars) {
    left.push_back(var.extent);
  }
  std::map<std::vector<std::int64_t>, int> visits;
  visit(nest, 0, base, left, visits);
  EXPECT_EQ(static_cast<double>(visits.size()), computation.points());
  EXPECT_TRUE(
      std::all_of(visits.begin(), visits.end(), [](const auto& each) { return each.second == 1; }));
}

// Variable and step tell loops apart.
using Identity = std::pair<int, std::int64_t>;
Identity identity(const Nest& nest, std::size_t level) {
  return {nest.loops[level].var, nest.loops[level].step};
}

// Where something that started at a loop has to start after an action.
Identity expected_start(const Nest& before, const Action& action, std::size_t start) {
  const auto level = static_cast<std::size_t>(action.loop);
  const Identity loop = identity(before, level);
  const Identity here = identity(before, start);
  if (action.kind == ActionKind::kSplit && start == level) {
    return {here.first, here.second * action.argument};
  }
  if (action.kind != ActionKind::kMerge) {
    return here;
  }
  std::size_t around = level - 1;
  while (before.loops[around].var != before.loops[level].var) {
    --around;
  }
  return start == level ? identity(before, level + 1) : start == around ? loop : here;
}

void expect_starts_kept(const Nest& before, const Action& action, const Nest& next) {
  for (const Pack& pack : before.packs) {
    const auto* found = std::find_if(next.packs.begin(), next.packs.end(),
                                     [&](const Pack& each) { return each.input == pack.input; });
    ASSERT_NE(found, next.packs.end());
    EXPECT_EQ(identity(next, found->level), expected_start(before, action, pack.level));
  }
  if (before.block != Nest::kNoBlock) {
    EXPECT_EQ(identity(next, static_cast<std::size_t>(next.block)),
              expected_start(before, action, static_cast<std::size_t>(before.block)));
  }
}

Action any_action(Rng& rng) {
  const std::int64_t factor = rng.between(-1, rng.below(4) == 0 ? 40 : 6);
  const auto kind = static_cast<ActionKind>(rng.between(1, 9));
  const bool has_argument = kind == ActionKind::kSplit || kind == ActionKind::kMove ||
                            kind == ActionKind::kPack || rng.below(50) == 0;
  return {kind, static_cast<std::int32_t>(rng.between(-1, 9)),
          has_argument ? static_cast<std::int32_t>(factor) : 0};
}

TEST(NestProperty, LegalActionsKeepEveryPromise) {
  constexpr std::uint64_t kSeed = 20;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Rng rng(kSeed);
  std::map<ActionKind, int> counts;
  int legal = 0;
  while (legal < 20000 && !HasFailure()) {
    const Computation computation = random_computation(rng);
    Nest nest = Nest::plain(computation);
    std::vector<Action> actions;
    for (int i = 0; i < 80; ++i) {
      const Action action = any_action(rng);
      const Result<Nest> next = apply(computation, nest, action);
      if (!next) {
        EXPECT_FALSE(next.error().message.empty());
        EXPECT_FALSE(to_text(computation, nest, action).empty());
        continue;
      }
      SCOPED_TRACE(to_text(computation, nest, action));
      expect_starts_kept(nest, action, *next);
      EXPECT_TRUE(check(computation, *next));
      EXPECT_LE(next->loops.size(), Limits{}.max_loops);
      EXPECT_NE(next->hash(), nest.hash());
      nest = *next;
      actions.push_back(action);
      ++counts[action.kind];
      ++legal;
    }
    const std::string text = to_text(computation, actions);
    SCOPED_TRACE(computation.name + ": " + text);
    EXPECT_EQ(parse_schedule(computation, text).value(), actions);
    EXPECT_EQ(apply_all(computation, actions).value(), nest);
    if (computation.points() < 3000) {
      expect_every_point_once(computation, nest);
    }
  }
  for (int kind = 1; kind <= 9; ++kind) {
    EXPECT_GE(counts[static_cast<ActionKind>(kind)], 100) << "of kind " << kind;
  }
}

}  // namespace
}  // namespace foretune::loop
