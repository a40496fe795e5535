// The legal configs of one problem. Nothing may assume that a space can be enumerated: a sparse
// one has billions of points. Those that can be add EnumerableSpace, those built step by step
// (schedules) add SequentialSpace. A refusal always says why.
// Thread safety: const members may be called from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/space/config.h"

namespace foretune {

class EnumerableSpace;
class SequentialSpace;

class Space {
 public:
  virtual ~Space() = default;
  Space() = default;
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  virtual const ConfigSchema& schema() const = 0;
  // Whether `config` is legal here, with the reason when it is not.
  virtual Support why_not(const Config& config) const = 0;
  // A random legal config; kNotFound when the space is empty.
  virtual Result<Config> sample(Rng& rng) const = 0;
  // Legal configs one step away, in a fixed order.
  virtual std::vector<Config> neighbours(const Config& config) const = 0;
  // The representative of all configs that mean the same here (a block larger than the problem is
  // the block of the problem's size). Legal configs stay legal.
  virtual Config canonical(const Config& config) const = 0;

  // Configs that are worth a look before anything is known of the problem, most promising first: at
  // most `count`, and none where the space has no rule for it.
  virtual std::vector<Config> proposals(std::size_t /*count*/) const { return {}; }
  // The config for people: as its schema prints it, unless the space knows better (the words of a
  // schedule say little to anyone).
  virtual std::string describe(const Config& config) const { return to_text(schema(), config); }

  // The additional abilities, or nullptr.
  virtual const EnumerableSpace* enumerable() const { return nullptr; }
  virtual const SequentialSpace* sequential() const { return nullptr; }
};

class EnumerableSpace {
 public:
  virtual ~EnumerableSpace() = default;
  virtual std::uint64_t count() const = 0;
  // The legal config of rank `index` < count(), in a fixed order.
  virtual Config unrank(std::uint64_t index) const = 0;
};

// A space whose configs are built by actions from a start state.
class SequentialSpace {
 public:
  virtual ~SequentialSpace() = default;
  virtual Config start() const = 0;
  virtual std::size_t action_count() const = 0;
  // One entry per action: whether it is legal in `state`.
  virtual std::vector<bool> legal_actions(const Config& state) const = 0;
  // The state after `action`, or the reason why it is not legal.
  virtual Result<Config> apply(const Config& state, std::size_t action) const = 0;
  virtual std::string action_text(std::size_t action) const = 0;
  // The configs on one way from the start to `config`, both included; not always the shortest.
  // Empty where the space knows none.
  virtual std::vector<Config> way_to(const Config& /*config*/) const { return {}; }
  // Returns true where the strategies of all spaces (random, exhaustive, evolution, annealing) walk
  // action by action. Not where sample() and neighbours() find every config as well: they use those
  // then.
  virtual bool prefers_walks() const { return true; }
  // How many actions strategies take from the start at most, unless they are told.
  virtual std::size_t usual_steps() const { return 10; }
};

}  // namespace foretune
