#include "foretune/search/strategy.h"

#include <memory>
#include <string>

#include "foretune/base/registry.h"
#include "foretune/base/text.h"
#include "foretune/search/pareto_strategy.h"
#include "foretune/search/picking.h"
#include "foretune/search/strategies/strategy_rows.h"

namespace foretune {
namespace {

Registry<StrategyEntry>& table() {
#define FORETUNE_STRATEGY(name) &name##_strategy(),
  static Registry<StrategyEntry> all({
#include "foretune/search/strategies.inc"
  });
#undef FORETUNE_STRATEGY
  return all;
}

}  // namespace

tl::unexpected<Error> no_strategy(std::string_view name, const std::vector<std::string>& names) {
  const std::string near = nearest_word(name, names);
  return fail(ErrorCode::kNotFound, "there is no strategy '", name, "'",
              near.empty() ? concat("; there are ", join(names, ", "))
                           : concat("; did you mean '", near, "'?"));
}

Status check_walkable(std::string_view strategy, const Space& space) {
  if (space.sequential() == nullptr) {
    return fail(ErrorCode::kUnsupported, "the strategy '", strategy,
                "' walks spaces that are built step by step, and ", space.schema().name, " is not");
  }
  return {};
}

std::span<const StrategyEntry* const> strategies() { return table().rows(); }

Status register_strategy(StrategyEntry entry) {
  const std::string_view name = entry.name;
  return table().add(std::make_unique<StrategyEntry>(entry),
                     [&](const StrategyEntry& known) { return known.name == name; })
             ? Status()
             : fail(ErrorCode::kInvalidArgument, "there is a strategy ", quoted(name, 40),
                    " already");
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const StrategyEntry* const entry : strategies()) {
    names.emplace_back(entry->name);
  }
  return names;
}

Result<std::unique_ptr<Strategy>> create_strategy(std::string_view name, const Problem& problem,
                                                  const Space& space,
                                                  const StrategyOptions& options) {
  if (options.targets > 1) {
    return ParetoStrategy::create(name, problem, space, options);
  }
  for (const StrategyEntry* const entry : strategies()) {
    if (entry->name == name) {
      return entry->create(problem, space, options);
    }
  }
  return no_strategy(name, strategy_names());
}

}  // namespace foretune
