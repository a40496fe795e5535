#include "foretune/families/null/null_layers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include "foretune/base/check.h"
#include "foretune/base/text.h"
#include "foretune/problem/problem_type.h"

namespace foretune {
namespace {

constexpr std::size_t kMinLayers = 5;
constexpr std::int64_t kLayerCounts = 296;
constexpr std::uint64_t kMaxListed = std::uint64_t{1} << 22U;
// Layers of a kind come in runs, as blocks of a network do.
constexpr std::size_t kRun = 4;
constexpr std::size_t kKinds = 3;
using PerKnob = std::array<double, kNullKnobs>;
constexpr std::array<PerKnob, kKinds> kCosts{{{1.0, 0.80, 0.62, 0.55, 0.90, 0.70},
                                              {1.0, 0.75, 0.85, 0.95, 0.50, 0.66},
                                              {1.0, 0.85, 0.90, 0.60, 0.72, 0.48}}};
constexpr PerKnob kLosses{0, 0.02, 0.05, 0.12, 0.20, 0.30};
constexpr PerKnob kBytes{4096, 3072, 2048, 1536, 1024, 1024};
constexpr double kConversionNs = 20;
// Percent that a network loses whose layers all lose everything.
constexpr double kWorstLoss = 60;

std::size_t knob_index(std::int32_t knob) {
  FORETUNE_DCHECK(knob >= 0 && knob < kNullKnobs);
  return static_cast<std::size_t>(knob);
}

std::int64_t largest_size(const Problem& problem) {
  std::int64_t largest = 0;
  const std::span<const ProblemField> fields = problem.schema().fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].labels.empty()) {
      largest = std::max(largest, problem.field(i));
    }
  }
  return largest;
}

// From 0 at the first layer to 1 at the last.
double depth_of(const Problem& problem, std::size_t layer) {
  return static_cast<double>(layer) / static_cast<double>(null_layers(problem) - 1);
}

bool is_conversion(const Config& config, std::size_t layer) {
  return layer > 0 && config.words[layer] != config.words[layer - 1];
}

}  // namespace

const ConfigSchema& null_layers_schema() {
  static const ConfigSchema schema{
      .name = "null-layers", .version = 1, .kind = SchemaKind::kSequence, .parameters = {}};
  return schema;
}

std::size_t null_layers(const Problem& problem) {
  return kMinLayers + static_cast<std::size_t>(largest_size(problem) % kLayerCounts);
}

double null_layer_weight(const Problem& problem, std::size_t layer) {
  // Two waves over the depth, whose place depends on the size.
  const double phase = std::log2(static_cast<double>(largest_size(problem)) + 1);
  return 1 + 0.6 * std::cos(4 * std::numbers::pi * depth_of(problem, layer) + phase);
}

double null_layer_sensitivity(const Problem& problem, std::size_t layer) {
  // The first layers and the last ones matter most.
  const double off = 2 * depth_of(problem, layer) - 1;
  return 0.5 + 1.5 * off * off;
}

double null_layer_cost(std::size_t layer, std::int32_t knob) {
  return kCosts.at(layer / kRun % kKinds).at(knob_index(knob));
}

double null_knob_loss(std::int32_t knob) { return kLosses.at(knob_index(knob)); }

double null_layers_time_ns(const Problem& problem, const Config& config) {
  constexpr double kLaunchNs = 1000;
  constexpr double kFlopsPerNs = 50;
  const std::optional<ProblemWork> work = problem_work(problem);
  const double flops = work ? work->flops : std::pow(static_cast<double>(largest_size(problem)), 2);
  double sum = 0;
  for (std::size_t layer = 0; layer < config.words.size(); ++layer) {
    sum += null_layer_weight(problem, layer) * null_layer_cost(layer, config.words[layer]) *
           (is_conversion(config, layer) ? kNullConversion : 1);
  }
  return (kLaunchNs + flops / kFlopsPerNs) * sum / static_cast<double>(config.words.size());
}

double null_layers_accuracy(const Problem& problem, const Config& config) {
  double lost = 0;
  for (std::size_t layer = 0; layer < config.words.size(); ++layer) {
    lost += null_layer_sensitivity(problem, layer) * null_knob_loss(config.words[layer]);
  }
  return 99 - kWorstLoss * lost / static_cast<double>(config.words.size());
}

double null_layers_pack_ns(const Config& config) {
  double total = 0;
  for (std::size_t layer = 0; layer < config.words.size(); ++layer) {
    total += is_conversion(config, layer) ? kConversionNs : 0;
  }
  return total;
}

double null_layers_bytes(const Config& config) {
  double total = 0;
  for (const std::int32_t knob : config.words.view()) {
    total += kBytes.at(knob_index(knob));
  }
  return total;
}

NullLayersSpace::NullLayersSpace(const Problem& problem) : layers_(null_layers(problem)) {
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < layers_ && count <= kMaxListed; ++i) {
    count *= kNullKnobs;
  }
  count_ = count <= kMaxListed ? count : 0;
}

Support NullLayersSpace::why_not(const Config& config) const {
  if (config.schema != schema().id()) {
    return Support::no("the config is not of schema ", schema().name, " v", schema().version);
  }
  if (config.words.size() != layers_) {
    return Support::no("the config has ", config.words.size(), " words, but the problem has ",
                       layers_, " layers");
  }
  for (std::size_t i = 0; i < layers_; ++i) {
    if (config.words[i] < 0 || config.words[i] >= kNullKnobs) {
      return Support::no("layer ", i, " has knob ", config.words[i], ", which is not one of 0 to ",
                         kNullKnobs - 1);
    }
  }
  return Support::yes();
}

Result<Config> NullLayersSpace::sample(Rng& rng) const {
  Config config = start();
  for (std::int32_t& knob : config.words.view()) {
    knob = static_cast<std::int32_t>(rng.below(kNullKnobs));
  }
  return config;
}

std::vector<Config> NullLayersSpace::neighbours(const Config& config) const {
  std::vector<Config> out;
  if (!why_not(config)) {
    return out;
  }
  out.reserve(layers_ * (kNullKnobs - 1));
  for (std::size_t action = 0; action < action_count(); ++action) {
    if (Result<Config> next = apply(config, action)) {
      out.push_back(*std::move(next));
    }
  }
  return out;
}

std::uint64_t NullLayersSpace::count() const {
  FORETUNE_CHECK(count_ > 0);
  return count_;
}

Config NullLayersSpace::unrank(std::uint64_t index) const {
  FORETUNE_CHECK(index < count());
  Config config = start();
  for (std::size_t i = layers_; i-- > 0;) {
    config.words[i] = static_cast<std::int32_t>(index % kNullKnobs);
    index /= kNullKnobs;
  }
  return config;
}

Config NullLayersSpace::start() const {
  return {.schema = schema().id(), .words = Config::Words(layers_)};
}

std::vector<bool> NullLayersSpace::legal_actions(const Config& state) const {
  std::vector<bool> legal(action_count(), true);
  for (std::size_t i = 0; i < layers_; ++i) {
    legal[i * kNullKnobs + knob_index(state.words[i])] = false;
  }
  return legal;
}

Result<Config> NullLayersSpace::apply(const Config& state, std::size_t action) const {
  if (action >= action_count()) {
    return fail(ErrorCode::kInvalidArgument, "action ", action, " is not one of the ",
                action_count(), " of ", layers_, " layers");
  }
  const std::size_t layer = action / kNullKnobs;
  const auto knob = static_cast<std::int32_t>(action % kNullKnobs);
  if (state.words[layer] == knob) {
    return fail(ErrorCode::kInvalidArgument, "layer ", layer, " has knob ", knob, " already");
  }
  Config next = state;
  next.words[layer] = knob;
  return next;
}

std::string NullLayersSpace::action_text(std::size_t action) const {
  return concat("layer ", action / kNullKnobs, " to knob ", action % kNullKnobs);
}

}  // namespace foretune
