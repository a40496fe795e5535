#include "foretune/autoschedule/nest_guide.h"

#include <cmath>
#include <cstddef>

#include "foretune/loop/nest_features.h"

namespace foretune::autoschedule {

GuideRows nest_rows(const ScheduleSpace& space, const loop::VectorUnit& unit) {
  return {.columns = loop::nest_feature_names().size(),
          .write = [&space, unit](const Config& config, std::span<double> row) {
            const auto nest = space.nest(config);
            return nest && loop::write_nest_features(space.computation(), *nest, unit, row);
          }};
}

Result<Regression> learn_prior(std::span<const GuideLesson> lessons, const loop::VectorUnit& unit,
                               const RegressionOptions& options) {
  const std::size_t columns = loop::nest_feature_names().size();
  std::vector<double> rows;
  std::vector<double> targets;
  std::vector<double> row(columns);
  for (const GuideLesson& lesson : lessons) {
    const double best = best_value(lesson.trials);
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

GuidePrior regression_prior(const Regression* prior) {
  if (prior == nullptr) {
    return {};
  }
  return [prior](const Config& /*config*/, std::span<const double> row) {
    return prior->predict(row);
  };
}

}  // namespace foretune::autoschedule
