#include "foretune/autoschedule/tree_guide.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "foretune/base/rng.h"
#include "foretune/loop/nest_features.h"

namespace foretune::autoschedule {
namespace {

double best_of(std::span<const Trial> trials) {
  double best = std::numeric_limits<double>::infinity();
  for (const Trial& trial : trials) {
    best = std::min(best, trial.value.value_or(best));
  }
  return best;
}

}  // namespace

Result<Regression> learn_prior(std::span<const GuideLesson> lessons, const loop::VectorUnit& unit,
                               const RegressionOptions& options) {
  const std::size_t columns = loop::nest_feature_names().size();
  std::vector<double> rows;
  std::vector<double> targets;
  std::vector<double> row(columns);
  for (const GuideLesson& lesson : lessons) {
    const double best = best_of(lesson.trials);
    for (const Trial& trial : lesson.trials) {
      const auto nest = lesson.space->nest(trial.config);
      if (trial.value && nest &&
          loop::write_nest_features(lesson.space->computation(), *nest, unit, row)) {
        rows.insert(rows.end(), row.begin(), row.end());
        targets.push_back(std::log(*trial.value / best));
      }
    }
  }
  return fit_regression(rows, columns, targets, {}, options);
}

TreeGuide::TreeGuide(const ScheduleSpace& space, const loop::VectorUnit& unit, GuideOptions options,
                     const Regression* prior)
    : space_(space), unit_(unit), options_(options), prior_(prior) {}

TreeGuide::Known& TreeGuide::known(const Config& config) {
  const auto [found, is_new] = known_.try_emplace(config);
  Known& known = found->second;
  if (is_new) {
    std::vector<double> row(loop::nest_feature_names().size());
    const auto nest = space_.nest(config);
    known.compiles = nest && loop::write_nest_features(space_.computation(), *nest, unit_, row);
    if (known.compiles) {
      known.prior = prior_ != nullptr ? -std::exp(-prior_->predict(row)) : 0;
      known.row = std::move(row);
      known.score = known.prior;
    }
  }
  return known;
}

Status TreeGuide::learn(std::span<const Trial> trials) {
  const std::size_t columns = loop::nest_feature_names().size();
  std::vector<const Known*> lesson;
  std::vector<double> speeds;
  const double best = best_of(trials);
  for (const Trial& trial : trials) {
    const Known& found = known(trial.config);
    if (trial.value && *trial.value > 0 && found.compiles) {
      lesson.push_back(&found);
      speeds.push_back(-best / *trial.value);
    }
  }
  if (lesson.size() < options_.least_trials) {
    return {};
  }
  Rng rng(options_.regression.seed + lessons_);
  std::vector<Regression> models;
  while (models.size() < options_.models) {
    std::vector<double> rows;
    std::vector<double> targets;
    std::vector<double> start;
    rows.reserve(lesson.size() * columns);
    for (std::size_t i = 0; i < lesson.size(); ++i) {
      const std::size_t drawn = rng.below(lesson.size());
      rows.insert(rows.end(), lesson[drawn]->row.begin(), lesson[drawn]->row.end());
      targets.push_back(speeds[drawn]);
      start.push_back(lesson[drawn]->prior);
    }
    FORETUNE_TRY(Regression model,
                 fit_regression(rows, columns, targets, start, options_.regression));
    models.push_back(std::move(model));
  }
  models_ = std::move(models);
  ++lessons_;
  return {};
}

double TreeGuide::predict(const Known& known) const {
  double sum = 0;
  double squares = 0;
  for (const Regression& model : models_) {
    const double value = model.predict(known.row);
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(models_.size());
  const double variance = squares / count - (sum / count) * (sum / count);
  return known.prior + sum / count - options_.optimism * std::sqrt(std::max(0.0, variance));
}

std::vector<double> TreeGuide::score(std::span<const Config> configs) {
  if (prior_ == nullptr && models_.empty()) {
    return {};
  }
  std::vector<double> scores;
  scores.reserve(configs.size());
  for (const Config& config : configs) {
    Known& found = known(config);
    if (found.compiles && found.lesson != lessons_) {
      found.score = predict(found);
      found.lesson = lessons_;
    }
    scores.push_back(found.compiles ? found.score : std::numeric_limits<double>::infinity());
  }
  return scores;
}

}  // namespace foretune::autoschedule
