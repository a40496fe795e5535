#include "foretune/approx/loss_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "foretune/approx/models.h"

namespace foretune::approx {

namespace {

constexpr std::size_t kCount = LossTerms::kCount;
constexpr std::size_t kParts = 5;  // of the samples, of which each judges a fit to the others
constexpr std::array kDampings{0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0};
constexpr std::array kNoises{0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.8};
constexpr std::array kKinds{LossModel::Kind::kP1, LossModel::Kind::kP2, LossModel::Kind::kJoint,
                            LossModel::Kind::kJointAndP2, LossModel::Kind::kJointAndUnion};

using Weights = std::array<double, kCount>;

// Returns the loss of so many images' weights, each of which loses 100.
double loss_of_images(double images, std::int64_t of) {
  return 100.0 * images / static_cast<double>(of);
}

// Returns the probability that a margin stays above 0, given in deviations of its noise times
// sqrt(2).
double chance_of(double margin) {
  return margin > 4 ? 1 : margin < -4 ? 0 : 0.5 * std::erfc(-margin);
}

double weigh(const Weights& weights, const LossTerms& terms) {
  double loss = 0;
  for (std::size_t t = 0; t < kCount; ++t) {
    loss += weights[t] * terms.values[t];
  }
  return loss;
}

// The samples' terms for every interplay of the grid, and their losses.
struct Table {
  std::vector<Interplay> grid;
  std::vector<std::vector<LossTerms>> terms;  // by position in the grid, then by sample
  std::vector<double> losses;
};

struct Fit {
  std::size_t place = 0;  // in the grid
  Weights weights{};
  double error = std::numeric_limits<double>::infinity();  // mean absolute, of the fitted samples
};

// Least squares over the samples outside of one part, drawn towards the first of the terms as if by
// two more samples.
Weights fit_weights(const Table& table, std::size_t place, std::span<const std::size_t> terms,
                    std::size_t part) {
  std::vector<double> rows;
  std::vector<double> values;
  std::vector<double> squares(terms.size(), 0.0);
  for (std::size_t i = 0; i < table.losses.size(); ++i) {
    if (i % kParts == part) {
      continue;
    }
    for (std::size_t t = 0; t < terms.size(); ++t) {
      rows.push_back(table.terms[place][i].values[terms[t]]);
      squares[t] += rows.back() * rows.back();
    }
    values.push_back(table.losses[i]);
  }
  const auto samples = static_cast<double>(values.size());
  std::vector<double> found(terms.size(), 0.0);
  found[0] = 1;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const double pull = std::sqrt(2 * squares[t] / samples);
    for (std::size_t other = 0; other < terms.size(); ++other) {
      rows.push_back(other == t ? pull : 0.0);
    }
    values.push_back(t == 0 ? pull : 0.0);
  }
  fit_nonnegative(rows, values, found);
  Weights weights{};
  for (std::size_t t = 0; t < terms.size(); ++t) {
    weights[terms[t]] = found[t];
  }
  return weights;
}

// Fits a kind to the samples outside of one part; kParts for all samples.
Fit fit_kind(const Table& table, LossModel::Kind kind, std::size_t part) {
  std::vector<std::size_t> terms{LossTerms::kJoint};
  if (kind == LossModel::Kind::kJointAndP2) {
    terms.push_back(LossTerms::kP2);
  } else if (kind == LossModel::Kind::kJointAndUnion) {
    terms.push_back(LossTerms::kUnion);
    terms.push_back(LossTerms::kUnionSquared);
  }
  const bool is_plain = kind == LossModel::Kind::kP1 || kind == LossModel::Kind::kP2;
  Fit best;
  for (std::size_t place = 0; place < (is_plain ? 1 : table.grid.size()); ++place) {
    Fit fit{.place = place, .error = 0};
    if (terms.size() > 1) {
      fit.weights = fit_weights(table, place, terms, part);
    } else {
      fit.weights[kind == LossModel::Kind::kP1   ? LossTerms::kP1
                  : kind == LossModel::Kind::kP2 ? LossTerms::kP2
                                                 : LossTerms::kJoint] = 1;
    }
    for (std::size_t i = 0; i < table.losses.size(); ++i) {
      fit.error += i % kParts == part
                       ? 0
                       : std::abs(weigh(fit.weights, table.terms[place][i]) - table.losses[i]);
    }
    if (fit.error < best.error) {
      best = fit;
    }
  }
  return best;
}

// Returns the mean absolute error over samples that the fit did not see.
double fresh_error(const Table& table, LossModel::Kind kind) {
  double error = 0;
  for (std::size_t part = 0; part < kParts; ++part) {
    const Fit fit = fit_kind(table, kind, part);
    for (std::size_t i = part; i < table.losses.size(); i += kParts) {
      error += std::abs(weigh(fit.weights, table.terms[fit.place][i]) - table.losses[i]);
    }
  }
  return error / static_cast<double>(table.losses.size());
}

}  // namespace

ChangeSum::ChangeSum(const Effects& effects)
    : effects_(effects),
      none_(effects.exact.size(), 0.0F),
      spread_(spread(effects.exact, effects.classes)),
      choices_(effects.layers.size(), 0),
      changes_(none_),
      weighted_(none_),
      losing_(effects.labels.size(), 0),
      gaining_(effects.labels.size(), 0) {
  count_flips();
}

void ChangeSum::count_flips() {
  std::vector<float> outputs(effects_.exact.size());
  for (const LayerEffects& layer : effects_.layers) {
    auto& knobs = flips_.emplace_back();
    for (const KnobEffect& effect : layer.knobs) {
      std::vector<std::int8_t>& flips = knobs.emplace_back();
      if (!effects_.has_ranks()) {
        continue;
      }
      flips.assign(effects_.labels.size(), std::int8_t{0});
      if (effect.changes.empty()) {
        continue;
      }
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        outputs[i] = effects_.exact[i] + effect.changes[i];
      }
      const std::vector<double> scores = effects_.scores(outputs);
      for (std::size_t i = 0; i < flips.size(); ++i) {
        const double exact = effects_.exact_scores[i];
        flips[i] =
            static_cast<std::int8_t>((scores[i] > exact ? 1 : 0) - (scores[i] < exact ? 1 : 0));
      }
    }
  }
}

const std::vector<float>& ChangeSum::changes_of(std::size_t layer, std::uint8_t choice) const {
  const std::vector<float>& changes = effects_.layers[layer].knobs[choice].changes;
  return changes.empty() ? none_ : changes;
}

void ChangeSum::choose(std::size_t layer, std::uint8_t choice) {
  const std::uint8_t before = choices_[layer];
  if (before == choice) {
    return;
  }
  const std::vector<float>& old = changes_of(layer, before);
  const std::vector<float>& now = changes_of(layer, choice);
  const double old_size = size_of(layer, before);
  const double size = size_of(layer, choice);
  const auto old_factor = static_cast<float>(old_size);
  const auto factor = static_cast<float>(size);
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    changes_[i] += now[i] - old[i];
    weighted_[i] += factor * now[i] - old_factor * old[i];
  }
  const std::vector<std::int8_t>& old_flips = flips_of(layer, before);
  const std::vector<std::int8_t>& flips = flips_of(layer, choice);
  for (std::size_t i = 0; i < flips.size(); ++i) {
    losing_[i] = static_cast<std::uint8_t>(losing_[i] + (flips[i] < 0) - (old_flips[i] < 0));
    gaining_[i] = static_cast<std::uint8_t>(gaining_[i] + (flips[i] > 0) - (old_flips[i] > 0));
  }
  sizes_ += size - old_size;
  squares_ += size * size - old_size * old_size;
  choices_[layer] = choice;
}

void ChangeSum::choose_all(const Choices& choices) {
  for (std::size_t l = 0; l < choices.size(); ++l) {
    choose(l, choices[l]);
  }
}

std::vector<double> ChangeSum::scores() const {
  std::vector<float> outputs(changes_);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] += effects_.exact[i];
  }
  return effects_.scores(outputs);
}

double ChangeSum::loss() const { return effects_.loss(effects_.quality(scores())); }

PairedScores ChangeSum::compare() const {
  return compare_scores(*effects_.metric, effects_.labels, effects_.exact_scores, scores());
}

LossTerms ChangeSum::losses(const Interplay& interplay) const {
  return losses_with(interplay, 0, choices_.empty() ? std::uint8_t{0} : choices_[0]);
}

LossTerms ChangeSum::losses_with(const Interplay& interplay, std::size_t layer,
                                 std::uint8_t choice) const {
  if (choices_.empty()) {
    return {};
  }
  const Change change{.layer = layer, .choice = choice};
  LossTerms terms;
  terms.values[LossTerms::kP2] = p2_loss(change);
  if (!effects_.has_ranks()) {
    terms.values[LossTerms::kP1] = p1_loss(change);
    return terms;
  }
  const JointFactors factors = joint_factors(interplay, change);
  const Rights rights = effects_.metric->ranks() == 1 ? largest_rights(change, factors)
                                                      : ranked_rights(change, factors);
  const double exact = effects_.exact_quality / 100;
  const std::int64_t images = effects_.images();
  const double either = loss_of_images(lost_by_any(change), images);
  terms.values[LossTerms::kJoint] = loss_of_images(exact - rights.joint, images);
  terms.values[LossTerms::kP1] = loss_of_images(exact - rights.p1, images);
  terms.values[LossTerms::kUnion] = either;
  terms.values[LossTerms::kUnionSquared] = either * std::abs(either) / 10;
  return terms;
}

double ChangeSum::p2_loss(const Change& change) const {
  double lost = 0;
  for (std::size_t l = 0; l < choices_.size(); ++l) {
    const std::uint8_t choice = l == change.layer ? change.choice : choices_[l];
    lost += effects_.exact_quality - effects_.layers[l].knobs[choice].quality;
  }
  return lost / static_cast<double>(effects_.images());
}

double ChangeSum::p1_loss(const Change& change) const {
  const std::vector<float>& old = changes_of(change.layer, choices_[change.layer]);
  const std::vector<float>& now = changes_of(change.layer, change.choice);
  std::vector<float> outputs(changes_.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = effects_.exact[i] + changes_[i] + (now[i] - old[i]);
  }
  return effects_.loss(effects_.quality(effects_.scores(outputs)));
}

ChangeSum::JointFactors ChangeSum::joint_factors(const Interplay& interplay,
                                                 const Change& change) const {
  const double old_size = size_of(change.layer, choices_[change.layer]);
  const double size = size_of(change.layer, change.choice);
  const double sizes = sizes_ + size - old_size;
  const double squares = squares_ + size * size - old_size * old_size;
  const double pairs = std::max(0.0, sizes * sizes - squares);
  // A change of size r is divided by u - d * r, with u = 1 + d * sizes, which is close to a product
  // with 1 / u + d * r / u^2. A single change is as it was measured.
  const bool is_single = pairs < 1e-9 * squares || squares == 0;
  const double whole = is_single ? 1 : 1 + interplay.damping * sizes;
  const double own_part = is_single ? 0 : interplay.damping / (whole * whole);
  JointFactors factors;
  factors.sum = static_cast<float>(1 / whole);
  factors.weighted = static_cast<float>(own_part);
  factors.now = factors.sum + factors.weighted * static_cast<float>(size);
  factors.old = factors.sum + factors.weighted * static_cast<float>(old_size);
  const double variance = 2 * interplay.noise * pairs * spread_ * spread_;
  // The margin over sqrt(2) times the noise's deviation, as erfc() takes it.
  factors.margin = 1 / std::sqrt(2 * std::max(variance, 1e-12));
  return factors;
}

// The search computes this more often than anything else: one pass without calls.
ChangeSum::Rights ChangeSum::largest_rights(const Change& change,
                                            const JointFactors& factors) const {
  const float* const old = changes_of(change.layer, choices_[change.layer]).data();
  const float* const now = changes_of(change.layer, change.choice).data();
  const auto width = static_cast<std::size_t>(effects_.classes);
  Rights rights;
  for (std::size_t i = 0; i < effects_.labels.size(); ++i) {
    const auto label = static_cast<std::size_t>(effects_.labels[i]);
    float own = 0;
    float p1_own = 0;
    float most = -std::numeric_limits<float>::infinity();
    float p1_most = most;
    bool is_first = true;  // of equals the first counts
    for (std::size_t c = 0; c < width; ++c) {
      const std::size_t at = i * width + c;
      const float exact = effects_.exact[at];
      const float p1 = exact + changes_[at] + (now[at] - old[at]);
      const float joint = exact + factors.sum * changes_[at] + factors.weighted * weighted_[at] +
                          factors.now * now[at] - factors.old * old[at];
      if (c == label) {
        own = joint;
        p1_own = p1;
        is_first = p1 > p1_most;
      } else {
        most = std::max(most, joint);
        p1_most = std::max(p1_most, p1);
      }
    }
    const double weight = effects_.weights[i];
    rights.p1 += p1_own > p1_most || (p1_own == p1_most && is_first) ? weight : 0;
    rights.joint += weight * chance_of(static_cast<double>(own - most) * factors.margin);
  }
  return rights;
}

// The margin is that to the output which the label has to exceed: of five ranks, the fifth of the
// others.
ChangeSum::Rights ChangeSum::ranked_rights(const Change& change,
                                           const JointFactors& factors) const {
  const std::vector<float>& old = changes_of(change.layer, choices_[change.layer]);
  const std::vector<float>& now = changes_of(change.layer, change.choice);
  const auto width = static_cast<std::size_t>(effects_.classes);
  const std::int64_t ranks = effects_.metric->ranks();
  std::vector<float> p1(width);
  std::vector<float> others;
  Rights rights;
  for (std::size_t i = 0; i < effects_.labels.size(); ++i) {
    const auto label = static_cast<std::size_t>(effects_.labels[i]);
    float own = 0;
    others.clear();
    for (std::size_t c = 0; c < width; ++c) {
      const std::size_t at = i * width + c;
      const float exact = effects_.exact[at];
      p1[c] = exact + changes_[at] + (now[at] - old[at]);
      const float joint = exact + factors.sum * changes_[at] + factors.weighted * weighted_[at] +
                          factors.now * now[at] - factors.old * old[at];
      if (c == label) {
        own = joint;
      } else {
        others.push_back(joint);
      }
    }
    const auto last = others.begin() + ranks - 1;
    std::nth_element(others.begin(), last, others.end(), std::greater<>());
    const double weight = effects_.weights[i];
    const std::span exact_row(effects_.exact.data() + i * width, width);
    rights.p1 += weight / 100 *
                 effects_.metric->score({.outputs = p1,
                                         .exact = exact_row,
                                         .label = effects_.labels[i],
                                         .shape = effects_.shape});
    rights.joint += weight * chance_of(static_cast<double>(own - *last) * factors.margin);
  }
  return rights;
}

double ChangeSum::lost_by_any(const Change& change) const {
  const std::vector<std::int8_t>& old_flips = flips_of(change.layer, choices_[change.layer]);
  const std::vector<std::int8_t>& flips = flips_of(change.layer, change.choice);
  double lost = 0;
  for (std::size_t i = 0; i < flips.size(); ++i) {
    const double weight = effects_.weights[i];
    lost += losing_[i] + (flips[i] < 0) - (old_flips[i] < 0) > 0 ? weight : 0;
    lost -= gaining_[i] + (flips[i] > 0) - (old_flips[i] > 0) > 0 ? weight : 0;
  }
  return lost;
}

LossModel LossModel::learn(const Effects& effects, std::span<const LossSample> samples) {
  LossModel model;
  if (samples.size() < 2 * kParts) {
    return model;
  }
  Table table;
  const bool has_ranks = effects.has_ranks();
  if (has_ranks) {
    for (const double damping : kDampings) {
      for (const double noise : kNoises) {
        table.grid.push_back({.damping = damping, .noise = noise});
      }
    }
  } else {
    table.grid.emplace_back();
  }
  table.terms.resize(table.grid.size());
  ChangeSum sum(effects);
  for (const LossSample& sample : samples) {
    sum.choose_all(sample.choices);
    for (std::size_t place = 0; place < table.grid.size(); ++place) {
      table.terms[place].push_back(sum.losses(table.grid[place]));
    }
    table.losses.push_back(sample.loss);
  }
  model.error_ = std::numeric_limits<double>::infinity();
  for (const Kind kind : kKinds) {
    if (!has_ranks && kind != Kind::kP1 && kind != Kind::kP2) {
      continue;
    }
    // A model of more parts has to be better by a little.
    if (const double error = fresh_error(table, kind); error < 0.99 * model.error_) {
      model.error_ = error;
      model.kind_ = kind;
    }
  }
  const Fit fit = fit_kind(table, model.kind_, kParts);
  model.interplay_ = table.grid[fit.place];
  model.weights_ = fit.weights;
  return model;
}

double LossModel::loss(const LossTerms& terms) const { return weigh(weights_, terms); }

std::string_view to_string(LossModel::Kind kind) {
  switch (kind) {
    case LossModel::Kind::kP1:
      return "p1";
    case LossModel::Kind::kP2:
      return "p2";
    case LossModel::Kind::kJoint:
      return "joint";
    case LossModel::Kind::kJointAndP2:
      return "joint+p2";
    case LossModel::Kind::kJointAndUnion:
      return "joint+union";
  }
  return "?";
}

}  // namespace foretune::approx
