// Evaluates the speed of a schedule, by compiling and timing it, by a model, or by a recording.
//
//   CachedEvaluator cached(evaluator);
//   const Evaluated first = cached.evaluate(nest);   // asks
//   const Evaluated again = cached.evaluate(nest);   // was_cached
//
// Thread safety: one thread at a time. Cost: about a tenth of a microsecond for a cached answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "foretune/loop/nest.h"

namespace foretune::loop::gym {

// The result of an evaluation: a time, or a refusal, which is data as well.
struct Evaluated {
  bool ok = false;
  double seconds = 0;  // of one run
  double gflops = 0;
  std::string reason;  // why it is not ok: not compiled, timed out, wrong results
  bool was_cached = false;

  // Returns the GFLOPS to count for the schedule: 0 unless it is ok and the figure is valid.
  [[nodiscard]] double counted_gflops() const;
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Evaluates a schedule. One that cannot be compiled or has wrong results is not ok, with a
  // reason.
  virtual Evaluated evaluate(const loop::Nest& nest) = 0;
};

// Answers known nests from memory, including refusals. It compares whole nests, so it never
// confuses two schedules. It grows by some 400 bytes per schedule.
class CachedEvaluator final : public Evaluator {
 public:
  using Hash = std::uint64_t (*)(const loop::Nest& nest);

  // `evaluator` must outlive it.
  explicit CachedEvaluator(Evaluator& evaluator);
  // Uses another hash than the nest's own, for tests of collisions.
  CachedEvaluator(Evaluator& evaluator, Hash hash);

  Evaluated evaluate(const loop::Nest& nest) override;
  // Removes a nest, so that the next call evaluates it again; a bad time would stay otherwise.
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
