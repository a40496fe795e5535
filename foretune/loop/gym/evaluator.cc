#include "foretune/loop/gym/evaluator.h"

#include <cmath>
#include <utility>

namespace foretune::loop::gym {

double Evaluated::counted_gflops() const {
  return ok && std::isfinite(gflops) && gflops > 0 ? gflops : 0;
}

CachedEvaluator::CachedEvaluator(Evaluator& evaluator)
    : CachedEvaluator(evaluator, [](const loop::Nest& nest) { return nest.hash(); }) {}

CachedEvaluator::CachedEvaluator(Evaluator& evaluator, Hash hash)
    : evaluator_(&evaluator), known_(0, Hasher{hash}) {}

Evaluated CachedEvaluator::evaluate(const loop::Nest& nest) {
  if (const auto found = known_.find(nest); found != known_.end()) {
    ++hits_;
    return found->second;
  }
  ++misses_;
  Evaluated evaluated = evaluator_->evaluate(nest);
  Evaluated& kept = known_.emplace(nest, evaluated).first->second;
  kept.was_cached = true;
  return evaluated;
}

void CachedEvaluator::forget(const loop::Nest& nest) { known_.erase(nest); }

void CachedEvaluator::clear() { known_.clear(); }

}  // namespace foretune::loop::gym
