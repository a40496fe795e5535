// Predicts the quality and the time of a whole network from what each knob does alone.
//
//   ChangeSum sum(effects);               // PredTuner's P1: changes of outputs add up
//   sum.choose(3, 2);
//   const double points = sum.loss();
//
// P1 and P2 are the models of Sharif et al., "ApproxTuner" (PPoPP 2021), section 3. LossFit
// corrects them by whole networks that were measured. Losses are in percentage points of the
// images.
//
// Thread safety: plain values, each used by one thread. Cost: at each function; "rows" are images
// times classes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/approx/effects.h"
#include "foretune/base/result.h"
#include "foretune/graph/network.h"

namespace foretune::approx {

// A position among the knobs of each layer, 0 for the exact one.
using Choices = std::vector<std::uint8_t>;

// P2: the losses of single knobs add up. Returns points.
[[nodiscard]] double added_loss(const Effects& effects, const Choices& choices);

// P1: the changes of the outputs add up, then the images are classified. Layers begin exact.
// Borrows the effects.
class ChangeSum {
 public:
  explicit ChangeSum(const Effects& effects);
  // Cost: one pass over the rows; none for the choice that stands.
  void choose(std::size_t layer, std::uint8_t choice);
  void choose_all(const Choices& choices);
  [[nodiscard]] const Choices& choices() const { return choices_; }
  // Returns the loss in points. Cost: one pass over the rows.
  [[nodiscard]] double loss() const { return loss(1.0F); }
  // Returns the loss where all changes are `scale` times as large.
  [[nodiscard]] double loss(float scale) const;

 private:
  const Effects& effects_;
  Choices choices_;
  std::vector<float> changes_;
};

// The losses that P1 and P2 predict for a network; LossFit weighs them.
struct LossTerms {
  static constexpr std::size_t kCount = 4;
  // P1; P1 with changes half as large again; P2; the square of P1, in tenths of points.
  std::array<double, kCount> values{};
};
[[nodiscard]] LossTerms loss_terms(const Effects& effects, const ChangeSum& sum);

// The loss as a weighted sum of the terms, with weights from 0 up.
class LossFit {
 public:
  // Returns P1 as it is.
  LossFit() = default;
  // Least squares over networks that were measured, drawn towards P1 as if by two more of them.
  // Spans have the same length.
  static LossFit learn(std::span<const LossTerms> terms, std::span<const double> losses);
  [[nodiscard]] double loss(const LossTerms& terms) const;
  [[nodiscard]] std::span<const double> weights() const { return weights_; }

 private:
  std::array<double, LossTerms::kCount> weights_{1, 0, 0, 0};
};

// The time of a network: those of its layers, and of conversions where the type changes from one
// layer to the next.
class TimeModel {
 public:
  TimeModel() = default;
  // `network` is simplified, with the layers of `times`. Conversions cost nothing before fit().
  TimeModel(const graph::Network& network, NetworkTimes times);
  // Knobs for each layer, in their order. Errors: kInvalidArgument for a knob without a time.
  [[nodiscard]] Result<double> predict_ns(std::span<const std::int32_t> knobs) const;
  // Fits the costs of conversions and of what no step has to networks that were measured. Spans
  // have the same length. Errors: as predict_ns().
  Status fit(std::span<const std::vector<std::int32_t>> networks, std::span<const double> ns);
  [[nodiscard]] const NetworkTimes& times() const { return times_; }

 private:
  // The sum of layers, elements that become narrower, elements that become wider, both in
  // thousands.
  static constexpr std::size_t kTerms = 3;
  using Terms = std::array<double, kTerms>;
  [[nodiscard]] Result<Terms> terms(std::span<const std::int32_t> knobs) const;

  NetworkTimes times_;
  std::vector<double> elements_;  // of each layer's result, in thousands
  Terms weights_{1, 0, 0};
};

// Returns weights from 0 up that minimise the squared error of rows * weights - values, by
// coordinate descent. `rows` are of `weights.size()` numbers; `weights` is the start.
void fit_nonnegative(std::span<const double> rows, std::span<const double> values,
                     std::span<double> weights);

}  // namespace foretune::approx
