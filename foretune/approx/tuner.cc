#include "foretune/approx/tuner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "foretune/approx/effects.h"
#include "foretune/approx/models.h"
#include "foretune/approx/search.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/families/network_cpu/network_data.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/run/knob.h"
#include "foretune/graph/run/plan.h"
#include "foretune/graph/simplify.h"
#include "foretune/metrics/pareto.h"
#include "foretune/problem/network/network_problem.h"
#include "foretune/tune/tune_problem.h"

namespace foretune::approx {

namespace {

using graph::NetworkPlan;
using network_cpu::NetworkData;

constexpr std::string_view kQosTune = "qos_tune";
constexpr std::string_view kQosTest = "qos_test";
// Images that choose among the positions of a period.
constexpr std::int64_t kFirstImages = 512;
// Kernels of a layer that are timed before a plan is ready.
constexpr int kMeasureTop = 12;
// Knobs have to save this share of a layer's time.
constexpr double kLeastGain = 0.03;
// The normal quantile of 19 in 20.
constexpr double kQuantile = 1.645;
// Networks that lose more teach nothing about small losses.
constexpr double kMostLoss = 10;

// A network that was measured by the models' images.
struct Sample {
  std::vector<std::int32_t> knobs;
  LossTerms terms;
  double loss = 0;
  double ns = 0;
};

class Tuner {
 public:
  Tuner(const Family& family, Measurer& measurer, JournalWriter* journal, const Problem& problem,
        const std::shared_ptr<const graph::Task>& task, const ApproxOptions& options,
        const CollectHooks& hooks, const std::function<void(std::string_view)>& on_phase)
      : family_(family),
        measurer_(measurer),
        journal_(journal),
        problem_(problem),
        task_(task),
        options_(options),
        hooks_(hooks),
        on_phase_(on_phase),
        rng_(options.seed) {}

  Result<ApproxResult> run() {
    const double begin = hooks_.now_s();
    FORETUNE_TRY_STATUS(prepare());
    FORETUNE_TRY_STATUS(profile());
    result_.profile_seconds = hooks_.now_s() - begin;
    FORETUNE_TRY_STATUS(correct_models());
    for (int round = 0; round < options_.rounds; ++round) {
      FORETUNE_TRY_STATUS(recommend_and_measure(round));
    }
    FORETUNE_TRY_STATUS(choose());
    result_.seconds = hooks_.now_s() - begin;
    return std::move(result_);
  }

 private:
  Status prepare() {
    if (options_.budgets.empty() ||
        *std::min_element(options_.budgets.begin(), options_.budgets.end()) < 0) {
      return fail(ErrorCode::kInvalidArgument, "budgets are losses from 0 points up");
    }
    if (task_->tuning.count() < 1) {
      return fail(ErrorCode::kUnsupported, "the task has no images for tuning");
    }
    phase("preparing");
    FORETUNE_TRY(network_, graph::simplify(task_->network));
    FORETUNE_TRY(quick_, graph::Executor::create({.threads = options_.effect_threads}));
    FORETUNE_TRY(
        timed_, graph::Executor::create({.threads = options_.threads, .measure_top = kMeasureTop}));
    FORETUNE_TRY(data_, NetworkData::create(task_, quick_, {.images = images()}));
    ranges_ = data_->ranges();
    // The whole network's plan knows no reshaped tensors; the parts of a network begin at them.
    for (const graph::Node& node : network_.nodes()) {
      const auto from = ranges_.find(network_.tensor(node.inputs[0]).name);
      if (node.op->name == "reshape" && from != ranges_.end()) {
        ranges_.emplace(network_.tensor(node.output).name, from->second);
      }
    }
    images_ = std::min(options_.effect_images, task_->tuning.count());
    return {};
  }

  [[nodiscard]] std::int64_t images() const {
    return problem_.field(static_cast<std::size_t>(NetworkField::kImages));
  }

  void phase(std::string_view text) const {
    if (on_phase_) {
      on_phase_(text);
    }
  }
  Status go_on() const {
    return hooks_.wants_stop() ? Status(fail(ErrorCode::kCancelled, "stopped on request"))
                               : Status();
  }

  Status profile() {
    phase("timing the layers' knobs");
    FORETUNE_TRY(
        NetworkTimes times,
        measure_times(network_, timed_, ranges_, options_.knobs,
                      {.images = images(), .wants_stop = [&] { return hooks_.wants_stop(); }}));
    std::vector<std::vector<std::int32_t>> wanted;
    for (const LayerTimes& layer : times.layers) {
      std::vector<std::int32_t>& knobs = wanted.emplace_back(1, 0);
      for (std::size_t k = 1; k < layer.knobs.size(); ++k) {
        if (layer.ns[k] < (1 - kLeastGain) * layer.ns[0]) {
          knobs.push_back(layer.knobs[k]);
        }
      }
    }
    const std::int64_t first = std::min(kFirstImages, images_);
    FORETUNE_TRY(const Effects rough, effects_of(wanted, first, "judging all knobs"));
    FORETUNE_TRY(effects_, effects_of(worth_knowing(rough, times), images_, "judging knobs"));
    times_ = TimeModel(network_, std::move(times));
    return {};
  }

  Result<Effects> effects_of(const std::vector<std::vector<std::int32_t>>& wanted,
                             std::int64_t images, std::string_view text) {
    return measure_effects(*task_, quick_, ranges_, wanted,
                           {.first = 0, .images = images, .on_progress = [&](double share) {
                              phase(concat(text, " alone, ", std::llround(100 * share), " %"));
                              return hooks_.wants_stop();
                            }});
  }

  // Returns the knobs of each layer that no other knob beats in time and in the changes of outputs.
  static std::vector<std::vector<std::int32_t>> worth_knowing(const Effects& effects,
                                                              const NetworkTimes& times) {
    std::vector<std::vector<std::int32_t>> wanted;
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

  [[nodiscard]] graph::Variants variants(std::span<const std::int32_t> knobs) const {
    graph::Variants variants;
    for (std::size_t l = 0; l < knobs.size(); ++l) {
      if (knobs[l] != 0) {
        variants[effects_.layers[l].layer] = *graph::variant_of_knob(knobs[l]);
      }
    }
    return variants;
  }

  // Draws how many layers are not exact, then which, then their knobs.
  Choices draw() {
    Choices choices(effects_.layers.size(), 0);
    std::vector<std::size_t> order(choices.size());
    for (std::size_t l = 0; l < order.size(); ++l) {
      order[l] = l;
    }
    rng_.shuffle(std::span(order));
    const std::size_t count = 1 + rng_.below(order.size());
    for (const std::size_t l : std::span(order).first(count)) {
      const std::size_t knobs = effects_.layers[l].knobs.size();
      choices[l] = static_cast<std::uint8_t>(knobs > 1 ? 1 + rng_.below(knobs - 1) : 0);
    }
    return choices;
  }

  // Measures a network on the images of the effects, and its time.
  Result<Sample> sample(const Choices& choices, ChangeSum& sum) {
    const ModelSearch search(effects_, times_, {});
    sum.choose_all(choices);
    Sample sample{.knobs = search.knobs(choices), .terms = loss_terms(effects_, sum)};
    const graph::Variants variants = this->variants(sample.knobs);
    FORETUNE_TRY(const double quality,
                 data_->quality(variants, network_cpu::Judges::kTuning, images_));
    sample.loss =
        100.0 * static_cast<double>(effects_.exact_right) / static_cast<double>(effects_.images()) -
        quality;
    FORETUNE_TRY(
        const auto plan,
        NetworkPlan::create(network_, timed_,
                            {.images = images(), .variants = variants, .calibration = ranges_}));
    sample.ns = std::numeric_limits<double>::infinity();
    constexpr int kRuns = 6;
    for (int run = 0; run < kRuns; ++run) {
      const double begin = hooks_.now_s();
      FORETUNE_TRY_STATUS(plan->run(data_->inputs(), data_->outputs()));
      sample.ns = std::min(sample.ns, 1e9 * (hooks_.now_s() - begin));
    }
    return sample;
  }

  // Draws networks that P1 expects to lose at most kMostLoss.
  Result<std::vector<Sample>> samples(int count, std::string_view text) {
    std::vector<Sample> out;
    ChangeSum sum(effects_);
    for (int tries = 0; static_cast<int>(out.size()) < count && tries < 100 * count; ++tries) {
      FORETUNE_TRY_STATUS(go_on());
      const Choices choices = draw();
      sum.choose_all(choices);
      if (sum.loss() > kMostLoss) {
        continue;
      }
      phase(concat(text, " ", out.size() + 1, " of ", count));
      FORETUNE_TRY(Sample found, sample(choices, sum));
      if (found.loss <= kMostLoss) {
        out.push_back(std::move(found));
      }
    }
    return out;
  }

  Status correct_models() {
    FORETUNE_TRY(samples_, samples(options_.fit_networks, "measuring random network"));
    FORETUNE_TRY_STATUS(fit());
    if (options_.judged_networks > 0) {
      FORETUNE_TRY(const std::vector<Sample> fresh,
                   samples(options_.judged_networks, "judging the models, network"));
      FORETUNE_TRY_STATUS(judge(fresh));
    }
    return {};
  }

  Status fit() {
    std::vector<LossTerms> terms;
    std::vector<double> losses;
    std::vector<std::vector<std::int32_t>> networks;
    std::vector<double> ns;
    for (const Sample& sample : samples_) {
      terms.push_back(sample.terms);
      losses.push_back(sample.loss);
      networks.push_back(sample.knobs);
      ns.push_back(sample.ns);
    }
    fit_ = LossFit::learn(terms, losses);
    return times_.fit(networks, ns);
  }

  Status judge(const std::vector<Sample>& fresh) {
    std::vector<double> losses;
    std::vector<double> p1;
    std::vector<double> p2;
    std::vector<double> fitted;
    double time_error = 0;
    for (const Sample& sample : fresh) {
      losses.push_back(sample.loss);
      p1.push_back(sample.terms.values[0]);
      p2.push_back(sample.terms.values[2]);
      fitted.push_back(fit_.loss(sample.terms));
      FORETUNE_TRY(const double ns, times_.predict_ns(sample.knobs));
      time_error += std::abs(ns / sample.ns - 1) / static_cast<double>(fresh.size());
    }
    const auto error = [&](const std::vector<double>& predicted) {
      double sum = 0;
      for (std::size_t i = 0; i < losses.size(); ++i) {
        sum += std::abs(predicted[i] - losses[i]);
      }
      return losses.empty() ? kNotANumber : sum / static_cast<double>(losses.size());
    };
    result_.judgement = {.networks = fresh.size(),
                         .p1_error = error(p1),
                         .p1_spearman = spearman(p1, losses),
                         .p2_error = error(p2),
                         .p2_spearman = spearman(p2, losses),
                         .fit_error = error(fitted),
                         .fit_spearman = spearman(fitted, losses),
                         .time_error = fresh.empty() ? kNotANumber : time_error};
    return {};
  }

  // Recommends networks for every budget and some smaller losses, and measures them.
  Status recommend_and_measure(int round) {
    ModelSearch search(effects_, times_, fit_);
    const double begin = hooks_.now_s();
    const auto front =
        search.front(*std::max_element(options_.budgets.begin(), options_.budgets.end()));
    result_.front_ms = 1e3 * (hooks_.now_s() - begin);
    std::vector<Config> configs;
    for (const double budget : options_.budgets) {
      phase(concat("searching for a loss of ", budget, " points"));
      for (int i = 0; i < options_.per_budget; ++i) {
        FORETUNE_TRY_STATUS(go_on());
        // From well below the budget to a little above: the models err on both sides.
        const double share = 0.3 + 0.8 * (i + 0.5 * round) / std::max(1, options_.per_budget);
        constexpr int kRestarts = 12;
        FORETUNE_TRY(const Candidate candidate, search.fastest(share * budget, kRestarts, rng_));
        const Config config = config_of(search.knobs(candidate.choices));
        if (predicted_.emplace(config, candidate).second) {
          configs.push_back(config);
        }
      }
    }
    return measure(configs);
  }

  // Knobs are in the order of the simplified network, configs in that of the task's.
  [[nodiscard]] Config config_of(std::span<const std::int32_t> knobs) const {
    std::map<std::string, std::int32_t> by_name;
    for (std::size_t l = 0; l < knobs.size(); ++l) {
      by_name[effects_.layers[l].layer] = knobs[l];
    }
    Config config{family_.info().config_schema.id(), {}};
    for (const graph::Node* layer : graph::layers_of(task_->network)) {
      const auto found = by_name.find(layer->name);
      config.words.push_back(found == by_name.end() ? 0 : found->second);
    }
    return config;
  }

  Status measure(const std::vector<Config>& configs) {
    TuneOptions tuning;
    FORETUNE_TRY(tuning.objective, Objective::parse(concat("pareto time_ns ", kQosTune)));
    tuning.strategy = "";
    tuning.first = configs;
    CollectHooks hooks = hooks_;
    hooks.on_progress = [&](const CollectProgress& progress) {
      phase(concat("measuring network ", result_.measured + progress.evaluated));
      if (hooks_.on_progress) {
        hooks_.on_progress(progress);
      }
    };
    FORETUNE_TRY(const TuneResult found,
                 search_problem(family_, measurer_, journal_, problem_, tuning, hooks));
    FORETUNE_TRY_STATUS(go_on());
    for (const TunedConfig& tuned : found.measured) {
      if (find_metric(tuned.values, kQosTune) != nullptr) {
        measured_.insert_or_assign(tuned.config, tuned);
      }
    }
    result_.measured = measured_.size();
    return learn();
  }

  // Adds the recommended networks to those that correct the models.
  Status learn() {
    const auto exact = measured_.find(exact_config());
    if (exact == measured_.end()) {
      return fail(ErrorCode::kUnsupported, "the exact network could not be measured");
    }
    const double quality = find_metric(exact->second.values, kQosTune)->value;
    ChangeSum sum(effects_);
    for (const auto& [config, candidate] : predicted_) {
      const auto found = measured_.find(config);
      if (found == measured_.end() || !learnt_.insert(config).second) {
        continue;
      }
      sum.choose_all(candidate.choices);
      const ModelSearch search(effects_, times_, {});
      samples_.push_back({.knobs = search.knobs(candidate.choices),
                          .terms = loss_terms(effects_, sum),
                          .loss = quality - find_metric(found->second.values, kQosTune)->value,
                          .ns = found->second.time_ns});
    }
    return fit();
  }

  [[nodiscard]] Config exact_config() const {
    return Config{family_.info().config_schema.id(),
                  Config::Words(graph::layers_of(task_->network).size(), 0)};
  }

  // Returns how far the loss on other images may exceed that on the tuning images. Both estimates
  // vary by the images that only one of the two networks classifies rightly, whose share follows
  // from the models' images.
  double margin(const Candidate* candidate, double loss) {
    constexpr double kUnknownShare = 0.05;
    const double share = std::max(
        std::abs(loss) / 100, candidate == nullptr ? kUnknownShare : differing(candidate->choices));
    const auto count = static_cast<double>(task_->tuning.count());
    const auto others =
        static_cast<double>(task_->test.count() > 0 ? task_->test.count() : task_->tuning.count());
    return kQuantile * 100 * std::sqrt(share * (1 / count + 1 / others));
  }

  // Returns the share of images that exactly one of the exact and the predicted network gets right.
  double differing(const Choices& choices) {
    std::vector<float> outputs = effects_.exact;
    for (std::size_t l = 0; l < choices.size(); ++l) {
      const std::vector<float>& changes = effects_.layers[l].knobs[choices[l]].changes;
      for (std::size_t i = 0; i < changes.size(); ++i) {
        outputs[i] += changes[i];
      }
    }
    std::int64_t count = 0;
    for (std::size_t i = 0; i < effects_.labels.size(); ++i) {
      const std::size_t at = i * static_cast<std::size_t>(effects_.classes);
      const auto row = static_cast<std::size_t>(effects_.classes);
      const std::span<const std::int32_t> label(&effects_.labels[i], 1);
      const bool before =
          count_right(std::span(effects_.exact).subspan(at, row), label, effects_.classes) == 1;
      const bool after =
          count_right(std::span(outputs).subspan(at, row), label, effects_.classes) == 1;
      count += before != after ? 1 : 0;
    }
    return static_cast<double>(count) / static_cast<double>(effects_.images());
  }

  ApproxConfig describe(const TunedConfig& tuned, double exact_quality) {
    ApproxConfig out{.config = tuned.config, .text = {}};
    out.time_ns = tuned.time_ns;
    out.tune_loss = exact_quality - find_metric(tuned.values, kQosTune)->value;
    const auto candidate = predicted_.find(tuned.config);
    const bool is_known = candidate != predicted_.end();
    if (is_known) {
      out.predicted_ns = candidate->second.ns;
      out.predicted_loss = candidate->second.loss;
    }
    out.loss_high = out.tune_loss + margin(is_known ? &candidate->second : nullptr, out.tune_loss);
    out.budget = std::numeric_limits<double>::infinity();
    for (const double budget : options_.budgets) {
      if (out.loss_high <= budget) {
        out.budget = std::min(out.budget, budget);
      }
    }
    return out;
  }

  Status choose() {
    const TunedConfig& exact = measured_.at(exact_config());
    const double exact_quality = find_metric(exact.values, kQosTune)->value;
    std::vector<ApproxConfig> kept;
    std::vector<double> points;
    for (const auto& [config, tuned] : measured_) {
      ApproxConfig each = describe(tuned, exact_quality);
      if (config == exact_config()) {
        result_.exact = std::move(each);
      } else if (std::isfinite(each.budget) && each.time_ns < exact.time_ns) {
        points.push_back(each.time_ns);
        points.push_back(each.loss_high);
        kept.push_back(std::move(each));
      }
    }
    for (const std::size_t i : take_best({points, 2}, options_.chosen)) {
      result_.chosen.push_back(std::move(kept[i]));
    }
    return compare_chosen();
  }

  // Times the chosen networks in turns with the exact one, and judges them by the test images.
  Status compare_chosen() {
    phase(concat("timing ", result_.chosen.size(), " networks in turns"));
    std::vector<Config> configs{exact_config()};
    for (const ApproxConfig& each : result_.chosen) {
      configs.push_back(each.config);
    }
    const std::vector<Measurement> times =
        measurer_.compare(problem_, configs, options_.compare_rounds);
    FORETUNE_TRY(const std::unique_ptr<Space> space, family_.space(problem_));
    for (std::size_t i = 0; i < configs.size(); ++i) {
      FORETUNE_TRY_STATUS(go_on());
      ApproxConfig& each = i == 0 ? result_.exact : result_.chosen[i - 1];
      Measurement timed = times[i];
      timed.context.fidelity = kReferenceFidelity;
      FORETUNE_TRY_STATUS(progress_.keep(timed, journal_));
      if (const MetricValue* const time = timed.find(kTimeNs)) {
        each.time_ns = time->value;
      }
      each.speedup = result_.exact.time_ns / each.time_ns;
      each.text = space->describe(each.config);
      FORETUNE_TRY_STATUS(test(each, i));
    }
    std::sort(result_.chosen.begin(), result_.chosen.end(),
              [](const ApproxConfig& a, const ApproxConfig& b) { return a.time_ns < b.time_ns; });
    return {};
  }

  Status test(ApproxConfig& each, std::size_t number) {
    if (task_->test.count() == 0) {
      return {};
    }
    phase(concat("testing network ", number, " of ", result_.chosen.size()));
    const Measurement found = measurer_.measure(
        {.problem = problem_, .config = each.config, .evaluate = {std::string(kQosTest)}});
    FORETUNE_TRY_STATUS(progress_.keep(found, journal_));
    if (const MetricValue* const quality = found.find(kQosTest)) {
      each.test_quality = quality->value;
      each.test_loss = result_.exact.test_quality - quality->value;
    }
    return {};
  }

  const Family& family_;
  Measurer& measurer_;
  JournalWriter* journal_;
  const Problem& problem_;
  const std::shared_ptr<const graph::Task>& task_;
  const ApproxOptions& options_;
  const CollectHooks& hooks_;
  const std::function<void(std::string_view)>& on_phase_;
  Rng rng_;

  graph::Network network_;  // simplified
  std::shared_ptr<graph::Executor> quick_;
  std::shared_ptr<graph::Executor> timed_;
  std::unique_ptr<NetworkData> data_;
  graph::Calibration ranges_;
  std::int64_t images_ = 0;  // that judge single knobs
  Effects effects_;
  TimeModel times_;
  LossFit fit_;
  std::vector<Sample> samples_;
  std::map<Config, Candidate> predicted_;
  std::set<Config> learnt_;
  std::map<Config, TunedConfig> measured_;
  CollectProgress progress_;
  ApproxResult result_;
};

}  // namespace

Result<ApproxResult> tune_network(const Family& family, Measurer& measurer, JournalWriter* journal,
                                  const Problem& problem,
                                  const std::shared_ptr<const graph::Task>& task,
                                  const ApproxOptions& options, const CollectHooks& hooks,
                                  const std::function<void(std::string_view)>& on_phase) {
  return Tuner(family, measurer, journal, problem, task, options, hooks, on_phase).run();
}

}  // namespace foretune::approx
