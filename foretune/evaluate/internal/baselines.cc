#include "foretune/evaluate/internal/baselines.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "foretune/base/statistics.h"
#include "foretune/base/text.h"

namespace foretune::evaluate_internal {
namespace {

// Configs to try on one problem of the evaluated data set: the first few in an order of preference
// that were measured there.
struct Choices {
  std::vector<std::uint32_t> configs;  // ids in the evaluated data set
  bool replaced = false;               // one of the first `tries` was not measured
};

class ChoiceFinder {
 public:
  ChoiceFinder(const MeasuredTimes& times, std::uint32_t problem, std::size_t tries)
      : times_(times), problem_(problem), tries_(tries) {}

  // `config` is an id in the evaluated data set, or nothing when the config is not in it.
  void offer(std::optional<std::uint32_t> config) {
    const MeasuredCandidate* candidate = config ? times_.find(problem_, *config) : nullptr;
    // A config that is refused before it runs is not a choice. A config that crashes is one, and
    // counts as 0.
    if (candidate == nullptr || candidate->state == MeasuredState::kRefused) {
      choices_.replaced = choices_.replaced || choices_.configs.size() < tries_;
    } else if (seen_.insert(*config).second) {
      choices_.configs.push_back(*config);
    }
  }
  [[nodiscard]] bool is_full() const { return choices_.configs.size() >= kCurveLength; }
  Choices take() { return std::move(choices_); }

 private:
  const MeasuredTimes& times_;
  std::uint32_t problem_;
  std::size_t tries_;
  std::unordered_set<std::uint32_t> seen_;
  Choices choices_;
};

// A trained set of baselines for its part of the evaluated problems.
struct Part {
  std::vector<std::uint32_t> problems;  // of the evaluated data set
  TrainedBaselines trained;
};

class Baselines {
 public:
  explicit Baselines(const BaselineInput& input)
      : input_(input),
        summary_{input.options.bootstrap_samples, input.options.seed},
        space_(known_space(input.dataset, input.model)) {
    for (std::uint32_t i = 0; i < input.dataset.configs().size(); ++i) {
      config_ids_.emplace(input.dataset.configs()[i], i);
    }
  }

  BaselineResults evaluate() {
    add_default();
    add_trained();
    if (parts_.empty()) {
      add_of_model();
    }
    add_vendors();
    add_hindsight();
    std::vector<ProblemScore> random;
    for (const std::uint32_t problem : input_.evaluated) {
      random.push_back(score_random(input_.times, problem));
    }
    add("random", "a random config, on average", 1, random);
    return {std::move(results_), std::move(curve_)};
  }

 private:
  [[nodiscard]] std::optional<std::uint32_t> id_of(const Config& config) const {
    const auto found = config_ids_.find(config);
    return found == config_ids_.end() ? std::nullopt : std::optional(found->second);
  }

  void add(std::string key, std::string name, std::size_t tries,
           std::vector<ProblemScore>& scores) {
    if (scores.empty()) {
      return;
    }
    std::sort(scores.begin(), scores.end(),
              [](const ProblemScore& a, const ProblemScore& b) { return a.problem < b.problem; });
    results_.push_back(summarise(std::move(key), std::move(name), tries, scores, summary_));
  }

  // Skips a problem where none of the choices was measured, since it says nothing about them.
  void score(std::uint32_t problem, std::size_t tries, const Choices& choices,
             std::vector<ProblemScore>& scores) const {
    if (choices.configs.empty()) {
      return;
    }
    scores.push_back(score_picks(input_.times, problem, choices.configs, tries));
    scores.back().replaced = choices.replaced;
  }

  void add_default() {
    if (!input_.options.default_configs) {
      return;
    }
    std::vector<ProblemScore> scores;
    for (const std::uint32_t problem : input_.evaluated) {
      ChoiceFinder finder(input_.times, problem, 1);
      const std::vector<Config> configs =
          input_.options.default_configs(input_.dataset.problems()[problem]);
      for (const Config& config : configs) {
        finder.offer(measured_id(problem, config));
      }
      score(problem, 1, finder.take(), scores);
    }
    add("default_config", "the family's default config", 1, scores);
  }

  // Scores the same order of configs on every problem.
  void score_order(std::span<const std::uint32_t> problems, std::span<const Config* const> order,
                   std::size_t tries, std::vector<ProblemScore>& scores) const {
    for (const std::uint32_t problem : problems) {
      ChoiceFinder finder(input_.times, problem, tries);
      for (std::size_t i = 0; i < order.size() && !finder.is_full(); ++i) {
        finder.offer(measured_id(problem, *order[i]));
      }
      score(problem, tries, finder.take(), scores);
    }
  }

  // Adds for each problem the best efficiency among the first 1, 2, ... of the order. Unmeasured
  // configs are not replaced.
  void add_reached(std::span<const std::uint32_t> problems, std::span<const Config* const> order,
                   std::vector<std::vector<double>>& reached) const {
    for (const std::uint32_t problem : problems) {
      std::vector<double> best{0};
      for (std::size_t i = 0; i < std::min(order.size(), kPortfolioLength); ++i) {
        const std::optional<std::uint32_t> id = measured_id(problem, *order[i]);
        const MeasuredCandidate* candidate = id ? input_.times.find(problem, *id) : nullptr;
        const double efficiency =
            candidate == nullptr ? 0 : input_.times.compare(problem, *candidate).efficiency;
        best.push_back(std::max(best.back(), efficiency));
      }
      reached.push_back(std::move(best));
    }
  }

  void add_curve(std::size_t longest, const std::vector<std::vector<double>>& reached) {
    for (std::size_t configs = 1; configs <= longest && !reached.empty(); configs *= 2) {
      std::vector<double> efficiencies;
      for (const std::vector<double>& best : reached) {
        efficiencies.push_back(best[std::min(configs, best.size() - 1)]);
      }
      curve_.push_back(
          {configs, mean(efficiencies), quantile(efficiencies, 0.1), quantile(efficiencies, 0)});
    }
  }

  // Returns the id of the config, or of its canonical form where only that was measured on this
  // problem.
  [[nodiscard]] std::optional<std::uint32_t> measured_id(std::uint32_t problem,
                                                         const Config& config) const {
    const std::optional<std::uint32_t> id = id_of(config);
    const Problem& value = input_.dataset.problems()[problem];
    const Hardware& hardware = input_.dataset.hardware_of(value);
    if (space_ == nullptr || (id && input_.times.find(problem, *id) != nullptr) ||
        !space_->is_legal(config.words.view(), value.fields(), hardware)) {
      return id;
    }
    return id_of(space_->canonical(config, value, hardware));
  }

  struct Portfolio {
    std::string key;
    std::string name;
    std::size_t tries;
  };
  static std::array<Portfolio, 2> portfolios() {
    return {{{"portfolio_4", "portfolio of 4, all measured", 4},
             {"portfolio_16", "portfolio of 16, all measured", 16}}};
  }

  void train_parts() {
    const EvaluateOptions& options = input_.options;
    const Dataset* training = options.training;
    if (options.fold_of_problem.empty()) {
      if (training == nullptr) {
        return;
      }
      training_times_ = std::make_unique<MeasuredTimes>(*training);
      train_part({input_.evaluated.begin(), input_.evaluated.end()}, *training, *training_times_,
                 std::vector<bool>(training->problems().size(), true));
      return;
    }
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_fold;
    for (const std::uint32_t problem : input_.evaluated) {
      by_fold[options.fold_of_problem[problem]].push_back(problem);
    }
    for (const auto& [fold, problems] : by_fold) {
      std::vector<bool> use;
      for (const std::uint32_t other : options.fold_of_problem) {
        use.push_back(other != fold);
      }
      train_part(problems, input_.dataset, input_.times, use);
    }
  }

  void train_part(std::vector<std::uint32_t> problems, const Dataset& training,
                  const MeasuredTimes& times, const std::vector<bool>& use) {
    training_ = &training;
    TrainedBaselines trained(training, times, use, space_.get());
    if (trained.problems() > 0) {
      parts_.push_back({std::move(problems), std::move(trained)});
    }
  }

  [[nodiscard]] std::vector<const Config*> configs_of(std::span<const std::uint32_t> ids) const {
    std::vector<const Config*> out;
    out.reserve(ids.size());
    for (const std::uint32_t id : ids) {
      out.push_back(&training_->configs()[id]);
    }
    return out;
  }

  void add_trained() {
    train_parts();
    if (parts_.empty()) {
      return;
    }
    std::vector<ProblemScore> scores;
    for (const Part& part : parts_) {
      score_order(part.problems, configs_of(part.trained.by_mean()), 1, scores);
    }
    add("best_single_config", "best single config", 1, scores);
    for (const Portfolio& portfolio : portfolios()) {
      scores.clear();
      for (const Part& part : parts_) {
        score_order(part.problems, configs_of(part.trained.portfolio()), portfolio.tries, scores);
      }
      add(portfolio.key, portfolio.name, portfolio.tries, scores);
    }
    std::vector<std::vector<double>> reached;
    for (const Part& part : parts_) {
      add_reached(part.problems, configs_of(part.trained.portfolio()), reached);
    }
    add_curve(kPortfolioLength, reached);
    scores.clear();
    for (const Part& part : parts_) {
      for (const std::uint32_t problem : part.problems) {
        score(problem, 1, nearest_choices(part.trained, problem), scores);
      }
    }
    add("nearest_problem", "nearest problem's best config", 1, scores);
  }

  // Returns the best configs of the nearest training problem that were measured here, then those of
  // the next nearest.
  Choices nearest_choices(const TrainedBaselines& trained, std::uint32_t problem) {
    const MeasuredTimes& times = training_times_ ? *training_times_ : input_.times;
    ChoiceFinder finder(input_.times, problem, 1);
    for (const std::uint32_t near : trained.nearest(input_.dataset.problems()[problem])) {
      if (finder.is_full()) {
        break;
      }
      for (const std::uint32_t config : best_first(times, near)) {
        if (finder.is_full()) {
          break;
        }
        finder.offer(measured_id(problem, training_->configs()[config]));
      }
    }
    return finder.take();
  }

  const std::vector<std::uint32_t>& best_first(const MeasuredTimes& times, std::uint32_t problem) {
    const auto [found, is_new] = best_first_.try_emplace(problem);
    if (is_new) {
      std::vector<std::pair<double, std::uint32_t>> order;
      for (const MeasuredCandidate& candidate : times.candidates(problem)) {
        if (candidate.state == MeasuredState::kOk) {
          order.emplace_back(-times.compare(problem, candidate).efficiency, candidate.config);
        }
      }
      std::sort(order.begin(), order.end());
      for (const auto& [negative, config] : order) {
        found->second.push_back(config);
      }
    }
    return found->second;
  }

  void add_of_model() {
    const Model* model = input_.model;
    if (model == nullptr) {
      return;
    }
    std::vector<const Config*> order;
    for (const std::uint32_t position : model->portfolio) {
      if (position < model->pool.size()) {
        order.push_back(&model->pool[position]);
      }
    }
    if (order.empty()) {
      return;
    }
    std::vector<ProblemScore> scores;
    score_order(input_.evaluated, order, 1, scores);
    add("best_single_config", "best single config", 1, scores);
    std::vector<std::vector<double>> reached;
    add_reached(input_.evaluated, order, reached);
    add_curve(std::min(kPortfolioLength, order.size()), reached);
    for (const Portfolio& portfolio : portfolios()) {
      if (portfolio.tries <= order.size()) {
        scores.clear();
        score_order(input_.evaluated, order, portfolio.tries, scores);
        add(portfolio.key, portfolio.name, portfolio.tries, scores);
      }
    }
  }

  void add_vendors() {
    std::map<std::string, std::map<std::uint32_t, double>> by_name;
    for (const Dataset::Baseline& baseline : input_.dataset.baselines()) {
      if (baseline.time_ns > 0) {
        by_name[baseline.name].insert_or_assign(baseline.problem,
                                                static_cast<double>(baseline.time_ns));
      }
    }
    for (const auto& [name, time_of_problem] : by_name) {
      std::vector<ProblemScore> scores;
      for (const std::uint32_t problem : input_.evaluated) {
        if (const auto found = time_of_problem.find(problem); found != time_of_problem.end()) {
          scores.push_back(score_time(input_.times, problem, found->second));
        }
      }
      add(concat("vendor_", name), concat("vendor's choice: ", name), 1, scores);
    }
  }

  // Adds the best single config for exactly these problems, which nobody can know beforehand.
  void add_hindsight() {
    std::vector<bool> use(input_.dataset.problems().size(), false);
    for (const std::uint32_t problem : input_.evaluated) {
      use[problem] = true;
    }
    const TrainedBaselines hindsight(input_.dataset, input_.times, use, space_.get());
    std::vector<const Config*> order;
    for (const std::uint32_t config : hindsight.by_mean()) {
      order.push_back(&input_.dataset.configs()[config]);
    }
    std::vector<ProblemScore> scores;
    score_order(input_.evaluated, order, 1, scores);
    add("best_single_config_in_hindsight", "best single config in hindsight", 1, scores);
  }

  const BaselineInput& input_;
  SummaryOptions summary_;
  std::shared_ptr<const CompiledSpace> space_;
  std::unordered_map<Config, std::uint32_t> config_ids_;
  const Dataset* training_ = nullptr;
  std::unique_ptr<MeasuredTimes> training_times_;  // null in cross-validation: uses the input's
  std::vector<Part> parts_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> best_first_;
  std::vector<PickerResult> results_;
  std::vector<PortfolioPoint> curve_;
};

}  // namespace

BaselineResults evaluate_baselines(const BaselineInput& input) {
  return Baselines(input).evaluate();
}

}  // namespace foretune::evaluate_internal
