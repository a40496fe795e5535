// Boosted trees that learn from the measurements of a search, and where a model of other problems
// is given begin with what it says: the model that the strategy `guided` walks along. What is
// learnt is the speed as a part of the fastest known, so that fast configs are told apart rather
// than slow ones; the score is its negative.
//
//   FORETUNE_TRY(GuideRows rows, table_rows(*table, problem, hardware));
//   TreeGuide guide(std::move(rows));
//   create_strategy("guided", problem, *space, {.learner = &guide});
//
// What is known to fail scores as infinite, and is not measured.
// Thread safety: one thread. Cost: a lesson takes some milliseconds for hundred measurements, a
// score a few microseconds the first time.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/features/feature_table.h"
#include "foretune/hardware/hardware.h"
#include "foretune/models/infer/model_file.h"
#include "foretune/models/train/regression.h"
#include "foretune/problem/problem.h"
#include "foretune/search/strategy.h"

namespace foretune {

// How configs of one problem become rows of numbers.
struct GuideRows {
  std::size_t columns = 0;
  // Writes `columns` values; false where the config is known to fail, and then they mean nothing.
  std::function<bool(const Config& config, std::span<double> row)> write;
};
// The columns of both and of configs. The table has to outlive the rows.
GuideRows table_rows(const FeatureTable& table, const Problem& problem, const Hardware& hardware);

// The natural logarithm of a config's time over the best, as others taught it; empty: nobody did.
using GuidePrior = std::function<double(const Config& config, std::span<const double> row)>;
// Asks a model, which has to outlive the prior. It may be of another type of problems, where its
// feature table describes both. Errors: kMismatch for a model whose features do not describe the
// problem, kUnsupported for one whose target is not relative-log.
Result<GuidePrior> model_prior(const Model& model, const Problem& problem);

struct GuideOptions {
  RegressionOptions regression{.trees = 30, .leaves = 15, .learning_rate = 0.3};
  std::size_t least_trials = 12;  // fewer teach nothing that a prior does not know better
  // So many models, each of other draws of the trials; a config counts as so many of their standard
  // deviations faster than they say in the mean: what is not known well is worth a look.
  std::size_t models = 8;
  double optimism = 1.5;
};

class TreeGuide final : public ConfigLearner {
 public:
  explicit TreeGuide(GuideRows rows, GuideOptions options = {}, GuidePrior prior = {});

  Status learn(std::span<const Trial> trials) override;
  std::vector<double> score(std::span<const Config> configs) override;

 private:
  struct Known {
    bool may_run = false;
    std::vector<double> row;
    double prior = 0;
    std::size_t lesson = 0;  // that `score` is of
    double score = 0;
  };
  // References stay valid.
  Known& known(const Config& config);
  [[nodiscard]] double predict(const Known& known) const;

  GuideRows rows_;
  GuideOptions options_;
  GuidePrior prior_;
  std::vector<Regression> models_;
  std::size_t lessons_ = 0;
  std::unordered_map<Config, Known> known_;
};

// The least of what the trials have; infinite where none has a value.
double best_value(std::span<const Trial> trials);

}  // namespace foretune
