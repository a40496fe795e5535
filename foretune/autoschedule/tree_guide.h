// Boosted trees that learn from the measurements of a search, and where those of other computations
// are known begin with what these taught: the model that the strategy `guided` walks along. What is
// learnt is the speed as a part of the fastest known, so that fast schedules are told apart rather
// than slow ones; the score is its negative.
//
//   TreeGuide guide(*space, unit);
//   create_walk("guided", *space, {.learner = &guide});
//
// What cannot be compiled scores as infinite: the compiler's refusal is known without measuring.
// Thread safety: one thread. Cost: a lesson takes some
// milliseconds for hundred measurements, a score a few microseconds the first time.
#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/loop/lowering.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/models/train/regression.h"
#include "foretune/search/strategy.h"

namespace foretune::autoschedule {

using loop::ScheduleSpace;

// Measurements of schedules of one computation.
struct GuideLesson {
  const ScheduleSpace* space = nullptr;
  std::vector<Trial> trials;  // seconds of one run
};

struct GuideOptions {
  RegressionOptions regression{.trees = 30, .leaves = 15, .learning_rate = 0.3};
  std::size_t least_trials = 12;  // fewer teach nothing that a prior does not know better
  // So many models, each of other draws of the trials; a schedule counts as so many of their
  // standard deviations faster than they say in the mean: what is not known well is worth a look.
  std::size_t models = 8;
  double optimism = 1.5;
};

// What measurements of other computations teach: the logarithm of the time over the best of each.
// Errors: kInvalidArgument without a trial that has a value.
Result<Regression> learn_prior(std::span<const GuideLesson> lessons, const loop::VectorUnit& unit,
                               const RegressionOptions& options);

class TreeGuide final : public ConfigLearner {
 public:
  // `space` has to outlive it, and `prior` where there is one.
  TreeGuide(const ScheduleSpace& space, const loop::VectorUnit& unit, GuideOptions options = {},
            const Regression* prior = nullptr);

  Status learn(std::span<const Trial> trials) override;
  std::vector<double> score(std::span<const Config> configs) override;

 private:
  struct Known {
    bool compiles = false;
    std::vector<double> row;
    double prior = 0;
    std::size_t lesson = 0;  // that `score` is of
    double score = 0;
  };
  // References stay valid.
  Known& known(const Config& config);
  [[nodiscard]] double predict(const Known& known) const;

  const ScheduleSpace& space_;
  loop::VectorUnit unit_;
  GuideOptions options_;
  const Regression* prior_;
  std::vector<Regression> models_;
  std::size_t lessons_ = 0;
  std::unordered_map<Config, Known> known_;
};

}  // namespace foretune::autoschedule
