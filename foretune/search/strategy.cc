#include "foretune/search/strategy.h"

#include <array>
#include <string>

#include "foretune/base/text.h"
#include "foretune/search/pareto_strategy.h"
#include "foretune/search/picking.h"

namespace foretune {
namespace {

constexpr std::array<StrategyEntry, 8> kStrategies{{
    {"exhaustive", "every legal config, in order", make_exhaustive},
    {"random", "legal configs at random, none twice", make_random},
    {"stratified", "even over the values of every parameter and their pairs", make_stratified},
    {"model", "best-scored by a model first, with a share of random ones", make_model},
    {"local", "neighbours of the best so far, from a few random starts", make_local},
    {"de", "differential evolution on the positions of parameter values", make_de},
    {"evolution", "aging evolution: mutants of the best of a few, the oldest dies", make_evolution},
    {"annealing", "random walks that accept less and less loss", make_annealing},
}};

}  // namespace

tl::unexpected<Error> no_strategy(std::string_view name, const std::vector<std::string>& names) {
  const std::string near = nearest_word(name, names);
  return fail(ErrorCode::kNotFound, "there is no strategy '", name, "'",
              near.empty() ? concat("; there are ", join(names, ", "))
                           : concat("; did you mean '", near, "'?"));
}

std::span<const StrategyEntry> strategies() { return kStrategies; }

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const std::span<const StrategyEntry> table : {strategies(), sequential_strategies()}) {
    for (const StrategyEntry& entry : table) {
      names.emplace_back(entry.name);
    }
  }
  return names;
}

Result<std::unique_ptr<Strategy>> create_strategy(std::string_view name, const Problem& problem,
                                                  const Space& space,
                                                  const StrategyOptions& options) {
  if (options.targets > 1) {
    return ParetoStrategy::create(name, problem, space, options);
  }
  for (const std::span<const StrategyEntry> table : {strategies(), sequential_strategies()}) {
    for (const StrategyEntry& entry : table) {
      if (entry.name == name) {
        return entry.create(problem, space, options);
      }
    }
  }
  return no_strategy(name, strategy_names());
}

}  // namespace foretune
