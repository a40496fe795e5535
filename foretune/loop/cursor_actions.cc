#include "foretune/loop/cursor_actions.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <limits>
#include <utility>

#include "foretune/base/hash.h"
#include "foretune/base/text.h"
#include "foretune/loop/canonical_schedule.h"

namespace foretune::loop {
namespace {

enum class Kind : std::uint8_t { kUp, kDown, kSwapUp, kSwapDown, kSplit, kMerge, kMark, kStop };

struct Form {
  CursorAction action;
  std::string_view name;
  Kind kind;
  int factor = 0;  // of a split
};

// By number, starting at 1.
constexpr std::array<Form, 18> kForms = {{
    {CursorAction::kUp, "up", Kind::kUp},
    {CursorAction::kDown, "down", Kind::kDown},
    {CursorAction::kSwapUp, "swap_up", Kind::kSwapUp},
    {CursorAction::kSwapDown, "swap_down", Kind::kSwapDown},
    {CursorAction::kSplit2, "split_2", Kind::kSplit, 2},
    {CursorAction::kSplit4, "split_4", Kind::kSplit, 4},
    {CursorAction::kSplit8, "split_8", Kind::kSplit, 8},
    {CursorAction::kSplit16, "split_16", Kind::kSplit, 16},
    {CursorAction::kSplit32, "split_32", Kind::kSplit, 32},
    {CursorAction::kSplit64, "split_64", Kind::kSplit, 64},
    {CursorAction::kSplit128, "split_128", Kind::kSplit, 128},
    {CursorAction::kSplit256, "split_256", Kind::kSplit, 256},
    {CursorAction::kSplit512, "split_512", Kind::kSplit, 512},
    {CursorAction::kSplit1024, "split_1024", Kind::kSplit, 1024},
    {CursorAction::kMerge, "merge", Kind::kMerge},
    {CursorAction::kUnroll, "unroll", Kind::kMark},
    {CursorAction::kVectorize, "vectorize", Kind::kMark},
    {CursorAction::kStop, "stop", Kind::kStop},
}};

constexpr std::array<CursorAction, kForms.size()> kAll = [] {
  std::array<CursorAction, kForms.size()> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = kForms[i].action;
  }
  return out;
}();
static_assert([] {
  for (std::size_t i = 0; i < kForms.size(); ++i) {
    if (static_cast<std::size_t>(kForms[i].action) != i + 1) {
      return false;
    }
  }
  return true;
}());

constexpr std::string_view kStopAlias = "terminate";

// Levels are kept in a byte.
constexpr std::size_t kMaxLoops = std::numeric_limits<std::uint8_t>::max();

const Form* find_form(CursorAction action) {
  const auto number = static_cast<std::size_t>(action);
  return number >= 1 && number <= kForms.size() ? &kForms[number - 1] : nullptr;
}

std::string cursor_name(const Computation& computation, const State& state) {
  return loop_name(computation, state.nest, state.cursor);
}

// The change by an action, before the nest checks its legality.
struct Change {
  bool edits = false;
  Action action;
  std::size_t cursor = 0;
};

Change edit(const Action& action, std::size_t cursor) { return {true, action, cursor}; }

std::optional<std::size_t> enclosing(const Nest& nest, std::size_t level) {
  for (std::size_t i = level; i-- > 0;) {
    if (nest.loops[i].var == nest.loops[level].var) {
      return i;
    }
  }
  return std::nullopt;
}

// Returns the change by an action; nothing where the cursor's position alone rules it out.
std::optional<Change> change_of(const State& state, const Form& form) {
  const std::size_t cursor = state.cursor;
  const int level = static_cast<int>(cursor);
  const bool is_outermost = cursor == 0;
  const bool is_innermost = cursor + 1 == state.nest.loops.size();
  switch (form.kind) {
    case Kind::kUp:
      return is_outermost ? std::nullopt : std::optional(Change{.cursor = cursor - 1});
    case Kind::kDown:
      return is_innermost ? std::nullopt : std::optional(Change{.cursor = cursor + 1});
    case Kind::kSwapUp:
      return is_outermost ? std::nullopt : std::optional(edit(Action::swap(level - 1), cursor - 1));
    case Kind::kSwapDown:
      return is_innermost ? std::nullopt : std::optional(edit(Action::swap(level), cursor + 1));
    case Kind::kSplit:
      return edit(Action::split(level, form.factor), cursor);
    case Kind::kMerge:
      // Where no such loop is around, the nest refuses the action.
      return edit(Action::merge(level), enclosing(state.nest, cursor).value_or(cursor));
    case Kind::kMark:
      return edit(
          form.action == CursorAction::kUnroll ? Action::unroll(level) : Action::vectorize(level),
          cursor);
    case Kind::kStop:
      return Change{.cursor = cursor};
  }
  return std::nullopt;
}

// A guess rules out actions that the nest is sure to refuse, without composing a sentence. It
// decides splits and moves of the cursor alone, so that masks seldom need to try an action.
enum class Guess : std::uint8_t { kIllegal, kLegal, kUnsure };

Guess legal_or_not(bool is) { return is ? Guess::kLegal : Guess::kIllegal; }
Guess illegal_unless(bool is) { return is ? Guess::kUnsure : Guess::kIllegal; }

Guess guess(const Computation& computation, const State& state, const Form& form,
            const Limits& limits) {
  const auto& loops = state.nest.loops;
  const std::size_t cursor = state.cursor;
  const Loop& loop = loops[cursor];
  switch (form.kind) {
    case Kind::kUp:
      return legal_or_not(cursor > 0);
    case Kind::kDown:
      return legal_or_not(cursor + 1 < loops.size());
    case Kind::kSwapUp:
      return illegal_unless(cursor > 0 && loops[cursor - 1].var != loop.var);
    case Kind::kSwapDown:
      return illegal_unless(cursor + 1 < loops.size() && loops[cursor + 1].var != loop.var);
    case Kind::kSplit:
      return legal_or_not(loops.size() < std::min(limits.max_loops, kMaxLoops) &&
                          loop.step * form.factor < state.nest.covers(computation, cursor));
    case Kind::kMerge:
      return illegal_unless(enclosing(state.nest, cursor).has_value());
    case Kind::kMark:
      return illegal_unless(loop.mark == Mark::kNone);
    case Kind::kStop:
      return Guess::kLegal;
  }
  return Guess::kIllegal;
}

std::string action_names() {
  std::vector<std::string> names;
  for (const Form& form : kForms) {
    names.emplace_back(form.name);
  }
  return join(names, " ");
}

// Returns the move of the cursor that remains of a swap between loops over the same variable.
std::optional<CursorAction> move_instead(const State& state, CursorAction action) {
  const auto& loops = state.nest.loops;
  const std::size_t cursor = state.cursor;
  if (action == CursorAction::kSwapUp && cursor > 0 && loops[cursor - 1].var == loops[cursor].var) {
    return CursorAction::kUp;
  }
  if (action == CursorAction::kSwapDown && cursor + 1 < loops.size() &&
      loops[cursor + 1].var == loops[cursor].var) {
    return CursorAction::kDown;
  }
  return std::nullopt;
}

}  // namespace

std::span<const CursorAction> all_cursor_actions() { return kAll; }

std::string_view to_string(CursorAction action) {
  const Form* form = find_form(action);
  return form == nullptr ? "no action" : form->name;
}

Result<CursorAction> parse_cursor_action(std::string_view word) {
  const auto* form = std::find_if(kForms.begin(), kForms.end(),
                                  [&](const Form& each) { return each.name == word; });
  if (form != kForms.end()) {
    return form->action;
  }
  if (word == kStopAlias) {
    return CursorAction::kStop;
  }
  return fail(ErrorCode::kInvalidArgument, quoted(word), " is no action; the actions are ",
              action_names());
}

Result<std::vector<CursorAction>> parse_actions(std::string_view text) {
  std::vector<CursorAction> out;
  if (trim(text).empty()) {
    return out;
  }
  for (const std::string_view piece : split(text, ',')) {
    const std::vector<std::string_view> words = split_words(piece);
    if (words.empty()) {
      return fail(ErrorCode::kInvalidArgument, "an action is missing next to a comma");
    }
    for (const std::string_view word : words) {
      Result<CursorAction> action = parse_cursor_action(word);
      if (!action) {
        return fail_because(action.error(), "action ", out.size() + 1);
      }
      out.push_back(*action);
    }
  }
  return out;
}

std::string to_text(std::span<const CursorAction> actions) {
  std::string out;
  for (const CursorAction action : actions) {
    out += concat(out.empty() ? "" : ",", to_string(action));
  }
  return out;
}

ActionSet::ActionSet()
    : actions_({CursorAction::kUp, CursorAction::kDown, CursorAction::kSwapUp,
                CursorAction::kSwapDown, CursorAction::kSplit4, CursorAction::kSplit8,
                CursorAction::kSplit16, CursorAction::kStop}) {}

ActionSet ActionSet::all() { return ActionSet({kAll.begin(), kAll.end()}); }

Result<ActionSet> ActionSet::create(std::span<const CursorAction> actions) {
  if (actions.empty()) {
    return fail(ErrorCode::kInvalidArgument, "a set of actions has at least one");
  }
  std::bitset<kForms.size() + 1> seen;
  for (const CursorAction action : actions) {
    const auto number = static_cast<std::size_t>(action);
    if (find_form(action) == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "there is no action ", number);
    }
    if (seen[number]) {
      return fail(ErrorCode::kInvalidArgument, "the action ", to_string(action), " is there twice");
    }
    seen.set(number);
  }
  return ActionSet({actions.begin(), actions.end()});
}

Result<ActionSet> ActionSet::parse(std::string_view names) {
  FORETUNE_TRY(const std::vector<CursorAction> actions, parse_actions(names));
  return create(actions);
}

std::optional<std::size_t> ActionSet::find(CursorAction action) const {
  const auto found = std::find(actions_.begin(), actions_.end(), action);
  return found == actions_.end()
             ? std::nullopt
             : std::optional(static_cast<std::size_t>(found - actions_.begin()));
}

Result<State> apply(const Computation& computation, const State& state, CursorAction action,
                    const Limits& limits) {
  const Form* form = find_form(action);
  if (form == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "there is no action ", static_cast<int>(action));
  }
  if (state.cursor >= state.nest.loops.size()) {
    return fail(ErrorCode::kInvalidArgument, "the cursor is at level ", state.cursor, " of ",
                state.nest.loops.size(), " loops");
  }
  const std::optional<Change> change = change_of(state, *form);
  if (!change) {
    const bool upwards = form->kind == Kind::kUp || form->kind == Kind::kSwapUp;
    return fail(ErrorCode::kUnsupported, cursor_name(computation, state), " is the ",
                upwards ? "outermost" : "innermost", " loop");
  }
  State out{.nest = {}, .cursor = change->cursor};
  if (change->edits) {
    FORETUNE_TRY(out.nest, apply(computation, state.nest, change->action, limits));
  } else {
    out.nest = state.nest;
  }
  return out;
}

bool is_legal(const Computation& computation, const State& state, CursorAction action,
              const Limits& limits) {
  const Form* form = find_form(action);
  if (form == nullptr || state.cursor >= state.nest.loops.size()) {
    return false;
  }
  const Guess guessed = guess(computation, state, *form, limits);
  return guessed == Guess::kUnsure ? apply(computation, state, action, limits).has_value()
                                   : guessed == Guess::kLegal;
}

std::vector<bool> legal_actions(const Computation& computation, const State& state,
                                const ActionSet& actions, const Limits& limits) {
  std::vector<bool> out(actions.size());
  for (std::size_t i = 0; i < actions.size(); ++i) {
    out[i] = is_legal(computation, state, actions[i], limits);
  }
  return out;
}

Result<State> replay(const Computation& computation, State state,
                     std::span<const CursorAction> actions, const Limits& limits) {
  for (std::size_t i = 0; i < actions.size(); ++i) {
    Result<State> next = apply(computation, state, actions[i], limits);
    if (!next) {
      return fail_because(next.error(), "action ", i + 1, " '", to_string(actions[i]), "'");
    }
    if (actions[i] == CursorAction::kStop && i + 1 < actions.size()) {
      return fail(ErrorCode::kInvalidArgument, "action ", i + 2, " '", to_string(actions[i + 1]),
                  "' follows a stop");
    }
    state = *std::move(next);
  }
  return state;
}

PublishedReplay replay_published(const Computation& computation, State state,
                                 std::span<const CursorAction> actions, const Limits& limits) {
  PublishedReplay out{.state = std::move(state), .actions = {}};
  for (const CursorAction published : actions) {
    if (out.state.cursor >= out.state.nest.loops.size()) {
      break;
    }
    const CursorAction action = move_instead(out.state, published).value_or(published);
    Result<State> next = apply(computation, out.state, action, limits);
    if (!next) {
      continue;
    }
    out.state = *std::move(next);
    out.actions.push_back(action);
    if (action == CursorAction::kStop) {
      break;
    }
  }
  return out;
}

std::string to_text(const Computation& computation, const State& state) {
  const std::string schedule = to_text(computation, schedule_of(computation, state.nest));
  return concat(schedule, schedule.empty() ? "@ " : " @ ", cursor_name(computation, state));
}

Result<State> parse_state(const Computation& computation, std::string_view text,
                          const Limits& limits) {
  const std::size_t at = text.rfind('@');
  if (at == std::string_view::npos) {
    return fail(ErrorCode::kInvalidArgument, quoted(text), " has no @ with the cursor's loop");
  }
  FORETUNE_TRY(const std::vector<Action> actions,
               parse_schedule(computation, text.substr(0, at), limits));
  State state;
  FORETUNE_TRY(state.nest, apply_all(computation, actions, limits));
  const std::string_view name = trim(text.substr(at + 1));
  std::vector<std::string> names;
  for (state.cursor = 0; state.cursor < state.nest.loops.size(); ++state.cursor) {
    names.push_back(cursor_name(computation, state));
    if (names.back() == name) {
      return state;
    }
  }
  return fail(ErrorCode::kInvalidArgument, quoted(name),
              " is no loop for the cursor; the loops are ", join(names, " "));
}

}  // namespace foretune::loop
