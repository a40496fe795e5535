#include "foretune/loop/schedule_space.h"

#include <array>
#include <cstdint>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/text.h"
#include "foretune/loop/canonical_schedule.h"
#include "foretune/loop/register_tiles.h"

namespace foretune::loop {
namespace {

// A config's values come in threes: a kind and two numbers. Stored in files: never renumber.
constexpr std::size_t kWords = 3;
enum ScheduleWord : std::int32_t {
  kPlainLoop = 1,  // variable, step; loops from the outside
  kUnrolledLoop = 2,
  kVectorLoop = 3,
  kParallelLoop = 4,
  kBlockWord = 5,   // level, 0
  kPackWord = 6,    // input, level
  kCursorWord = 7,  // level, 0; not at the outermost loop
};

std::uint64_t schedule_schema_id() {
  static const std::uint64_t id = schedule_schema().id();
  return id;
}

// The most actions of a random schedule.
constexpr std::size_t kSampleActions = 10;

class LoopSpace final : public ScheduleSpace {
 public:
  LoopSpace(const Computation& computation, const VectorUnit& unit, const Limits& limits,
            std::optional<Nest> start)
      : ScheduleSpace(computation, unit, limits, std::move(start)) {
    const int lanes = unit.lanes;
    const auto levels = static_cast<int>(limits.max_loops);
    for (int level = 0; level < levels; ++level) {
      for (const int factor : {2, 3, 4, 5, 6, 7, 8, 10, 12}) {
        actions_.push_back(Action::split(level, factor));
      }
      for (const int vectors : {1, 2, 3, 4, 8, 16}) {
        if (vectors * lanes > 12) {
          actions_.push_back(Action::split(level, vectors * lanes));
        }
      }
      for (int target = 0; target + 1 < level; ++target) {
        actions_.push_back(Action::move(level, target));
      }
      actions_.push_back(Action::swap(level));
      actions_.push_back(Action::merge(level));
      actions_.push_back(Action::vectorize(level));
      actions_.push_back(Action::block(level));
      for (int input = 0; input < computation.combined; ++input) {
        actions_.push_back(Action::pack(input, level));
      }
    }
  }
  std::size_t action_count() const override { return actions_.size(); }
  std::string action_text(std::size_t action) const override {
    const Action& a = actions_[action];
    switch (a.kind) {
      case ActionKind::kSplit:
        return concat("split loop ", a.loop, " by ", a.argument);
      case ActionKind::kSwap:
        return concat("swap loop ", a.loop);
      case ActionKind::kMove:
        return concat("move loop ", a.loop, " to ", a.argument);
      case ActionKind::kMerge:
        return concat("merge loop ", a.loop);
      case ActionKind::kVectorize:
        return concat("vectorize loop ", a.loop);
      case ActionKind::kBlock:
        return concat("block from loop ", a.loop);
      case ActionKind::kPack:
        return concat("pack input ", a.argument, " at loop ", a.loop);
      case ActionKind::kUnroll:
      case ActionKind::kParallelize:
        break;
    }
    return {};
  }

 private:
  Result<State> step(const State& state, std::size_t action) const override {
    const auto count = static_cast<std::int32_t>(state.nest.loops.size());
    // Makes the first check of apply() here, without composing the loop's name.
    if (actions_[action].loop >= count) {
      return fail(ErrorCode::kUnsupported, "there is no loop ", actions_[action].loop);
    }
    FORETUNE_TRY(Nest nest, loop::apply(computation(), state.nest, actions_[action], limits()));
    return State{.nest = std::move(nest), .cursor = 0};
  }
  bool is_legal(const State& state, std::size_t action) const override {
    const auto count = static_cast<std::int32_t>(state.nest.loops.size());
    if (actions_[action].loop >= count) {
      return false;
    }
    const auto next = loop::apply(computation(), state.nest, actions_[action], limits());
    return next.has_value() && *next != state.nest;
  }

  std::vector<Action> actions_;
};

}  // namespace

const ConfigSchema& schedule_schema() {
  static const ConfigSchema schema{
      .name = "loop-nest", .version = 1, .kind = SchemaKind::kSequence, .parameters = {}};
  return schema;
}

ScheduleSpace::ScheduleSpace(const Computation& computation, const VectorUnit& unit,
                             const Limits& limits, std::optional<Nest> start)
    : computation_(computation),
      unit_(unit),
      limits_(limits),
      start_(start ? *std::move(start) : Nest::plain(computation)) {
  FORETUNE_CHECK(check(computation_, start_).has_value());
}

std::unique_ptr<ScheduleSpace> ScheduleSpace::of_loops(const Computation& computation,
                                                       const VectorUnit& unit,
                                                       std::optional<Nest> start,
                                                       const Limits& limits) {
  return std::make_unique<LoopSpace>(computation, unit, limits, std::move(start));
}

Result<State> ScheduleSpace::state(const Config& config) const {
  const std::span<const std::int32_t> words = config.words.view();
  const auto refuse = [] {
    return fail(ErrorCode::kInvalidArgument, "the config is no schedule of loops");
  };
  if (config.schema != schedule_schema_id() || words.size() % kWords != 0) {
    return refuse();
  }
  State state;
  std::int32_t last = 0;
  for (std::size_t i = 0; i < words.size(); i += kWords) {
    const std::int32_t what = words[i];
    const std::int32_t first = words[i + 1];
    const std::int32_t second = words[i + 2];
    const bool is_loop = what >= kPlainLoop && what <= kParallelLoop;
    const bool is_in_order =
        is_loop ? last <= kParallelLoop : what > last || (what == kPackWord && last == kPackWord);
    // A fixed order, so that a nest is one config.
    if (!is_in_order || what < kPlainLoop || what > kCursorWord || first < 0 || first > 255 ||
        (is_loop && second < 1)) {
      return refuse();
    }
    last = what;
    switch (what) {
      case kBlockWord:
        state.nest.block = first;
        break;
      case kPackWord:
        if (second < 0 || second > 255) {
          return refuse();
        }
        state.nest.packs.push_back({.input = static_cast<std::uint8_t>(first),
                                    .level = static_cast<std::uint8_t>(second)});
        break;
      case kCursorWord:
        state.cursor = static_cast<std::size_t>(first);
        break;
      default:
        state.nest.loops.push_back({.var = static_cast<std::uint8_t>(first),
                                    .mark = static_cast<Mark>(what - kPlainLoop),
                                    .step = second});
    }
  }
  if (state.nest.loops.size() > limits_.max_loops) {
    return fail(ErrorCode::kUnsupported, "there may be ", limits_.max_loops,
                " loops, and this has ", state.nest.loops.size());
  }
  FORETUNE_TRY_STATUS(check(computation_, state.nest));
  if (state.cursor >= state.nest.loops.size()) {
    return fail(ErrorCode::kInvalidArgument, "the cursor is at no loop");
  }
  return state;
}

Result<Nest> ScheduleSpace::nest(const Config& config) const {
  FORETUNE_TRY(State found, state(config));
  return std::move(found.nest);
}

Config ScheduleSpace::config(const State& state) const {
  Config config{schedule_schema_id(), {}};
  const auto add = [&](std::int32_t what, std::int32_t first, std::int32_t second) {
    config.words.push_back(what);
    config.words.push_back(first);
    config.words.push_back(second);
  };
  for (const Loop& loop : state.nest.loops) {
    add(kPlainLoop + static_cast<std::int32_t>(loop.mark), loop.var,
        static_cast<std::int32_t>(loop.step));
  }
  if (state.nest.block != Nest::kNoBlock) {
    add(kBlockWord, state.nest.block, 0);
  }
  for (const Pack& pack : state.nest.packs) {
    add(kPackWord, pack.input, pack.level);
  }
  if (state.cursor != 0) {
    add(kCursorWord, static_cast<std::int32_t>(state.cursor), 0);
  }
  return config;
}

std::string ScheduleSpace::text(const Config& config) const {
  const auto found = nest(config);
  return found ? to_text(computation_, schedule_of(computation_, *found)) : std::string();
}

Support ScheduleSpace::why_not(const Config& config) const {
  const auto found = nest(config);
  return found ? Support::yes() : Support::no(found.error().message);
}

Result<Config> ScheduleSpace::sample(Rng& rng) const {
  Config here = start();
  for (std::size_t left = rng.below(kSampleActions + 1); left > 0; --left) {
    std::vector<std::size_t> open;
    const std::vector<bool> legal = legal_actions(here);
    for (std::size_t action = 0; action < legal.size(); ++action) {
      if (legal[action]) {
        open.push_back(action);
      }
    }
    if (open.empty()) {
      break;
    }
    FORETUNE_TRY(here, apply(here, open[rng.below(open.size())]));
  }
  return here;
}

std::vector<Config> ScheduleSpace::neighbours(const Config& config) const {
  std::vector<Config> out;
  const std::vector<bool> legal = legal_actions(config);
  for (std::size_t action = 0; action < legal.size(); ++action) {
    if (legal[action]) {
      if (Result<Config> next = apply(config, action)) {
        out.push_back(*std::move(next));
      }
    }
  }
  return out;
}

Config ScheduleSpace::canonical(const Config& config) const {
  Config out = config;
  if (out.words.size() >= kWords && out.words[out.words.size() - kWords] == kCursorWord) {
    out.words.resize(out.words.size() - kWords);
  }
  return out;
}

std::vector<Config> ScheduleSpace::proposals(std::size_t count) const {
  std::vector<Config> out;
  for (const Nest& nest : textbook_nests(computation_, unit_, count)) {
    Config config = this->config({.nest = nest, .cursor = 0});
    if (why_not(config)) {
      out.push_back(std::move(config));
    }
  }
  return out;
}

std::string ScheduleSpace::describe(const Config& config) const {
  std::string schedule = text(config);
  return schedule.empty() ? "the plain nest" : schedule;
}

Config ScheduleSpace::start() const { return config(State{.nest = start_, .cursor = 0}); }

std::vector<bool> ScheduleSpace::legal_actions(const Config& config) const {
  std::vector<bool> legal(action_count(), false);
  if (const auto found = state(config)) {
    for (std::size_t action = 0; action < legal.size(); ++action) {
      legal[action] = is_legal(*found, action);
    }
  }
  return legal;
}

Result<Config> ScheduleSpace::apply(const Config& config, std::size_t action) const {
  if (action >= action_count()) {
    return fail(ErrorCode::kInvalidArgument, "there is no action ", action);
  }
  FORETUNE_TRY(const State here, state(config));
  FORETUNE_TRY(const State next, step(here, action));
  return this->config(next);
}

std::vector<Config> ScheduleSpace::way_to(const Config& config) const {
  std::vector<Config> out;
  const auto found = nest(config);
  if (!found) {
    return out;
  }
  Nest here = Nest::plain(computation_);
  out.push_back(this->config({.nest = here, .cursor = 0}));
  for (const Action& action : schedule_of(computation_, *found)) {
    Result<Nest> next = loop::apply(computation_, here, action);
    if (!next) {
      return {};
    }
    here = *std::move(next);
    out.push_back(this->config({.nest = here, .cursor = 0}));
  }
  return out;
}

}  // namespace foretune::loop
