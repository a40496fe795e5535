// How fast a schedule is, told by whoever can: a compiler and a stopwatch, a model, a recording.
//
//   CachedEvaluator cached(evaluator);
//   const Evaluated first = cached.evaluate(nest);   // asks
//   const Evaluated again = cached.evaluate(nest);   // was_cached
//
// Thread safety: one thread at a time. Cost: of a cached answer about a tenth of a microsecond.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "foretune/loop/nest.h"

namespace foretune::loop::gym {

// The outcome of an evaluation is data, a refusal as much as a time.
struct Evaluated {
  bool ok = false;
  double seconds = 0;  // of one run
  double gflops = 0;
  std::string reason;  // why it is not ok: not compiled, timed out, wrong results
  bool was_cached = false;

  // What may be counted for the schedule: 0 unless it is ok and a figure makes sense.
  [[nodiscard]] double counted_gflops() const;
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // A schedule that cannot be compiled or has wrong results is not ok, with a reason.
  virtual Evaluated evaluate(const loop::Nest& nest) = 0;
};

// Answers what was asked before from memory, refusals included. Whole nests are compared, so that
// no two schedules are ever taken for one. It grows by some 400 bytes a schedule.
class CachedEvaluator final : public Evaluator {
 public:
  using Hash = std::uint64_t (*)(const loop::Nest& nest);

  // `evaluator` has to outlive it.
  explicit CachedEvaluator(Evaluator& evaluator);
  // With another hash than the nest's own: for tests of collisions.
  CachedEvaluator(Evaluator& evaluator, Hash hash);

  Evaluated evaluate(const loop::Nest& nest) override;
  // So that the next one asks again: a time that was measured badly stays otherwise.
  void forget(const loop::Nest& nest);
  void clear();

  [[nodiscard]] std::size_t size() const { return known_.size(); }
  [[nodiscard]] std::uint64_t hits() const { return hits_; }
  [[nodiscard]] std::uint64_t misses() const { return misses_; }

 private:
  struct Hasher {
    Hash hash;
    std::size_t operator()(const loop::Nest& nest) const { return hash(nest); }
  };

  Evaluator* evaluator_;
  std::unordered_map<loop::Nest, Evaluated, Hasher> known_;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace foretune::loop::gym
