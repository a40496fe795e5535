// Schedules as LoopTune's agents see them (Grubisic et al. 2023): a nest and a cursor at one of its
// loops, and actions about that loop.
//
//   State state = State::start(computation);
//   FORETUNE_TRY(const auto actions, parse_actions("split_4, down, swap_down"));
//   FORETUNE_TRY(state, replay(computation, state, actions));
//   to_text(computation, state)   "split m0 4, swap m1 @ m1"
//
// What is legal is told exactly, by a mask as by apply(), and what would change nothing is not:
// changing places with a loop over the same variable, moving the cursor beyond either end.
//
// Thread safety: plain values and free functions. Cost: some hundred nanoseconds an action or a
// mask; what is refused costs a sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/nest.h"

namespace foretune::loop {

// Numbers are part of recorded trajectories and trained policies: never renumber.
enum class CursorAction : std::uint8_t {
  kUp = 1,        // the cursor to the loop around
  kDown = 2,      // the cursor to the loop inside
  kSwapUp = 3,    // changes places with the loop around; the cursor follows
  kSwapDown = 4,  // changes places with the loop inside; the cursor follows
  // The loop moves in steps that many times as large, and a new loop inside of it goes through each
  // of them; the cursor stays with the outer one. Where the factor does not divide the rounds, the
  // last one is shorter.
  kSplit2 = 5,
  kSplit4 = 6,
  kSplit8 = 7,
  kSplit16 = 8,
  kSplit32 = 9,
  kSplit64 = 10,
  kSplit128 = 11,
  kSplit256 = 12,
  kSplit512 = 13,
  kSplit1024 = 14,
  kMerge = 15,      // joined with the next loop around over the same variable; the cursor follows
  kUnroll = 16,     // marks the loop
  kVectorize = 17,  // marks the loop
  kStop = 18,       // ends the episode; changes nothing else, and is always legal
};

// All of them, by number.
std::span<const CursorAction> all_cursor_actions();
// "up", "swap_down", "split_16"
std::string_view to_string(CursorAction action);
// The reverse; "terminate" is LoopTune's word for stop. Errors: kInvalidArgument, naming the word.
Result<CursorAction> parse_cursor_action(std::string_view word);
// Names separated by commas, blanks or both; nothing for an empty text.
Result<std::vector<CursorAction>> parse_actions(std::string_view text);
// "split_4,down,swap_up"
std::string to_text(std::span<const CursorAction> actions);

// The actions that an agent chooses from, in the order in which it numbers them: those of policies'
// outputs, masks and one-hot encodings.
class ActionSet {
 public:
  // LoopTune's seven and stop: up, down, swap_up, swap_down, split_4, split_8, split_16, stop.
  ActionSet();
  static ActionSet all();
  // Errors: kInvalidArgument for no action at all, an unknown one, or one that is there twice.
  static Result<ActionSet> create(std::span<const CursorAction> actions);
  static Result<ActionSet> parse(std::string_view names);

  [[nodiscard]] std::size_t size() const { return actions_.size(); }
  [[nodiscard]] CursorAction operator[](std::size_t index) const { return actions_[index]; }
  [[nodiscard]] std::span<const CursorAction> actions() const { return actions_; }
  [[nodiscard]] std::optional<std::size_t> find(CursorAction action) const;
  [[nodiscard]] std::string text() const { return to_text(actions_); }
  bool operator==(const ActionSet&) const = default;

 private:
  explicit ActionSet(std::vector<CursorAction> actions) : actions_(std::move(actions)) {}
  std::vector<CursorAction> actions_;
};

// As many loops as LoopTune's agents were shown.
inline constexpr Limits kLoopTuneLimits{.max_loops = 10};

// The state after an action, or why it is not legal: kUnsupported, or kInvalidArgument for what is
// no action and a cursor that is at no loop.
Result<State> apply(const Computation& computation, const State& state, CursorAction action,
                    const Limits& limits = kLoopTuneLimits);
// Whether apply() returns a state.
bool is_legal(const Computation& computation, const State& state, CursorAction action,
              const Limits& limits = kLoopTuneLimits);
// The same of each action of a set.
std::vector<bool> legal_actions(const Computation& computation, const State& state,
                                const ActionSet& actions, const Limits& limits = kLoopTuneLimits);
// All of them, in order. Errors: of the first action that is not legal, naming it; kInvalidArgument
// where something follows a stop.
Result<State> replay(const Computation& computation, State state,
                     std::span<const CursorAction> actions, const Limits& limits = kLoopTuneLimits);

struct PublishedReplay {
  State state;
  std::vector<CursorAction> actions;  // what was done, all of it legal here
};
// Replays a list as LoopTune's environment took it: a swap with a loop over the same variable moved
// the cursor only, and what was not legal did nothing. Its recipes make sense on other shapes by
// that. Not the same: a split by exactly the number of rounds made a loop of one round there.
PublishedReplay replay_published(const Computation& computation, State state,
                                 std::span<const CursorAction> actions,
                                 const Limits& limits = kLoopTuneLimits);

// The canonical schedule of the nest, and the loop that the cursor is at: "split m0 4 @ m1".
std::string to_text(const Computation& computation, const State& state);
// The reverse, of any schedule. Errors: kInvalidArgument and those of parse_schedule().
Result<State> parse_state(const Computation& computation, std::string_view text,
                          const Limits& limits = kLoopTuneLimits);

}  // namespace foretune::loop
