#include "foretune/loop/nest.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/hash.h"
#include "foretune/base/text.h"

namespace foretune::loop {
namespace {

// Beyond, an unrolled loop only fills the instruction cache.
constexpr std::int64_t kMaxUnrolled = 64;
// Pack stores levels in a byte.
constexpr std::size_t kMaxLoops = std::numeric_limits<std::uint8_t>::max();

constexpr std::array<std::string_view, 4> kMarkNames = {"", "unroll", "vector", "parallel"};

struct Form {
  ActionKind kind;
  std::string_view word;
  std::string_view argument;  // behind the loop; empty where there is none
};

constexpr std::array<Form, 9> kForms = {{
    {ActionKind::kSplit, "split", "factor"},
    {ActionKind::kSwap, "swap", ""},
    {ActionKind::kMove, "move", "level"},
    {ActionKind::kMerge, "merge", ""},
    {ActionKind::kUnroll, "unroll", ""},
    {ActionKind::kVectorize, "vectorize", ""},
    {ActionKind::kParallelize, "parallelize", ""},
    {ActionKind::kPack, "pack", "tensor"},
    {ActionKind::kBlock, "block", ""},
}};

const Form* find_form(ActionKind kind) {
  const auto* found = std::find_if(kForms.begin(), kForms.end(),
                                   [&](const Form& form) { return form.kind == kind; });
  return found == kForms.end() ? nullptr : found;
}

// The nearest loop around `level` over the same variable.
std::optional<std::size_t> enclosing(const Nest& nest, std::size_t level) {
  for (std::size_t i = level; i-- > 0;) {
    if (nest.loops[i].var == nest.loops[level].var) {
      return i;
    }
  }
  return std::nullopt;
}

template <class T, std::size_t N>
void insert_at(SmallVector<T, N>& values, std::size_t position, T value) {
  values.push_back(value);
  std::rotate(values.begin() + position, values.end() - 1, values.end());
}

template <class T, std::size_t N>
void erase_at(SmallVector<T, N>& values, std::size_t position) {
  std::copy(values.begin() + position + 1, values.end(), values.begin() + position);
  values.resize(values.size() - 1);
}

// Sends what starts at a level to where its loop went.
template <class NewLevel>
void relocate(Nest& nest, NewLevel new_level) {
  for (Pack& pack : nest.packs) {
    pack.level = static_cast<std::uint8_t>(new_level(std::size_t{pack.level}));
  }
  if (nest.block != Nest::kNoBlock) {
    nest.block = static_cast<int>(new_level(static_cast<std::size_t>(nest.block)));
  }
}

Status check_loops(const Computation& computation, const Nest& nest) {
  const std::vector<Var>& vars = computation.vars;
  if (nest.loops.size() > kMaxLoops) {
    return fail(ErrorCode::kUnsupported, "there are ", nest.loops.size(), " loops, more than ",
                kMaxLoops);
  }
  std::array<std::int64_t, kMaxVars> covered{};  // by the next loop over it; 0 before the first
  FORETUNE_CHECK(vars.size() <= kMaxVars);
  for (const Loop& loop : nest.loops) {
    if (loop.var >= vars.size()) {
      return fail(ErrorCode::kInvalidArgument, "a loop is over variable ", loop.var, " of ",
                  vars.size());
    }
    const Var& var = vars[loop.var];
    const bool is_first = covered[loop.var] == 0;
    const std::int64_t covers = is_first ? var.extent : covered[loop.var];
    const bool is_whole = is_first && covers == 1 && loop.step == 1;
    if (loop.step < 1 || (loop.step >= covers && !is_whole)) {
      return fail(ErrorCode::kInvalidArgument, "a loop over ", var.name, " covers ", covers,
                  " in steps of ", loop.step);
    }
    covered[loop.var] = loop.step;
  }
  for (std::size_t v = 0; v < vars.size(); ++v) {
    if (covered[v] != 1) {
      return fail(ErrorCode::kInvalidArgument, "no loop over ", vars[v].name, " moves by 1");
    }
  }
  return {};
}

Status check_mark(const Computation& computation, const Nest& nest, std::size_t level) {
  const Loop& loop = nest.loops[level];
  const auto refused = [&](const auto&... why) {
    return fail(ErrorCode::kUnsupported, loop_name(computation, nest, level), why...);
  };
  switch (loop.mark) {
    case Mark::kNone:
      return {};
    case Mark::kUnroll:
      if (const std::int64_t rounds = nest.rounds(computation, level); rounds > kMaxUnrolled) {
        return refused(" has ", rounds, " rounds, and at most ", kMaxUnrolled, " are unrolled");
      }
      return {};
    case Mark::kVector:
      if (loop.step != 1) {
        return refused(" moves by ", loop.step, ", and a loop is vectorized that moves by 1");
      }
      for (std::size_t i = 0; i < level; ++i) {
        if (nest.loops[i].mark == Mark::kVector) {
          return refused(" would be the second vectorized loop, behind ",
                         loop_name(computation, nest, i));
        }
      }
      return {};
    case Mark::kParallel:
      if (level != 0) {
        return refused(" would be parallel at level ", level,
                       ", and only the outermost loop may be");
      }
      if (computation.vars[loop.var].is_reduction) {
        return refused(" is over a reduction variable, and threads would share its outputs");
      }
      if (nest.rounds(computation, level) < 2) {
        return refused(" has 1 round, nothing to share between threads");
      }
      return {};
  }
  return fail(ErrorCode::kInvalidArgument, "a loop has the unknown mark ",
              static_cast<int>(loop.mark));
}

Status check_packs(const Computation& computation, const Nest& nest) {
  for (std::size_t i = 0; i < nest.packs.size(); ++i) {
    const Pack& pack = nest.packs[i];
    if (std::cmp_greater_equal(pack.input, computation.combined)) {
      return fail(ErrorCode::kUnsupported, "input ", pack.input, " is packed, and only the first ",
                  computation.combined, " may be");
    }
    if (i > 0 && nest.packs[i - 1].input >= pack.input) {
      return fail(ErrorCode::kInvalidArgument, "packs are not in the order of their inputs");
    }
    const Tensor& tensor = computation.inputs[pack.input];
    if (pack.level >= nest.loops.size()) {
      return fail(ErrorCode::kInvalidArgument, "the pack of ", tensor.name, " starts at level ",
                  pack.level, " of ", nest.loops.size(), " loops");
    }
    if (std::none_of(nest.loops.begin() + pack.level, nest.loops.end(),
                     [&](const Loop& loop) { return tensor.stride_of(loop.var) != 0; })) {
      return fail(ErrorCode::kUnsupported, "no loop from ",
                  loop_name(computation, nest, pack.level), " on moves over ", tensor.name,
                  ", whose pack starts there");
    }
  }
  return {};
}

Status check_block(const Computation& computation, const Nest& nest) {
  if (nest.block == Nest::kNoBlock) {
    return {};
  }
  if (nest.block < 0 || std::cmp_greater_equal(nest.block, nest.loops.size())) {
    return fail(ErrorCode::kInvalidArgument, "the register block starts at level ", nest.block,
                " of ", nest.loops.size(), " loops");
  }
  const auto block = static_cast<std::size_t>(nest.block);
  for (const Pack& pack : nest.packs) {
    if (pack.level > block) {
      return fail(ErrorCode::kUnsupported, "the pack of ", computation.inputs[pack.input].name,
                  " starts at ", loop_name(computation, nest, pack.level),
                  ", inside of the register block of ", loop_name(computation, nest, block));
    }
  }
  for (std::size_t level = block; level < nest.loops.size(); ++level) {
    if (nest.loops[level].mark == Mark::kParallel) {
      return fail(ErrorCode::kUnsupported, "the parallel loop ",
                  loop_name(computation, nest, level), " is inside of the register block of ",
                  loop_name(computation, nest, block));
    }
  }
  return {};
}

Status split_loop(const Computation& computation, Nest& nest, std::size_t level,
                  std::int64_t factor) {
  if (factor < 2) {
    return fail(ErrorCode::kInvalidArgument, "a split by ", factor, ", and factors start at 2");
  }
  Loop& inner = nest.loops[level];
  const std::int64_t covers = nest.covers(computation, level);
  Loop outer{.var = inner.var, .mark = Mark::kNone, .step = inner.step * factor};
  if (outer.step >= covers) {
    return fail(ErrorCode::kUnsupported, loop_name(computation, nest, level), " covers ", covers,
                ", and a loop around it in steps of ", outer.step, " would have 1 round");
  }
  if (inner.mark == Mark::kParallel) {
    std::swap(inner.mark, outer.mark);
  }
  insert_at(nest.loops, level, outer);
  relocate(nest, [&](std::size_t old) { return old > level ? old + 1 : old; });
  return {};
}

Status move_loop(const Computation& computation, Nest& nest, std::size_t from, std::size_t to) {
  const auto [low, high] = std::minmax(from, to);
  for (std::size_t i = low; i <= high; ++i) {
    if (i != from && nest.loops[i].var == nest.loops[from].var) {
      return fail(ErrorCode::kUnsupported, loop_name(computation, nest, from), " and ",
                  loop_name(computation, nest, i),
                  " are loops over the same variable and cannot change places");
    }
  }
  const auto begin = nest.loops.begin();
  if (from < to) {
    std::rotate(begin + from, begin + from + 1, begin + to + 1);
  } else {
    std::rotate(begin + to, begin + from, begin + from + 1);
  }
  relocate(nest, [&](std::size_t old) {
    if (old == from) {
      return to;
    }
    return old < low || old > high ? old : from < to ? old - 1 : old + 1;
  });
  return {};
}

Status move_to(const Computation& computation, Nest& nest, std::size_t from, std::int32_t level) {
  if (level < 0 || std::cmp_greater_equal(level, nest.loops.size())) {
    return fail(ErrorCode::kInvalidArgument, "there is no level ", level, " in a nest of ",
                nest.loops.size(), " loops");
  }
  if (std::cmp_equal(level, from)) {
    return fail(ErrorCode::kInvalidArgument, loop_name(computation, nest, from), " is at level ",
                level, " already");
  }
  return move_loop(computation, nest, from, static_cast<std::size_t>(level));
}

Status swap_loops(const Computation& computation, Nest& nest, std::size_t level) {
  if (level + 1 == nest.loops.size()) {
    return fail(ErrorCode::kUnsupported, loop_name(computation, nest, level),
                " is the innermost loop, with none to change places with");
  }
  return move_loop(computation, nest, level, level + 1);
}

Status merge_loop(const Computation& computation, Nest& nest, std::size_t level) {
  const std::optional<std::size_t> around = enclosing(nest, level);
  if (!around) {
    return fail(ErrorCode::kUnsupported, "no loop around ", loop_name(computation, nest, level),
                " is over the same variable");
  }
  const bool starts_here = std::cmp_equal(nest.block, level) ||
                           std::any_of(nest.packs.begin(), nest.packs.end(),
                                       [&](const Pack& pack) { return pack.level == level; });
  if (starts_here && level + 1 == nest.loops.size()) {
    return fail(ErrorCode::kUnsupported, "a pack or the register block starts at ",
                loop_name(computation, nest, level), ", and no loop follows it");
  }
  nest.loops[*around].step = nest.loops[level].step;
  nest.loops[*around].mark = Mark::kNone;
  erase_at(nest.loops, level);
  relocate(nest, [&](std::size_t old) { return old > level ? old - 1 : old; });
  return {};
}

Status mark_loop(const Computation& computation, Nest& nest, std::size_t level, Mark mark) {
  Loop& loop = nest.loops[level];
  if (loop.mark != Mark::kNone) {
    return fail(ErrorCode::kUnsupported, loop_name(computation, nest, level),
                " is marked already: ", kMarkNames[static_cast<std::size_t>(loop.mark)]);
  }
  loop.mark = mark;
  return {};
}

Status pack_input(const Computation& computation, Nest& nest, std::size_t level,
                  std::int32_t input) {
  if (input < 0 || std::cmp_greater_equal(input, computation.inputs.size())) {
    return fail(ErrorCode::kInvalidArgument, "there is no input ", input, " of ",
                computation.inputs.size());
  }
  const std::string& name = computation.inputs[static_cast<std::size_t>(input)].name;
  if (input >= computation.combined) {
    return fail(ErrorCode::kUnsupported, name, " is read by a step, once for every output");
  }
  std::size_t position = 0;
  while (position < nest.packs.size() && std::cmp_less(nest.packs[position].input, input)) {
    ++position;
  }
  if (position < nest.packs.size() && std::cmp_equal(nest.packs[position].input, input)) {
    return fail(ErrorCode::kUnsupported, name, " is packed already, at ",
                loop_name(computation, nest, nest.packs[position].level));
  }
  insert_at(
      nest.packs, position,
      Pack{.input = static_cast<std::uint8_t>(input), .level = static_cast<std::uint8_t>(level)});
  return {};
}

Status start_block(const Computation& computation, Nest& nest, std::size_t level) {
  if (nest.block != Nest::kNoBlock) {
    return fail(ErrorCode::kUnsupported, "there is a register block already, at ",
                loop_name(computation, nest, static_cast<std::size_t>(nest.block)));
  }
  nest.block = static_cast<int>(level);
  return {};
}

Status change(const Computation& computation, Nest& nest, const Action& action) {
  const auto level = static_cast<std::size_t>(action.loop);
  switch (action.kind) {
    case ActionKind::kSplit:
      return split_loop(computation, nest, level, action.argument);
    case ActionKind::kSwap:
      return swap_loops(computation, nest, level);
    case ActionKind::kMove:
      return move_to(computation, nest, level, action.argument);
    case ActionKind::kMerge:
      return merge_loop(computation, nest, level);
    case ActionKind::kUnroll:
      return mark_loop(computation, nest, level, Mark::kUnroll);
    case ActionKind::kVectorize:
      return mark_loop(computation, nest, level, Mark::kVector);
    case ActionKind::kParallelize:
      return mark_loop(computation, nest, level, Mark::kParallel);
    case ActionKind::kPack:
      return pack_input(computation, nest, level, action.argument);
    case ActionKind::kBlock:
      return start_block(computation, nest, level);
  }
  FORETUNE_CHECK(false);
}

// An action may be about anything, so it can be named only as far as it makes sense.
std::string loop_word(const Computation& computation, const Nest& nest, std::int32_t level) {
  return level >= 0 && std::cmp_less(level, nest.loops.size())
             ? loop_name(computation, nest, static_cast<std::size_t>(level))
             : concat("#", level);
}

std::string input_word(const Computation& computation, std::int32_t input) {
  return input >= 0 && std::cmp_less(input, computation.inputs.size())
             ? computation.inputs[static_cast<std::size_t>(input)].name
             : concat("#", input);
}

Result<std::int32_t> parse_loop(const Computation& computation, const Nest& nest,
                                std::string_view word) {
  std::vector<std::string> names;
  for (std::size_t level = 0; level < nest.loops.size(); ++level) {
    names.push_back(loop_name(computation, nest, level));
    if (names.back() == word) {
      return static_cast<std::int32_t>(level);
    }
  }
  return fail(ErrorCode::kInvalidArgument, quoted(word), " is no loop; the loops are ",
              join(names, " "));
}

Result<std::int32_t> parse_input(const Computation& computation, std::string_view word) {
  std::vector<std::string> names;
  for (const Tensor& tensor : computation.inputs) {
    if (tensor.name == word) {
      return static_cast<std::int32_t>(names.size());
    }
    names.push_back(tensor.name);
  }
  return fail(ErrorCode::kInvalidArgument, quoted(word), " is no input; the inputs are ",
              join(names, " "));
}

Result<std::int32_t> parse_number(std::string_view word, std::string_view what) {
  const std::optional<std::int64_t> number = parse_int(word);
  if (!number || !std::in_range<std::int32_t>(*number)) {
    return fail(ErrorCode::kInvalidArgument, quoted(word), " is no ", what);
  }
  return static_cast<std::int32_t>(*number);
}

Result<Action> parse_action(const Computation& computation, const Nest& nest,
                            std::string_view text) {
  const std::vector<std::string_view> words = split_words(text);
  if (words.empty()) {
    return fail(ErrorCode::kInvalidArgument, "an action is missing next to a comma");
  }
  const auto* form = std::find_if(kForms.begin(), kForms.end(),
                                  [&](const Form& each) { return each.word == words[0]; });
  if (form == kForms.end()) {
    std::vector<std::string> known;
    for (const Form& each : kForms) {
      known.emplace_back(each.word);
    }
    return fail(ErrorCode::kInvalidArgument, quoted(words[0]), " is no action; the actions are ",
                join(known, " "));
  }
  const bool packs = form->kind == ActionKind::kPack;
  if (words.size() != (form->argument.empty() ? 2U : 3U)) {
    return fail(ErrorCode::kInvalidArgument, form->word, " takes ",
                packs ? "a tensor and a loop" : "a loop",
                packs || form->argument.empty() ? "" : concat(" and a ", form->argument),
                ", unlike ", quoted(text));
  }
  Action action{.kind = form->kind};
  FORETUNE_TRY(action.loop, parse_loop(computation, nest, words[packs ? 2 : 1]));
  if (packs) {
    FORETUNE_TRY(action.argument, parse_input(computation, words[1]));
  } else if (!form->argument.empty()) {
    FORETUNE_TRY(action.argument, parse_number(words[2], form->argument));
  }
  return action;
}

}  // namespace

Nest Nest::plain(const Computation& computation) {
  Nest out;
  for (std::size_t v = 0; v < computation.vars.size(); ++v) {
    out.loops.push_back({.var = static_cast<std::uint8_t>(v)});
  }
  return out;
}

std::uint64_t Nest::hash() const {
  std::uint64_t out = hash_combine(loops.size(), packs.size());
  for (const Loop& loop : loops) {
    out =
        hash_combine(out, (std::uint64_t{loop.var} << 8U) | static_cast<std::uint64_t>(loop.mark));
    out = hash_combine(out, static_cast<std::uint64_t>(loop.step));
  }
  for (const Pack& pack : packs) {
    out = hash_combine(out, (std::uint64_t{pack.input} << 8U) | pack.level);
  }
  return hash_combine(out, static_cast<std::uint64_t>(static_cast<std::int64_t>(block)));
}

std::int64_t Nest::covers(const Computation& computation, std::size_t level) const {
  const std::optional<std::size_t> around = enclosing(*this, level);
  return around ? loops[*around].step : computation.vars[loops[level].var].extent;
}

std::int64_t Nest::rounds(const Computation& computation, std::size_t level) const {
  return (covers(computation, level) + loops[level].step - 1) / loops[level].step;
}

std::int64_t Nest::remainder(const Computation& computation, std::size_t level) const {
  return covers(computation, level) % loops[level].step;
}

Status check(const Computation& computation, const Nest& nest) {
  FORETUNE_TRY_STATUS(check_loops(computation, nest));
  for (std::size_t level = 0; level < nest.loops.size(); ++level) {
    FORETUNE_TRY_STATUS(check_mark(computation, nest, level));
  }
  FORETUNE_TRY_STATUS(check_packs(computation, nest));
  return check_block(computation, nest);
}

Result<Nest> apply(const Computation& computation, const Nest& nest, const Action& action,
                   const Limits& limits) {
  FORETUNE_DCHECK(check(computation, nest).has_value());
  const Form* form = find_form(action.kind);
  if (form == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "there is no action ", static_cast<int>(action.kind));
  }
  if (action.loop < 0 || std::cmp_greater_equal(action.loop, nest.loops.size())) {
    return fail(ErrorCode::kInvalidArgument, "there is no loop at level ", action.loop,
                " in a nest of ", nest.loops.size());
  }
  // Otherwise two actions would be one, and have one text.
  if (form->argument.empty() && action.argument != 0) {
    return fail(ErrorCode::kInvalidArgument, form->word, " takes no argument, and has ",
                action.argument);
  }
  Nest out = nest;
  FORETUNE_TRY_STATUS(change(computation, out, action));
  if (const std::size_t most = std::min(limits.max_loops, kMaxLoops);
      out.loops.size() > std::max(most, nest.loops.size())) {
    return fail(ErrorCode::kUnsupported, "there are ", nest.loops.size(),
                " loops already, and may be ", most);
  }
  FORETUNE_TRY_STATUS(check(computation, out));
  return out;
}

Result<Nest> apply_all(const Computation& computation, const std::vector<Action>& actions,
                       const Limits& limits) {
  Nest nest = Nest::plain(computation);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    Result<Nest> next = apply(computation, nest, actions[i], limits);
    if (!next) {
      return fail_because(next.error(), "action ", i + 1, " '",
                          to_text(computation, nest, actions[i]), "'");
    }
    nest = *std::move(next);
  }
  return nest;
}

std::string loop_name(const Computation& computation, const Nest& nest, std::size_t level) {
  const std::uint8_t var = nest.loops[level].var;
  const auto same = std::count_if(nest.loops.begin(), nest.loops.begin() + level,
                                  [&](const Loop& loop) { return loop.var == var; });
  return concat(computation.vars[var].name, same);
}

std::string to_text(const Computation& computation, const Nest& nest, const Action& action) {
  const Form* form = find_form(action.kind);
  const std::string loop = loop_word(computation, nest, action.loop);
  if (form == nullptr) {
    return concat("#", static_cast<int>(action.kind), " ", loop);
  }
  if (action.kind == ActionKind::kPack) {
    return concat(form->word, " ", input_word(computation, action.argument), " ", loop);
  }
  return form->argument.empty() ? concat(form->word, " ", loop)
                                : concat(form->word, " ", loop, " ", action.argument);
}

std::string to_text(const Computation& computation, const std::vector<Action>& actions) {
  std::string out;
  Nest nest = Nest::plain(computation);
  for (const Action& action : actions) {
    Result<Nest> next = apply(computation, nest, action, {.max_loops = kMaxLoops});
    if (!next) {
      break;
    }
    out += concat(out.empty() ? "" : ", ", to_text(computation, nest, action));
    nest = *std::move(next);
  }
  return out;
}

Result<std::vector<Action>> parse_schedule(const Computation& computation, std::string_view text,
                                           const Limits& limits) {
  std::vector<Action> out;
  if (trim(text).empty()) {
    return out;
  }
  Nest nest = Nest::plain(computation);
  for (const std::string_view piece : foretune::split(text, ',')) {
    const Result<Action> action = parse_action(computation, nest, piece);
    if (!action) {
      return fail_because(action.error(), "action ", out.size() + 1);
    }
    Result<Nest> next = apply(computation, nest, *action, limits);
    if (!next) {
      return fail_because(next.error(), "action ", out.size() + 1, " ", quoted(trim(piece)));
    }
    out.push_back(*action);
    nest = *std::move(next);
  }
  return out;
}

std::string tree_text(const Computation& computation, const Nest& nest) {
  std::string out;
  for (std::size_t level = 0; level < nest.loops.size(); ++level) {
    const Loop& loop = nest.loops[level];
    const std::string indent(level, ' ');
    for (const Pack& pack : nest.packs) {
      if (pack.level == level) {
        out += concat(indent, "pack ", computation.inputs[pack.input].name, "\n");
      }
    }
    if (std::cmp_equal(nest.block, level)) {
      out += concat(indent, "block\n");
    }
    const std::int64_t rest = nest.remainder(computation, level);
    const std::string_view mark = kMarkNames[static_cast<std::size_t>(loop.mark)];
    out +=
        concat(indent, "for ", loop_name(computation, nest, level), " in ",
               nest.covers(computation, level), " by ", loop.step,
               rest == 0 ? "" : concat(", remainder ", rest), mark.empty() ? "" : ", ", mark, "\n");
  }
  return out;
}

}  // namespace foretune::loop
