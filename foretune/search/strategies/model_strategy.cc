// Best-scored first, with a share of random configs against what the model does not know.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "foretune/search/picking.h"
#include "foretune/search/scoring.h"
#include "foretune/search/strategies/strategy_rows.h"

namespace foretune {
namespace {

// How many configs are scored at a time; a larger space is scored in random portions.
constexpr std::size_t kPoolSize = std::size_t{1} << 16U;
class ModelStrategy final : public PickingStrategy {
 public:
  ModelStrategy(const Problem& problem, const Space& space, const StrategyOptions& options)
      : PickingStrategy(space, options.sample_size),
        problem_(problem),
        scorer_(*options.scorer),
        hardware_(options.hardware),
        exploration_(options.exploration),
        order_(space) {}

  // Scores `configs` and sorts them, best first. Equal scores keep the order of the configs, so
  // that the result does not depend on the order of drawing.
  Status rank(std::vector<Config>& configs) const;

 private:
  std::optional<Config> propose(Rng& rng) override;
  void refill(Rng& rng);

  Problem problem_;
  const Scorer& scorer_;
  Hardware hardware_;
  double exploration_;
  RandomOrder order_;
  std::vector<Config> ranked_;
  std::size_t next_ = 0;
};

Status ModelStrategy::rank(std::vector<Config>& configs) const {
  FORETUNE_TRY(const std::vector<double> scores,
               score_configs(scorer_, problem_, hardware_, configs));
  std::vector<std::pair<double, std::size_t>> order;
  order.reserve(configs.size());
  for (std::size_t i = 0; i < configs.size(); ++i) {
    order.emplace_back(scores[i], i);
  }
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : configs[a.second] < configs[b.second];
  });
  std::vector<Config> sorted;
  sorted.reserve(configs.size());
  for (const auto& [score, index] : order) {
    sorted.push_back(std::move(configs[index]));
  }
  configs = std::move(sorted);
  return {};
}

void ModelStrategy::refill(Rng& rng) {
  ranked_.clear();
  next_ = 0;
  while (ranked_.size() < kPoolSize) {
    std::optional<Config> config = order_.next(rng);
    if (!config) {
      break;
    }
    ranked_.push_back(*std::move(config));
  }
  // A scorer that fails after it was tried out in make_model leaves the random order.
  (void)rank(ranked_);
}

std::optional<Config> ModelStrategy::propose(Rng& rng) {
  while (next_ < ranked_.size() && asked(ranked_[next_])) {
    ++next_;
  }
  if (next_ >= ranked_.size()) {
    refill(rng);
    if (ranked_.empty()) {
      return std::nullopt;
    }
  }
  if (asked_count() > 0 && rng.uniform() < exploration_) {
    const Config& chosen = ranked_[next_ + rng.below(ranked_.size() - next_)];
    if (!asked(chosen)) {
      return chosen;
    }
  }
  return ranked_[next_++];
}

StrategyResult make_model(const Problem& problem, const Space& space,
                          const StrategyOptions& options) {
  if (options.scorer == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "the strategy 'model' needs a model");
  }
  auto strategy = std::make_unique<ModelStrategy>(problem, space, options);
  // Tries the scorer out, so that one that does not fit is an error and not a bad search.
  Rng probe(0);
  const Result<Config> config = space.sample(probe);
  if (config) {
    std::vector<Config> one{*config};
    FORETUNE_TRY_STATUS(strategy->rank(one));
  }
  return std::unique_ptr<Strategy>(std::move(strategy));
}

}  // namespace

const StrategyEntry& model_strategy() {
  static const StrategyEntry entry{
      "model", "best-scored by a model first, with a share of random ones", make_model};
  return entry;
}

}  // namespace foretune
