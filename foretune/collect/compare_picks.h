// Completes a validation set for one model: times its best-ranked configs against the best known
// config of every problem, interleaved. Thread safety: as collect().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/collect/collect.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/journal.h"
#include "foretune/measure/measure.h"

namespace foretune {

// The best configs of a problem as the model ranks them, best first; empty where it has none.
using RankedConfigs = std::function<std::vector<Config>(const Problem&)>;

// Times the first kComparedPicks ranked configs of every problem where one of them has not been
// timed against the best known config yet, unless the first is that config. Appends rows for the
// best, for the best of earlier comparisons where it is another, and for the ranked
// (kFlagReference, kReferenceFidelity). Leaves out ranked configs after the first that have
// no ordinary time. Returns how many problems were compared. Errors: what the journal refuses.
Result<std::uint64_t> compare_picks(const Dataset& dataset, Measurer& measurer,
                                    JournalWriter& journal, const RankedConfigs& ranked, int rounds,
                                    const CollectHooks& hooks);

}  // namespace foretune
