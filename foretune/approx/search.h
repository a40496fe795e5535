// Finds the fastest network within a loss, by the models of quality and time.
//
// The exact front of the separable model (separable.h) gives the start. From there a local search
// by the model of quality changes one layer at a time, and now and then makes a few layers more
// exact to leave a local optimum (iterated local search: Lourenco, Martin and Stuetzle 2003).
//
// Thread safety: belongs to one thread. Cost: a few seconds for a network of twenty layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "foretune/approx/effects.h"
#include "foretune/approx/judge.h"
#include "foretune/approx/loss_model.h"
#include "foretune/approx/models.h"
#include "foretune/approx/separable.h"
#include "foretune/base/result.h"
#include "foretune/base/rng.h"

namespace foretune::approx {

// A network that the models recommend.
struct Candidate {
  Choices choices;
  double ns = 0;    // predicted
  double loss = 0;  // predicted, in the metric's unit
};

class ModelSearch {
 public:
  // Borrows effects and times. `times` knows every knob of the effects.
  ModelSearch(const Effects& effects, const TimeModel& times, const LossModel& losses)
      : effects_(effects), times_(times), losses_(losses), sum_(effects) {}

  // Returns the knobs of choices, in the order of the layers.
  [[nodiscard]] std::vector<std::int32_t> knobs(const Choices& choices) const;
  [[nodiscard]] Result<Candidate> predict(const Choices& choices);
  // Returns the whole front of P2 and the times of layers, up to a loss of `max_loss`.
  [[nodiscard]] std::vector<SeparablePoint> front(double max_loss) const;
  // Returns the fastest found whose predicted loss is at most `limit`. `restarts`: how often
  // the local search leaves an optimum. Errors: those of the times.
  Result<Candidate> fastest(double limit, int restarts, Rng& rng);
  // Returns the networks that differ from this one in one layer, in no order. Errors: those of the
  // times.
  Result<std::vector<Candidate>> neighbours(const Choices& choices);
  // Compares the exact network with that of the last predict(), by P1.
  [[nodiscard]] PairedScores compare() const { return sum_.compare(); }

 private:
  Result<Candidate> climb(const Choices& from, double limit);
  Result<Candidate> start(double limit) const;
  [[nodiscard]] double loss_with(std::size_t layer, std::size_t choice) const {
    return losses_.loss(
        sum_.losses_with(losses_.interplay(), layer, static_cast<std::uint8_t>(choice)));
  }

  const Effects& effects_;
  const TimeModel& times_;
  LossModel losses_;
  ChangeSum sum_;
};

}  // namespace foretune::approx
