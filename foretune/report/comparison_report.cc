// A comparison of two models as text and as JSON.
#include <algorithm>
#include <string>

#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/measured_times.h"
#include "foretune/problem/problem.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/report/internal/figure_text.h"
#include "foretune/report/internal/json_values.h"

namespace foretune {
namespace {

using Json = nlohmann::ordered_json;
using report_internal::clean_text;
using report_internal::gain_text;
using report_internal::interval_json;
using report_internal::percent_text;

std::string change_text(const char* name, const Interval& change) {
  return concat("  ", name, gain_text(change.value), " points (", gain_text(change.low), " to ",
                gain_text(change.high), ")\n");
}

std::string problem_text(const ComparedProblem& problem) {
  std::string out = concat("  ", percent_text(problem.old_efficiency), " -> ",
                           percent_text(problem.new_efficiency), " %  ",
                           clean_text(shown_problem(problem.problem)), "\n");
  if (problem.old_pick != problem.new_pick) {
    out += concat("      ", clean_text(problem.old_pick), "\n   -> ", clean_text(problem.new_pick),
                  "\n");
  }
  return out;
}

}  // namespace

std::string comparison_text(const ModelComparison& comparison, std::size_t rows, bool color) {
  const auto painted = [&](const std::string& text, bool good) {
    return color ? concat(good ? "\033[32m" : "\033[31m", text, "\033[0m") : text;
  };
  const std::size_t count = comparison.problems.size();
  std::string out =
      concat(count_of(count, "problem"), ": mean efficiency ", percent_text(comparison.old_mean),
             " -> ", percent_text(comparison.new_mean), " %, the same pick on ",
             comparison.same_picks, "\n", change_text("mean     ", comparison.mean_change),
             change_text("median   ", comparison.median_change),
             change_text("P10      ", comparison.p10_change), "  ", comparison.improved,
             " improved, ", count - comparison.improved - comparison.degraded, " within 1 point, ",
             comparison.degraded, " degraded\n");
  if (comparison.only_old + comparison.only_new > 0) {
    out += concat("not compared: ", count_of(comparison.only_old, "problem"), " of the old alone, ",
                  comparison.only_new, " of the new alone\n");
  }
  if (comparison.other_best > 0) {
    out += concat("the best known time of ", count_of(comparison.other_best, "problem"),
                  " differs by more than 1 % between the two\n");
  }
  const auto list = [&](const char* title, bool losses) {
    std::string part;
    for (std::size_t i = 0; i < std::min(rows, count); ++i) {
      const ComparedProblem& problem = comparison.problems[losses ? i : count - 1 - i];
      if (losses ? problem.change() < -kTieTolerance : problem.change() > kTieTolerance) {
        part += problem_text(problem);
      }
    }
    out += part.empty() ? "" : concat(title, "\n", part);
  };
  list("lost most", true);
  list("won most", false);
  out += "rules\n";
  for (const RuleVerdict& rule : comparison.rules) {
    out += concat("  ", painted(rule.kept() ? "kept  " : "BROKEN", rule.kept()), " ", rule.rule,
                  rule.loss >= 0 ? concat(": loses ", percent_text(rule.loss), " %")
                                 : concat(": wins ", percent_text(-rule.loss), " %"),
                  ", may lose ", percent_text(rule.limit), " %",
                  rule.kept() || rule.where.empty()
                      ? ""
                      : concat(" (", clean_text(shown_problem(rule.where)), ")"),
                  "\n");
  }
  return out;
}

std::string comparison_json(const ModelComparison& comparison, const std::string& command) {
  Json out = {{"name", "compare"},
              {"command", command},
              {"metrics",
               {{"problems", comparison.problems.size()},
                {"same_picks", comparison.same_picks},
                {"improved", comparison.improved},
                {"degraded", comparison.degraded},
                {"old_mean_efficiency", comparison.old_mean},
                {"new_mean_efficiency", comparison.new_mean},
                {"mean_change", comparison.mean_change.value},
                {"accepted", comparison.accepted()}}},
              {"mean_change", interval_json(comparison.mean_change)},
              {"median_change", interval_json(comparison.median_change)},
              {"p10_change", interval_json(comparison.p10_change)},
              {"only_old", comparison.only_old},
              {"only_new", comparison.only_new},
              {"other_best", comparison.other_best},
              {"rules", Json::array()},
              {"problems", Json::array()}};
  for (const RuleVerdict& rule : comparison.rules) {
    out["rules"].push_back({{"rule", rule.rule},
                            {"loss", rule.loss},
                            {"limit", rule.limit},
                            {"problem", rule.where},
                            {"kept", rule.kept()}});
  }
  for (const ComparedProblem& problem : comparison.problems) {
    out["problems"].push_back({{"problem", problem.problem},
                               {"old_pick", problem.old_pick},
                               {"new_pick", problem.new_pick},
                               {"old_efficiency", problem.old_efficiency},
                               {"new_efficiency", problem.new_efficiency}});
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace foretune
