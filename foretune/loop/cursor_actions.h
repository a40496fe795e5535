// Schedules as LoopTune's agents see them (Grubisic et al. 2023): a nest, a cursor at one of its
// loops, and actions on that loop.
//
//   State state = State::start(computation);
//   FORETUNE_TRY(const auto actions, parse_actions("split_4, down, swap_down"));
//   FORETUNE_TRY(state, replay(computation, state, actions));
//   to_text(computation, state)   "split m0 4, swap m1 @ m1"
//
// The mask holds exactly the actions that apply() accepts. An action that would change nothing is
// not legal: swapping with a loop over the same variable, or moving the cursor beyond either end.
//
// Thread safety: plain values and free functions. Cost: some hundred nanoseconds per action or
// mask; a refusal also costs its sentence.
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
  kSwapUp = 3,    // swaps with the loop around; the cursor follows
  kSwapDown = 4,  // swaps with the loop inside; the cursor follows
  // The loop moves in steps larger by the factor, and a new loop inside of it goes through each
  // step; the cursor stays at the outer loop. The last round is shorter where the factor does not
  // divide the rounds.
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

// Returns all actions, by number.
std::span<const CursorAction> all_cursor_actions();
// "up", "swap_down", "split_16"
std::string_view to_string(CursorAction action);
// Parses a name; "terminate" is LoopTune's word for stop. Errors: kInvalidArgument with the word.
Result<CursorAction> parse_cursor_action(std::string_view word);
// Parses names separated by commas, blanks or both; an empty text has no actions.
Result<std::vector<CursorAction>> parse_actions(std::string_view text);
// "split_4,down,swap_up"
std::string to_text(std::span<const CursorAction> actions);

// The actions that an agent chooses from, in the order of its numbers: those of policies' outputs,
// masks and one-hot encodings.
class ActionSet {
 public:
  // LoopTune's seven and stop: up, down, swap_up, swap_down, split_4, split_8, split_16, stop.
  ActionSet();
  static ActionSet all();
  // Errors: kInvalidArgument for an empty set, an unknown action, and a repeated one.
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

// The number of loops that LoopTune's agents see.
inline constexpr Limits kLoopTuneLimits{.max_loops = 10};

// Returns the state after an action. Errors: kUnsupported, with the reason, for an illegal action;
// kInvalidArgument for an unknown action and a cursor that is at no loop.
Result<State> apply(const Computation& computation, const State& state, CursorAction action,
                    const Limits& limits = kLoopTuneLimits);
// True when apply() returns a state.
bool is_legal(const Computation& computation, const State& state, CursorAction action,
              const Limits& limits = kLoopTuneLimits);
// Returns is_legal() of each action of a set.
std::vector<bool> legal_actions(const Computation& computation, const State& state,
                                const ActionSet& actions, const Limits& limits = kLoopTuneLimits);
// Applies all actions in order. Errors: that of the first illegal action, with its name;
// kInvalidArgument where an action follows a stop.
Result<State> replay(const Computation& computation, State state,
                     std::span<const CursorAction> actions, const Limits& limits = kLoopTuneLimits);

struct PublishedReplay {
  State state;
  std::vector<CursorAction> actions;  // the applied actions, all legal here
};
// Replays a list as LoopTune's environment did: a swap with a loop over the same variable only
// moves the cursor, and an illegal action does nothing. That lets its recipes work on other shapes.
// One difference remains: there, a split by exactly the number of rounds made a loop of one round.
PublishedReplay replay_published(const Computation& computation, State state,
                                 std::span<const CursorAction> actions,
                                 const Limits& limits = kLoopTuneLimits);

// Returns the canonical schedule of the nest and the loop at the cursor: "split m0 4 @ m1".
std::string to_text(const Computation& computation, const State& state);
// Parses such a text with any schedule. Errors: kInvalidArgument and those of parse_schedule().
Result<State> parse_state(const Computation& computation, std::string_view text,
                          const Limits& limits = kLoopTuneLimits);

}  // namespace foretune::loop
