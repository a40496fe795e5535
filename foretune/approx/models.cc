#include "foretune/approx/models.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/graph/run/knob.h"

namespace foretune::approx {

namespace {

double points(std::int64_t images, std::int64_t of) {
  return 100.0 * static_cast<double>(images) / static_cast<double>(of);
}

// Returns how wide the numbers of a knob are.
int width_of(std::int32_t knob) {
  const Result<graph::LayerVariant> variant = graph::variant_of_knob(knob);
  if (!variant) {
    return 4;
  }
  switch (variant->type) {
    case DataType::kI8:
      return 1;
    case DataType::kBf16:
      return 2;
    default:
      return 4;  // f16 is widened before anything is computed
  }
}

}  // namespace

double added_loss(const Effects& effects, const Choices& choices) {
  std::int64_t lost = 0;
  for (std::size_t l = 0; l < choices.size(); ++l) {
    lost += effects.exact_right - effects.layers[l].knobs[choices[l]].right;
  }
  return points(lost, effects.images());
}

ChangeSum::ChangeSum(const Effects& effects)
    : effects_(effects), choices_(effects.layers.size(), 0), changes_(effects.exact.size(), 0.0F) {}

void ChangeSum::choose(std::size_t layer, std::uint8_t choice) {
  if (choices_[layer] == choice) {
    return;
  }
  const auto add = [&](std::uint8_t which, float sign) {
    const std::vector<float>& changes = effects_.layers[layer].knobs[which].changes;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      changes_[i] += sign * changes[i];
    }
  };
  add(choices_[layer], -1);
  add(choice, 1);
  choices_[layer] = choice;
}

void ChangeSum::choose_all(const Choices& choices) {
  for (std::size_t l = 0; l < choices.size(); ++l) {
    choose(l, choices[l]);
  }
}

double ChangeSum::loss(float scale) const {
  const auto classes = static_cast<std::size_t>(effects_.classes);
  std::int64_t right = 0;
  for (std::size_t i = 0; i < effects_.labels.size(); ++i) {
    const float* const exact = effects_.exact.data() + i * classes;
    const float* const changes = changes_.data() + i * classes;
    std::size_t best = 0;
    float most = exact[0] + scale * changes[0];
    for (std::size_t c = 1; c < classes; ++c) {
      const float value = exact[c] + scale * changes[c];
      best = value > most ? c : best;
      most = std::max(most, value);
    }
    right += static_cast<std::int32_t>(best) == effects_.labels[i] ? 1 : 0;
  }
  return points(effects_.exact_right - right, effects_.images());
}

LossTerms loss_terms(const Effects& effects, const ChangeSum& sum) {
  const double p1 = sum.loss();
  return {{p1, sum.loss(1.5F), added_loss(effects, sum.choices()), p1 * std::abs(p1) / 10}};
}

LossFit LossFit::learn(std::span<const LossTerms> terms, std::span<const double> losses) {
  FORETUNE_CHECK(terms.size() == losses.size());
  constexpr std::size_t kCount = LossTerms::kCount;
  std::vector<double> rows;
  std::vector<double> values(losses.begin(), losses.end());
  for (const LossTerms& each : terms) {
    rows.insert(rows.end(), each.values.begin(), each.values.end());
  }
  // Each weight is drawn towards its own of P1 by the mean square of its term.
  LossFit fit;
  for (std::size_t t = 0; t < kCount; ++t) {
    double square = 0;
    for (const LossTerms& each : terms) {
      square += each.values[t] * each.values[t];
    }
    const double pull =
        terms.empty() ? 1.0 : std::sqrt(2 * square / static_cast<double>(terms.size()));
    for (std::size_t other = 0; other < kCount; ++other) {
      rows.push_back(other == t ? pull : 0.0);
    }
    values.push_back(pull * fit.weights_[t]);
  }
  fit_nonnegative(rows, values, fit.weights_);
  return fit;
}

double LossFit::loss(const LossTerms& terms) const {
  double loss = 0;
  for (std::size_t t = 0; t < LossTerms::kCount; ++t) {
    loss += weights_[t] * terms.values[t];
  }
  return loss;
}

TimeModel::TimeModel(const graph::Network& network, NetworkTimes times) : times_(std::move(times)) {
  for (const graph::Node* layer : graph::layers_of(network)) {
    elements_.push_back(
        static_cast<double>(graph::element_count(network.tensor(layer->output).shape)) / 1e3);
  }
}

Result<TimeModel::Terms> TimeModel::terms(std::span<const std::int32_t> knobs) const {
  if (knobs.size() != times_.layers.size()) {
    return fail(ErrorCode::kInvalidArgument, "a network of ", times_.layers.size(),
                " layers has no ", knobs.size(), " knobs");
  }
  Terms terms{times_.before_ns, 0, 0};
  for (std::size_t l = 0; l < knobs.size(); ++l) {
    const LayerTimes& layer = times_.layers[l];
    const std::optional<double> ns = layer.ns_of(knobs[l]);
    if (!ns) {
      return fail(ErrorCode::kInvalidArgument, "layer ", layer.layer, " was not timed with ",
                  graph::knob_text(knobs[l]));
    }
    terms[0] += *ns;
    if (l > 0) {
      const int before = width_of(knobs[l - 1]);
      const int now = width_of(knobs[l]);
      terms[1] += now < before ? elements_[l - 1] : 0;
      terms[2] += now > before ? elements_[l - 1] : 0;
    }
  }
  return terms;
}

Result<double> TimeModel::predict_ns(std::span<const std::int32_t> knobs) const {
  FORETUNE_TRY(const Terms values, terms(knobs));
  double ns = 0;
  for (std::size_t t = 0; t < kTerms; ++t) {
    ns += weights_[t] * values[t];
  }
  return ns;
}

Status TimeModel::fit(std::span<const std::vector<std::int32_t>> networks,
                      std::span<const double> ns) {
  FORETUNE_CHECK(networks.size() == ns.size());
  std::vector<double> rows;
  std::vector<double> values;
  for (std::size_t i = 0; i < networks.size(); ++i) {
    FORETUNE_TRY(const Terms found, terms(networks[i]));
    // Relative errors count.
    for (const double term : found) {
      rows.push_back(term / ns[i]);
    }
    values.push_back(1);
  }
  Terms weights{1, 0, 0};
  fit_nonnegative(rows, values, weights);
  weights_ = weights;
  return {};
}

void fit_nonnegative(std::span<const double> rows, std::span<const double> values,
                     std::span<double> weights) {
  const std::size_t width = weights.size();
  FORETUNE_CHECK(rows.size() == values.size() * width);
  std::vector<double> errors(values.begin(), values.end());
  std::vector<double> squares(width, 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t t = 0; t < width; ++t) {
      errors[i] -= rows[i * width + t] * weights[t];
      squares[t] += rows[i * width + t] * rows[i * width + t];
    }
  }
  constexpr int kSweeps = 2000;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double moved = 0;
    for (std::size_t t = 0; t < width; ++t) {
      if (squares[t] == 0) {
        continue;
      }
      double slope = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        slope += rows[i * width + t] * errors[i];
      }
      const double next = std::max(0.0, weights[t] + slope / squares[t]);
      const double step = next - weights[t];
      for (std::size_t i = 0; i < values.size(); ++i) {
        errors[i] -= step * rows[i * width + t];
      }
      weights[t] = next;
      moved = std::max(moved, std::abs(step));
    }
    if (moved < 1e-9) {
      return;
    }
  }
}

}  // namespace foretune::approx
