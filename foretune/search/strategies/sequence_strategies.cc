// Evolution and annealing on lists of actions: what a list means is found by taking its actions
// from the start, those left out that are not legal where they stand.
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "foretune/search/picking.h"
#include "foretune/search/walk.h"

namespace foretune {
namespace {

// So many proposals in a row whose values are known: what is left is rare.
constexpr int kMaxIdle = 2000;
// After so many of them a random list: mutants may have nothing new around them.
constexpr int kStray = 8;
constexpr std::size_t kSequenceChains = 4;

struct Sequence {
  std::vector<std::size_t> actions;
  WalkNode end;

  auto operator<=>(const Sequence& other) const { return actions <=> other.actions; }
  bool operator==(const Sequence& other) const { return actions == other.actions; }
};

class Sequences {
 public:
  explicit Sequences(WalkContext& context) : context_(context) {}

  [[nodiscard]] Sequence empty() const { return {.actions = {}, .end = context_.start()}; }

  Sequence random() {
    Sequence sequence = empty();
    for (std::size_t length = 1 + context_.rng().below(context_.max_steps()); length > 0;
         --length) {
      if (const auto action = context_.random_action(sequence.end)) {
        take(sequence, *action);
      }
    }
    return sequence;
  }

  // One or more actions put in, taken out or replaced.
  Sequence mutant(const Sequence& parent) {
    Sequence child = parent;
    do {
      child = changed(child);
    } while (context_.rng().uniform() < 0.4);
    return child;
  }

  // The beginning of one and the end of another.
  Sequence child(const Sequence& mother, const Sequence& father) {
    Sequence sequence = prefix(mother, context_.rng().below(mother.actions.size() + 1));
    append(sequence, father, context_.rng().below(father.actions.size() + 1));
    return sequence;
  }

 private:
  void take(Sequence& sequence, std::size_t action) {
    if (sequence.end.steps >= context_.max_steps() ||
        !context_.sequential().legal_actions(sequence.end.state)[action]) {
      return;
    }
    if (Result<Config> next = context_.sequential().apply(sequence.end.state, action)) {
      sequence.actions.push_back(action);
      sequence.end = {*std::move(next), sequence.end.steps + 1};
    }
  }

  Sequence prefix(const Sequence& whole, std::size_t length) {
    Sequence sequence = empty();
    for (std::size_t i = 0; i < length; ++i) {
      take(sequence, whole.actions[i]);
    }
    return sequence;
  }

  void append(Sequence& sequence, const Sequence& whole, std::size_t from) {
    for (std::size_t i = from; i < whole.actions.size(); ++i) {
      take(sequence, whole.actions[i]);
    }
  }

  Sequence changed(const Sequence& parent) {
    Rng& rng = context_.rng();
    const std::size_t place = rng.below(parent.actions.size() + 1);
    const std::uint64_t kind = rng.below(3);  // put in, take out, replace
    Sequence sequence = prefix(parent, place);
    if (kind != 1) {
      if (const auto action = context_.random_action(sequence.end)) {
        take(sequence, *action);
      }
    }
    append(sequence, parent, kind == 0 ? place : place + 1);
    return sequence;
  }

  WalkContext& context_;
};

}  // namespace

Walk walk_evolution(WalkContext& context, StrategyOptions /*options*/) {
  using Population = AgingPopulation<Sequence>;
  Sequences sequences(context);
  Population population;
  const Sequence start = sequences.empty();
  co_await context.measure(states_of({&start.end, 1}));
  for (int idle = 0; idle < kMaxIdle; ++idle) {
    const bool is_young = context.measured() < Population::kSize || population.empty();
    Sequence child = sequences.empty();
    if (is_young) {
      child = sequences.random();
    } else if (context.rng().below(4) == 0) {
      const Sequence& mother = population.draw(context.rng());
      child = sequences.child(mother, population.draw(context.rng()));
    } else {
      child = sequences.mutant(population.draw(context.rng()));
    }
    if (context.is_known(child.end.state)) {
      if (idle % kStray != kStray - 1) {
        continue;
      }
      child = sequences.random();
    }
    const bool is_new = !context.is_known(child.end.state);
    co_await context.measure(states_of({&child.end, 1}));
    idle = is_new ? -1 : idle;
    if (const double value = context.value(child.end.state); std::isfinite(value)) {
      population.join(value, std::move(child));
    }
  }
}

// Several chains in turn. A step onto what is known costs nothing.
Walk walk_annealing(WalkContext& context, StrategyOptions options) {
  struct Chain {
    Sequence here;
    double value = std::numeric_limits<double>::infinity();
  };
  Sequences sequences(context);
  const Cooling cooling(options.sample_size);
  const Sequence start = sequences.empty();
  co_await context.measure(states_of({&start.end, 1}));
  std::vector<Chain> chains(kSequenceChains);
  std::size_t next = 0;
  for (int idle = 0; idle < kMaxIdle; ++idle) {
    Chain& chain = chains[next++ % kSequenceChains];
    const bool is_lost = !std::isfinite(chain.value);
    const bool is_stray = idle % kStray == kStray - 1;
    Sequence there = is_lost || is_stray ? sequences.random() : sequences.mutant(chain.here);
    const bool is_new = !context.is_known(there.end.state);
    co_await context.measure(states_of({&there.end, 1}));
    idle = is_new ? -1 : idle;
    const double value = context.value(there.end.state);
    if (std::isfinite(value) && (is_lost || cooling.accepts(chain.value, value, context.measured(),
                                                            context.rng().uniform()))) {
      chain = {.here = std::move(there), .value = value};
    }
  }
}

}  // namespace foretune
