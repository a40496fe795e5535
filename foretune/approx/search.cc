#include "foretune/approx/search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace foretune::approx {

namespace {

// Returns how many units of the separable model's losses an image of weight 1 makes that loses 100:
// one where all images count the same, otherwise enough for units of 0.05 or less.
double units_of_image(const Effects& effects) {
  if (effects.metric->is_count() && std::all_of(effects.weights.begin(), effects.weights.end(),
                                                [](double weight) { return weight == 1; })) {
    return 1;
  }
  constexpr double kMost = 0.05;
  return std::ceil(100.0 / static_cast<double>(effects.images()) / kMost);
}

}  // namespace

std::vector<std::int32_t> ModelSearch::knobs(const Choices& choices) const {
  std::vector<std::int32_t> knobs;
  for (std::size_t l = 0; l < choices.size(); ++l) {
    knobs.push_back(effects_.layers[l].knobs[choices[l]].knob);
  }
  return knobs;
}

Result<Candidate> ModelSearch::predict(const Choices& choices) {
  sum_.choose_all(choices);
  FORETUNE_TRY(const double ns, times_.predict_ns(knobs(choices)));
  return Candidate{.choices = choices, .ns = ns, .loss = losses_.loss(sum_)};
}

std::vector<SeparablePoint> ModelSearch::front(double max_loss) const {
  const double units = units_of_image(effects_);
  std::vector<std::vector<Choice>> layers;
  for (std::size_t l = 0; l < effects_.layers.size(); ++l) {
    const LayerTimes& times = times_.times().layers[l];
    std::vector<Choice>& choices = layers.emplace_back();
    for (const KnobEffect& effect : effects_.layers[l].knobs) {
      choices.push_back(
          {.time = *times.ns_of(effect.knob),
           .loss = std::llround((effects_.exact_quality - effect.quality) / 100 * units)});
    }
  }
  return separable_front(
      layers, std::llround(max_loss / 100 * static_cast<double>(effects_.images()) * units));
}

// The fastest of the separable front, or the exact network where that has none.
Result<Candidate> ModelSearch::start(double limit) const {
  const std::vector<SeparablePoint> points = front(limit);
  const Choices choices =
      points.empty() ? Choices(effects_.layers.size(), 0) : points.front().choices;
  FORETUNE_TRY(const double ns, times_.predict_ns(knobs(choices)));
  return Candidate{.choices = choices, .ns = ns, .loss = 0};
}

// Repairs a network that loses too much, then takes the change of one layer that gains most time
// for its loss until none is left.
Result<Candidate> ModelSearch::climb(const Choices& from, double limit) {
  FORETUNE_TRY(Candidate best, predict(from));
  constexpr double kLeastLoss = 0.02;  // less is noise of a few images
  while (true) {
    const bool repairs = best.loss > limit;
    double most = 0;
    Candidate next;
    for (std::size_t l = 0; l < best.choices.size(); ++l) {
      for (std::size_t c = 0; c < effects_.layers[l].knobs.size(); ++c) {
        Choices choices = best.choices;
        choices[l] = static_cast<std::uint8_t>(c);
        if (choices == best.choices) {
          continue;
        }
        FORETUNE_TRY(const double ns, times_.predict_ns(knobs(choices)));
        const double gain = best.ns - ns;
        if (!repairs && gain <= 1e-4 * best.ns) {
          continue;
        }
        const double loss = loss_with(l, c);
        const double worse = std::max(loss - best.loss, kLeastLoss);
        const double merit =
            repairs ? (best.loss - loss) / std::max(-gain, 1e-3 * best.ns) : gain / worse;
        if (merit > most && (repairs || loss <= limit)) {
          most = merit;
          next = {.choices = std::move(choices), .ns = ns, .loss = loss};
        }
      }
    }
    if (most == 0) {
      return best;
    }
    best = std::move(next);
    sum_.choose_all(best.choices);
  }
}

Result<std::vector<Candidate>> ModelSearch::neighbours(const Choices& choices) {
  sum_.choose_all(choices);
  std::vector<Candidate> out;
  for (std::size_t l = 0; l < choices.size(); ++l) {
    for (std::size_t c = 0; c < effects_.layers[l].knobs.size(); ++c) {
      if (c == choices[l]) {
        continue;
      }
      Candidate other{.choices = choices};
      other.choices[l] = static_cast<std::uint8_t>(c);
      FORETUNE_TRY(other.ns, times_.predict_ns(knobs(other.choices)));
      other.loss = loss_with(l, c);
      out.push_back(std::move(other));
    }
  }
  return out;
}

Result<Candidate> ModelSearch::fastest(double limit, int restarts, Rng& rng) {
  FORETUNE_TRY(const Candidate from, start(limit));
  FORETUNE_TRY(Candidate best, climb(from.choices, limit));
  const std::size_t layers = best.choices.size();
  for (int i = 0; i < restarts; ++i) {
    Choices changes = best.choices;
    const std::size_t changed = 1 + rng.below(std::max<std::size_t>(1, layers / 4));
    for (std::size_t j = 0; j < changed; ++j) {
      const std::size_t layer = rng.below(layers);
      changes[layer] = static_cast<std::uint8_t>(rng.below(effects_.layers[layer].knobs.size()));
    }
    FORETUNE_TRY(Candidate other, climb(changes, limit));
    const bool is_allowed = other.loss <= limit;
    if (is_allowed && (best.loss > limit || other.ns < best.ns)) {
      best = std::move(other);
    }
  }
  return best;
}

}  // namespace foretune::approx
