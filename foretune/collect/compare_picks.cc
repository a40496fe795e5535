#include "foretune/collect/compare_picks.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace foretune {
namespace {

struct Comparison {
  Problem problem;
  std::vector<Config> configs;
};

// The fastest ok row of every problem id, ordinary or re-measured; no value where there is none.
std::vector<std::optional<std::uint32_t>> best_configs(const Dataset& dataset, bool re_measured) {
  std::vector<std::optional<std::uint32_t>> best(dataset.problems().size());
  std::vector<float> time_ns(dataset.problems().size(), 0);
  for (const Dataset::Row& row : dataset.rows()) {
    if (!row.is_timed() || ((row.flags & kFlagReference) != 0) != re_measured) {
      continue;
    }
    if (!best[row.problem] || row.time_ns < time_ns[row.problem]) {
      best[row.problem] = row.config;
      time_ns[row.problem] = row.time_ns;
    }
  }
  return best;
}

std::vector<Comparison> find_missing(const Dataset& dataset, const RankedConfigs& ranked,
                                     const Context& context) {
  Context reference = context;
  reference.fidelity = kReferenceFidelity;
  std::unordered_set<std::uint64_t> compared;
  for (const Dataset::Row& row : dataset.rows()) {
    if ((row.flags & kFlagReference) != 0) {
      compared.insert(resume_key(dataset.problems()[row.problem], dataset.configs()[row.config],
                                 dataset.contexts()[row.context]));
    }
  }
  const std::vector<std::optional<std::uint32_t>> best = best_configs(dataset, false);
  const std::vector<std::optional<std::uint32_t>> best_before = best_configs(dataset, true);
  std::vector<Comparison> out;
  for (std::uint32_t id = 0; id < dataset.problems().size(); ++id) {
    const Problem& problem = dataset.problems()[id];
    const std::vector<Config> configs = best[id] ? ranked(problem) : std::vector<Config>();
    if (configs.empty()) {
      continue;
    }
    const Config& winner = dataset.configs()[*best[id]];
    const bool both = compared.contains(resume_key(problem, configs[0], reference)) &&
                      compared.contains(resume_key(problem, winner, reference));
    if (configs[0] != winner && !both) {
      // The best of earlier comparisons takes part, so that times of then and now can be related.
      Comparison comparison{problem, {winner}};
      if (best_before[id] && *best_before[id] != *best[id]) {
        comparison.configs.push_back(dataset.configs()[*best_before[id]]);
      }
      if (comparison.configs.back() != configs[0]) {
        comparison.configs.push_back(configs[0]);
      }
      out.push_back(std::move(comparison));
    }
  }
  return out;
}

}  // namespace

Result<std::uint64_t> compare_picks(const Dataset& dataset, Measurer& measurer,
                                    JournalWriter& journal, const RankedConfigs& ranked, int rounds,
                                    const CollectHooks& hooks) {
  const std::vector<Comparison> missing = find_missing(dataset, ranked, measurer.context());
  CollectProgress progress;
  progress.problems_total = missing.size();
  const double start_s = hooks.now_s ? hooks.now_s() : 0;
  for (const Comparison& comparison : missing) {
    if (hooks.wants_stop()) {
      break;
    }
    for (Measurement& measurement :
         measurer.compare(comparison.problem, comparison.configs, rounds)) {
      measurement.flags |= kFlagReference;
      measurement.context = measurer.context();
      measurement.context.fidelity = kReferenceFidelity;
      FORETUNE_TRY_STATUS(journal.append(measurement));
      ++progress.measured;
    }
    ++progress.problems_done;
    progress.problem = comparison.problem.text();
    progress.elapsed_s = hooks.now_s ? hooks.now_s() - start_s : 0;
    if (hooks.on_progress) {
      hooks.on_progress(progress);
    }
  }
  return progress.problems_done;
}

}  // namespace foretune
