#include "foretune/model/train/internal/cross_validation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "foretune/base/hash.h"
#include "foretune/base/rng.h"
#include "foretune/model/train/combine_forests.h"
#include "foretune/model/train/internal/mining.h"
#include "foretune/model/train/internal/side_by_side.h"

namespace foretune::train_internal {
namespace {

// With all data a little more trees than with a fold less.
constexpr double kFinalTreesFactor = 1.1;

// The problems of these examples, each once, in ascending order.
std::vector<std::uint32_t> problems_of(const TrainingSet& set,
                                       std::span<const std::uint32_t> rows) {
  std::vector<std::uint32_t> out;
  for (const std::uint32_t row : rows) {
    out.push_back(set.problem[row]);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<std::uint32_t> all_rows(const TrainingSet& set) {
  std::vector<std::uint32_t> rows(set.size());
  std::iota(rows.begin(), rows.end(), 0U);
  return rows;
}

Rows split_rows(const TrainingSet& set, std::span<const std::uint32_t> rows,
                const std::vector<std::uint32_t>& fold_of_problem, std::uint32_t fold) {
  Rows out;
  for (const std::uint32_t row : rows) {
    (fold_of_problem[set.problem[row]] == fold ? out.valid : out.train).push_back(row);
  }
  return out;
}

// Folds of the problems of `rows`; fewer than wanted when there are fewer groups. None below two,
// or where a fold would leave too few examples to learn from.
Folds deal(const Dataset& dataset, const TrainingSet& set, std::span<const std::uint32_t> rows,
           std::uint32_t wanted, GroupKey key, Rng& rng) {
  const std::vector<std::uint32_t> used = problems_of(set, rows);
  std::vector<Problem> problems;
  std::unordered_set<std::uint64_t> groups;
  for (const std::uint32_t problem : used) {
    problems.push_back(dataset.problems()[problem]);
    groups.insert(group_of(problems.back(), key));
  }
  Folds out;
  out.of_problem.assign(dataset.problems().size(), 0);
  const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(groups.size(), wanted));
  if (count < 2) {
    return out;
  }
  // Only problems with something to learn are dealt: a fold without any would say nothing.
  const std::vector<std::uint32_t> dealt = group_folds(problems, count, rng, key);
  for (std::size_t i = 0; i < used.size(); ++i) {
    out.of_problem[used[i]] = dealt[i];
  }
  for (std::uint32_t fold = 0; fold < count; ++fold) {
    if (split_rows(set, rows, out.of_problem, fold).train.size() < kFewestExamples) {
      return {.count = 0, .of_problem = std::vector<std::uint32_t>(out.of_problem.size(), 0)};
    }
  }
  out.count = count;
  return out;
}

// The booster learns what is left after the offset; the forest carries it in its first tree.
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

}  // namespace

Folds deal_folds(const Dataset& dataset, const TrainingSet& set, const TrainOptions& options) {
  Rng rng = Rng(options.seed).split(hash64("folds"));
  return deal(dataset, set, all_rows(set), options.folds, options.group_key, rng);
}

std::size_t count_groups(const Dataset& dataset, const TrainingSet& set,
                         std::span<const std::uint32_t> rows, GroupKey key) {
  std::unordered_set<std::uint64_t> groups;
  for (const std::uint32_t problem : problems_of(set, rows)) {
    groups.insert(group_of(dataset.problems()[problem], key));
  }
  return groups.size();
}

Rows ForestTrainer::rows_of_fold(std::uint32_t fold) const {
  return split_rows(set_, all_rows(set_), folds_.of_problem, fold);
}

BoostRun ForestTrainer::run(const Learned& learned, std::string stage, std::uint32_t forest,
                            const ProgressHook& progress) const {
  return {.set = set_,
          .learned = learned,
          .options = options_,
          .weight = set_.weight,
          .base = {},
          .problem_weight = {},
          .seed = options_.seed + forest,
          .stage = std::move(stage),
          .progress = progress};
}

Status ForestTrainer::side_by_side(
    std::size_t count, const std::function<Status(std::size_t, const ProgressHook&)>& task) const {
  return run_side_by_side(count, options_.gbdt.threads, progress_, task);
}

Result<Boosted> ForestTrainer::best_of_fold(const Learned& learned, std::uint32_t fold,
                                            std::span<const float> weight) const {
  BoostRun settings = run(learned, concat("trying on fold ", fold + 1), 0, progress_);
  settings.weight = weight;
  return boost(settings, rows_of_fold(fold), options_.gbdt.trees, true);
}

Result<CrossValidated> ForestTrainer::cross_validate(const Learned& learned) const {
  std::array<std::uint32_t, 2> trees{};
  FORETUNE_TRY_STATUS(
      side_by_side(2, [&](std::size_t fold, const ProgressHook& progress) -> Status {
        const std::string stage = concat("choosing the number of trees on fold ", fold + 1);
        FORETUNE_TRY(const Boosted stopped, boost(run(learned, stage, 0, progress),
                                                  rows_of_fold(static_cast<std::uint32_t>(fold)),
                                                  options_.gbdt.trees, true));
        trees.at(fold) = std::max(1U, stopped.best_trees);
        return {};
      }));
  CrossValidated out;
  out.trees = std::min(options_.gbdt.trees,
                       static_cast<std::uint32_t>(std::lround(
                           kFinalTreesFactor * 0.5 * static_cast<double>(trees[0] + trees[1]))));
  if (options_.held_out) {
    FORETUNE_TRY(out.predictions, held_out_predictions(learned, trees));
  }
  return out;
}

Result<std::vector<double>> ForestTrainer::held_out_predictions(
    const Learned& learned, const std::array<std::uint32_t, 2>& trees) const {
  struct Fold {
    Rows rows;
    std::string stage;
    std::uint32_t trees = 0;
    std::vector<float> weight;
    std::vector<std::vector<double>> predictions;  // of each forest
  };
  std::vector<Fold> folds(folds_.count);
  FORETUNE_TRY_STATUS(
      side_by_side(folds.size(), [&](std::size_t i, const ProgressHook& progress) -> Status {
        Fold& fold = folds[i];
        fold.rows = rows_of_fold(static_cast<std::uint32_t>(i));
        fold.stage = concat("fold ", i + 1, " of ", folds.size());
        fold.trees = trees.at(i == 0 ? 1 : 0);
        fold.predictions.resize(options_.forests);
        FORETUNE_TRY(fold.weight, mine(learned, fold.rows.train, fold.trees, fold.stage, progress));
        return {};
      }));
  FORETUNE_TRY_STATUS(side_by_side(
      folds.size() * options_.forests, [&](std::size_t i, const ProgressHook& progress) -> Status {
        Fold& fold = folds[i / options_.forests];
        const std::size_t forest = i % options_.forests;
        BoostRun settings = run(learned, fold.stage, static_cast<std::uint32_t>(forest), progress);
        settings.problem_weight = fold.weight;
        FORETUNE_TRY(Boosted boosted, boost(settings, fold.rows, fold.trees, false));
        fold.predictions[forest] = std::move(boosted.valid_predictions);
        return {};
      }));
  std::vector<double> out(set_.size(), std::numeric_limits<double>::quiet_NaN());
  for (const Fold& fold : folds) {
    for (std::size_t i = 0; i < fold.rows.valid.size(); ++i) {
      double sum = 0;
      for (const std::vector<double>& of_forest : fold.predictions) {
        sum += of_forest[i];
      }
      out[fold.rows.valid[i]] = sum / options_.forests;
    }
  }
  return out;
}

Result<std::vector<float>> ForestTrainer::mine(const Learned& learned,
                                               const std::vector<std::uint32_t>& rows,
                                               std::uint32_t trees, const std::string& stage,
                                               const ProgressHook& progress) const {
  const MiningOptions& mining = options_.mining;
  std::vector<float> weight;
  Rng rng = Rng(options_.seed).split(hash64("mining"));
  for (std::uint32_t round = 0; round < mining.rounds; ++round) {
    const Folds inner = deal(dataset_, set_, rows, mining.folds, options_.group_key, rng);
    if (inner.count == 0) {
      break;
    }
    weight.resize(dataset_.problems().size(), 1.0F);
    std::map<std::uint32_t, double> regret;
    for (std::uint32_t fold = 0; fold < inner.count; ++fold) {
      const Rows parts = split_rows(set_, rows, inner.of_problem, fold);
      BoostRun settings =
          run(learned, concat(stage, ", mining ", round + 1, ".", fold + 1), 0, progress);
      settings.problem_weight = weight;
      FORETUNE_TRY(const Boosted boosted, boost(settings, parts, trees, false));
      std::vector<double> scores = boosted.valid_predictions;
      for (double& score : scores) {
        score *= score_sign(learned, options_.objective);
      }
      regret.merge(regrets(set_, parts.valid, scores));
    }
    raise_hard(regret, mining, weight);
  }
  return weight;
}

Result<FinalForests> ForestTrainer::final_forests(const Learned& learned, std::uint32_t trees,
                                                  const std::vector<Forest>& start) const {
  const Rows rows{.train = all_rows(set_), .valid = {}};
  FORETUNE_TRY(const std::vector<float> weight,
               mine(learned, rows.train, trees, "final model", progress_));
  FinalForests out;
  out.forests.resize(options_.forests);
  std::vector<std::vector<double>> gains(options_.forests);
  FORETUNE_TRY_STATUS(
      side_by_side(options_.forests, [&](std::size_t i, const ProgressHook& progress) -> Status {
        const std::vector<double> base =
            start.empty() ? std::vector<double>() : predictions_of(start[i], set_);
        BoostRun settings = run(learned, "final model", static_cast<std::uint32_t>(i), progress);
        settings.base = base;
        settings.problem_weight = weight;
        FORETUNE_TRY(const Boosted boosted, boost(settings, rows, trees, false));
        FORETUNE_TRY(out.forests[i], boosted.booster->forest(0));
        FORETUNE_TRY(gains[i], boosted.booster->gains());
        if (!boosted.base.trees.empty()) {
          out.forests[i] = joined(boosted.base, out.forests[i]);
        } else if (start.empty()) {
          add_offset(out.forests[i], boosted.offset);
        } else {
          out.forests[i] = joined(start[i], out.forests[i]);
        }
        return {};
      }));
  out.gains.assign(set_.matrix.columns, 0.0);
  for (const std::vector<double>& of_forest : gains) {
    for (std::size_t column = 0; column < of_forest.size(); ++column) {
      out.gains[column] += of_forest[column];
    }
  }
  return out;
}

}  // namespace foretune::train_internal
