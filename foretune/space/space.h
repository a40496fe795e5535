// The legal configs of one problem. Nothing may assume that a space can be enumerated: a sparse
// one has billions of points. Spaces that can be enumerated add EnumerableSpace; spaces whose
// configs are built step by step (schedules) add SequentialSpace. A refusal always says why.
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
  // Returns yes when `config` is legal here, otherwise the reason why it is not.
  virtual Support why_not(const Config& config) const = 0;
  // Returns a random legal config; kNotFound when the space is empty.
  virtual Result<Config> sample(Rng& rng) const = 0;
  // Returns the legal configs one step away, in a fixed order.
  virtual std::vector<Config> neighbours(const Config& config) const = 0;
  // Returns the representative of all configs that mean the same here (a block larger than the
  // problem means a block of the problem's size). Legal configs stay legal.
  virtual Config canonical(const Config& config) const = 0;

  // Returns configs to try before anything is known about the problem, most promising first: at
  // most `count`, and none when the space has no rule for them.
  virtual std::vector<Config> proposals(std::size_t /*count*/) const { return {}; }
  // Returns a text of the config for people: as its schema prints it, unless the space has a better
  // one (the values of a schedule tell a reader little).
  virtual std::string describe(const Config& config) const { return to_text(schema(), config); }

  // Return the additional interface, or nullptr for a space without it.
  virtual const EnumerableSpace* enumerable() const { return nullptr; }
  virtual const SequentialSpace* sequential() const { return nullptr; }
};

class EnumerableSpace {
 public:
  virtual ~EnumerableSpace() = default;
  virtual std::uint64_t count() const = 0;
  // Returns the legal config of rank `index` < count(), in a fixed order.
  virtual Config unrank(std::uint64_t index) const = 0;
};

// A space whose configs are built by actions from a start state.
class SequentialSpace {
 public:
  virtual ~SequentialSpace() = default;
  virtual Config start() const = 0;
  virtual std::size_t action_count() const = 0;
  // Returns one entry per action: true when it is legal in `state`.
  virtual std::vector<bool> legal_actions(const Config& state) const = 0;
  // Returns the state after `action`, or the reason why it is not legal.
  virtual Result<Config> apply(const Config& state, std::size_t action) const = 0;
  virtual std::string action_text(std::size_t action) const = 0;
  // Returns the configs on one way from the start to `config`, both included; it need not be the
  // shortest. Empty when the space knows no way.
  virtual std::vector<Config> way_to(const Config& /*config*/) const { return {}; }
  // Returns true when the strategies that work on any space (random, exhaustive, evolution,
  // annealing) shall walk action by action. Returns false when sample() and neighbours() reach
  // every config too; the strategies then use those.
  virtual bool prefers_walks() const { return true; }
  // Returns how many actions strategies take from the start at most, unless their options say.
  virtual std::size_t usual_steps() const { return 10; }
};

}  // namespace foretune
