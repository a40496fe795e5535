#include "foretune/approx/profile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/run/knob.h"
#include "foretune/graph/simplify.h"
#include "foretune/metrics/pareto.h"

namespace foretune::approx {

namespace {

// Images that choose among the positions of a period.
constexpr std::int64_t kFirstImages = 512;
// Knobs have to save this share of a layer's time.
constexpr double kLeastGain = 0.03;

using Wanted = std::vector<std::vector<std::int32_t>>;

Wanted that_save_time(const NetworkTimes& times) {
  Wanted wanted;
  for (const LayerTimes& layer : times.layers) {
    std::vector<std::int32_t>& knobs = wanted.emplace_back(1, 0);
    for (std::size_t k = 1; k < layer.knobs.size(); ++k) {
      if (layer.ns[k] < (1 - kLeastGain) * layer.ns[0]) {
        knobs.push_back(layer.knobs[k]);
      }
    }
  }
  return wanted;
}

// Returns the knobs of each layer that no other knob beats in time and in the changes of outputs.
Wanted worth_knowing(const Effects& effects, const NetworkTimes& times) {
  Wanted wanted;
  for (std::size_t l = 0; l < effects.layers.size(); ++l) {
    const LayerTimes& layer = times.layers[l];
    std::vector<double> points;
    for (const KnobEffect& effect : effects.layers[l].knobs) {
      double squares = 0;
      for (const float change : effect.changes) {
        squares += static_cast<double>(change) * static_cast<double>(change);
      }
      // Times within a twentieth are equal, so that of several positions the best one stays.
      const double ns = *layer.ns_of(effect.knob);
      points.push_back(std::round(20 * std::log(std::max(ns, 1.0))));
      points.push_back(squares);
    }
    std::vector<std::int32_t>& knobs = wanted.emplace_back();
    for (const std::size_t i : pareto_front({points, 2})) {
      knobs.push_back(effects.layers[l].knobs[i].knob);
    }
    // The exact knob changes nothing, so it is among them.
    std::sort(knobs.begin(), knobs.end());
  }
  return wanted;
}

// Returns how many whole networks an image takes for the effects of all wanted knobs.
double networks_of(const graph::Network& network, const Wanted& wanted) {
  double nodes = static_cast<double>(network.nodes().size());
  std::size_t layer = 0;
  for (std::size_t i = 0; i < network.nodes().size(); ++i) {
    if (graph::has_weights(*network.nodes()[i].op)) {
      nodes += static_cast<double>(wanted[layer].size() - 1) *
               static_cast<double>(network.nodes().size() - i);
      ++layer;
    }
  }
  return nodes / static_cast<double>(network.nodes().size());
}

}  // namespace

std::vector<std::int32_t> Profile::knobs(const Choices& choices) const {
  std::vector<std::int32_t> knobs;
  for (std::size_t l = 0; l < choices.size(); ++l) {
    knobs.push_back(effects.layers[l].knobs[choices[l]].knob);
  }
  return knobs;
}

graph::Variants Profile::variants(const Choices& choices) const {
  graph::Variants variants;
  for (std::size_t l = 0; l < choices.size(); ++l) {
    if (const std::int32_t knob = effects.layers[l].knobs[choices[l]].knob; knob != 0) {
      variants[effects.layers[l].layer] = *graph::variant_of_knob(knob);
    }
  }
  return variants;
}

Config Profile::config_of(const Choices& choices, const graph::Network& task_network,
                          std::uint64_t schema) const {
  std::map<std::string_view, std::int32_t> by_name;
  for (std::size_t l = 0; l < choices.size(); ++l) {
    by_name[effects.layers[l].layer] = effects.layers[l].knobs[choices[l]].knob;
  }
  Config config{schema, {}};
  for (const graph::Node* layer : graph::layers_of(task_network)) {
    const auto found = by_name.find(layer->name);
    config.words.push_back(found == by_name.end() ? 0 : found->second);
  }
  return config;
}

std::vector<std::int32_t> Profile::knobs_of(const Config& config,
                                            const graph::Network& task_network) const {
  std::map<std::string_view, std::int32_t> by_name;
  std::size_t word = 0;
  for (const graph::Node* layer : graph::layers_of(task_network)) {
    by_name[layer->name] = config.words[word++];
  }
  std::vector<std::int32_t> knobs;
  for (const LayerEffects& layer : effects.layers) {
    knobs.push_back(by_name[layer.layer]);
  }
  return knobs;
}

graph::Variants variants_of(const graph::Network& task_network, const Config& config) {
  graph::Variants variants;
  std::size_t word = 0;
  for (const graph::Node* layer : graph::layers_of(task_network)) {
    if (const std::int32_t knob = config.words[word++]; knob != 0) {
      variants[layer->name] = *graph::variant_of_knob(knob);
    }
  }
  return variants;
}

Result<Profile> make_profile(const graph::Task& task, graph::Calibration ranges,
                             const std::shared_ptr<graph::Executor>& timed,
                             const std::shared_ptr<graph::Executor>& quick,
                             const ProfileOptions& options) {
  const auto phase = [&](std::string_view text) {
    if (options.on_phase) {
      options.on_phase(text);
    }
  };
  Profile profile;
  FORETUNE_TRY(profile.network, graph::simplify(task.network));
  profile.ranges = std::move(ranges);
  // The whole network's plan knows no reshaped tensors; the parts of a network begin at them.
  for (const graph::Node& node : profile.network.nodes()) {
    const auto from = profile.ranges.find(profile.network.tensor(node.inputs[0]).name);
    if (node.op->name == "reshape" && from != profile.ranges.end()) {
      profile.ranges.emplace(profile.network.tensor(node.output).name, from->second);
    }
  }
  phase("timing the layers' knobs");
  FORETUNE_TRY(profile.times,
               measure_times(profile.network, timed, profile.ranges, options.knobs,
                             {.images = options.images, .wants_stop = options.wants_stop}));
  const auto effects_of = [&](const Wanted& wanted, std::int64_t images, std::string_view text) {
    profile.networks += networks_of(profile.network, wanted) * static_cast<double>(images) /
                        static_cast<double>(options.effect_images);
    return measure_effects(
        task, quick, profile.ranges, wanted,
        {.first = 0, .images = images, .metric = options.metric, .on_progress = [&](double share) {
           phase(concat(text, " alone, ", std::llround(100 * share), " %"));
           return options.wants_stop && options.wants_stop();
         }});
  };
  FORETUNE_TRY(const Effects rough,
               effects_of(that_save_time(profile.times),
                          std::min(kFirstImages, options.effect_images), "judging all knobs"));
  FORETUNE_TRY(profile.effects, effects_of(worth_knowing(rough, profile.times),
                                           options.effect_images, "judging knobs"));
  return profile;
}

}  // namespace foretune::approx
