#include "foretune/approx/effects.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "foretune/approx/judge.h"
#include "foretune/base/text.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/part.h"
#include "foretune/graph/run/knob.h"
#include "foretune/graph/run/plan.h"
#include "foretune/graph/simplify.h"

namespace foretune::approx {

namespace {

using graph::Calibration;
using graph::Executor;
using graph::Network;
using graph::NetworkPart;
using graph::NetworkPlan;
using graph::Node;
using graph::TensorId;
using graph::Variants;

// Images of one call while effects are measured, and of those whose tensors are kept at a time.
constexpr std::int64_t kCall = 64;
constexpr std::int64_t kChunk = 1024;

std::size_t position(TensorId id) { return static_cast<std::size_t>(id); }

// The arrays of tensors of a chunk of images.
class Tensors {
 public:
  Tensors(const Network& network, std::int64_t images)
      : network_(network), images_(images), values_(network.tensors().size()) {}

  std::vector<float>& make(TensorId id) {
    std::vector<float>& values = values_[position(id)];
    values.resize(static_cast<std::size_t>(elements(id) * images_));
    return values;
  }
  // Forgets what only operations before `node` read.
  void drop_before(std::size_t node) {
    const std::vector<bool> is_read = graph::read_from(network_, node);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (!is_read[i]) {
        values_[i] = {};
      }
    }
  }
  // Runs a part on all images, `plan` being of kCall images. Arrays of outputs exist.
  Status run(const NetworkPlan& plan, const NetworkPart& part, std::span<float* const> outputs) {
    for (std::int64_t first = 0; first < images_; first += kCall) {
      std::vector<const float*> from;
      std::vector<float*> to;
      for (const TensorId id : part.reads) {
        from.push_back(values_[position(id)].data() + first * elements(id));
      }
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        to.push_back(outputs[i] + first * elements(part.writes[i]));
      }
      FORETUNE_TRY_STATUS(plan.run(from, to));
    }
    return {};
  }

 private:
  [[nodiscard]] std::int64_t elements(TensorId id) const {
    return graph::element_count(network_.tensor(id).shape);
  }

  const Network& network_;
  std::int64_t images_;
  std::vector<std::vector<float>> values_;
};

// Runs the tuning images through a network, layer by layer, with every wanted knob at each.
class EffectRun {
 public:
  EffectRun(const graph::Task& task, const Network& network,
            const std::shared_ptr<Executor>& executor, const Calibration& ranges,
            std::span<const std::vector<std::int32_t>> wanted, const EffectOptions& options)
      : task_(task),
        network_(network),
        executor_(executor),
        ranges_(ranges),
        wanted_(wanted),
        options_(options) {
    for (std::size_t i = 0; i < network.nodes().size(); ++i) {
      if (graph::has_weights(*network.nodes()[i].op)) {
        layers_.push_back(i);
      }
    }
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      total_work_ += static_cast<double>(wanted[l].size() * (network.nodes().size() - layers_[l]));
    }
    total_work_ *= static_cast<double>(options.images);
  }

  Result<Effects> run() {
    Effects effects;
    effects.metric = options_.metric;
    effects.shape = task_.network.tensor(task_.network.outputs()[0]).shape;
    effects.classes = task_.classes();
    const auto first = task_.tuning.labels.begin() + static_cast<std::ptrdiff_t>(options_.first);
    effects.labels.assign(first, first + static_cast<std::ptrdiff_t>(options_.images));
    effects.weights = options_.metric->weights(effects.labels);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      LayerEffects& layer = effects.layers.emplace_back();
      layer.layer = network_.nodes()[layers_[l]].name;
      for (const std::int32_t knob : wanted_[l]) {
        layer.knobs.push_back({.knob = knob, .changes = {}, .quality = 0});
      }
    }
    for (std::int64_t done = 0; done < options_.images; done += kChunk) {
      FORETUNE_TRY_STATUS(add_chunk(effects, done, std::min(kChunk, options_.images - done)));
    }
    effects.exact_scores = effects.scores(effects.exact);
    effects.exact_quality = effects.quality(effects.exact_scores);
    const double exact_spread = spread(effects.exact, effects.classes);
    for (LayerEffects& layer : effects.layers) {
      layer.knobs.front().quality = effects.exact_quality;
      for (KnobEffect& effect : layer.knobs) {
        effect.size = exact_spread > 0 ? spread(effect.changes, effects.classes) / exact_spread : 0;
      }
    }
    return effects;
  }

 private:
  Result<std::unique_ptr<NetworkPlan>> plan_of(const NetworkPart& part, const Variants& variants) {
    return NetworkPlan::create(part.network, executor_,
                               {.images = kCall, .variants = variants, .calibration = ranges_});
  }

  // Computes operations [first, last) exactly.
  Status advance(Tensors& tensors, std::size_t first, std::size_t last) {
    if (first == last) {
      return {};
    }
    FORETUNE_TRY(const NetworkPart part, graph::part_of(network_, first, last));
    FORETUNE_TRY(const auto plan, plan_of(part, {}));
    std::vector<float*> outputs;
    for (const TensorId id : part.writes) {
      outputs.push_back(tensors.make(id).data());
    }
    FORETUNE_TRY_STATUS(tensors.run(*plan, part, outputs));
    tensors.drop_before(last);
    return {};
  }

  // Whole calls are computed: the last one may read images that do not count.
  Status add_chunk(Effects& effects, std::int64_t done, std::int64_t images) {
    const std::int64_t whole = (images + kCall - 1) / kCall * kCall;
    Tensors tensors(network_, whole);
    const TensorId input = network_.inputs()[0];
    std::vector<float>& pixels = tensors.make(input);
    task_.read_images(task_.tuning, options_.first + done, images, pixels);
    const auto numbers = static_cast<std::size_t>(images * effects.classes);
    FORETUNE_TRY(const NetworkPart all, graph::part_of(network_, 0, network_.nodes().size()));
    FORETUNE_TRY(std::vector<float> exact, outputs_of(tensors, all, {}, whole));
    exact.resize(numbers);
    std::size_t reached = 0;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      FORETUNE_TRY_STATUS(advance(tensors, reached, layers_[l]));
      reached = layers_[l];
      FORETUNE_TRY(const NetworkPart rest,
                   graph::part_of(network_, reached, network_.nodes().size()));
      for (std::size_t k = 1; k < wanted_[l].size(); ++k) {
        FORETUNE_TRY_STATUS(report(done, images, l, k));
        Variants variants;
        FORETUNE_TRY(variants[effects.layers[l].layer], graph::variant_of_knob(wanted_[l][k]));
        FORETUNE_TRY(const std::vector<float> outputs, outputs_of(tensors, rest, variants, whole));
        add_changes(effects, effects.layers[l].knobs[k], outputs, exact,
                    static_cast<std::size_t>(done));
      }
    }
    effects.exact.insert(effects.exact.end(), exact.begin(), exact.end());
    return {};
  }

  // Returns the first output of all images of a chunk.
  Result<std::vector<float>> outputs_of(Tensors& tensors, const NetworkPart& part,
                                        const Variants& variants, std::int64_t images) {
    FORETUNE_TRY(const auto plan, plan_of(part, variants));
    std::vector<std::vector<float>> arrays;
    std::vector<float*> outputs;
    for (const TensorId id : part.writes) {
      outputs.push_back(arrays
                            .emplace_back(static_cast<std::size_t>(
                                graph::element_count(network_.tensor(id).shape) * images))
                            .data());
    }
    FORETUNE_TRY_STATUS(tensors.run(*plan, part, outputs));
    const auto found =
        std::find(part.writes.begin(), part.writes.end(), network_.outputs().front());
    if (found == part.writes.end()) {
      return fail(ErrorCode::kUnsupported, "the first output of ", network_.name(),
                  " does not depend on all of its layers");
    }
    return std::move(arrays[static_cast<std::size_t>(found - part.writes.begin())]);
  }

  // Adds the images from `first` on, as many as have exact outputs.
  static void add_changes(const Effects& effects, KnobEffect& effect,
                          const std::vector<float>& outputs, const std::vector<float>& exact,
                          std::size_t first) {
    const std::size_t images = exact.size() / static_cast<std::size_t>(effects.classes);
    const std::vector<double> scores =
        scores_of(*effects.metric, effects.shape, std::span(outputs).first(exact.size()), exact,
                  std::span(effects.labels).subspan(first, images));
    for (std::size_t i = 0; i < images; ++i) {
      effect.quality += effects.weights[first + i] * scores[i];
    }
    for (std::size_t i = 0; i < exact.size(); ++i) {
      effect.changes.push_back(outputs[i] - exact[i]);
    }
  }

  Status report(std::int64_t done, std::int64_t images, std::size_t layer, std::size_t knob) const {
    double work = 0;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const auto length = static_cast<double>(network_.nodes().size() - layers_[l]);
      const double knobs = l < layer    ? static_cast<double>(wanted_[l].size())
                           : l == layer ? static_cast<double>(knob)
                                        : 0.0;
      work += length * (static_cast<double>(wanted_[l].size()) * static_cast<double>(done) +
                        knobs * static_cast<double>(images));
    }
    if (options_.on_progress && options_.on_progress(work / total_work_)) {
      return fail(ErrorCode::kCancelled, "stopped on request");
    }
    return {};
  }

  const graph::Task& task_;
  const Network& network_;
  const std::shared_ptr<Executor>& executor_;
  const Calibration& ranges_;
  std::span<const std::vector<std::int32_t>> wanted_;
  const EffectOptions& options_;
  std::vector<std::size_t> layers_;  // positions of their operations
  double total_work_ = 0;
};

// A network whose layers have one knob, where they can.
struct UniformNetwork {
  std::int32_t knob = 0;
  std::vector<bool> has_it;  // by layer
  std::unique_ptr<NetworkPlan> plan;
  std::vector<graph::StepProfile> steps;  // the fastest of each
};

Result<UniformNetwork> uniform_network(const Network& network,
                                       const std::shared_ptr<Executor>& executor,
                                       const Calibration& ranges, std::int32_t knob,
                                       std::int64_t images) {
  UniformNetwork uniform{.knob = knob, .has_it = {}, .plan = nullptr, .steps = {}};
  FORETUNE_TRY(const graph::LayerVariant variant, graph::variant_of_knob(knob));
  Variants variants;
  for (const Node* layer : graph::layers_of(network)) {
    uniform.has_it.push_back(static_cast<bool>(graph::can_run(network, *layer, variant)));
    if (uniform.has_it.back() && knob != 0) {
      variants[layer->name] = variant;
    }
  }
  FORETUNE_TRY(uniform.plan, NetworkPlan::create(
                                 network, executor,
                                 {.images = images, .variants = variants, .calibration = ranges}));
  return uniform;
}

// Adds up the steps of a profile by the layer that they belong to; those before the first come
// last.
std::vector<double> times_by_layer(const std::vector<graph::StepProfile>& steps,
                                   const std::map<std::string, std::size_t>& layers) {
  std::vector<double> times(layers.size() + 1, 0.0);
  std::size_t now = layers.size();
  for (const graph::StepProfile& step : steps) {
    if (const auto found = layers.find(step.name); found != layers.end()) {
      now = found->second;
    }
    times[now] += step.ns;
  }
  return times;
}

}  // namespace

std::optional<double> LayerTimes::ns_of(std::int32_t knob) const {
  const auto found = std::find(knobs.begin(), knobs.end(), knob);
  return found == knobs.end() ? std::nullopt
                              : std::optional(ns[static_cast<std::size_t>(found - knobs.begin())]);
}

double spread(std::span<const float> outputs, std::int64_t classes) {
  const auto width = static_cast<std::size_t>(classes);
  double squares = 0;
  for (std::size_t at = 0; at < outputs.size(); at += width) {
    double sum = 0;
    double own = 0;
    for (const float each : outputs.subspan(at, width)) {
      sum += static_cast<double>(each);
      own += static_cast<double>(each) * static_cast<double>(each);
    }
    squares += own - sum * sum / static_cast<double>(classes);
  }
  return outputs.empty() ? 0
                         : std::sqrt(std::max(0.0, squares) / static_cast<double>(outputs.size()));
}

std::vector<double> Effects::scores(std::span<const float> outputs) const {
  return scores_of(*metric, shape, outputs, exact, labels);
}

double Effects::quality(std::span<const double> scores) const {
  double sum = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    sum += weights[i] * scores[i];
  }
  return sum;
}

Result<Effects> measure_effects(const graph::Task& task, const std::shared_ptr<Executor>& executor,
                                const Calibration& ranges,
                                std::span<const std::vector<std::int32_t>> wanted,
                                const EffectOptions& options) {
  FORETUNE_TRY(const Network network, graph::simplify(task.network));
  const std::size_t layers = graph::layers_of(network).size();
  if (wanted.size() != layers) {
    return fail(ErrorCode::kInvalidArgument, "there are knobs for ", wanted.size(), " of ", layers,
                " layers");
  }
  if (options.first < 0 || options.images < 1 ||
      options.first + options.images > task.tuning.count()) {
    return fail(ErrorCode::kInvalidArgument, "the task has ", task.tuning.count(),
                " tuning images, not those from ", options.first, " to ",
                options.first + options.images);
  }
  return EffectRun(task, network, executor, ranges, wanted, options).run();
}

Result<NetworkTimes> measure_times(const Network& network,
                                   const std::shared_ptr<Executor>& executor,
                                   const Calibration& ranges, std::span<const std::int32_t> knobs,
                                   const TimeOptions& options) {
  FORETUNE_TRY(const Network simple, graph::simplify(network));
  std::vector<std::int32_t> all{0};
  for (const std::int32_t knob : knobs) {
    if (std::find(all.begin(), all.end(), knob) == all.end()) {
      all.push_back(knob);
    }
  }
  std::vector<UniformNetwork> networks;
  for (const std::int32_t knob : all) {
    if (options.wants_stop && options.wants_stop()) {
      return fail(ErrorCode::kCancelled, "stopped on request");
    }
    FORETUNE_TRY(UniformNetwork uniform,
                 uniform_network(simple, executor, ranges, knob, options.images));
    networks.push_back(std::move(uniform));
  }
  std::vector<float> input(static_cast<std::size_t>(networks[0].plan->input_elements()[0]), 0.5F);
  std::vector<std::vector<float>> arrays;
  std::vector<float*> outputs;
  for (const std::int64_t elements : networks[0].plan->output_elements()) {
    outputs.push_back(arrays.emplace_back(static_cast<std::size_t>(elements)).data());
  }
  const float* const from = input.data();
  // Taking turns, all networks meet the same states of the machine.
  for (int round = 0; round <= options.rounds; ++round) {
    for (UniformNetwork& each : networks) {
      FORETUNE_TRY(auto steps, each.plan->profile({&from, 1}, outputs));
      if (round <= 1) {
        each.steps = std::move(steps);
        continue;
      }
      for (std::size_t i = 0; i < steps.size(); ++i) {
        each.steps[i].ns = std::min(each.steps[i].ns, steps[i].ns);
      }
    }
  }
  NetworkTimes times;
  std::map<std::string, std::size_t> places;
  for (const Node* layer : graph::layers_of(simple)) {
    places.emplace(layer->name, times.layers.size());
    times.layers.push_back({.layer = layer->name, .knobs = {}, .ns = {}});
  }
  for (const UniformNetwork& each : networks) {
    const std::vector<double> by_layer = times_by_layer(each.steps, places);
    if (each.knob == 0) {
      times.before_ns = by_layer.back();
    }
    for (std::size_t l = 0; l < times.layers.size(); ++l) {
      if (each.has_it[l]) {
        times.layers[l].knobs.push_back(each.knob);
        times.layers[l].ns.push_back(by_layer[l]);
      }
    }
  }
  return times;
}

}  // namespace foretune::approx
