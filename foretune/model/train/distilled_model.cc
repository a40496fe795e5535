#include "foretune/model/train/distilled_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "foretune/base/hash.h"
#include "foretune/base/statistics.h"
#include "foretune/model/train/internal/distilled_network.h"
#include "foretune/model/train/internal/distilled_teacher.h"
#include "foretune/model/train/internal/network_inputs.h"

namespace foretune {

using train_internal::DistillationTeacher;
using train_internal::kMaxRegret;
using train_internal::NetworkExamples;
using train_internal::NetworkLayer;

// ---- problems -----------------------------------------------------------------------------------

namespace {

// Returns a size between the two on a logarithmic scale, as round as they are: a multiple of the
// largest power of two that divides both, unless `any_size`.
std::int64_t size_between(std::int64_t a, std::int64_t b, double share, bool any_size) {
  const double size = std::exp(std::log(static_cast<double>(a)) * (1 - share) +
                               std::log(static_cast<double>(b)) * share);
  auto out = static_cast<std::int64_t>(std::llround(size));
  if (!any_size) {
    const auto shared = static_cast<std::uint64_t>(a | b);
    const std::int64_t step = std::int64_t{1} << std::countr_zero(shared);
    out = (out + step / 2) / step * step;
  }
  return std::clamp(out, std::min(a, b), std::max(a, b));
}

}  // namespace

std::vector<Problem> sample_between(std::span<const Problem> problems, std::size_t count,
                                    Rng& rng) {
  constexpr double kAnySizeShare = 0.15;
  std::vector<Problem> out;
  while (out.size() < count && !problems.empty()) {
    const Problem& from = problems[rng.below(problems.size())];
    const Problem& to = problems[rng.below(problems.size())];
    const bool any_size = rng.uniform() < kAnySizeShare;
    Problem::Fields fields(from.fields());
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const double share = rng.uniform();
      if (from.schema().fields[i].labels.empty() && from.field(i) > 0 && to.field(i) > 0) {
        fields[i] = size_between(from.field(i), to.field(i), share, any_size);
      }
    }
    // A problem that the type's own rules forbid is drawn again. This ends, since a problem and
    // itself give that problem.
    if (Result<Problem> problem = Problem::create(from.type(), std::move(fields))) {
      out.push_back(*std::move(problem));
    }
  }
  return out;
}

// ---- inputs -------------------------------------------------------------------------------------

namespace {

// The sides of the tiles whose waves are inputs.
constexpr std::array<std::int32_t, 3> kTiles{64, 128, 256};

// The share that a size fills of a block never exceeded says no more than the size.
bool never_exceeds_block(const DistilledFeature& feature, std::span<const Problem> problems) {
  return std::none_of(problems.begin(), problems.end(), [&](const Problem& problem) {
    return problem.field(feature.field) > feature.block;
  });
}

// Returns features with mean 0, and a quarter of the inputs' range as standard deviation.
std::vector<DistilledFeature> standardised_features(const Model& model,
                                                    std::span<const Problem> problems) {
  std::vector<DistilledFeature> out;
  for (DistilledFeature feature :
       train_internal::field_features(model.problem_type, model.fingerprint.hardware, kTiles)) {
    double sum = 0;
    double squares = 0;
    for (const Problem& problem : problems) {
      const auto value = static_cast<double>(distilled_feature_value(feature, problem.fields()));
      sum += value;
      squares += value * value;
    }
    if (feature.kind == DistilledFeatureKind::kUse && never_exceeds_block(feature, problems)) {
      continue;
    }
    const auto count = static_cast<double>(problems.size());
    const double middle = sum / count;
    const double deviation = std::sqrt(std::max(0.0, squares / count - middle * middle));
    if (deviation < 1) {
      continue;
    }
    feature.mean = static_cast<std::int32_t>(std::lround(middle));
    feature.scale = static_cast<std::int32_t>(
        std::lround(DistilledModel::kUnit * (DistilledModel::kUnit / 4.0) / deviation));
    if (out.size() < DistilledModel::kMaxInputs) {
      out.push_back(feature);
    }
  }
  return out;
}

// Returns one row of inputs for each problem.
std::vector<std::int16_t> input_rows(const DistilledModel& model,
                                     std::span<const Problem> problems) {
  const std::size_t width = model.features.size();
  std::vector<std::int16_t> out(problems.size() * width);
  for (std::size_t p = 0; p < problems.size(); ++p) {
    model.inputs(problems[p].fields(), std::span(out).subspan(p * width, width));
  }
  return out;
}

// ---- portfolio ----------------------------------------------------------------------------------

// Turns the scores of each row into regrets against its best. NaN stays NaN.
void to_regrets(std::span<float> scores, std::size_t width) {
  for (std::size_t row = 0; row < scores.size(); row += width) {
    const std::span<float> values = scores.subspan(row, width);
    float best = std::numeric_limits<float>::infinity();
    for (const float value : values) {
      best = std::min(best, std::isnan(value) ? best : value);
    }
    for (float& value : values) {
      value -= best;
    }
  }
}

// Chooses candidates greedily like greedy_portfolio(): each one reduces the remaining regrets most.
std::vector<std::uint32_t> cover(std::span<const float> regrets, std::size_t width,
                                 std::size_t size) {
  // Having no legal candidate is worse than having any bad one.
  constexpr float kUncovered = 3 * kMaxRegret;
  std::vector<float> covered(regrets.size() / width, kUncovered);
  std::vector<std::uint32_t> out;
  std::vector<double> gain(width);
  while (out.size() < size) {
    std::fill(gain.begin(), gain.end(), 0.0);
    for (std::size_t p = 0; p < covered.size(); ++p) {
      for (std::size_t c = 0; c < width; ++c) {
        const float regret = regrets[p * width + c];
        gain[c] += regret < covered[p] ? static_cast<double>(covered[p] - regret) : 0.0;
      }
    }
    const auto best = std::max_element(gain.begin(), gain.end());
    if (*best <= 1e-9) {
      break;
    }
    out.push_back(static_cast<std::uint32_t>(best - gain.begin()));
    for (std::size_t p = 0; p < covered.size(); ++p) {
      const float regret = regrets[p * width + out.back()];
      covered[p] = regret < covered[p] ? regret : covered[p];
    }
  }
  return out;
}

// ---- whole numbers ------------------------------------------------------------------------------

// Returns the largest value of each hidden layer over the examples.
std::vector<float> largest_hidden(std::span<const NetworkLayer> layers,
                                  const NetworkExamples& examples) {
  std::vector<float> largest(layers.size(), 1e-6F);
  for (std::size_t row = 0; row < examples.size(); ++row) {
    const auto values = train_internal::network_values(
        layers, std::span(examples.input).subspan(row * examples.inputs, examples.inputs));
    for (std::size_t l = 0; l < layers.size(); ++l) {
      largest[l] = std::max(largest[l], *std::max_element(values[l].begin(), values[l].end()));
    }
  }
  return largest;
}

// Returns the largest factor for the weights with which no sum overflows 32 bits.
double weight_factor(const NetworkLayer& layer, double input_unit, double largest_input) {
  constexpr double kLargestWeight = std::numeric_limits<std::int16_t>::max();
  constexpr double kLargestSum = std::numeric_limits<std::int32_t>::max();
  double factor = 1e9;
  for (std::size_t j = 0; j < layer.outputs; ++j) {
    double most = 1e-9;
    double sum = std::abs(static_cast<double>(layer.bias[j])) * input_unit;
    for (std::size_t i = 0; i < layer.inputs; ++i) {
      const double weight = std::abs(static_cast<double>(layer.weights[i * layer.outputs + j]));
      most = std::max(most, weight);
      sum += weight * largest_input;
    }
    // Rounding adds at most half a step to every weight.
    const double rounding = 0.5 * largest_input * static_cast<double>(layer.inputs) + 1;
    factor = std::min({factor, kLargestWeight / most, (kLargestSum - rounding) / sum});
  }
  return factor;
}

void to_whole_numbers(std::span<const NetworkLayer> layers, const NetworkExamples& examples,
                      DistilledModel& model) {
  const std::vector<float> largest = largest_hidden(layers, examples);
  double unit = DistilledModel::kUnit / 4.0;  // of a layer's inputs: steps per 1
  double largest_input = DistilledModel::kUnit;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const NetworkLayer& from = layers[l];
    const double factor = weight_factor(from, unit, largest_input);
    DistilledLayer layer{.inputs = static_cast<std::uint32_t>(from.inputs),
                         .outputs = static_cast<std::uint32_t>(from.outputs)};
    for (std::size_t j = 0; j < from.outputs; ++j) {
      for (std::size_t i = 0; i < from.inputs; ++i) {
        layer.weights.push_back(static_cast<std::int16_t>(
            std::lround(static_cast<double>(from.weights[i * from.outputs + j]) * factor)));
      }
      layer.bias.push_back(static_cast<std::int32_t>(
          std::lround(static_cast<double>(from.bias[j]) * factor * unit)));
    }
    unit *= factor;
    if (l + 1 < layers.size()) {
      while (static_cast<double>(largest[l]) * unit > DistilledModel::kMaxHiddenValue) {
        unit /= 2;
        ++layer.shift;
      }
    }
    largest_input = DistilledModel::kMaxHiddenValue;
    model.layers.push_back(std::move(layer));
  }
  model.score_unit = 1 / unit;
}

// ---- bounds -------------------------------------------------------------------------------------

constexpr std::size_t kMaxDepth = 4;
// So that three regrets of a leaf are above the 95th percentile.
constexpr std::size_t kMinLeaf = 60;

class RegionTree {
 public:
  RegionTree(std::span<const std::int16_t> inputs, std::size_t width,
             std::span<const double> regrets)
      : inputs_(inputs), width_(width), regrets_(regrets) {}

  std::vector<DistilledRegion> grow(std::vector<std::uint32_t> rows) {
    regions_.emplace_back();
    split(0, std::move(rows), 0);
    return std::move(regions_);
  }

 private:
  struct Split {
    std::size_t feature = 0;
    std::int16_t threshold = 0;
    double gain = 0;
  };

  [[nodiscard]] std::int16_t input(std::uint32_t row, std::size_t feature) const {
    return inputs_[row * width_ + feature];
  }

  // Returns the split with the largest reduction of the squared error.
  [[nodiscard]] Split best_split(std::vector<std::uint32_t>& rows) const {
    Split best;
    double total = 0;
    for (const std::uint32_t row : rows) {
      total += regrets_[row];
    }
    const auto count = static_cast<double>(rows.size());
    for (std::size_t feature = 0; feature < width_; ++feature) {
      std::sort(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(input(a, feature), a) < std::pair(input(b, feature), b);
      });
      double left = 0;
      for (std::size_t i = 0; i + kMinLeaf < rows.size(); ++i) {
        left += regrets_[rows[i]];
        const auto below = static_cast<double>(i + 1);
        if (i + 1 < kMinLeaf || input(rows[i], feature) == input(rows[i + 1], feature)) {
          continue;
        }
        const double gain = left * left / below +
                            (total - left) * (total - left) / (count - below) -
                            total * total / count;
        if (gain > best.gain) {
          best = {.feature = feature, .threshold = input(rows[i], feature), .gain = gain};
        }
      }
    }
    return best;
  }

  void split(std::size_t at, std::vector<std::uint32_t> rows, std::size_t depth) {
    const Split best = depth < kMaxDepth ? best_split(rows) : Split{};
    if (best.gain <= 1e-12) {
      std::vector<double> values;
      for (const std::uint32_t row : rows) {
        values.push_back(regrets_[row]);
      }
      // Without any known regret there is no bound.
      regions_[at].bound = static_cast<float>(values.empty() ? 1e9 : quantile(values, 0.95));
      return;
    }
    const std::size_t left = regions_.size();
    regions_[at].feature = static_cast<std::uint16_t>(best.feature);
    regions_[at].threshold = best.threshold;
    regions_[at].left = static_cast<std::uint32_t>(left);
    regions_.resize(left + 2);
    const auto middle = std::stable_partition(rows.begin(), rows.end(), [&](std::uint32_t row) {
      return input(row, best.feature) <= best.threshold;
    });
    split(left, {rows.begin(), middle}, depth + 1);
    split(left + 1, {middle, rows.end()}, depth + 1);
  }

  std::span<const std::int16_t> inputs_;
  std::size_t width_;
  std::span<const double> regrets_;
  std::vector<DistilledRegion> regions_;
};

// Returns the regret of the distilled model's pick on each problem; NaN where no member of the
// portfolio is legal.
std::vector<double> pick_regrets(const DistilledModel& model, std::span<const std::int16_t> inputs,
                                 std::span<const float> regrets, std::size_t width) {
  const std::size_t features = model.features.size();
  std::vector<double> out(regrets.size() / width, std::numeric_limits<double>::quiet_NaN());
  std::vector<std::int32_t> scores(model.portfolio.size());
  for (std::size_t p = 0; p < out.size(); ++p) {
    model.scores(inputs.subspan(p * features, features), scores);
    std::int32_t best = std::numeric_limits<std::int32_t>::max();
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const float regret = regrets[p * width + model.portfolio[i]];
      if (!std::isnan(regret) && scores[i] < best) {
        best = scores[i];
        out[p] = static_cast<double>(regret);
      }
    }
  }
  return out;
}

void set_bounds(std::span<const Problem> problems, std::span<const float> regrets,
                std::size_t width, Distillation& out) {
  const std::vector<std::int16_t> inputs = input_rows(out.model, problems);
  const std::vector<double> lost = pick_regrets(out.model, inputs, regrets, width);
  std::vector<std::uint32_t> rows;
  std::vector<double> known;
  for (std::uint32_t p = 0; p < lost.size(); ++p) {
    if (!std::isnan(lost[p])) {
      rows.push_back(p);
      known.push_back(lost[p]);
    }
  }
  out.model.regions = RegionTree(inputs, out.model.features.size(), lost).grow(std::move(rows));
  out.without_legal = 1 - static_cast<double>(known.size()) / static_cast<double>(lost.size());
  out.model.mean_regret = known.empty() ? 0 : mean(known);
  out.model.p90_regret = known.empty() ? 0 : quantile(known, 0.9);
}

// ---- all of it ----------------------------------------------------------------------------------

Status check_options(std::span<const Problem> training, const DistillOptions& options) {
  if (std::any_of(training.begin(), training.end(),
                  [](const Problem& problem) { return problem.has_payload(); })) {
    return fail(ErrorCode::kUnsupported,
                "a fast model sees the fields of a problem only, and these have a payload");
  }
  if (training.empty() || options.portfolio < 1 ||
      options.portfolio > DistilledModel::kMaxPortfolio || options.calibration_problems < 1 ||
      options.problems < 1 || options.hidden < 1 || options.hidden > DistilledModel::kMaxHidden ||
      options.threads < 1) {
    return fail(ErrorCode::kInvalidArgument, "a fast model needs problems, a portfolio of 1 to ",
                DistilledModel::kMaxPortfolio, ", 1 to ", DistilledModel::kMaxHidden,
                " hidden values and a thread");
  }
  return {};
}

}  // namespace

Result<Distillation> distill_model(const Model& model, std::span<const Problem> training,
                                   const DistillOptions& options) {
  FORETUNE_TRY_STATUS(check_options(training, options));
  FORETUNE_TRY(const DistillationTeacher teacher,
               DistillationTeacher::create(model, options.threads));
  Rng rng = Rng(options.seed).split(hash64("fast model"));
  const std::vector<Problem> calibration =
      sample_between(training, options.calibration_problems, rng);
  std::vector<std::uint32_t> all(model.pool.size());
  std::iota(all.begin(), all.end(), 0U);
  FORETUNE_TRY(std::vector<float> regrets, teacher.scores(calibration, all));
  to_regrets(regrets, all.size());

  Distillation out;
  out.model.portfolio = cover(regrets, all.size(), options.portfolio);
  if (out.model.portfolio.empty()) {
    return fail(ErrorCode::kNotFound, "no candidate of the model is legal for problems between ",
                "those it was trained on");
  }
  std::vector<Problem> problems = sample_between(training, options.problems, rng);
  problems.insert(problems.end(), training.begin(), training.end());
  out.model.features = standardised_features(model, problems);
  if (out.model.features.empty()) {
    return fail(ErrorCode::kInvalidArgument, "the problems that the model was trained on are all ",
                "the same: a fast model would have nothing to go by");
  }
  NetworkExamples examples{.inputs = out.model.features.size(),
                           .outputs = out.model.portfolio.size()};
  for (const std::int16_t input : input_rows(out.model, problems)) {
    examples.input.push_back(static_cast<float>(input) * (4.0F / DistilledModel::kUnit));
  }
  FORETUNE_TRY(examples.regret, teacher.scores(problems, out.model.portfolio));
  to_regrets(examples.regret, examples.outputs);
  for (float& regret : examples.regret) {
    regret = regret > kMaxRegret ? kMaxRegret : regret;  // NaN stays
  }
  const std::vector<NetworkLayer> layers = train_internal::train_network(
      examples, {.hidden = options.hidden, .epochs = options.epochs}, rng);
  to_whole_numbers(layers, examples, out.model);
  set_bounds(calibration, regrets, all.size(), out);
  return out;
}

}  // namespace foretune
