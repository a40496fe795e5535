// Boosted trees that learn from the measurements of a search, and start from the predictions of a
// model of other problems where one is given. The strategy `guided` follows their scores. They
// learn the speed as a fraction of the fastest known, so that they distinguish fast configs rather
// than slow ones; the score is its negative.
//
//   FORETUNE_TRY(GuideRows rows, table_rows(*table, problem, hardware));
//   TreeGuide guide(std::move(rows));
//   create_strategy("guided", problem, *space, {.learner = &guide});
//
// A config that is known to fail has an infinite score, and is not measured.
// Thread safety: one thread. Cost: learning takes some milliseconds for a hundred measurements, a
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
#include "foretune/model/model_file.h"
#include "foretune/model/train/regression.h"
#include "foretune/problem/problem.h"
#include "foretune/search/strategy.h"

namespace foretune {

// Turns configs of one problem into rows of numbers.
struct GuideRows {
  std::size_t columns = 0;
  // Writes `columns` values. Returns false where the config is known to fail; then the values mean
  // nothing.
  std::function<bool(const Config& config, std::span<double> row)> write;
};
// Returns rows of the config and interaction columns. The table must outlive the rows.
GuideRows table_rows(const FeatureTable& table, const Problem& problem, const Hardware& hardware);

// Predicts the natural logarithm of a config's time over the best, learned from other problems;
// empty: no such prediction.
using GuidePrior = std::function<double(const Config& config, std::span<const double> row)>;
// Returns the predictions of a model, which must outlive the prior. It may be for another problem
// type, if its feature table describes both. Errors: kMismatch for a model whose features do not
// describe the problem, kUnsupported for one whose target is not relative-log.
Result<GuidePrior> model_prior(const Model& model, const Problem& problem);

struct GuideOptions {
  RegressionOptions regression{.trees = 30, .leaves = 15, .learning_rate = 0.3};
  std::size_t least_trials = 12;  // with fewer the prior alone predicts better
  // Number of models, each trained on another sample of the trials. A config's score is their mean
  // prediction, made faster by `optimism` of their standard deviations, so that uncertain configs
  // get explored.
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
    std::size_t lesson = 0;  // after which `score` was computed
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

// Returns the least value of the trials; infinite where none has a value.
double best_value(std::span<const Trial> trials);

}  // namespace foretune
