#include "foretune/tune/tree_guide.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "foretune/base/rng.h"
#include "foretune/model/model_scorer.h"

namespace foretune {

GuideRows table_rows(const FeatureTable& table, const Problem& problem, const Hardware& hardware) {
  const std::size_t of_problem = feature_count(table, FeatureKind::kProblem);
  const std::size_t of_config = feature_count(table, FeatureKind::kConfig);
  return {
      .columns = table.columns().size() - of_problem,
      .write = [&table, problem, hardware, of_config](const Config& config, std::span<double> row) {
        if (!table.may_run(problem, hardware, config)) {
          return false;
        }
        table.config_row(config.words.view(), row.first(of_config));
        table.interaction_columns(problem, hardware, ConfigWords::of_one(config.words.view()),
                                  row.subspan(of_config), 1);
        return true;
      }};
}

Result<GuidePrior> model_prior(const Model& model, const Problem& problem) {
  FORETUNE_TRY(const FeatureTable* const table, feature_table_of(model));
  if (!table->supports(problem.type(), model.config_schema)) {
    return fail(ErrorCode::kMismatch, "the model is not for problems like '", problem.shown_text(),
                "'");
  }
  if (column_model(model, 0).target != "relative-log") {
    return fail(ErrorCode::kUnsupported,
                "a search is guided by a model of the target relative-log, ", "this one's is ",
                column_model(model, 0).target);
  }
  return GuidePrior([&model, problem](const Config& config, std::span<const double> /*row*/) {
    // Configs of the space are of the model's schema, or nothing could be said of any.
    return score_config(model, problem, config).value_or(0);
  });
}

double best_value(std::span<const Trial> trials) {
  double best = std::numeric_limits<double>::infinity();
  for (const Trial& trial : trials) {
    best = std::min(best, trial.value.value_or(best));
  }
  return best;
}

TreeGuide::TreeGuide(GuideRows rows, GuideOptions options, GuidePrior prior)
    : rows_(std::move(rows)), options_(options), prior_(std::move(prior)) {}

TreeGuide::Known& TreeGuide::known(const Config& config) {
  const auto [found, is_new] = known_.try_emplace(config);
  Known& known = found->second;
  if (is_new) {
    std::vector<double> row(rows_.columns);
    known.may_run = rows_.write(config, row);
    if (known.may_run) {
      known.prior = prior_ ? -std::exp(-prior_(config, row)) : 0;
      known.row = std::move(row);
      known.score = known.prior;
    }
  }
  return known;
}

Status TreeGuide::learn(std::span<const Trial> trials) {
  const std::size_t columns = rows_.columns;
  std::vector<const Known*> lesson;
  std::vector<double> speeds;
  const double best = best_value(trials);
  for (const Trial& trial : trials) {
    const Known& found = known(trial.config);
    if (trial.value && *trial.value > 0 && found.may_run) {
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
  if (!prior_ && models_.empty()) {
    return {};
  }
  std::vector<double> scores;
  scores.reserve(configs.size());
  for (const Config& config : configs) {
    Known& found = known(config);
    if (found.may_run && found.lesson != lessons_) {
      found.score = predict(found);
      found.lesson = lessons_;
    }
    scores.push_back(found.may_run ? found.score : std::numeric_limits<double>::infinity());
  }
  return scores;
}

}  // namespace foretune
