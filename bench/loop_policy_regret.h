// How soon a learned policy comes near the best schedule of the six products and convolutions of
// bench/loop_search, beside searches that know nothing: every strategy measures for itself, in
// turns, with the same seeds.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>

#include "bench/bench_json.h"
#include "foretune/base/result.h"
#include "foretune/hardware/cpu.h"
#include "foretune/model/model_file.h"

namespace foretune::bench {

// Prints a table and adds `measurements_to_95_percent METHOD` and `share_of_best METHOD N`. The
// best of a problem is the fastest that any method found with any seed, in comparisons at the end
// of each search. Errors: those of run_contest().
Status report_regret(const Model& policy, CpuIsa isa, std::uint64_t seeds, Figures& figures);

}  // namespace foretune::bench
