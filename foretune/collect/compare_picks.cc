#include "foretune/collect/compare_picks.h"

#include <algorithm>
#include <functional>
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
  std::unordered_set<std::uint64_t> timed;
  for (const Dataset::Row& row : dataset.rows()) {
    const bool is_reference = (row.flags & kFlagReference) != 0;
    if (is_reference || row.is_timed()) {
      (is_reference ? compared : timed)
          .insert(resume_key(dataset.problems()[row.problem], dataset.configs()[row.config],
                             dataset.contexts()[row.context]));
    }
  }
  const std::vector<std::optional<std::uint32_t>> best = best_configs(dataset, false);
  const std::vector<std::optional<std::uint32_t>> best_before = best_configs(dataset, true);
  const auto is_compared = [&](const Problem& problem, const Config& config) {
    return compared.contains(resume_key(problem, config, reference));
  };
  std::vector<Comparison> out;
  for (std::uint32_t id = 0; id < dataset.problems().size(); ++id) {
    const Problem& problem = dataset.problems()[id];
    std::vector<Config> picks = best[id] ? ranked(problem) : std::vector<Config>();
    picks.resize(std::min(picks.size(), kComparedPicks));
    if (picks.empty() || picks.front() == dataset.configs()[*best[id]]) {
      continue;
    }
    // The pick takes part even where it was stopped early.
    picks.erase(std::remove_if(picks.begin() + 1, picks.end(),
                               [&](const Config& config) {
                                 return !timed.contains(resume_key(problem, config, context));
                               }),
                picks.end());
    const Config& winner = dataset.configs()[*best[id]];
    if (is_compared(problem, winner) &&
        std::ranges::all_of(picks, std::bind_front(is_compared, std::cref(problem)))) {
      continue;
    }
    // The best of earlier comparisons takes part, so that times of then and now can be related.
    Comparison comparison{problem, {winner}};
    if (best_before[id]) {
      picks.insert(picks.begin(), dataset.configs()[*best_before[id]]);
    }
    for (const Config& config : picks) {
      if (std::ranges::find(comparison.configs, config) == comparison.configs.end()) {
        comparison.configs.push_back(config);
      }
    }
    if (comparison.configs.size() > 1) {
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
