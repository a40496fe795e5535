// A schedule: the loops in the order they run, and their treatment. Actions build it from the plain
// nest of a computation; each is legal or refused with a reason:
//
//   Nest nest = Nest::plain(computation);
//   FORETUNE_TRY(nest, apply(computation, nest, Action::split(2, 16)));
//   ... "split n0 16, swap m0, vectorize n1"
//
// A loop over a variable moves in steps. Each of several loops over the same variable moves within
// a step of the one around it, and the innermost moves by 1. The last round is shorter where a step
// does not divide the range that the loop covers. Nested remainders follow from that.
//
// Loops are named by variable and position among the variable's loops from the outside: m0, m1.
// Thread safety: plain values. Cost: an action is a few comparisons and allocates rarely.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/hash.h"
#include "foretune/base/result.h"
#include "foretune/base/small_vector.h"
#include "foretune/loop/computation.h"

namespace foretune::loop {

enum class Mark : std::uint8_t {
  kNone,
  kUnroll,
  kVector,    // lanes of vector registers, in as many registers as needed
  kParallel,  // rounds are shared between threads
};

struct Loop {
  std::uint8_t var = 0;
  Mark mark = Mark::kNone;
  std::int64_t step = 1;
  auto operator<=>(const Loop&) const = default;
};

// Before loop `level` starts, the part of an input that it and the loops inside touch is copied
// into a buffer, in the order in which these loops read it.
struct Pack {
  std::uint8_t input = 0;
  std::uint8_t level = 0;
  auto operator<=>(const Pack&) const = default;
};

struct Nest {
  static constexpr int kNoBlock = -1;

  SmallVector<Loop, 12> loops;  // outermost first
  SmallVector<Pack, 2> packs;   // by input
  // The register block starts at this loop: it and the loops inside keep their outputs in
  // registers, and all of them but the reduction loops are unrolled. kNoBlock: the compiler
  // chooses.
  int block = kNoBlock;

  // Returns the nest with one loop per variable, in the computation's order.
  static Nest plain(const Computation& computation);
  bool operator==(const Nest&) const = default;
  [[nodiscard]] std::uint64_t hash() const;

  // Returns the range that loop `level` covers: the step of the loop around it over the same
  // variable, or the whole extent.
  [[nodiscard]] std::int64_t covers(const Computation& computation, std::size_t level) const;
  // Returns its number of rounds, including a shorter last one.
  [[nodiscard]] std::int64_t rounds(const Computation& computation, std::size_t level) const;
  // Returns the size of its shorter last round; 0 when all rounds are whole.
  [[nodiscard]] std::int64_t remainder(const Computation& computation, std::size_t level) const;
};

// A nest with a cursor at one of its loops: the state of a schedule that is built step by step.
struct State {
  Nest nest;
  std::size_t cursor = 0;  // level of the loop that actions affect
  bool operator==(const State&) const = default;

  // The plain nest, with the cursor at the outermost loop.
  static State start(const Computation& computation) {
    return {.nest = Nest::plain(computation), .cursor = 0};
  }
  [[nodiscard]] std::uint64_t hash() const { return hash_combine(nest.hash(), cursor); }
};

// Stored in configs: never renumber.
enum class ActionKind : std::int32_t {
  kSplit = 1,        // loop, factor: a new loop around it moves in steps `factor` times as large
  kSwap = 2,         // loop: swaps with the loop inside it
  kMove = 3,         // loop, level: moves to that level; the loops between shift
  kMerge = 4,        // loop: joined with the next loop around it over the same variable
  kUnroll = 5,       // loop
  kVectorize = 6,    // loop
  kParallelize = 7,  // loop
  kPack = 8,         // input, loop
  kBlock = 9,        // loop
};

struct Action {
  ActionKind kind = ActionKind::kSplit;
  std::int32_t loop = 0;      // its level; 0 is the outermost
  std::int32_t argument = 0;  // factor, level or input; 0 where there is none
  auto operator<=>(const Action&) const = default;

  static Action split(int loop, int factor) { return {ActionKind::kSplit, loop, factor}; }
  static Action swap(int loop) { return {ActionKind::kSwap, loop, 0}; }
  static Action move(int loop, int level) { return {ActionKind::kMove, loop, level}; }
  static Action merge(int loop) { return {ActionKind::kMerge, loop, 0}; }
  static Action unroll(int loop) { return {ActionKind::kUnroll, loop, 0}; }
  static Action vectorize(int loop) { return {ActionKind::kVectorize, loop, 0}; }
  static Action parallelize(int loop) { return {ActionKind::kParallelize, loop, 0}; }
  static Action pack(int input, int loop) { return {ActionKind::kPack, loop, input}; }
  static Action block(int loop) { return {ActionKind::kBlock, loop, 0}; }
};

struct Limits {
  std::size_t max_loops = 12;
};

// Returns the nest after an action, or the reason why the action is not legal. Marks move with
// their loops. A split leaves kVector and kUnroll with the inner loop and kParallel with the outer
// one; a merge drops the marks of both. Packs and the block stay with the loop that they start at.
Result<Nest> apply(const Computation& computation, const Nest& nest, const Action& action,
                   const Limits& limits = {});
// Applies all actions in order. The error names the action.
Result<Nest> apply_all(const Computation& computation, const std::vector<Action>& actions,
                       const Limits& limits = {});
// Checks that actions can lead to the nest: every variable has loops whose steps decrease down to
// 1, and marks and levels are allowed where they are.
Status check(const Computation& computation, const Nest& nest);

// "m0", "k1"
std::string loop_name(const Computation& computation, const Nest& nest, std::size_t level);
// One action in the nest that it is applied to: "split m0 16", "pack b k1".
std::string to_text(const Computation& computation, const Nest& nest, const Action& action);
// Returns a whole schedule: its actions, joined by ", ". The text ends before the first illegal
// action.
std::string to_text(const Computation& computation, const std::vector<Action>& actions);
// Parses such a text. Errors: kInvalidArgument for an invalid action, and the reason why an action
// is not legal.
Result<std::vector<Action>> parse_schedule(const Computation& computation, std::string_view text,
                                           const Limits& limits = {});
// Returns the nest as an indented tree, for people:
//
//   for m0 in 192 by 4, parallel
//    pack b
//    for n0 in 100 by 16, remainder 4
std::string tree_text(const Computation& computation, const Nest& nest);

}  // namespace foretune::loop
