#include "bench/fast_mode.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <unordered_map>

#include "foretune/base/statistics.h"
#include "foretune/dataset/split.h"
#include "foretune/families/families.h"
#include "foretune/measure/measure.h"
#include "foretune/model/train/distilled_model.h"
#include "foretune/model/train/trainer.h"
#include "foretune/model/training_range.h"
#include "foretune/select/select.h"
#include "foretune/space/parametric_space.h"

namespace foretune::bench {
namespace {

struct Picks {
  std::vector<double> exact;   // efficiency of the exact pick
  std::vector<double> fast;    // of select_fast
  std::vector<double> forced;  // of the fast model alone, whatever its bound
  std::vector<double> bounds;
  std::vector<double> us;  // one call that the fast model answered
  std::uint64_t fell_through = 0;
  std::uint64_t outside_hull = 0;
  std::uint64_t outside_box = 0;
  std::uint64_t untimed = 0;
};

constexpr double kNoLimit = 1e9;

// The config that runs is the canonical form, which is what was measured.
Config runs_as(const Selector& selector, const CompiledSpace& space, std::uint32_t candidate,
               const Problem& problem) {
  return space.canonical(selector.config(candidate), problem,
                         selector.model().fingerprint.hardware);
}

double call_us(const Selector& selector, const Problem& problem) {
  constexpr int kRepeats = 200;
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t sum = 0;
  for (int i = 0; i < kRepeats; ++i) {
    sum += selector.select_fast(problem, kNoLimit).choice.candidate;
  }
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
  return sum == UINT64_MAX ? 0 : taken.count() / kRepeats;
}

Status judge(const Model& model, const Dataset& held_out, const Timer& timer, double max_regret,
             Picks& out) {
  FORETUNE_TRY(const auto selector, Selector::create(model));
  FORETUNE_TRY(SpaceDefinition definition, SpaceDefinition::parse(model.space_text));
  FORETUNE_TRY(const auto space, CompiledSpace::create(std::move(definition)));
  FORETUNE_TRY(const FeatureTable* const table, find_feature_table(model.feature_table));
  const auto rows = held_out.rows_by_problem();
  for (std::uint32_t p = 0; p < held_out.problems().size(); ++p) {
    const Problem& problem = held_out.problems()[p];
    out.outside_hull += model.domain->is_inside(problem.fields()) ? 0U : 1U;
    out.outside_box += outside_ranges(model, *table, problem).empty() ? 0U : 1U;
    const std::vector<RankedCandidate> ranked = selector->rank(problem);
    const FastChoice fast = selector->select_fast(problem, max_regret);
    const FastChoice forced = selector->select_fast(problem, kNoLimit);
    if (ranked.empty() || !fast.choice.has_candidate || !forced.choice.has_candidate) {
      continue;
    }
    // Where the selector abstains the caller decides; to compare, the exact model's first.
    const std::uint32_t first = ranked[0].candidate;
    std::vector<Config> configs{
        runs_as(*selector, *space, first, problem),
        runs_as(*selector, *space, fast.exact ? first : fast.choice.candidate, problem),
        runs_as(*selector, *space, forced.exact ? first : forced.choice.candidate, problem)};
    float best = 0;
    for (const RowIndex row : rows[p]) {
      const Dataset::Row& measured = held_out.rows()[row];
      if (measured.outcome == Outcome::kOk && (best == 0 || measured.time_ns < best)) {
        best = measured.time_ns;
        configs.resize(3, configs[0]);
        configs.push_back(held_out.configs()[measured.config]);
      }
    }
    const std::vector<double> times = timer(problem, configs);
    if (std::find(times.begin(), times.end(), 0.0) != times.end()) {
      ++out.untimed;
      continue;
    }
    const double fastest = *std::min_element(times.begin(), times.end());
    out.exact.push_back(fastest / times[0]);
    out.fast.push_back(fastest / times[1]);
    out.forced.push_back(fastest / times[2]);
    out.fell_through += fast.exact ? 1U : 0U;
    if (!forced.exact) {
      out.bounds.push_back(forced.bound);
      out.us.push_back(call_us(*selector, problem));
    }
  }
  return {};
}

void report(Figures& figures, const char* name, double value, const char* text) {
  figures.add(name, value);
  std::printf("%-34s %12.4g  %s\n", name, value, text);
}

Status report_picks(Figures& figures, const Picks& picks) {
  if (picks.exact.empty() || picks.us.empty()) {
    return fail(ErrorCode::kNotFound, "the fast mode answered for none of the held-out problems");
  }
  const auto count = static_cast<double>(picks.exact.size());
  report(figures, "fast_mode_us", median(picks.us), "a new problem, legality included");
  report(figures, "fast_mode_p90_us", quantile(picks.us, 0.9), "... 9 of 10 take at most");
  report(figures, "fast_mode_exact_mean", mean(picks.exact), "mean efficiency of the exact model");
  report(figures, "fast_mode_exact_p10", quantile(picks.exact, 0.1), "... and P10");
  report(figures, "fast_mode_mean_loss", mean(picks.exact) - mean(picks.fast),
         "mean efficiency, exact minus fast");
  report(figures, "fast_mode_p10_loss", quantile(picks.exact, 0.1) - quantile(picks.fast, 0.1),
         "... and P10");
  report(figures, "fast_mode_forced_mean_loss", mean(picks.exact) - mean(picks.forced),
         "... without falling through over the bound");
  report(figures, "fast_mode_forced_p10_loss",
         quantile(picks.exact, 0.1) - quantile(picks.forced, 0.1), "... and P10");
  report(figures, "fast_mode_fell_through", static_cast<double>(picks.fell_through) / count,
         "share of problems that the exact model answered");
  report(figures, "fast_mode_median_bound", median(picks.bounds), "of a problem's region");
  report(figures, "outside_hull", static_cast<double>(picks.outside_hull) / count,
         "share of held-out problems outside of the applicability domain");
  report(figures, "outside_box", static_cast<double>(picks.outside_box) / count,
         "... outside of the box of feature ranges");
  report(figures, "fast_mode_untimed", static_cast<double>(picks.untimed),
         "problems left out because a pick has no time");
  report(figures, "fast_mode_problems", count, "problems judged");
  return {};
}

}  // namespace

Timer recorded_timer(const Dataset& dataset) {
  return [&dataset, rows = dataset.rows_by_problem()](const Problem& problem,
                                                      std::span<const Config> configs) {
    std::vector<double> out;
    for (const Config& config : configs) {
      const auto wanted = dataset.find_config(config);
      double time_ns = 0;
      for (const RowIndex row : rows[dataset.find_problem(problem).value_or(0)]) {
        const Dataset::Row& measured = dataset.rows()[row];
        if (wanted && measured.config == *wanted && measured.outcome == Outcome::kOk) {
          time_ns = static_cast<double>(measured.time_ns);
        }
      }
      out.push_back(time_ns);
    }
    return out;
  };
}

Result<Timer> live_timer(std::string_view family, const FamilyOptions& options, int rounds) {
  FORETUNE_TRY(std::shared_ptr<const Family> created, create_family(family, options));
  Context context;
  context.machine = created->info().fingerprint.digest();
  context.device = created->info().fingerprint.device;
  context.threads = created->info().max_threads;
  std::shared_ptr<Measurer> measurer = make_local_measurer(created, Protocol{}, context);
  return Timer([measurer, rounds](const Problem& problem, std::span<const Config> configs) {
    std::vector<double> out;
    for (const Measurement& measured : measurer->compare(problem, configs, rounds)) {
      const MetricValue* time = measured.find(kTimeNs);
      out.push_back(measured.outcome == Outcome::kOk && time != nullptr ? time->value : 0);
    }
    return out;
  });
}

Status report_distilled(Figures& figures, const Model& model, const Dataset& held_out,
                        const Timer& timer, double max_regret) {
  Picks picks;
  FORETUNE_TRY_STATUS(judge(model, held_out, timer, max_regret, picks));
  return report_picks(figures, picks);
}

Status report_fast_mode(Figures& figures, const Dataset& dataset, const Timer& timer,
                        const FastModeOptions& options) {
  Rng rng(42);
  const std::vector<std::uint32_t> fold_of = group_folds(dataset.problems(), options.folds, rng);
  Picks picks;
  double bytes = 0;
  double seconds = 0;
  for (std::uint32_t fold = 0; fold < options.folds; ++fold) {
    std::vector<bool> is_training;
    std::vector<bool> is_held_out;
    for (const std::uint32_t other : fold_of) {
      is_training.push_back(other != fold);
      is_held_out.push_back(other == fold);
    }
    const Dataset training = dataset.filter_problems(is_training);
    const Dataset held_out = dataset.filter_problems(is_held_out);
    TrainOptions train;
    train.folds = 2;  // settles the number of trees
    train.held_out = false;
    FORETUNE_TRY(TrainResult trained, train_gbdt(training, train));
    const auto start = std::chrono::steady_clock::now();
    FORETUNE_TRY(Distillation fast,
                 distill_model(trained.model, training.problems(),
                               {.problems = options.problems, .hidden = options.hidden}));
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("fold %u: on drawn problems the fast pick's mean regret is %.4f (P90 %.4f)\n",
                fold + 1, fast.model.mean_regret, fast.model.p90_regret);
    trained.model.distilled = std::move(fast.model);
    ByteWriter writer;
    put_distilled_model(writer, *trained.model.distilled);
    bytes = static_cast<double>(writer.size());
    FORETUNE_TRY_STATUS(judge(trained.model, held_out, timer, options.max_regret, picks));
  }
  FORETUNE_TRY_STATUS(report_picks(figures, picks));
  report(figures, "fast_mode_bytes", bytes, "in the model file");
  report(figures, "fast_mode_distill_s", seconds / options.folds, "to distil one fast model");
  return {};
}

}  // namespace foretune::bench
