// The sums of a tuned problem's measurements, for all forms of its report. Internal to the module.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/metrics/metric.h"
#include "foretune/metrics/objective.h"
#include "foretune/tune/tune_problem.h"

namespace foretune::report_internal {

struct TuneAnalysis {
  // Measured configs that meet every bound; that miss one, but none of the looser ones; and all
  // others, those that lack a value among them.
  std::size_t met = 0;
  std::size_t kept = 0;
  std::size_t missed = 0;
  // Finalists that met the bounds in the search and miss one in the final comparison.
  std::size_t now_missed = 0;
  // The rest is for several targets:
  std::vector<std::size_t> front;   // positions in `measured`, in the order of the first target
  std::size_t dominated = 0;        // of those that meet the bounds
  std::optional<std::size_t> knee;  // position in `finalists`
  // Each target's values over the measured configs that meet the bounds, in the metric's unit.
  std::vector<double> best;
  std::vector<double> worst;
  // The front's, with `worst` as the reference: as a volume, and as a share of the box between
  // `best` and `worst`, a NaN where that box has no volume.
  double hypervolume = 0;
  double share = 0;
};

// The result has a judge.
TuneAnalysis analyse_tuning(const TuneResult& result);

// Position of the finalist to take when nobody chooses: the best, or the knee of a front. Behind
// the last where a front has none.
std::size_t chosen_finalist(const TuneResult& result, const TuneAnalysis& analysis);

// NaN when it has no such value.
double metric_value(std::span<const MetricValue> values, std::string_view name);
// By a single target's direction; by what the family declares for all other metrics.
bool is_maximised(const Judge& judge, const MetricInfo& info);

// The price of packing operands, beside the fastest config that packs nothing.
struct Packing {
  double pack_ns = 0;
  // Runs after which it is as fast in all as the other; infinite where it never is.
  double pays_after = 0;
};
// Nothing for a config that packs nothing or whose packing was not timed, and where every measured
// config packs.
std::optional<Packing> packing_of(const TuneResult& result, const TunedConfig& tuned);
// After how much use packing pays: "1 run", "1,200 runs", "never"; `kNoNumber` for nothing.
std::string packing_text(const std::optional<Packing>& packing);

// The config as its space describes it, else as its schema prints it.
std::string config_text(const ConfigSchema& schema, const TunedConfig& tuned);
// How much better than the default's value: a factor of times, bytes and energies ("1.30x", above 1
// is better), a difference of others ("+0.5", above 0 is better). "-" where there is none.
std::string metric_gain_text(const Judge& judge, const MetricInfo& info, double value,
                             double by_default);
// One line for each bound: "time_ns <= 12.3 us (0.8 * baseline); the baseline has 15.4 us".
std::vector<std::string> bound_lines(const TuneResult& result);
// "; 1,234 legal configs, 1,146 of them not tried": how much of the space the search saw, as far as
// that is known.
std::string tried_text(const TuneResult& result);
// "88 configs meet the bounds, 12 miss one and are kept, 100 miss one"; empty without bounds.
std::string bounds_met_text(const TuneResult& result, const TuneAnalysis& analysis);
// "front: ..." and "hypervolume: ..." without their names; of several targets.
std::string front_text(const TuneResult& result, const TuneAnalysis& analysis);
std::string hypervolume_text(const TuneResult& result, const TuneAnalysis& analysis);
// A sentence when finalists turned out to miss a bound, else nothing.
std::string now_missed_text(const TuneAnalysis& analysis);
// "time_ns 3.52 us, pack_ns 0 ns": of the targets, or of all metrics that the objective names.
std::string values_text(const Judge& judge, const TunedConfig& tuned, bool only_targets);

}  // namespace foretune::report_internal
