#include "foretune/model/train/hyper_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "foretune/base/hash.h"
#include "foretune/base/rng.h"
#include "foretune/model/train/internal/cross_validation.h"
#include "foretune/model/train/internal/mining.h"
#include "foretune/model/train/internal/side_by_side.h"
#include "foretune/model/train/targets.h"
#include "foretune/model/train/training_set.h"

namespace foretune {
namespace {

using train_internal::Boosted;
using train_internal::deal_folds;
using train_internal::Folds;
using train_internal::ForestTrainer;
using train_internal::Learned;
using train_internal::learned_values;
using train_internal::regrets;
using train_internal::run_side_by_side;
using train_internal::score_sign;
using train_internal::training_data;
using train_internal::TrainingData;
using train_internal::TrainingSet;
using train_internal::weights_of;

constexpr std::size_t kBracket = 9;
constexpr std::size_t kKeepOneOf = 3;

double log_uniform(Rng& rng, double low, double high) {
  return low * std::exp(rng.uniform() * std::log(high / low));
}

HyperTrial draw(const TrainOptions& options, Rng& rng) {
  HyperTrial out{.gbdt = options.gbdt};
  out.gbdt.leaves = static_cast<std::uint32_t>(std::lround(log_uniform(rng, 15, 255)));
  out.gbdt.learning_rate = log_uniform(rng, 0.02, 0.2);
  out.gbdt.min_rows_per_leaf = static_cast<std::uint32_t>(std::lround(log_uniform(rng, 2, 50)));
  out.gbdt.feature_fraction = 0.4 + 0.6 * rng.uniform();
  out.gbdt.bagging_fraction = 0.5 + 0.5 * rng.uniform();
  out.gbdt.lambda_l2 = log_uniform(rng, 0.01, 10);
  out.weight_decay = 4 * rng.uniform();
  return out;
}

class Search {
 public:
  Search(const Dataset& dataset, const TrainingSet& set, const TrainOptions& options,
         Learned learned, Folds folds, const HyperBudget& budget, const ProgressHook& progress)
      : dataset_(dataset),
        set_(set),
        options_(options),
        learned_(std::move(learned)),
        folds_(std::move(folds)),
        budget_(budget),
        progress_(progress) {}

  Result<HyperSearch> run() {
    std::vector<HyperTrial> given{{.gbdt = options_.gbdt, .weight_decay = options_.weight_decay}};
    FORETUNE_TRY_STATUS(advance(given, folds_.count));
    std::vector<HyperTrial> done = given;
    std::vector<HyperTrial> dropped;
    Rng rng = Rng(options_.seed).split(hash64("hyper-parameters"));
    for (std::uint32_t drawn = 0; drawn < budget_.trials && !is_spent_;) {
      std::vector<HyperTrial> bracket;
      while (drawn < budget_.trials && bracket.size() < kBracket) {
        bracket.push_back(draw(options_, rng));
        ++drawn;
      }
      for (const std::uint32_t until : {1U, (folds_.count + 1) / 2, folds_.count}) {
        FORETUNE_TRY_STATUS(advance(bracket, until));
        if (until < folds_.count) {
          keep_best(bracket, dropped);
        }
      }
      for (HyperTrial& trial : bracket) {
        (trial.folds == folds_.count ? done : dropped).push_back(trial);
      }
    }
    return result(std::move(done), dropped);
  }

 private:
  HyperSearch result(std::vector<HyperTrial> done, const std::vector<HyperTrial>& dropped) const {
    const auto is_better = [](const HyperTrial& a, const HyperTrial& b) {
      return a.mean_efficiency > b.mean_efficiency;
    };
    HyperSearch out{.best = options_, .trials = {done.front()}, .folds = folds_.count};
    const HyperTrial best = *std::min_element(done.begin(), done.end(), is_better);
    if (best.folds == folds_.count) {
      out.best.gbdt = best.gbdt;
      out.best.weight_decay = best.weight_decay;
    }
    std::stable_sort(done.begin() + 1, done.end(), is_better);
    out.trials.insert(out.trials.end(), done.begin() + 1, done.end());
    for (const HyperTrial& trial : dropped) {
      if (trial.folds > 0) {
        out.trials.push_back(trial);
      }
    }
    return out;
  }

  // Tries all on folds up to `until`, as many side by side as there are threads, or stops where the
  // budget is spent.
  Status advance(std::vector<HyperTrial>& trials, std::uint32_t until) {
    const std::size_t at_once = std::max(1U, options_.gbdt.threads);
    for (std::size_t first = 0; first < trials.size(); first += at_once) {
      const std::size_t count = std::min(at_once, trials.size() - first);
      while (trials[first].folds < until) {
        is_spent_ = is_spent_ || (budget_.is_spent && budget_.is_spent());
        if (is_spent_) {
          return {};
        }
        FORETUNE_TRY_STATUS(run_side_by_side(
            count, options_.gbdt.threads, progress_,
            [&](std::size_t i, const ProgressHook& progress) -> Status {
              HyperTrial& trial = trials[first + i];
              FORETUNE_TRY(const double efficiency, efficiency_on(trial, trial.folds, progress));
              trial.mean_efficiency =
                  (trial.mean_efficiency * trial.folds + efficiency) / (trial.folds + 1);
              ++trial.folds;
              return {};
            }));
      }
    }
    return {};
  }

  static void keep_best(std::vector<HyperTrial>& trials, std::vector<HyperTrial>& dropped) {
    std::stable_sort(trials.begin(), trials.end(), [](const HyperTrial& a, const HyperTrial& b) {
      return std::pair(a.folds, a.mean_efficiency) > std::pair(b.folds, b.mean_efficiency);
    });
    const std::size_t kept = (trials.size() + kKeepOneOf - 1) / kKeepOneOf;
    dropped.insert(dropped.end(), trials.begin() + static_cast<std::ptrdiff_t>(kept), trials.end());
    trials.resize(kept);
  }

  [[nodiscard]] Result<double> efficiency_on(const HyperTrial& trial, std::uint32_t fold,
                                             const ProgressHook& progress) const {
    TrainOptions options = options_;
    options.gbdt = trial.gbdt;
    options.weight_decay = trial.weight_decay;
    const ForestTrainer trainer(dataset_, set_, options, folds_, progress);
    FORETUNE_TRY(Boosted boosted,
                 trainer.best_of_fold(learned_, fold, weights_of(set_, trial.weight_decay)));
    for (double& score : boosted.valid_predictions) {
      score *= score_sign(learned_, options.objective);
    }
    double sum = 0;
    const auto regret = regrets(set_, trainer.rows_of_fold(fold).valid, boosted.valid_predictions);
    for (const auto& [problem, value] : regret) {
      sum += std::exp(-value);
    }
    return sum / static_cast<double>(regret.size());
  }

  const Dataset& dataset_;
  const TrainingSet& set_;
  const TrainOptions& options_;
  Learned learned_;
  Folds folds_;
  const HyperBudget& budget_;
  const ProgressHook& progress_;
  bool is_spent_ = false;
};

}  // namespace

Result<HyperSearch> search_hyper_parameters(const Dataset& dataset, const TrainOptions& given,
                                            const HyperBudget& budget,
                                            const ProgressHook& progress) {
  if (budget.trials == 0) {
    return fail(ErrorCode::kInvalidArgument, "a search without trials finds nothing");
  }
  FORETUNE_TRY(const TrainOptions options, settled_options(given));
  FORETUNE_TRY(const TrainingData data, training_data(dataset, options));
  const TrainingSet& set = data.set;
  FORETUNE_TRY(Learned learned,
               learned_values(dataset, set, options.target, options.log_transform));
  TrainOptions of_folds = options;
  of_folds.seed = hash64("folds of the search", options.seed);
  Folds folds = deal_folds(dataset, set, of_folds);
  if (folds.count < 2) {
    return fail(ErrorCode::kInvalidArgument,
                "options can be compared on two folds or more; there are too few groups of "
                "problems, or no folds are wanted");
  }
  return Search(dataset, set, options, std::move(learned), std::move(folds), budget, progress)
      .run();
}

}  // namespace foretune
