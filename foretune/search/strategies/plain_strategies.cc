// The strategies that do not learn: in order, at random, evenly spread.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "foretune/search/coverage.h"
#include "foretune/search/picking.h"
#include "foretune/search/strategies/strategy_rows.h"

namespace foretune {
namespace {

// Number of candidates for an even spread: all of a small space, else a sample of this size.
constexpr std::size_t kMinCandidates = 4096;
constexpr std::size_t kCandidatesPerPick = 16;

class ExhaustiveStrategy final : public PickingStrategy {
 public:
  ExhaustiveStrategy(const Space& space, const EnumerableSpace& ranked)
      : PickingStrategy(space, 0), ranked_(ranked) {}

 private:
  std::optional<Config> propose(Rng& /*rng*/) override {
    return next_ < ranked_.count() ? std::optional(ranked_.unrank(next_++)) : std::nullopt;
  }
  const EnumerableSpace& ranked_;
  std::uint64_t next_ = 0;
};

class RandomStrategy final : public PickingStrategy {
 public:
  RandomStrategy(const Space& space, std::size_t limit)
      : PickingStrategy(space, limit), order_(space) {}

 private:
  std::optional<Config> propose(Rng& rng) override { return order_.next(rng); }
  RandomOrder order_;
};

class StratifiedStrategy final : public PickingStrategy {
 public:
  StratifiedStrategy(const Space& space, std::size_t limit)
      : PickingStrategy(space, limit),
        order_(space),
        candidates_(std::max(kMinCandidates, kCandidatesPerPick * limit)) {}

 private:
  std::optional<Config> propose(Rng& rng) override {
    if (!picker_) {
      std::vector<Config> pool;
      while (pool.size() < candidates_) {
        std::optional<Config> config = order_.next(rng);
        if (!config) {
          break;
        }
        pool.push_back(*std::move(config));
      }
      picker_ = std::make_unique<CoveragePicker>(std::move(pool));
    }
    // The configs of a large space beyond the candidates follow at random.
    return picker_->empty() ? order_.next(rng) : std::optional(picker_->pick());
  }
  RandomOrder order_;
  std::size_t candidates_;
  std::unique_ptr<CoveragePicker> picker_;
};

StrategyResult make_exhaustive(const Problem& /*problem*/, const Space& space,
                               const StrategyOptions& options) {
  const EnumerableSpace* const ranked = space.enumerable();
  if (is_walked(space)) {
    return create_walk("exhaustive", space, options);
  }
  if (ranked == nullptr) {
    return fail(ErrorCode::kUnsupported, "the space ", space.schema().name,
                " is too large to be listed, so it cannot be searched exhaustively; the other "
                "strategies draw from it");
  }
  return std::unique_ptr<Strategy>(std::make_unique<ExhaustiveStrategy>(space, *ranked));
}

StrategyResult make_random(const Problem& /*problem*/, const Space& space,
                           const StrategyOptions& options) {
  if (is_walked(space)) {
    return create_walk("random", space, options);
  }
  return std::unique_ptr<Strategy>(std::make_unique<RandomStrategy>(space, options.sample_size));
}

StrategyResult make_stratified(const Problem& /*problem*/, const Space& space,
                               const StrategyOptions& options) {
  return std::unique_ptr<Strategy>(
      std::make_unique<StratifiedStrategy>(space, options.sample_size));
}

}  // namespace

const StrategyEntry& exhaustive_strategy() {
  static const StrategyEntry entry{"exhaustive", "every legal config, in order", make_exhaustive};
  return entry;
}

const StrategyEntry& random_strategy() {
  static const StrategyEntry entry{"random", "legal configs at random, none twice", make_random};
  return entry;
}

const StrategyEntry& stratified_strategy() {
  static const StrategyEntry entry{
      "stratified", "even over the values of every parameter and their pairs", make_stratified};
  return entry;
}

}  // namespace foretune
