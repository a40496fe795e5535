// One computation that schedules are sought for: a graph of the nests that were met so far, with
// their speeds, the actions between them and what an agent sees of them. Any number of threads may
// walk on it.
//
//   FORETUNE_TRY(const auto task, NestTask::measured(computation, CpuIsa::kAvx512, 110.0));
//   FORETUNE_TRY(const NestTask::Step step, task->step(task->start().to, action));
//   step.log_share     // ln(GFLOP/s over the peak)
//
// Thread safety: any number of threads; measurements of one task take turns, so that several tasks
// keep several threads busy. Cost: that of the evaluator for a new nest, else some 50 ns a call. A
// nest takes some 400 bytes, each of the first kSeenNests another kilobyte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/families/loop_nest/loop_nest.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/gym/evaluator.h"
#include "foretune/loop/gym/transition_table.h"
#include "foretune/loop/loop_actions.h"
#include "foretune/loop/nest.h"
#include "foretune/loop/policy_observation.h"
#include "foretune/measure/known_measurer.h"

namespace foretune::loop::gym {

// A nest and ln of its share of the peak.
struct ScoredNest {
  Nest nest;
  double log_share = 0;
};

class NestTask {
 public:
  // The evaluator is of this computation and unit. Errors: kInvalidArgument for a peak that is not
  // above 0, and those of Computation::check().
  static Result<std::unique_ptr<NestTask>> create(Computation computation, const VectorUnit& unit,
                                                  std::unique_ptr<Evaluator> evaluator,
                                                  double peak_gflops,
                                                  const PolicyMachine& machine = {});
  // Measures in this process, but for what a file knows (MeasuredEvaluator::open_known()). Errors:
  // those of MeasuredEvaluator::create().
  static Result<std::unique_ptr<NestTask>> measured(
      const Computation& computation, CpuIsa isa, double peak_gflops,
      const PolicyMachine& machine = {}, std::shared_ptr<KnownMeasurements> known = nullptr);

  // A nest that was met, by the number that the task gave it.
  using NestId = std::uint32_t;
  struct Step {
    NestId to = 0;
    bool is_new = false;              // nobody had met the nest before
    std::optional<double> log_share;  // ln(GFLOP/s over the peak); nothing where it was refused
  };
  // Observations are kept of as many nests; those of later ones are made again every time.
  static constexpr std::size_t kSeenNests = 4096;

  // Returns the plain nest.
  Step start();
  // Returns the nest that an action of loop_actions.h leads to, which is evaluated when it is new.
  // A nest that is to be the best is evaluated twice, and the slower time counts: a policy would
  // live on a lucky one. Errors: kInvalidArgument for an action that is not legal.
  Result<Step> step(NestId from, std::size_t action);
  // Returns ln(GFLOP/s over the peak) of any nest; evaluates one that was not met before. Nothing
  // where the evaluator refused.
  std::optional<double> log_share(const Nest& nest);
  [[nodiscard]] Nest nest(NestId id) const;
  // Writes what PolicyObserver::observe() and LoopActions::write_mask() write, but only as far as
  // the nest has loops, whose number it returns: rows behind are left as they are.
  std::size_t observe(NestId id, double steps_left, std::span<float> loops, std::span<float> whole,
                      std::span<std::uint8_t> mask);

  [[nodiscard]] const Computation& computation() const { return computation_; }
  [[nodiscard]] const VectorUnit& unit() const { return unit_; }
  [[nodiscard]] const LoopActions& actions() const { return actions_; }
  // The fastest so far; nothing before the first that was not refused.
  [[nodiscard]] std::optional<ScoredNest> best() const;
  // Every nest that was evaluated since the last call, refused ones left out.
  [[nodiscard]] std::vector<ScoredNest> take_evaluated();
  // How many nests were evaluated.
  [[nodiscard]] std::uint64_t evaluations() const;

 private:
  NestTask(Computation computation, const VectorUnit& unit, std::unique_ptr<Evaluator> evaluator,
           double peak_gflops, const PolicyMachine& machine);

  // A known step needs this of the nest that it leads to.
  struct Known {
    std::optional<double> log_share;
    std::size_t loops = 0;
    // Rows of loops, the row of the whole, then the mask; nothing until somebody looked.
    std::unique_ptr<std::byte[]> seen;
  };
  // Finds nests by their own hash, without a second copy of them.
  struct Hasher {
    using is_transparent = void;
    const std::deque<Nest>* nests;
    std::size_t operator()(NestId id) const { return (*nests)[id].hash(); }
    std::size_t operator()(const Nest& nest) const { return nest.hash(); }
  };
  struct Equal {
    using is_transparent = void;
    const std::deque<Nest>* nests;
    bool operator()(NestId a, NestId b) const { return a == b; }
    bool operator()(const Nest& nest, NestId id) const { return nest == (*nests)[id]; }
    bool operator()(NestId id, const Nest& nest) const { return nest == (*nests)[id]; }
  };
  Step find_or_add(const Nest& nest);
  std::optional<double> evaluate(const Nest& nest);
  void look(const Nest& nest, std::span<float> loops, std::span<float> whole,
            std::span<std::uint8_t> mask) const;

  Computation computation_;
  VectorUnit unit_;
  LoopActions actions_;
  PolicyObserver observer_;
  std::unique_ptr<Evaluator> evaluator_;
  double peak_gflops_;
  mutable std::mutex mutex_;  // of all below, and of the evaluator
  std::deque<Nest> nests_;
  std::vector<Known> known_;  // of each nest
  TransitionTable transitions_;
  std::unordered_set<NestId, Hasher, Equal> ids_;
  std::optional<NestId> start_;
  std::optional<ScoredNest> best_;
  std::vector<ScoredNest> evaluated_;
};

}  // namespace foretune::loop::gym
