// Completes a validation set for one model: measures its best-ranked configs where they are
// missing, and times its pick against the best known config of every problem, interleaved. Thread
// safety: as collect().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/journal.h"
#include "foretune/measure/measure.h"
#include "foretune/tune/collect.h"

namespace foretune {

// The best configs of a problem as the model ranks them, best first; empty where it has none.
using RankedConfigs = std::function<std::vector<Config>(const Problem&)>;

// Problems of `dataset` whose pick (the first ranked config) has not been timed against the best
// known config yet: how many comparisons compare_picks() would make.
std::uint64_t missing_comparisons(const Dataset& dataset, const RankedConfigs& ranked,
                                  const Context& context);

// Appends rows (the best, that of earlier comparisons if it is another, and the pick;
// kFlagReference, kReferenceFidelity) for every such problem.
// Returns how many problems were compared. Errors: what the journal refuses.
Result<std::uint64_t> compare_picks(const Dataset& dataset, Measurer& measurer,
                                    JournalWriter& journal, const RankedConfigs& ranked, int rounds,
                                    const CollectHooks& hooks);

}  // namespace foretune
