#include "foretune/tune/compare_picks.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace foretune {
namespace {

struct Comparison {
  Problem problem;
  Config pick;
  Config best;
};

// The fastest ordinary ok row of every problem id; no value where there is none.
std::vector<std::optional<std::uint32_t>> best_configs(const Dataset& dataset) {
  std::vector<std::optional<std::uint32_t>> best(dataset.problems().size());
  std::vector<float> time_ns(dataset.problems().size(), 0);
  for (const Dataset::Row& row : dataset.rows()) {
    if (row.outcome != Outcome::kOk || (row.flags & kFlagReference) != 0) {
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
  const std::vector<std::optional<std::uint32_t>> best = best_configs(dataset);
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
      out.push_back({problem, configs[0], winner});
    }
  }
  return out;
}

}  // namespace

std::uint64_t missing_comparisons(const Dataset& dataset, const RankedConfigs& ranked,
                                  const Context& context) {
  return find_missing(dataset, ranked, context).size();
}

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
    const std::vector<Config> contestants{comparison.pick, comparison.best};
    for (Measurement& measurement : measurer.compare(comparison.problem, contestants, rounds)) {
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
