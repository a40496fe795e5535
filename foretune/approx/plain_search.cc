#include "foretune/approx/plain_search.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/metrics/pareto.h"
#include "foretune/search/strategy.h"

namespace foretune::approx {

double front_volume(std::span<const LossAndTime> points, double most_loss) {
  std::vector<double> values;
  for (const LossAndTime& each : points) {
    values.push_back(std::max(0.0, each.loss));
    values.push_back(each.time);
  }
  const std::array<double, 2> reference{most_loss, 1};
  return hypervolume({values, 2}, reference);
}

Result<PlainSearch> search_plainly(const Problem& problem, const Space& space,
                                   const std::function<Result<LossAndTime>(const Config&)>& measure,
                                   const PlainSearchOptions& options) {
  FORETUNE_TRY(const std::unique_ptr<Strategy> strategy,
               create_strategy(options.strategy, problem, space,
                               {.sample_size = options.most, .targets = 2}));
  Rng rng(options.seed);
  PlainSearch search;
  std::vector<LossAndTime> points;
  while (search.evaluations < options.most) {
    const std::vector<Config> batch = strategy->ask(1, rng);
    if (batch.empty()) {
      break;
    }
    FORETUNE_TRY(const LossAndTime found, measure(batch[0]));
    ++search.evaluations;
    Trial trial{.config = batch[0], .value = found.time};
    trial.targets.push_back(found.loss);
    trial.targets.push_back(found.time);
    strategy->tell({&trial, 1});
    points.push_back(found);
    search.volume = front_volume(points, options.most_loss);
    if (search.volume >= options.volume) {
      search.has_reached = true;
      break;
    }
  }
  return search;
}

}  // namespace foretune::approx
