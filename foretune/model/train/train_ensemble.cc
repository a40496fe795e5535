#include "foretune/model/train/train_ensemble.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/model/ensemble/ensemble_body.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/network/network_body.h"
#include "foretune/model/train/held_out.h"
#include "foretune/model/train/train_network.h"
#include "foretune/model/train/training_set.h"

namespace foretune {
namespace {

using train_internal::make_training_set;
using train_internal::TrainingSet;

constexpr std::array kShares{0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};

// Mixes the held-out scores of both models, per example of the set.
class Mixture {
 public:
  Mixture(const TrainingSet& set, const TrainResult& trees, const TrainResult& networks)
      : set_(set), trees_(trees), networks_(networks) {}

  // Returns the mixed scores of the examples inside or outside of one fold; all others are NaN. A
  // negative fold means all examples.
  [[nodiscard]] std::vector<double> scores(double share, std::int64_t fold, bool is_inside) const {
    std::vector<double> out(set_.size(), std::numeric_limits<double>::quiet_NaN());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const bool is_of_fold = trees_.fold_of_problem[set_.problem[i]] == fold;
      if (fold < 0 || is_of_fold == is_inside) {
        const double of_trees = trees_.held_out_scores[set_.row[i]];
        out[i] = of_trees + share * (networks_.held_out_scores[set_.row[i]] - of_trees);
      }
    }
    return out;
  }

  // Returns the networks' share whose picks are best outside of the fold.
  [[nodiscard]] double best_share(std::int64_t fold) const {
    double best = 0;
    double efficiency = -1;
    for (const double share : kShares) {
      const double found =
          held_out_metrics(set_, scores(share, fold, false), false).mean_efficiency;
      if (found > efficiency) {
        efficiency = found;
        best = share;
      }
    }
    return best;
  }

  // Scores every fold with the share that is best on the others.
  [[nodiscard]] std::vector<double> honest_scores() const {
    std::vector<double> out(set_.size(), std::numeric_limits<double>::quiet_NaN());
    const auto folds = static_cast<std::int64_t>(
        1 + *std::max_element(trees_.fold_of_problem.begin(), trees_.fold_of_problem.end()));
    for (std::int64_t fold = 0; fold < folds; ++fold) {
      const std::vector<double> own = scores(best_share(fold), fold, true);
      for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = std::isfinite(own[i]) ? own[i] : out[i];
      }
    }
    return out;
  }

 private:
  const TrainingSet& set_;
  const TrainResult& trees_;
  const TrainResult& networks_;
};

Result<TrainResult> train_partner(const Dataset& dataset, const TrainOptions& options,
                                  const ProgressHook& progress) {
  for (const ModelTypeEntry* const entry : model_types()) {
    if (entry->name == options.network.partner && entry->name != "gbdt" &&
        entry->name != "ensemble") {
      return entry->train(dataset, options, progress);
    }
  }
  return fail(ErrorCode::kInvalidArgument, "there is no network '", options.network.partner,
              "' for an ensemble");
}

}  // namespace

Result<MixedScores> mix_held_out(const Dataset& dataset, const TrainResult& trees,
                                 const TrainResult& networks) {
  FORETUNE_TRY(const FeatureTable* const table, feature_table_of(trees.model));
  FORETUNE_TRY(const TrainingSet set, make_training_set(dataset, *table, 0));
  const Mixture mixture(set, trees, networks);
  MixedScores out{
      .scores = std::vector<double>(dataset.size(), std::numeric_limits<double>::quiet_NaN()),
      .share = mixture.best_share(-1)};
  const std::vector<double> scores = mixture.honest_scores();
  for (std::size_t i = 0; i < set.size(); ++i) {
    out.scores[set.row[i]] = scores[i];
  }
  out.metrics = held_out_metrics(set, scores, trees.target == Target::kLog).named();
  return out;
}

Result<TrainResult> train_ensemble(const Dataset& dataset, const TrainOptions& options,
                                   const ProgressHook& progress) {
  const bool is_time = options.target == Target::kRelativeLog || options.target == Target::kLog;
  if (options.folds < 2 || !options.held_out || !is_time || options.choose_target) {
    return fail(ErrorCode::kInvalidArgument,
                "an ensemble needs folds, to see how trees and networks are mixed best, and the "
                "target relative-log or log");
  }
  // The training that may fail early comes first.
  FORETUNE_TRY(TrainResult networks, train_partner(dataset, options, progress));
  if (networks_of(networks.model).empty()) {
    return fail(ErrorCode::kInvalidArgument, "an ensemble mixes trees with networks, and ",
                options.network.partner, " gives a model of kind '", networks.model.kind, "'");
  }
  FORETUNE_TRY(TrainResult out, train_gbdt(dataset, options, progress));
  FORETUNE_TRY(MixedScores mixed, mix_held_out(dataset, out, networks));
  const auto named = [](const std::vector<std::pair<std::string, double>>& metrics,
                        std::string_view name) {
    const auto found = std::find_if(metrics.begin(), metrics.end(),
                                    [&](const auto& metric) { return metric.first == name; });
    return found == metrics.end() ? 0 : found->second;
  };
  std::vector<std::pair<std::string, double>> metrics = mixed.metrics;
  metrics.emplace_back("network_share", mixed.share);
  metrics.emplace_back("trees_mean_efficiency", named(out.metrics, "mean_efficiency"));
  metrics.emplace_back("networks_mean_efficiency", named(networks.metrics, "mean_efficiency"));
  nlohmann::ordered_json card;
  card["kind"] = "ensemble";
  card["network_share"] = mixed.share;
  for (const auto& [name, value] : metrics) {
    card["held_out"]["metrics"][name] = value;
  }
  card["trees"] = nlohmann::ordered_json::parse(out.model.card_json);
  card["networks"] = nlohmann::ordered_json::parse(networks.model.card_json);
  out.model.card_json = card.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  set_ensemble(out.model, {.forests = forests_of(out.model),
                           .networks = networks_of(networks.model),
                           .network_share = mixed.share});
  out.model.residual_std = named(mixed.metrics, "rmse_log");
  out.held_out_scores = std::move(mixed.scores);
  out.metrics = std::move(metrics);
  out.folds.clear();
  return out;
}

}  // namespace foretune
