#include "foretune/approx/loss_model.h"

#include <algorithm>
#include <cmath>
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

double points(double images, std::int64_t of) { return 100.0 * images / static_cast<double>(of); }

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
  const auto width = static_cast<std::size_t>(effects.classes);
  std::vector<float> row(width);
  for (const LayerEffects& layer : effects.layers) {
    auto& knobs = flips_.emplace_back();
    for (const KnobEffect& effect : layer.knobs) {
      std::vector<std::int8_t>& flips = knobs.emplace_back(effects.labels.size(), std::int8_t{0});
      for (std::size_t i = 0; i < flips.size() && !effect.changes.empty(); ++i) {
        const std::span exact(effects.exact.data() + i * width, width);
        for (std::size_t c = 0; c < width; ++c) {
          row[c] = exact[c] + effect.changes[i * width + c];
        }
        const std::span label(&effects.labels[i], 1);
        flips[i] = static_cast<std::int8_t>(count_right(row, label, effects.classes) -
                                            count_right(exact, label, effects.classes));
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

double ChangeSum::loss() const {
  std::vector<float> outputs(changes_);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] += effects_.exact[i];
  }
  const std::int64_t right = count_right(outputs, effects_.labels, effects_.classes);
  return points(static_cast<double>(effects_.exact_right - right), effects_.images());
}

std::int64_t ChangeSum::differing() const {
  const auto width = static_cast<std::size_t>(effects_.classes);
  std::vector<float> outputs(width);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < effects_.labels.size(); ++i) {
    const std::span exact(effects_.exact.data() + i * width, width);
    for (std::size_t c = 0; c < width; ++c) {
      outputs[c] = exact[c] + changes_[i * width + c];
    }
    const std::span label(&effects_.labels[i], 1);
    count +=
        count_right(exact, label, effects_.classes) != count_right(outputs, label, effects_.classes)
            ? 1
            : 0;
  }
  return count;
}

LossTerms ChangeSum::losses(const Interplay& interplay) const {
  return losses_with(interplay, 0, choices_.empty() ? std::uint8_t{0} : choices_[0]);
}

LossTerms ChangeSum::losses_with(const Interplay& interplay, std::size_t layer,
                                 std::uint8_t choice) const {
  if (choices_.empty()) {
    return {};
  }
  const std::uint8_t before = choices_[layer];
  const float* const old = changes_of(layer, before).data();
  const float* const now = changes_of(layer, choice).data();
  const double old_size = size_of(layer, before);
  const double size = size_of(layer, choice);
  const double sizes = sizes_ + size - old_size;
  const double squares = squares_ + size * size - old_size * old_size;
  const double pairs = std::max(0.0, sizes * sizes - squares);
  // A change of size r is divided by u - d * r, with u = 1 + d * sizes, which is close to a product
  // with 1 / u + d * r / u^2. A single change is as it was measured.
  const bool is_single = pairs < 1e-9 * squares || squares == 0;
  const double whole = is_single ? 1 : 1 + interplay.damping * sizes;
  const double own_part = is_single ? 0 : interplay.damping / (whole * whole);
  const auto plain = static_cast<float>(1 / whole);
  const auto damping = static_cast<float>(own_part);
  const auto new_part = plain + damping * static_cast<float>(size);
  const auto old_part = plain + damping * static_cast<float>(old_size);
  const double variance = 2 * interplay.noise * pairs * spread_ * spread_;
  // The margin over sqrt(2) times the noise's deviation, as erfc() takes it.
  const double scale = 1 / std::sqrt(2 * std::max(variance, 1e-12));
  const std::vector<std::int8_t>& old_flips = flips_of(layer, before);
  const std::vector<std::int8_t>& flips = flips_of(layer, choice);
  std::int64_t lost_by_any = 0;
  const auto width = static_cast<std::size_t>(effects_.classes);
  double right = 0;
  std::int64_t p1_right = 0;
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
      const float joint = exact + plain * changes_[at] + damping * weighted_[at] +
                          new_part * now[at] - old_part * old[at];
      if (c == label) {
        own = joint;
        p1_own = p1;
        is_first = p1 > p1_most;
      } else {
        most = std::max(most, joint);
        p1_most = std::max(p1_most, p1);
      }
    }
    lost_by_any += losing_[i] + (flips[i] < 0) - (old_flips[i] < 0) > 0 ? 1 : 0;
    lost_by_any -= gaining_[i] + (flips[i] > 0) - (old_flips[i] > 0) > 0 ? 1 : 0;
    p1_right += p1_own > p1_most || (p1_own == p1_most && is_first) ? 1 : 0;
    const double z = static_cast<double>(own - most) * scale;
    right += z > 4 ? 1 : z < -4 ? 0 : 0.5 * std::erfc(-z);
  }
  const double lost = static_cast<double>(effects_.exact_right) - right;
  std::int64_t added = 0;
  for (std::size_t l = 0; l < choices_.size(); ++l) {
    added +=
        effects_.exact_right - effects_.layers[l].knobs[l == layer ? choice : choices_[l]].right;
  }
  const std::int64_t images = effects_.images();
  const double either = points(static_cast<double>(lost_by_any), images);
  return {{points(lost, images),
           points(static_cast<double>(effects_.exact_right - p1_right), images),
           points(static_cast<double>(added), images), either, either * std::abs(either) / 10}};
}

LossModel LossModel::learn(const Effects& effects, std::span<const LossSample> samples) {
  LossModel model;
  if (samples.size() < 2 * kParts) {
    return model;
  }
  Table table;
  for (const double damping : kDampings) {
    for (const double noise : kNoises) {
      table.grid.push_back({.damping = damping, .noise = noise});
    }
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
