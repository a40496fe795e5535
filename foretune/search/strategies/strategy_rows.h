// The functions behind the rows of strategies.inc. Internal to search.
// Thread safety: rows are constant.
#pragma once

#include "foretune/search/strategy.h"

namespace foretune {

#define FORETUNE_STRATEGY(name) const StrategyEntry& name##_strategy();
#include "foretune/search/strategies.inc"
#undef FORETUNE_STRATEGY

}  // namespace foretune
