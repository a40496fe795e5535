#include "foretune/approx/tuner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "foretune/approx/effects.h"
#include "foretune/approx/judge.h"
#include "foretune/approx/judgement.h"
#include "foretune/approx/loss_model.h"
#include "foretune/approx/models.h"
#include "foretune/approx/plain_search.h"
#include "foretune/approx/profile.h"
#include "foretune/approx/search.h"
#include "foretune/approx/sensitivity.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/families/network_cpu/network_data.h"
#include "foretune/families/network_cpu/network_space.h"
#include "foretune/graph/run/knob.h"
#include "foretune/graph/run/plan.h"
#include "foretune/metrics/pareto.h"
#include "foretune/problem/network/network_problem.h"
#include "foretune/tune/tune_problem.h"

namespace foretune::approx {

namespace {

using graph::NetworkPlan;
using network_cpu::NetworkData;

constexpr std::string_view kQosTune = "qos_tune";
constexpr std::string_view kQosTest = "qos_test";
// Images that show that a network loses far too much.
constexpr std::int64_t kFirstImages = 512;
// Kernels of a layer that are timed before a plan is ready.
constexpr int kMeasureTop = 12;
// The normal quantile of 19 in 20.
constexpr double kQuantile = 1.645;
// Networks that lose more points of an accuracy teach nothing about small losses.
constexpr double kMostLoss = 10;

// A network that was measured by the models' images.
struct Sample {
  LossSample quality;
  std::vector<std::int32_t> knobs;
  double ns = 0;
};

// A network that was measured on all tuning images.
struct Tuned {
  double time_ns = 0;
  PairedScores scores;  // beside the exact network
  double predicted_ns = 0;
  double predicted_loss = 0;
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
    FORETUNE_TRY_STATUS(compare_with_plain_search());
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
    FORETUNE_TRY(quick_, graph::Executor::create({.threads = options_.effect_threads}));
    FORETUNE_TRY(
        timed_, graph::Executor::create({.threads = options_.threads, .measure_top = kMeasureTop}));
    FORETUNE_TRY(
        data_, NetworkData::create(task_, quick_, {.images = images(), .metric = options_.metric}));
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
    FORETUNE_TRY(profile_, make_profile(*task_, data_->ranges(), timed_, quick_,
                                        {.knobs = options_.knobs,
                                         .images = images(),
                                         .effect_images = images_,
                                         .metric = options_.metric,
                                         .on_phase = on_phase_,
                                         .wants_stop = [&] { return hooks_.wants_stop(); }}));
    result_.layers = sensitivity_of(profile_.network, profile_.effects, profile_.times);
    times_ = TimeModel(profile_.network, profile_.times);
    result_.profile_networks = profile_.networks;
    return {};
  }

  // Draws how many layers are not exact, then which, then their knobs.
  Choices draw() {
    Choices choices(profile_.effects.layers.size(), 0);
    std::vector<std::size_t> order(choices.size());
    for (std::size_t l = 0; l < order.size(); ++l) {
      order[l] = l;
    }
    rng_.shuffle(std::span(order));
    const std::size_t count = 1 + rng_.below(order.size());
    for (const std::size_t l : std::span(order).first(count)) {
      const std::size_t knobs = profile_.effects.layers[l].knobs.size();
      choices[l] = static_cast<std::uint8_t>(knobs > 1 ? 1 + rng_.below(knobs - 1) : 0);
    }
    return choices;
  }

  Result<std::vector<float>> outputs(const graph::Variants& variants, std::int64_t count) const {
    return outputs_of(*task_, quick_, data_->ranges(), variants, count);
  }

  // Returns the loss on the first images of the effects, all that `outputs` has.
  [[nodiscard]] double loss_of(std::span<const float> outputs) const {
    const Effects& effects = profile_.effects;
    const auto images = outputs.size() / static_cast<std::size_t>(effects.classes);
    const auto labels = std::span(effects.labels).first(images);
    const std::vector<double> scores =
        scores_of(*effects.metric, effects.shape, outputs,
                  std::span(effects.exact).first(outputs.size()), labels);
    return compare_scores(*effects.metric, labels, std::span(effects.exact_scores).first(images),
                          scores)
        .loss();
  }

  // Other qualities than counts may take much larger budgets.
  [[nodiscard]] double most_loss() const {
    const double budget = *std::max_element(options_.budgets.begin(), options_.budgets.end());
    return options_.metric->is_count() ? kMostLoss : std::max(kMostLoss, 2 * budget);
  }

  // Measures a network on the images of the effects, and its time.
  Result<Sample> sample(const Choices& choices) {
    Sample sample{.quality = {.choices = choices}, .knobs = profile_.knobs(choices)};
    const graph::Variants variants = profile_.variants(choices);
    ++result_.search.measured;
    // A network of no use shows on the first images.
    for (const std::int64_t count : {std::min(kFirstImages, images_), images_}) {
      const double limit = count < images_ ? 1.5 * most_loss() : most_loss();
      FORETUNE_TRY(const std::vector<float> found, outputs(variants, count));
      sample.quality.loss = loss_of(found);
      if (sample.quality.loss > limit) {
        return sample;
      }
    }
    FORETUNE_TRY(const auto plan,
                 NetworkPlan::create(
                     profile_.network, timed_,
                     {.images = images(), .variants = variants, .calibration = profile_.ranges}));
    sample.ns = std::numeric_limits<double>::infinity();
    constexpr int kRuns = 6;
    for (int run = 0; run < kRuns; ++run) {
      const double begin = hooks_.now_s();
      FORETUNE_TRY_STATUS(plan->run(data_->inputs(), data_->outputs()));
      sample.ns = std::min(sample.ns, 1e9 * (hooks_.now_s() - begin));
    }
    return sample;
  }

  // Draws networks that lose at most most_loss(), none twice and none that was drawn before. Small
  // networks may have fewer. Those that P1 expects to lose much more are not measured.
  Result<std::vector<Sample>> samples(int count, std::string_view text) {
    constexpr double kHopeless = 5;  // times the most: P1 can be far too high
    std::vector<Sample> out;
    ChangeSum sum(profile_.effects);
    for (int tries = 0; static_cast<int>(out.size()) < count && tries < 20 * count; ++tries) {
      FORETUNE_TRY_STATUS(go_on());
      const Choices choices = draw();
      if (!drawn_.insert(choices).second) {
        continue;
      }
      sum.choose_all(choices);
      if (sum.loss() > kHopeless * most_loss()) {
        continue;
      }
      phase(concat(text, " ", out.size() + 1, " of ", count));
      FORETUNE_TRY(Sample found, sample(choices));
      if (found.quality.loss <= most_loss()) {
        out.push_back(std::move(found));
      }
    }
    return out;
  }

  Status correct_models() {
    FORETUNE_TRY(samples_, samples(options_.fit_networks, "measuring random network"));
    FORETUNE_TRY_STATUS(fit());
    const std::size_t fitted = result_.search.measured;
    if (options_.judged_networks > 0) {
      FORETUNE_TRY(const std::vector<Sample> fresh,
                   samples(options_.judged_networks, "judging the models, network"));
      FORETUNE_TRY_STATUS(judge(fresh));
      result_.search.measured = fitted;
    }
    return {};
  }

  Status fit() {
    std::vector<LossSample> quality;
    std::vector<std::vector<std::int32_t>> networks;
    std::vector<double> ns;
    for (const Sample& sample : samples_) {
      quality.push_back(sample.quality);
      networks.push_back(sample.knobs);
      ns.push_back(sample.ns);
    }
    losses_ = LossModel::learn(profile_.effects, quality);
    result_.quality_model = to_string(losses_.kind());
    return times_.fit(networks, ns);
  }

  Status judge(const std::vector<Sample>& fresh) {
    std::vector<LossSample> quality;
    std::vector<double> predicted;
    std::vector<double> ns;
    for (const Sample& sample : fresh) {
      quality.push_back(sample.quality);
      ns.push_back(sample.ns);
      FORETUNE_TRY(const double expected, times_.predict_ns(sample.knobs));
      predicted.push_back(expected);
    }
    result_.judgement = judge_models(profile_.effects, losses_, quality, predicted, ns);
    return {};
  }

  // Recommends networks for every budget and some smaller losses, and measures them.
  Status recommend_and_measure(int round) {
    ModelSearch search(profile_.effects, times_, losses_);
    const double begin = hooks_.now_s();
    const auto front =
        search.front(*std::max_element(options_.budgets.begin(), options_.budgets.end()));
    result_.front_ms = 1e3 * (hooks_.now_s() - begin);
    std::vector<Candidate> chosen;
    for (const double budget : options_.budgets) {
      phase(concat("searching within the budget ", budget));
      const std::size_t wanted = chosen.size() + static_cast<std::size_t>(options_.per_budget);
      for (int i = 0; i < options_.per_budget; ++i) {
        FORETUNE_TRY_STATUS(go_on());
        // From well below the budget to a little above: the models err on both sides.
        const double share = 0.3 + 0.8 * (i + 0.5 * round) / std::max(1, options_.per_budget);
        // Likenesses of images take long.
        const int restarts = options_.metric->is_count() ? 6 : 3;
        FORETUNE_TRY(Candidate candidate, search.fastest(share * budget, restarts, rng_));
        if (recommended_.insert(candidate.choices).second) {
          chosen.push_back(std::move(candidate));
        }
      }
      FORETUNE_TRY_STATUS(recommend_neighbours(search, budget, wanted, chosen));
    }
    return measure(chosen);
  }

  // Fills `chosen` up with the fastest networks that the models expect to keep the budget, margin
  // and all, and that differ in one layer from one that was recommended.
  Status recommend_neighbours(ModelSearch& search, double budget, std::size_t wanted,
                              std::vector<Candidate>& chosen) {
    FORETUNE_TRY(const double exact_ns,
                 times_.predict_ns(profile_.knobs(Choices(profile_.effects.layers.size(), 0))));
    std::map<Choices, Candidate> found;
    std::vector<Choices> open(recommended_.begin(), recommended_.end());
    while (chosen.size() < wanted) {
      FORETUNE_TRY_STATUS(go_on());
      for (const Choices& each : open) {
        FORETUNE_TRY(std::vector<Candidate> neighbours, search.neighbours(each));
        for (Candidate& other : neighbours) {
          if (other.loss <= budget && other.ns < exact_ns &&
              !recommended_.contains(other.choices)) {
            found.emplace(other.choices, std::move(other));
          }
        }
      }
      open.clear();
      while (!found.empty() && chosen.size() < wanted) {
        const auto fastest = std::min_element(
            found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.second.ns < b.second.ns; });
        FORETUNE_TRY(Candidate candidate, search.predict(fastest->first));
        found.erase(fastest);
        const double margin =
            search.compare().scaled_to(task_->tuning.count()).margin(kQuantile, other_images());
        if (candidate.loss + margin <= budget) {
          open.push_back(candidate.choices);
          recommended_.insert(candidate.choices);
          chosen.push_back(std::move(candidate));
        }
      }
      if (open.empty()) {
        return {};
      }
    }
    return {};
  }

  [[nodiscard]] std::int64_t other_images() const {
    return task_->test.count() > 0 ? task_->test.count() : task_->tuning.count();
  }

  [[nodiscard]] Config config_of(const Choices& choices) const {
    return profile_.config_of(choices, task_->network, family_.info().config_schema.id());
  }

  // Times networks by the measurer, and judges them by all tuning images. The family's default
  // configs come with the first ones.
  Status measure(const std::vector<Candidate>& candidates) {
    std::map<Config, const Candidate*> known;
    TuneOptions tuning;
    // Any metric beside the time will do: networks are then timed to the end.
    FORETUNE_TRY(tuning.objective, Objective::parse(concat("pareto time_ns ", kWorkspaceBytes)));
    tuning.strategy = "";
    for (const Candidate& each : candidates) {
      tuning.first.push_back(config_of(each.choices));
      known.emplace(tuning.first.back(), &each);
    }
    CollectHooks hooks = hooks_;
    hooks.on_progress = [&](const CollectProgress& progress) {
      phase(concat("timing network ", result_.measured + progress.measured));
      if (hooks_.on_progress) {
        hooks_.on_progress(progress);
      }
    };
    FORETUNE_TRY(const TuneResult found,
                 search_problem(family_, measurer_, journal_, problem_, tuning, hooks));
    FORETUNE_TRY_STATUS(go_on());
    if (exact_.empty()) {
      FORETUNE_TRY(exact_, outputs({}, task_->tuning.count()));
      exact_scores_ =
          scores_of(*options_.metric, profile_.effects.shape, exact_, exact_, task_->tuning.labels);
    }
    for (const TunedConfig& timed : found.measured) {
      FORETUNE_TRY_STATUS(go_on());
      if (tuned_.contains(timed.config)) {
        continue;
      }
      phase(concat("judging network ", tuned_.size() + 1));
      const auto candidate = known.find(timed.config);
      FORETUNE_TRY_STATUS(
          judge_network(timed, candidate == known.end() ? nullptr : candidate->second));
    }
    result_.measured = tuned_.size();
    if (!tuned_.contains(exact_config())) {
      return fail(ErrorCode::kUnsupported, "the exact network could not be measured");
    }
    return fit();
  }

  // Judges a network by all tuning images; the models learn from it if they recommended it.
  Status judge_network(const TunedConfig& timed, const Candidate* candidate) {
    FORETUNE_TRY(std::vector<float> outputs,
                 this->outputs(variants_of(task_->network, timed.config), task_->tuning.count()));
    const std::vector<double> scores =
        scores_of(*options_.metric, profile_.effects.shape, outputs, exact_, task_->tuning.labels);
    Tuned tuned{
        .time_ns = timed.time_ns,
        .scores = compare_scores(*options_.metric, task_->tuning.labels, exact_scores_, scores)};
    Measurement judged{.problem = problem_, .config = timed.config};
    judged.context = measurer_.context();
    judged.stage = Stage::kEvaluate;
    judged.metrics = {{kQosTune, exact_quality() - tuned.scores.loss(), 0, 1}};
    FORETUNE_TRY_STATUS(progress_.keep(judged, journal_));
    if (candidate != nullptr) {
      tuned.predicted_ns = candidate->ns;
      tuned.predicted_loss = candidate->loss;
      outputs.resize(profile_.effects.exact.size());
      const double loss = loss_of(outputs);
      samples_.push_back({.quality = {.choices = candidate->choices, .loss = loss},
                          .knobs = profile_.knobs(candidate->choices),
                          .ns = timed.time_ns});
    }
    tuned_.emplace(timed.config, tuned);
    return {};
  }

  // Returns the exact network's quality on all tuning images.
  [[nodiscard]] double exact_quality() const {
    const std::vector<double> weights = options_.metric->weights(task_->tuning.labels);
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      sum += weights[i] * exact_scores_[i];
    }
    return sum / static_cast<double>(weights.size());
  }

  [[nodiscard]] Config exact_config() const {
    return Config{family_.info().config_schema.id(),
                  Config::Words(graph::layers_of(task_->network).size(), 0)};
  }

  [[nodiscard]] ApproxConfig describe(const Config& config, const Tuned& tuned) const {
    ApproxConfig out{.config = config, .text = {}};
    out.time_ns = tuned.time_ns;
    out.predicted_ns = tuned.predicted_ns;
    out.predicted_loss = tuned.predicted_loss;
    out.predicted_bytes =
        network_bytes(profile_.network, profile_.knobs_of(config, task_->network));
    out.tune_loss = tuned.scores.loss();
    out.loss_high = out.tune_loss + tuned.scores.margin(kQuantile, other_images());
    out.budget = std::numeric_limits<double>::infinity();
    for (const double budget : options_.budgets) {
      if (out.loss_high <= budget) {
        out.budget = std::min(out.budget, budget);
      }
    }
    return out;
  }

  Status choose() {
    const Tuned& exact = tuned_.at(exact_config());
    std::vector<ApproxConfig> kept;
    std::vector<double> points;
    for (const auto& [config, tuned] : tuned_) {
      ApproxConfig each = describe(config, tuned);
      each.speedup = exact.time_ns / each.time_ns;
      if (config == exact_config()) {
        result_.exact = std::move(each);
        continue;
      }
      result_.networks.push_back(each);
      if (std::isfinite(each.budget) && each.time_ns < exact.time_ns) {
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

  // Searches without models until the networks are as good as those that the models found, by the
  // loss on the images of the effects and the modelled time. Measures no time.
  Status compare_with_plain_search() {
    if (options_.plain_evaluations == 0) {
      return {};
    }
    const double exact_ns =
        *times_.predict_ns(profile_.knobs(Choices(profile_.effects.layers.size(), 0)));
    std::vector<LossAndTime> ours;
    for (const Sample& sample : samples_) {
      FORETUNE_TRY(const double ns, times_.predict_ns(sample.knobs));
      ours.push_back({.loss = sample.quality.loss, .time = ns / exact_ns});
    }
    SearchComparison& out = result_.search;
    out.measured += tuned_.size();
    const double most = *std::max_element(options_.budgets.begin(), options_.budgets.end());
    const NetworkSpace space(task_->network, options_.knobs);
    std::size_t tried = 0;
    const auto measure = [&](const Config& config) -> Result<LossAndTime> {
      FORETUNE_TRY_STATUS(go_on());
      phase(concat("searching without models, network ", ++tried));
      FORETUNE_TRY(const double ns, times_.predict_ns(profile_.knobs_of(config, task_->network)));
      FORETUNE_TRY(const std::vector<float> found,
                   outputs(variants_of(task_->network, config), images_));
      return LossAndTime{.loss = loss_of(found), .time = ns / exact_ns};
    };
    FORETUNE_TRY(out.plain,
                 search_plainly(problem_, space, measure,
                                {.most_loss = most,
                                 .volume = front_volume(ours, most),
                                 .most = static_cast<std::size_t>(options_.plain_evaluations),
                                 .seed = options_.seed}));
    out.volume = front_volume(ours, most);
    return {};
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
    // In turns, some are no faster than the exact one after all.
    std::erase_if(result_.chosen, [](const ApproxConfig& each) { return each.speedup <= 1; });
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

  std::shared_ptr<graph::Executor> quick_;
  std::shared_ptr<graph::Executor> timed_;
  std::unique_ptr<NetworkData> data_;
  std::int64_t images_ = 0;  // that judge single knobs
  Profile profile_;
  TimeModel times_;
  LossModel losses_;
  std::vector<Sample> samples_;
  std::set<Choices> drawn_;        // at random
  std::set<Choices> recommended_;  // by the models
  std::vector<float> exact_;       // outputs for all tuning images
  std::vector<double> exact_scores_;
  std::map<Config, Tuned> tuned_;
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
