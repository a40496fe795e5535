#include "foretune/collect/selection.h"

#include <functional>
#include <unordered_set>
#include <utility>

#include "foretune/base/rng.h"
#include "foretune/search/strategy.h"

namespace foretune {
namespace {

constexpr std::size_t kBatch = 4096;

Status add_sample(const Family& family, const Problem& problem, const Space& space,
                  const CollectOptions& options, const std::function<void(Config)>& add) {
  const StrategyOptions strategy_options{.sample_size = options.search_space.sample_size,
                                         .hardware = family.info().fingerprint.hardware};
  FORETUNE_TRY(const std::unique_ptr<Strategy> strategy,
               create_strategy(options.search_space.exhaustive ? "exhaustive" : "stratified",
                               problem, space, strategy_options));
  // A generator per problem: adding or reordering problems changes nobody else's sample.
  Rng rng = Rng(options.seed).split(problem.hash());
  for (;;) {
    std::vector<Config> batch = strategy->ask(kBatch, rng);
    if (batch.empty()) {
      return {};
    }
    for (Config& config : batch) {
      add(std::move(config));
    }
  }
}

}  // namespace

Result<std::vector<Config>> select_configs(const Family& family, const Problem& problem,
                                           const CollectOptions& options) {
  if (const Support support = family.supports(problem); !support) {
    return fail(ErrorCode::kUnsupported, support.reason());
  }
  FORETUNE_TRY(const std::unique_ptr<Space> space, family.space(problem));
  std::vector<Config> selected;
  std::unordered_set<Config> known;
  const auto add = [&](Config config) {
    if (known.insert(config).second) {
      selected.push_back(std::move(config));
    }
  };
  if (options.first) {
    const std::uint64_t schema = space->schema().id();
    for (const Config& config : options.first(problem)) {
      if (config.schema == schema && space->why_not(config)) {
        add(space->canonical(config));
      }
    }
  }
  for (const Config& config : family.default_configs(problem)) {
    if (space->why_not(config)) {
      add(space->canonical(config));
    }
  }
  if (options.search_space.exhaustive || options.search_space.sample_size > 0) {
    FORETUNE_TRY_STATUS(add_sample(family, problem, *space, options, add));
  }
  if (selected.empty()) {
    return fail(ErrorCode::kUnsupported, "no legal config");
  }
  return selected;
}

}  // namespace foretune
