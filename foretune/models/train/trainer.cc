#include "foretune/models/train/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/statistics.h"
#include "foretune/dataset/split.h"
#include "foretune/models/train/held_out.h"
#include "foretune/models/train/lightgbm_booster.h"
#include "foretune/models/train/model_card.h"
#include "foretune/models/train/training_set.h"
#include "foretune/space/parametric_space.h"

namespace foretune {

using train_internal::Booster;
using train_internal::CardFacts;
using train_internal::HeldOutMetrics;
using train_internal::TrainingSet;

namespace {

// Candidates that a model carries at most; above, only the measured ones.
constexpr std::size_t kMaxPool = 16384;
constexpr std::uint32_t kTreesWithoutFolds = 300;
constexpr std::uint32_t kMaxForests = 64;
// With all data a little more trees than with a fold less.
constexpr double kFinalTreesFactor = 1.1;

Result<const FeatureTable*> table_for(const Dataset& dataset, const std::string& name) {
  const DatasetHeader& header = dataset.header();
  if (!name.empty()) {
    FORETUNE_TRY(const FeatureTable* table, find_feature_table(name));
    if (const Support support = table->supports(header.problem_type, header.config_schema);
        !support) {
      return fail(ErrorCode::kMismatch, support.reason());
    }
    return table;
  }
  for (const FeatureTable* table : feature_tables()) {
    if (table->supports(header.problem_type, header.config_schema)) {
      return table;
    }
  }
  return fail(ErrorCode::kUnsupported, "no feature table of this version describes configs of ",
              header.config_schema.name, " v", header.config_schema.version);
}

std::string lightgbm_parameters(const GbdtOptions& options, std::uint64_t seed) {
  return concat(
      "objective=custom boosting=gbdt verbosity=-1 deterministic=true force_row_wise=true",
      " num_threads=", options.threads, " num_leaves=", options.leaves,
      " learning_rate=", options.learning_rate, " min_data_in_leaf=", options.min_rows_per_leaf,
      " feature_fraction=", options.feature_fraction,
      " bagging_fraction=", options.bagging_fraction, " bagging_freq=", options.bagging_frequency,
      " lambda_l2=", options.lambda_l2, " max_bin=", options.max_bins,
      " min_data_in_bin=1 seed=", seed & 0x7fffffffU);
}

struct Rows {
  std::vector<std::uint32_t> train;
  std::vector<std::uint32_t> valid;
};

// What one boosting run needs beside its rows.
struct Run {
  const TrainingSet& set;
  const std::vector<float>& target;
  const GbdtOptions& gbdt;
  std::string parameters;
  std::string stage;
  const ProgressHook& progress;
};

double weighted_mean(const Run& run, std::span<const std::uint32_t> rows) {
  double sum = 0;
  double weights = 0;
  for (const std::uint32_t row : rows) {
    if (!run.set.censored[row]) {
      sum += static_cast<double>(run.set.weight[row]) * static_cast<double>(run.target[row]);
      weights += static_cast<double>(run.set.weight[row]);
    }
  }
  return weights > 0 ? sum / weights : 0;
}

// Squared error; a censored row only pulls while the prediction lies below its bound (the one-sided
// loss of a Tobit model with the likelihood's tail replaced by a hinge).
class Loss {
 public:
  Loss(const Run& run, std::span<const std::uint32_t> rows, double offset)
      : run_(run), rows_(rows), offset_(offset) {}

  void gradients(std::span<const double> predictions, std::vector<float>& gradient,
                 std::vector<float>& hessian) const {
    gradient.resize(rows_.size());
    hessian.resize(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double error = error_of(i, predictions[i]);
      const auto weight = static_cast<double>(run_.set.weight[rows_[i]]);
      gradient[i] = static_cast<float>(weight * error);
      hessian[i] = static_cast<float>(weight);
    }
  }

  [[nodiscard]] double mean(std::span<const double> predictions) const {
    double sum = 0;
    double weights = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double error = error_of(i, predictions[i]);
      const auto weight = static_cast<double>(run_.set.weight[rows_[i]]);
      sum += weight * error * error;
      weights += weight;
    }
    return weights > 0 ? sum / weights : 0;
  }

 private:
  [[nodiscard]] double error_of(std::size_t i, double prediction) const {
    const std::uint32_t row = rows_[i];
    const double error = prediction + offset_ - static_cast<double>(run_.target[row]);
    return run_.set.censored[row] ? std::min(0.0, error) : error;
  }

  const Run& run_;
  std::span<const std::uint32_t> rows_;
  double offset_;
};

struct Boosted {
  std::unique_ptr<Booster> booster;
  double offset = 0;
  std::uint32_t trees = 0;       // in the booster
  std::uint32_t best_trees = 0;  // by the loss of the validation rows
  std::vector<double> valid_scores;
};

// With `early_stopping`, stops when the validation loss has not improved for a while.
Result<Boosted> boost(const Run& run, const Rows& rows, std::uint32_t trees, bool early_stopping) {
  Boosted out;
  out.offset = weighted_mean(run, rows.train);
  FORETUNE_TRY(out.booster,
               Booster::create(run.set.matrix, rows.train, rows.valid, run.parameters));
  const Loss train_loss(run, rows.train, out.offset);
  const Loss valid_loss(run, rows.valid, out.offset);
  std::vector<double> predictions(rows.train.size(), 0.0);
  std::vector<float> gradient;
  std::vector<float> hessian;
  double best = std::numeric_limits<double>::infinity();
  for (std::uint32_t tree = 0; tree < trees; ++tree) {
    train_loss.gradients(predictions, gradient, hessian);
    FORETUNE_TRY(const bool grew, out.booster->update(gradient, hessian));
    if (!grew) {
      break;
    }
    out.trees = tree + 1;
    FORETUNE_TRY_STATUS(out.booster->predictions(0, predictions));
    double loss = 0;
    if (early_stopping) {
      FORETUNE_TRY_STATUS(out.booster->predictions(1, out.valid_scores));
      loss = valid_loss.mean(out.valid_scores);
      if (loss < best) {
        best = loss;
        out.best_trees = out.trees;
      } else if (out.trees - out.best_trees >= run.gbdt.early_stopping_rounds) {
        break;
      }
    } else if (tree % 25 == 0) {
      loss = train_loss.mean(predictions);
    }
    if (run.progress && (early_stopping || tree % 25 == 0) &&
        !run.progress({run.stage, out.trees, trees, loss})) {
      return fail(ErrorCode::kCancelled, "training was stopped");
    }
  }
  if (!rows.valid.empty()) {
    FORETUNE_TRY_STATUS(out.booster->predictions(1, out.valid_scores));
    for (double& score : out.valid_scores) {
      score += out.offset;
    }
  }
  return out;
}

Rows split_rows(const TrainingSet& set, std::span<const std::uint32_t> fold_of_problem,
                std::uint32_t fold) {
  Rows rows;
  for (std::uint32_t i = 0; i < set.size(); ++i) {
    (fold_of_problem[set.problem[i]] == fold ? rows.valid : rows.train).push_back(i);
  }
  return rows;
}

// The booster learns what is left after the offset; the model carries it in its first tree.
void add_offset(Forest& forest, double offset) {
  if (forest.trees.empty()) {
    forest.trees.push_back({.first_node = 0, .node_count = 0, .first_leaf = 0, .leaf_count = 1});
    forest.leaf_value.push_back(offset);
    return;
  }
  const Forest::Tree& first = forest.trees.front();
  for (std::uint32_t leaf = 0; leaf < first.leaf_count; ++leaf) {
    forest.leaf_value[first.first_leaf + leaf] += offset;
  }
}

struct CrossValidated {
  std::vector<double> scores;  // per example
  std::uint32_t trees = 0;     // for the final model
  HeldOutMetrics metrics;
};

class Trainer {
 public:
  Trainer(const Dataset& dataset, const TrainingSet& set, const TrainOptions& options,
          std::uint32_t folds, std::vector<std::uint32_t> fold_of_problem,
          const ProgressHook& progress)
      : dataset_(dataset),
        set_(set),
        options_(options),
        folds_(folds),
        fold_of_problem_(std::move(fold_of_problem)),
        progress_(progress) {}

  // The number of trees is settled on folds 0 and 1, each for the others, so that no fold's figures
  // rest on a number that was chosen on it.
  Result<CrossValidated> cross_validate(Target target) const {
    std::array<std::uint32_t, 2> trees{};
    for (std::uint32_t fold = 0; fold < 2; ++fold) {
      FORETUNE_TRY(const Boosted stopped,
                   boost(run(target, concat("choosing the number of trees on fold ", fold + 1)),
                         split_rows(set_, fold_of_problem_, fold), options_.gbdt.trees, true));
      trees.at(fold) = std::max(1U, stopped.best_trees);
    }
    CrossValidated out;
    out.scores.assign(set_.size(), std::numeric_limits<double>::quiet_NaN());
    for (std::uint32_t fold = 0; fold < folds_; ++fold) {
      const Rows rows = split_rows(set_, fold_of_problem_, fold);
      std::vector<double> sums(rows.valid.size(), 0.0);
      for (std::uint32_t forest = 0; forest < options_.forests; ++forest) {
        FORETUNE_TRY(const Boosted boosted,
                     boost(run(target, concat("fold ", fold + 1, " of ", folds_), forest), rows,
                           trees.at(fold == 0 ? 1 : 0), false));
        for (std::size_t i = 0; i < sums.size(); ++i) {
          sums[i] += boosted.valid_scores[i];
        }
      }
      for (std::size_t i = 0; i < sums.size(); ++i) {
        out.scores[rows.valid[i]] = sums[i] / options_.forests;
      }
    }
    out.trees = std::min(options_.gbdt.trees,
                         static_cast<std::uint32_t>(std::lround(
                             kFinalTreesFactor * 0.5 * static_cast<double>(trees[0] + trees[1]))));
    out.metrics = train_internal::held_out_metrics(set_, out.scores, target);
    return out;
  }

  Result<std::vector<Forest>> final_forests(Target target, std::uint32_t trees) const {
    Rows rows;
    rows.train.resize(set_.size());
    std::iota(rows.train.begin(), rows.train.end(), 0U);
    std::vector<Forest> forests;
    for (std::uint32_t i = 0; i < options_.forests; ++i) {
      FORETUNE_TRY(const Boosted boosted, boost(run(target, "final model", i), rows, trees, false));
      FORETUNE_TRY(Forest forest, boosted.booster->forest(0));
      add_offset(forest, boosted.offset);
      forests.push_back(std::move(forest));
    }
    return forests;
  }

 private:
  [[nodiscard]] Run run(Target target, std::string stage, std::uint32_t forest = 0) const {
    return {.set = set_,
            .target = set_.target(target),
            .gbdt = options_.gbdt,
            .parameters = lightgbm_parameters(options_.gbdt, options_.seed + forest),
            .stage = std::move(stage),
            .progress = progress_};
  }

  const Dataset& dataset_;
  const TrainingSet& set_;
  const TrainOptions& options_;
  std::uint32_t folds_;
  std::vector<std::uint32_t> fold_of_problem_;
  const ProgressHook& progress_;
};

// Every config that no rule about configs alone forbids, when the space lists its values and there
// are not too many; else nothing.
std::vector<Config> legal_configs(const CompiledSpace& space, const Hardware& hardware) {
  const auto& domains = space.definition().domains;
  std::vector<Config> out;
  std::vector<std::size_t> position(domains.size(), 0);
  Config config{.schema = space.schema_id(), .words = Config::Words(domains.size())};
  double combinations = domains.empty() ? 0 : 1;
  for (const auto& domain : domains) {
    combinations *= static_cast<double>(domain.size());
  }
  if (combinations == 0 || combinations > 2e6) {
    return out;
  }
  while (true) {
    for (std::size_t i = 0; i < domains.size(); ++i) {
      config.words[i] = domains[i][position[i]];
    }
    if (space.is_legal_config(config.words.view(), hardware)) {
      out.push_back(config);
      if (out.size() > kMaxPool) {
        return {};
      }
    }
    std::size_t i = 0;
    while (i < domains.size() && ++position[i] == domains[i].size()) {
      position[i++] = 0;
    }
    if (i == domains.size()) {
      return out;
    }
  }
}

// What the configs of the pool become on the problems of the data set: on a new problem the
// selector scores canonical forms, so those that a problem like it needs must be candidates too.
void add_canonical_forms(const CompiledSpace& space, const Dataset& dataset,
                         std::unordered_set<Config>& seen, std::vector<Config>& pool) {
  constexpr std::size_t kMostProblems = 128;
  const Hardware& hardware = dataset.header().fingerprint.hardware;
  const std::size_t count = dataset.problems().size();
  const std::size_t step = (count + kMostProblems - 1) / kMostProblems;
  const std::size_t given = pool.size();
  for (std::size_t p = 0; p < count && !space.definition().canonical.empty(); p += step) {
    const Problem& problem = dataset.problems()[p];
    for (std::size_t i = 0; i < given && pool.size() < kMaxPool; ++i) {
      if (space.is_legal(pool[i].words.view(), problem.fields(), hardware)) {
        Config form = space.canonical(pool[i], problem, hardware);
        if (seen.insert(form).second) {
          pool.push_back(std::move(form));
        }
      }
    }
  }
}

Result<std::vector<Config>> make_pool(const Dataset& dataset) {
  std::vector<bool> measured_ok(dataset.configs().size(), false);
  for (const Dataset::Row& row : dataset.rows()) {
    if (row.outcome == Outcome::kOk) {
      measured_ok[row.config] = true;
    }
  }
  std::vector<Config> pool;
  std::unordered_set<Config> seen;
  for (std::size_t i = 0; i < measured_ok.size(); ++i) {
    if (measured_ok[i] && seen.insert(dataset.configs()[i]).second) {
      pool.push_back(dataset.configs()[i]);
    }
  }
  if (!dataset.header().space_text.empty()) {
    FORETUNE_TRY(SpaceDefinition definition, SpaceDefinition::parse(dataset.header().space_text));
    FORETUNE_TRY(const auto space, CompiledSpace::create(std::move(definition)));
    std::vector<Config> all = legal_configs(*space, dataset.header().fingerprint.hardware);
    if (all.empty()) {
      add_canonical_forms(*space, dataset, seen, pool);
    }
    for (Config& config : all) {
      if (seen.insert(config).second) {
        pool.push_back(std::move(config));
      }
    }
  }
  // One order whatever the order of measuring was.
  std::sort(pool.begin(), pool.end());
  return pool;
}

std::vector<std::pair<double, double>> problem_ranges(const TrainingSet& set,
                                                      const FeatureTable& table) {
  const std::size_t columns = feature_count(table, FeatureKind::kProblem);
  std::vector<std::pair<double, double>> ranges(
      columns, {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()});
  for (std::size_t row = 0; row < set.size(); ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const double value = set.matrix.values[row * set.matrix.columns + column];
      ranges[column].first = std::min(ranges[column].first, value);
      ranges[column].second = std::max(ranges[column].second, value);
    }
  }
  return ranges;
}

std::uint32_t usable_folds(const Dataset& dataset, const TrainingSet& set, std::uint32_t wanted) {
  std::unordered_set<std::uint64_t> groups;
  for (const std::uint32_t problem : set.problem) {
    groups.insert(dataset.problems()[problem].group());
  }
  const std::uint32_t folds = std::min<std::uint32_t>(
      wanted, static_cast<std::uint32_t>(std::min<std::size_t>(groups.size(), 1000)));
  return folds < 2 ? 0 : folds;
}

Result<Model> make_model(const Dataset& dataset, const FeatureTable& table, const TrainingSet& set,
                         const TrainOptions& options) {
  Model model;
  const DatasetHeader& header = dataset.header();
  model.kind = "gbdt";
  model.family = header.family;
  model.problem_type = header.problem_type;
  model.problem_schema = find_problem_schema(header.problem_type)->id();
  model.config_schema = header.config_schema;
  model.space_text = header.space_text;
  model.feature_table = table.name();
  model.feature_table_id = feature_table_id(table);
  model.fingerprint = header.fingerprint;
  FORETUNE_TRY(model.pool, make_pool(dataset));
  std::unordered_map<Config, std::uint32_t> position;
  for (std::uint32_t i = 0; i < model.pool.size(); ++i) {
    position.emplace(model.pool[i], i);
  }
  for (const std::uint32_t config : greedy_portfolio(dataset, options.portfolio_size)) {
    model.portfolio.push_back(position.at(dataset.configs()[config]));
  }
  model.problem_range = problem_ranges(set, table);
  model.seed = options.seed;
  model.data_fingerprint = dataset.fingerprint();
  return model;
}

}  // namespace

Result<TrainResult> train_gbdt(const Dataset& dataset, const TrainOptions& options,
                               const ProgressHook& progress) {
  if (options.forests < 1 || options.forests > kMaxForests) {
    return fail(ErrorCode::kInvalidArgument, "a model of ", options.forests, " forests; 1 to ",
                kMaxForests, " make sense");
  }
  FORETUNE_TRY(const FeatureTable* const table, table_for(dataset, options.feature_table));
  FORETUNE_TRY(const TrainingSet set,
               train_internal::make_training_set(dataset, *table, options.weight_decay));
  Rng rng = Rng(options.seed).split(hash64("folds"));
  const std::uint32_t folds = usable_folds(dataset, set, options.folds);
  TrainResult result;
  result.fold_of_problem.assign(dataset.problems().size(), 0);
  if (folds > 0) {
    // Only problems with something to learn are dealt: a fold without any would say nothing.
    std::vector<std::uint32_t> used(set.problem);
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    std::vector<Problem> problems;
    for (const std::uint32_t problem : used) {
      problems.push_back(dataset.problems()[problem]);
    }
    const std::vector<std::uint32_t> dealt = group_folds(problems, folds, rng);
    for (std::size_t i = 0; i < used.size(); ++i) {
      result.fold_of_problem[used[i]] = dealt[i];
    }
  }
  const Trainer trainer(dataset, set, options, folds, result.fold_of_problem, progress);

  Target target = options.target;
  CardFacts facts{
      .options = options, .folds = folds, .examples = set.size(), .failed_rows = set.failed_rows};
  std::uint32_t trees = std::min(options.gbdt.trees, kTreesWithoutFolds);
  result.held_out_scores.assign(dataset.size(), std::numeric_limits<double>::quiet_NaN());
  if (folds > 0) {
    FORETUNE_TRY(CrossValidated chosen, trainer.cross_validate(target));
    if (options.choose_target) {
      const Target other = target == Target::kLog ? Target::kRelativeLog : Target::kLog;
      FORETUNE_TRY(CrossValidated alternative, trainer.cross_validate(other));
      facts.compared = {{target, chosen.metrics.mean_efficiency},
                        {other, alternative.metrics.mean_efficiency}};
      if (alternative.metrics.mean_efficiency > chosen.metrics.mean_efficiency) {
        chosen = std::move(alternative);
        target = other;
      }
    }
    trees = chosen.trees;
    result.metrics = chosen.metrics.named();
    for (std::size_t i = 0; i < set.size(); ++i) {
      result.held_out_scores[set.row[i]] = chosen.scores[i];
    }
    facts.residual_std = chosen.metrics.rmse_log;
  }
  FORETUNE_TRY(std::vector<Forest> forests, trainer.final_forests(target, trees));

  FORETUNE_TRY(result.model, make_model(dataset, *table, set, options));
  facts.target = target;
  facts.trees = static_cast<std::uint32_t>(forests[0].trees.size());
  facts.metrics = result.metrics;
  result.model.residual_std = facts.residual_std;
  result.model.target = target == Target::kLog ? "log" : "relative-log";
  result.model.card_json = train_internal::model_card(dataset, *table, forests[0], facts);
  result.model.forests = std::move(forests);
  return result;
}

std::span<const ModelTypeEntry> model_types() {
  static constexpr std::array kTypes{
      ModelTypeEntry{"gbdt", "gradient-boosted regression trees (LightGBM)", &train_gbdt}};
  return kTypes;
}

}  // namespace foretune
