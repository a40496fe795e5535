#include "foretune/search/pareto_strategy.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/statistics.h"

namespace foretune {
namespace {

constexpr double kAugmentation = 0.05;
// Strategies compare logarithms of values: the whole range of a target becomes a factor of e^3.
constexpr double kRangeOfLog = 3;
// A copy may propose what others had measured so often before its turn passes on.
constexpr std::size_t kMaxKnownProposals = 64;

void extend_weights(std::vector<double>& weights, std::size_t targets, std::size_t left,
                    std::size_t steps, std::vector<std::vector<double>>& out) {
  if (weights.size() + 1 == targets) {
    weights.push_back(static_cast<double>(left) / static_cast<double>(steps));
    out.push_back(weights);
    weights.pop_back();
    return;
  }
  for (std::size_t part = 0; part <= left; ++part) {
    weights.push_back(static_cast<double>(part) / static_cast<double>(steps));
    extend_weights(weights, targets, left - part, steps, out);
    weights.pop_back();
  }
}

}  // namespace

double infeasible_value(double violation) { return 1e30 * (1 + std::min(violation, 1e30)); }

std::vector<std::vector<double>> spread_weights(std::size_t targets, std::size_t count) {
  FORETUNE_CHECK(targets >= 1);
  std::vector<std::vector<double>> out;
  for (std::size_t steps = 1; out.size() < count; ++steps) {
    out.clear();
    std::vector<double> weights;
    extend_weights(weights, targets, steps, steps, out);
    if (targets == 1) {
      break;
    }
  }
  return out;
}

Result<std::unique_ptr<Strategy>> ParetoStrategy::create(std::string_view name,
                                                         const Problem& problem, const Space& space,
                                                         const StrategyOptions& options) {
  StrategyOptions own = options;
  own.targets = 1;
  std::vector<Copy> copies;
  std::vector<std::vector<double>> spread = spread_weights(options.targets, kCopies);
  own.copies = spread.size();
  for (std::vector<double>& weights : spread) {
    Copy& copy = copies.emplace_back();
    FORETUNE_TRY(copy.strategy, create_strategy(name, problem, space, own));
    copy.weights = std::move(weights);
  }
  // Each copy would ask for so many; together they do not.
  const bool is_limited = options.sample_size > 0 && name != "exhaustive";
  return std::unique_ptr<Strategy>(
      new ParetoStrategy(std::move(copies), is_limited ? options.sample_size
                                                       : std::numeric_limits<std::size_t>::max()));
}

// Something new from this copy.
std::optional<Config> ParetoStrategy::ask_copy(Copy& copy, Rng& rng) {
  for (std::size_t i = 0; i < kMaxKnownProposals; ++i) {
    const std::vector<Config> proposed = copy.strategy->ask(1, rng);
    if (proposed.empty()) {
      copy.is_exhausted = true;
      return std::nullopt;
    }
    if (asked_.insert(proposed.front()).second) {
      return proposed.front();
    }
  }
  return std::nullopt;
}

std::vector<Config> ParetoStrategy::ask(std::size_t count, Rng& rng) {
  std::vector<Config> out;
  std::size_t in_vain = 0;
  while (out.size() < std::min(count, left_)) {
    Copy& copy = copies_[turn_];
    turn_ = (turn_ + 1) % copies_.size();
    std::optional<Config> config = copy.is_exhausted ? std::nullopt : ask_copy(copy, rng);
    if (config) {
      out.push_back(*std::move(config));
      in_vain = 0;
      continue;
    }
    ++in_vain;
    const bool all_exhausted = std::all_of(copies_.begin(), copies_.end(),
                                           [](const Copy& each) { return each.is_exhausted; });
    // A copy that only repeats others is not at its end, but no round may last for ever.
    if (all_exhausted || in_vain > 4 * copies_.size()) {
      break;
    }
  }
  left_ -= out.size();
  return out;
}

// Settles the scales by the trials that wait.
void ParetoStrategy::calibrate() {
  const std::size_t targets = copies_.front().weights.size();
  scales_.assign(targets, {});
  for (std::size_t t = 0; t < targets; ++t) {
    std::vector<double> values;
    for (const Trial& trial : waiting_) {
      if (trial.value && !trial.targets.empty()) {
        values.push_back(trial.targets[t]);
      }
    }
    Scale& scale = scales_[t];
    std::vector<double> positive;
    std::copy_if(values.begin(), values.end(), std::back_inserter(positive),
                 [](double value) { return value > 0; });
    scale.is_logarithm = !positive.empty() && std::all_of(values.begin(), values.end(),
                                                          [](double value) { return value >= 0; });
    // Zeros have a logarithm then, and are well below the others.
    scale.offset =
        positive.size() == values.size() || positive.empty() ? 0 : 0.01 * median(positive);
    for (double& value : values) {
      value = scale.is_logarithm ? std::log(value + scale.offset) : value;
    }
    if (!values.empty()) {
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      scale.low = *low;
      scale.range = *high > *low ? *high - *low : 1;
    }
  }
}

Trial ParetoStrategy::weighed(const Copy& copy, const Trial& trial) const {
  if (!trial.value || !trial.feasible || trial.targets.empty()) {
    return trial;
  }
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
  for (std::size_t t = 0; t < scales_.size(); ++t) {
    const Scale& scale = scales_[t];
    const double target = trial.targets[t];
    // Targets that the first trials did not reach still have an order.
    const double value =
        scale.is_logarithm ? std::log(std::max(target + scale.offset, 1e-300)) : target;
    const double z = copy.weights[t] * (value - scale.low) / scale.range;
    largest = std::max(largest, z);
    sum += z;
  }
  Trial out = trial;
  out.value = std::exp(kRangeOfLog * std::clamp(largest + kAugmentation * sum, -20.0, 20.0));
  return out;
}

void ParetoStrategy::pass_on(std::span<const Trial> trials) {
  std::vector<Trial> own;
  for (Copy& copy : copies_) {
    own.clear();
    for (const Trial& trial : trials) {
      own.push_back(weighed(copy, trial));
    }
    copy.strategy->tell(own);
  }
}

void ParetoStrategy::tell(std::span<const Trial> finished) {
  for (const Trial& trial : finished) {
    asked_.insert(trial.config);
  }
  if (!scales_.empty()) {
    pass_on(finished);
    return;
  }
  waiting_.insert(waiting_.end(), finished.begin(), finished.end());
  const auto usable = std::count_if(waiting_.begin(), waiting_.end(), [](const Trial& trial) {
    return trial.value && !trial.targets.empty();
  });
  if (static_cast<std::size_t>(usable) >= kCalibrationTrials) {
    calibrate();
    pass_on(std::exchange(waiting_, {}));
  }
}

}  // namespace foretune
