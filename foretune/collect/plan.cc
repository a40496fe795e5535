// Plans a collection: its options as text, counts, and an estimate of its duration.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/collect/collect.h"
#include "foretune/collect/selection.h"
#include "foretune/problem/problem_type.h"

namespace foretune {
namespace {

constexpr double kUsualShareOfPeak = 0.25;
constexpr double kUnknownPeakGflops = 20;
constexpr double kUnknownRunNs = 1e5;
constexpr double kSimulatedNs = 2e4;  // for a measurement that runs nothing
constexpr double kOverheadNs = 4e5;   // preparing, poisoning, verifying, a journal record
constexpr double kReferenceFlopsPerNs = 1;
constexpr double kMaxReferenceFlops = 1e9;

double problem_flops(const Problem& problem) {
  return problem_work(problem).value_or(ProblemWork{}).flops;
}

double run_estimate_ns(const Problem& problem, const Hardware& hardware, int threads) {
  const double flops = problem_flops(problem);
  if (flops <= 0) {
    return kUnknownRunNs;
  }
  const double peak = hardware.get(HardwareValue::kFmaPeakGflops);
  const double gflops = (peak > 0 ? peak : kUnknownPeakGflops) * std::max(1, threads);
  return flops / (kUsualShareOfPeak * gflops);
}

double measurement_estimate_ns(double run_ns, const Protocol& protocol) {
  const double windows_ns = std::max(1, protocol.windows) * std::max(protocol.window_ns, run_ns);
  const double warmup_ns = std::max(std::max(1, protocol.warmup_runs) * run_ns, protocol.warmup_ns);
  return warmup_ns + std::min(windows_ns, protocol.max_total_ns) + kOverheadNs;
}

Result<std::uint64_t> parse_count(std::string_view text, std::string_view what) {
  const std::optional<std::uint64_t> count = parse_uint(text);
  if (!count || *count == 0) {
    return fail(ErrorCode::kInvalidArgument, what, ", not '", text, "'");
  }
  return *count;
}

}  // namespace

Result<Budget> parse_budget(std::string_view text) {
  constexpr std::string_view kWanted =
      "a budget is a number of measurements (500) or a time with its unit (90s, 15m, 2h)";
  const double unit_s = text.ends_with('s')   ? 1
                        : text.ends_with('m') ? 60
                        : text.ends_with('h') ? 3600
                                              : 0;
  Budget budget;
  if (unit_s > 0) {
    const std::optional<double> number = parse_double(text.substr(0, text.size() - 1));
    if (!number || !std::isfinite(*number) || *number <= 0) {
      return fail(ErrorCode::kInvalidArgument, kWanted, ", not '", text, "'");
    }
    budget.seconds = *number * unit_s;
    return budget;
  }
  FORETUNE_TRY(budget.measurements, parse_count(text, kWanted));
  return budget;
}

Result<SearchSpaceChoice> parse_search_space(std::string_view text) {
  constexpr std::string_view kWanted = "a search space is DEFAULT, EXHAUSTIVE or SAMPLE:n";
  constexpr std::string_view kSample = "SAMPLE:";
  SearchSpaceChoice choice;
  if (text == "EXHAUSTIVE") {
    choice.exhaustive = true;
  } else if (text.starts_with(kSample)) {
    const Result<std::uint64_t> count = parse_count(text.substr(kSample.size()), kWanted);
    if (!count) {
      return fail(ErrorCode::kInvalidArgument, kWanted, ", not '", text, "'");
    }
    choice.sample_size = *count;
  } else if (text != "DEFAULT") {
    return fail(ErrorCode::kInvalidArgument, kWanted, ", not '", text, "'");
  }
  return choice;
}

Result<CollectPlan> plan_collection(const Family& family, std::span<const Problem> problems,
                                    const CollectOptions& options, const Protocol& protocol,
                                    const JournalWriter* journal, const Context& context) {
  Context measured = context;
  measured.cache = protocol.cache;
  CollectPlan plan;
  std::map<std::string, std::uint64_t> skipped;
  std::unordered_set<Problem> seen;
  double total_ns = 0;
  for (const Problem& problem : problems) {
    if (!seen.insert(problem).second) {
      ++skipped[std::string(kRepeatedProblem)];
      continue;
    }
    const auto configs = select_configs(family, problem, options);
    if (!configs) {
      ++skipped[configs.error().message];
      continue;
    }
    ++plan.problems;
    const auto is_done = [&](const Config& config) {
      return journal != nullptr && journal->contains(problem, config, measured);
    };
    const auto done =
        static_cast<std::uint64_t>(std::count_if(configs->begin(), configs->end(), is_done));
    const auto confirmed = static_cast<std::uint64_t>(
        options.confirm_top > 1
            ? std::min(configs->size(), static_cast<std::size_t>(options.confirm_top))
            : 0);
    plan.measurements += configs->size() + confirmed;
    plan.already_done += done;
    if (!options.evaluate.empty()) {
      // This counts all configs, though only those that run well are evaluated.
      plan.measurements += configs->size();
      plan.already_done += static_cast<std::uint64_t>(
          std::count_if(configs->begin(), configs->end(), [&](const Config& config) {
            return journal != nullptr &&
                   std::all_of(options.evaluate.begin(), options.evaluate.end(),
                               [&](const std::string& metric) {
                                 return journal->contains(problem, config, measured, metric);
                               });
          }));
    }
    const auto fresh = static_cast<double>(configs->size() - done);
    if (family.info().simulated) {
      total_ns += fresh * kSimulatedNs;
      continue;
    }
    const double run_ns =
        run_estimate_ns(problem, family.info().fingerprint.hardware, context.threads);
    total_ns += fresh * measurement_estimate_ns(run_ns, protocol);
    total_ns += static_cast<double>(confirmed) * std::max(1, options.confirm_rounds) *
                std::max(protocol.window_ns, run_ns);
    if (protocol.verify && fresh > 0) {
      total_ns += std::min(problem_flops(problem), kMaxReferenceFlops) / kReferenceFlopsPerNs;
    }
  }
  plan.estimated_seconds = total_ns * 1e-9;
  if (const std::uint64_t open = plan.measurements - plan.already_done;
      options.budget.measurements && *options.budget.measurements < open) {
    plan.estimated_seconds *=
        static_cast<double>(*options.budget.measurements) / static_cast<double>(open);
    plan.measurements = plan.already_done + *options.budget.measurements;
  }
  if (options.budget.seconds) {
    plan.estimated_seconds = std::min(plan.estimated_seconds, *options.budget.seconds);
  }
  plan.skipped.assign(skipped.begin(), skipped.end());
  return plan;
}

}  // namespace foretune
