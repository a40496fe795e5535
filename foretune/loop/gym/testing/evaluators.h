// An evaluator for tests: some figure for every schedule, without compiling anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "foretune/loop/gym/evaluator.h"

namespace foretune::loop::gym::testing_support {

// Asks a function, and counts how often.
class FunctionEvaluator final : public Evaluator {
 public:
  using Function = std::function<Evaluated(const loop::Nest& nest)>;
  explicit FunctionEvaluator(Function function) : function_(std::move(function)) {}

  Evaluated evaluate(const loop::Nest& nest) override {
    ++calls_;
    return function_(nest);
  }
  [[nodiscard]] std::size_t calls() const { return calls_; }

 private:
  Function function_;
  std::size_t calls_ = 0;
};

inline Evaluated of_gflops(double gflops) {
  return {.ok = true, .seconds = 1e-3 / gflops, .gflops = gflops};
}

inline Evaluated refused() { return {.ok = false, .gflops = 1e6, .reason = "too many registers"}; }

// From 1 to 100 GFLOPS by the nest's hash; one in `refuse_one_in` is refused, 0: none.
inline FunctionEvaluator::Function by_hash(std::uint64_t refuse_one_in = 0) {
  return [refuse_one_in](const loop::Nest& nest) {
    const std::uint64_t hash = nest.hash();
    if (refuse_one_in > 0 && hash % refuse_one_in == 0) {
      return refused();
    }
    return of_gflops(1 + static_cast<double>(hash % 100));
  };
}

}  // namespace foretune::loop::gym::testing_support
