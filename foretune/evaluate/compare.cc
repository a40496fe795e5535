#include "foretune/evaluate/compare.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/measured_times.h"
#include "foretune/formats/csv.h"
#include "foretune/formats/json.h"

namespace foretune {

using Json = nlohmann::ordered_json;
using ParsedJson = formats::Json;

namespace {

constexpr std::size_t kResamples = 2000;

using Statistic = double (*)(std::span<const double>);

double p10(std::span<const double> values) { return quantile(values, 0.1); }

struct Efficiencies {
  std::vector<double> before;
  std::vector<double> after;
};

// Percentile bootstrap over problems; both sides are resampled alike.
Interval change_of(const Efficiencies& all, Statistic statistic, std::uint64_t seed) {
  Rng rng(seed);
  const BootstrapInterval interval =
      paired_bootstrap_interval(all.before, all.after, statistic, kResamples, rng);
  return {statistic(all.after) - statistic(all.before), interval.low, interval.high};
}

double loss_of(double before, double after) { return before > 0 ? 1 - after / before : 0; }

std::vector<RuleVerdict> judge(const ModelComparison& comparison, const Efficiencies& all,
                               const AcceptanceRules& rules) {
  const auto verdict = [&](std::string name, Statistic statistic, double limit) {
    return RuleVerdict{std::move(name), loss_of(statistic(all.before), statistic(all.after)), limit,
                       ""};
  };
  std::vector<RuleVerdict> out{verdict("mean efficiency", &mean, rules.mean),
                               verdict("median efficiency", &median, rules.median),
                               verdict("P10 efficiency", &p10, rules.p10)};
  RuleVerdict worst{"any single problem", -1, rules.problem, ""};
  for (const ComparedProblem& problem : comparison.problems) {
    const double loss = loss_of(problem.old_efficiency, problem.new_efficiency);
    if (loss > worst.loss) {
      worst.loss = loss;
      worst.where = problem.problem;
    }
  }
  out.push_back(std::move(worst));
  return out;
}

Result<std::unordered_map<std::string_view, const PickedProblem*>> by_problem(
    std::span<const PickedProblem> picks) {
  std::unordered_map<std::string_view, const PickedProblem*> out;
  for (const PickedProblem& pick : picks) {
    if (!out.emplace(pick.problem, &pick).second) {
      return fail(ErrorCode::kInvalidArgument, "two picks for ", pick.problem);
    }
  }
  return out;
}

}  // namespace

bool ModelComparison::accepted() const {
  return std::all_of(rules.begin(), rules.end(),
                     [](const RuleVerdict& rule) { return rule.kept(); });
}

Result<ModelComparison> compare_models(std::span<const PickedProblem> before,
                                       std::span<const PickedProblem> after,
                                       const AcceptanceRules& rules, std::uint64_t seed) {
  FORETUNE_TRY(const auto old_picks, by_problem(before));
  FORETUNE_TRY(const auto new_picks, by_problem(after));
  ModelComparison out;
  for (const PickedProblem& pick : after) {
    const auto found = old_picks.find(pick.problem);
    if (found == old_picks.end()) {
      ++out.only_new;
      continue;
    }
    const PickedProblem& old = *found->second;
    const double best_change = pick.best_ns / old.best_ns - 1;
    out.other_best += std::fabs(best_change) > kTieTolerance ? 1U : 0U;
    out.same_picks += old.pick == pick.pick && !pick.pick.empty() ? 1U : 0U;
    out.problems.push_back({pick.problem, old.pick, pick.pick, old.efficiency, pick.efficiency});
  }
  out.only_old = before.size() - out.problems.size();
  if (out.problems.empty()) {
    return fail(ErrorCode::kInvalidArgument, "the two have no problem in common");
  }
  std::stable_sort(
      out.problems.begin(), out.problems.end(),
      [](const ComparedProblem& a, const ComparedProblem& b) { return a.change() < b.change(); });
  Efficiencies all;
  for (const ComparedProblem& problem : out.problems) {
    all.before.push_back(problem.old_efficiency);
    all.after.push_back(problem.new_efficiency);
    out.improved += problem.change() > kTieTolerance ? 1U : 0U;
    out.degraded += problem.change() < -kTieTolerance ? 1U : 0U;
  }
  out.old_mean = mean(all.before);
  out.new_mean = mean(all.after);
  out.mean_change = change_of(all, &mean, seed);
  out.median_change = change_of(all, &median, seed);
  out.p10_change = change_of(all, &p10, seed);
  out.rules = judge(out, all, rules);
  return out;
}

namespace {

constexpr std::string_view kPicksHeader = "problem,best_ns,pick_ns,efficiency,pick";

// Returns the cells of a line, of which only those that csv_quoted() quotes are in quotes.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (is_quoted && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[i++];
    } else if (line[i] == '"') {
      is_quoted = !is_quoted;
    } else if (line[i] == ',' && !is_quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  return cells;
}

Status add_pick(PickedProblem picked, std::vector<PickedProblem>& out) {
  if (!(picked.best_ns > 0 && picked.efficiency >= 0 && picked.efficiency <= 1)) {
    return fail(ErrorCode::kCorrupt, "problem ", out.size() + 1,
                " of the report has an efficiency or a time that cannot be");
  }
  out.push_back(std::move(picked));
  return {};
}

Result<std::vector<PickedProblem>> parse_picks_csv(std::string_view text) {
  std::vector<PickedProblem> out;
  for (const std::string_view line : split(text.substr(kPicksHeader.size()), '\n')) {
    if (trim(line).empty()) {
      continue;
    }
    const std::vector<std::string> cells = cells_of(trim(line));
    const auto best_ns = cells.size() == 5 ? parse_double(cells[1]) : std::nullopt;
    const auto efficiency = cells.size() == 5 ? parse_double(cells[3]) : std::nullopt;
    if (!best_ns || !efficiency) {
      return fail(ErrorCode::kCorrupt, "problem ", out.size() + 1, " of the table lacks one of ",
                  kPicksHeader);
    }
    FORETUNE_TRY_STATUS(add_pick({cells[0], cells[4], *best_ns, *efficiency}, out));
  }
  return out;
}

}  // namespace

std::string picks_csv(std::span<const PickedProblem> picks) {
  std::string out = concat(kPicksHeader, "\n");
  for (const PickedProblem& picked : picks) {
    out +=
        concat(formats::csv_quoted(picked.problem), ",", picked.best_ns, ",",
               picked.efficiency > 0 ? concat(picked.best_ns / picked.efficiency) : std::string(),
               ",", picked.efficiency, ",", formats::csv_quoted(picked.pick), "\n");
  }
  return out;
}

Result<std::vector<PickedProblem>> parse_picks(std::string_view text) {
  if (text.starts_with(kPicksHeader)) {
    return parse_picks_csv(text);
  }
  FORETUNE_TRY(const ParsedJson report, formats::parse_json(text));
  const ParsedJson* const problems = formats::member(report, "problems");
  if (problems == nullptr || !problems->is_array()) {
    return fail(ErrorCode::kCorrupt, "this is no report of validate-model: it has no 'problems'");
  }
  std::vector<PickedProblem> out;
  for (const ParsedJson& entry : *problems) {
    const auto problem = formats::text_at(entry, "problem");
    const auto pick = formats::text_at(entry, "pick");
    const ParsedJson* const best = formats::member(entry, "best_ns");
    const ParsedJson* const efficiency = formats::member(entry, "efficiency");
    if (!problem || !pick || best == nullptr || !best->is_number() || efficiency == nullptr ||
        !efficiency->is_number()) {
      return fail(ErrorCode::kCorrupt, "problem ", out.size() + 1,
                  " of the report lacks one of problem, pick, best_ns and efficiency");
    }
    FORETUNE_TRY_STATUS(
        add_pick({*problem, *pick, best->get<double>(), efficiency->get<double>()}, out));
  }
  return out;
}

}  // namespace foretune
