// Finds the fastest network within a loss, by the models of quality and time.
//
// The exact front of the separable model (separable.h) gives the start. From there a local search
// by P1 and its fit changes one layer at a time, and now and then makes a few layers more exact to
// leave a local optimum (iterated local search: Lourenco, Martin and Stuetzle 2003).
//
// Thread safety: belongs to one thread. Cost: a few seconds for a network of twenty layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "foretune/approx/effects.h"
#include "foretune/approx/models.h"
#include "foretune/approx/separable.h"
#include "foretune/base/result.h"
#include "foretune/base/rng.h"

namespace foretune::approx {

// A network that the models recommend.
struct Candidate {
  Choices choices;
  double ns = 0;    // predicted
  double loss = 0;  // predicted, in points
};

class ModelSearch {
 public:
  // Borrows effects and times. `times` knows every knob of the effects.
  ModelSearch(const Effects& effects, const TimeModel& times, const LossFit& fit)
      : effects_(effects), times_(times), fit_(fit), sum_(effects) {}

  // Returns the knobs of choices, in the order of the layers.
  [[nodiscard]] std::vector<std::int32_t> knobs(const Choices& choices) const;
  [[nodiscard]] Result<Candidate> predict(const Choices& choices);
  // Returns the whole front of P2 and the times of layers, up to `max_points` of loss.
  [[nodiscard]] std::vector<SeparablePoint> front(double max_points) const;
  // Returns the fastest found whose predicted loss is at most `limit` points. `restarts`: how often
  // the local search leaves an optimum. Errors: those of the times.
  Result<Candidate> fastest(double limit, int restarts, Rng& rng);

 private:
  Result<Candidate> climb(const Choices& from, double limit);
  Result<Candidate> start(double limit) const;
  [[nodiscard]] double loss_now() const { return fit_.loss(loss_terms(effects_, sum_)); }

  const Effects& effects_;
  const TimeModel& times_;
  LossFit fit_;
  ChangeSum sum_;
};

}  // namespace foretune::approx
