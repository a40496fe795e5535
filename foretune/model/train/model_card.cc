#include "foretune/model/train/model_card.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <span>

#include "foretune/base/significant.h"
#include "foretune/base/text.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/version.h"

namespace foretune::train_internal {
namespace {

using Json = nlohmann::ordered_json;

// Counts the splits on each feature, most used first.
Json split_counts(const FeatureTable& table, const Forest& forest) {
  std::vector<std::pair<std::size_t, std::size_t>> counts;
  for (std::size_t i = 0; i < table.columns().size(); ++i) {
    counts.emplace_back(std::count(forest.feature.begin(), forest.feature.end(), i), i);
  }
  std::stable_sort(counts.begin(), counts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  Json out = Json::object();
  for (const auto& [count, column] : counts) {
    out[std::string(table.columns()[column].name)] = count;
  }
  return out;
}

// Begins the card of a model that was trained on a data set.
Json card_head(const Dataset& dataset, const FeatureTable& table, std::string_view kind,
               std::size_t examples, std::uint64_t failed_rows) {
  const DatasetHeader& header = dataset.header();
  Json card = begin_card(kind, header.family, header.fingerprint, table.name());
  card["data"] = {{"fingerprint", dataset.fingerprint().hex()},
                  {"problems", dataset.problems().size()},
                  {"measurements", dataset.size()},
                  {"examples", examples},
                  {"failed", failed_rows}};
  add_identifiers(dataset, card["data"]);
  return card;
}

Json held_out_json(std::uint32_t folds, GroupKey key,
                   const std::vector<std::pair<std::string, double>>& metrics) {
  Json held_out = Json::object();
  for (const auto& [name, value] : metrics) {
    held_out[name] = value;
  }
  return {{"folds", folds},
          {"split", key == GroupKey::kProblem ? "by group" : concat("by ", to_string(key))},
          {"metrics", held_out}};
}

// Returns the positions of at most kMaxPoints epochs and of the best one.
std::vector<std::size_t> kept_epochs(const NetworkCurve& curve) {
  constexpr std::size_t kMaxPoints = 100;
  const std::size_t count = curve.epochs.size();
  std::vector<std::size_t> out;
  if (count <= kMaxPoints) {
    out.resize(count);
    std::iota(out.begin(), out.end(), std::size_t{0});
    return out;
  }
  for (std::size_t i = 0; i < kMaxPoints; ++i) {
    out.push_back(i * (count - 1) / (kMaxPoints - 1));
  }
  const std::size_t best = curve.best_epoch - 1;
  if (const auto place = std::lower_bound(out.begin(), out.end(), best); *place != best) {
    out.insert(place, best);
  }
  return out;
}

// Rounds to five digits, which is more than a plot shows.
double rounded(double loss) { return parse_double(significant(loss, 5)).value_or(loss); }

Json curve_json(const NetworkCurve& curve) {
  Json out;
  if (curve.held_out_fold >= 0) {
    out["fold"] = curve.held_out_fold + 1;
  }
  out["network"] = curve.network + 1;
  out["epochs"] = curve.epochs.size();
  out["best_epoch"] = curve.best_epoch;
  out["epoch"] = Json::array();
  out["train_loss"] = Json::array();
  const bool has_stop =
      std::none_of(curve.epochs.begin(), curve.epochs.end(),
                   [](const TrainedNetwork::Epoch& epoch) { return std::isnan(epoch.stop_loss); });
  for (const std::size_t i : kept_epochs(curve)) {
    out["epoch"].push_back(i + 1);
    out["train_loss"].push_back(rounded(curve.epochs[i].train_loss));
    if (has_stop) {
      out["stop_loss"].push_back(rounded(curve.epochs[i].stop_loss));
    }
  }
  return out;
}

Json network_options(const NetworkOptions& network) {
  return {{"hidden_dims", network.hidden_dims},
          {"hidden_dim", network.hidden_dim},
          {"num_layers", network.num_layers},
          {"tower_layers", network.tower_layers},
          {"dot", network.dot},
          {"interaction", network.interaction},
          {"dropout", network.dropout},
          {"loss", network.loss},
          {"batch_size", network.batch_size},
          {"group_size", network.group_size},
          {"num_epochs", network.num_epochs},
          {"learning_rate", network.learning_rate},
          {"weight_decay", network.weight_decay},
          {"patience", network.patience},
          {"clip", network.clip},
          {"optimizer", network.optimizer},
          {"stop_share", network.stop_share},
          {"standardises", network.standardises},
          {"splits_by_sample", network.splits_by_sample}};
}

}  // namespace

Json begin_card(std::string_view kind, std::string_view family, const Fingerprint& fingerprint,
                std::string_view features) {
  Json card;
  card["foretune"] = kVersion;
  card["kind"] = kind;
  card["family"] = family;
  card["device"] = fingerprint.device;
  card["hardware"] = fingerprint.hardware.text();
  card["features"] = features;
  return card;
}

void add_identifiers(const Dataset& dataset, Json& data) {
  const std::span<const ProblemField> fields =
      find_problem_schema(dataset.header().problem_type)->fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].is_identifier) {
      std::set<std::int64_t> known;
      for (const Problem& problem : dataset.problems()) {
        known.insert(problem.field(i));
      }
      data["identifiers"][std::string(fields[i].name)] = known;
    }
  }
}

std::string network_card(const Dataset& dataset, const FeatureTable& table,
                         const NetworkCardFacts& facts) {
  const NetworkOptions& network = facts.options.network;
  Json card = card_head(dataset, table, facts.kind, facts.examples, facts.failed_rows);
  card["target"] = to_string(facts.options.target);
  card["architecture"] = facts.architecture;
  card["networks"] = network.networks;
  card["weights"] = facts.weights;
  card["int8_weights"] = network.int8_weights;
  if (facts.has_epochs) {
    card["libtorch"] = facts.libtorch;
    card["options"] = network_options(network);
  }
  card["options"]["row_weight_decay"] = facts.options.weight_decay;
  card["options"]["seed"] = facts.options.seed;
  card["held_out"] = held_out_json(facts.folds, facts.options.group_key, facts.metrics);
  if (facts.has_epochs) {
    card["training"]["curves"] = Json::array();
    for (const NetworkCurve& curve : facts.curves) {
      card["training"]["curves"].push_back(curve_json(curve));
    }
  }
  return card.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string model_card(const Dataset& dataset, const FeatureTable& table, const Forest& forest,
                       const CardFacts& facts) {
  const GbdtOptions& gbdt = facts.options.gbdt;
  Json card = card_head(dataset, table, "gbdt", facts.examples, facts.failed_rows);
  card["target"] = to_string(facts.target);
  card["objective"] = to_string(facts.options.objective);
  card["log1p"] = facts.log1p;
  card["score_factor"] = facts.score_factor;
  card["forests"] = facts.options.forests;
  card["trees"] = facts.trees;
  card["splits"] = forest.feature.size();
  card["options"] = {{"leaves", gbdt.leaves},
                     {"learning_rate", gbdt.learning_rate},
                     {"min_rows_per_leaf", gbdt.min_rows_per_leaf},
                     {"feature_fraction", gbdt.feature_fraction},
                     {"bagging_fraction", gbdt.bagging_fraction},
                     {"bagging_frequency", gbdt.bagging_frequency},
                     {"lambda_l2", gbdt.lambda_l2},
                     {"max_bins", gbdt.max_bins},
                     {"weight_decay", facts.options.weight_decay},
                     {"regret_decay", facts.options.regret_decay},
                     {"mining_rounds", facts.options.mining.rounds},
                     {"seed", facts.options.seed}};
  if (!facts.options.base_column.empty()) {
    card["base_feature"] = facts.options.base_column;
  }
  if (!facts.options.without_columns.empty()) {
    card["without_features"] = facts.options.without_columns;
  }
  if (!facts.options.more_candidates.empty()) {
    card["added_candidates"] = facts.options.more_candidates.size();
  }
  if (facts.options.warm_start != nullptr) {
    card["warm_start"] = {{"data", facts.options.warm_start->data_fingerprint.hex()},
                          {"trees", forests_of(*facts.options.warm_start)[0].trees.size()},
                          {"added", facts.options.warm_start_trees}};
  }
  card["held_out"] = held_out_json(facts.folds, facts.options.group_key, facts.metrics);
  if (!facts.compared.empty()) {
    Json compared = Json::object();
    for (const auto& [target, efficiency] : facts.compared) {
      compared[std::string(to_string(target))] = efficiency;
    }
    card["mean_efficiency_by_target"] = compared;
  }
  card["splits_by_feature"] = split_counts(table, forest);
  return card.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace foretune::train_internal
