#include "bench/pick_report.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <utility>

#include "bench/breakdown.h"
#include "bench/selection_time.h"
#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/cublaslt/cublaslt_config.h"
#include "foretune/families/families.h"

namespace foretune::bench {
namespace {

// Number of rounds that time a selection.
constexpr int kTimedRuns = 5;
constexpr std::size_t kHalves = 2000;
constexpr double kMargins[] = {0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.10, 0.12};

struct Line {
  std::string name;
  std::string metric;
  std::vector<double> speeds;

  void print(std::string_view family, Figures& figures) const {
    const double geomean = geometric_mean(speeds);
    const double share = share_slower(speeds);
    const double worst = quantile(speeds, 0);
    std::printf("%-44s %8.4f %8.3f %8.3f %8.3f %8.1f %8.3f\n", name.c_str(), geomean,
                quantile(speeds, 0.1), quantile(speeds, 0.5), quantile(speeds, 0.9), 100 * share,
                worst);
    figures.add(metric == "oracle_" ? concat(family, "_oracle_geomean")
                                    : concat(family, "_", metric, "geomean_vs_heuristic"),
                geomean);
    figures.add(concat(family, "_", metric, "share_slower_than_098"), share);
    figures.add(concat(family, "_", metric, "worst"), worst);
  }
};

void print_head(std::size_t products) {
  std::printf("%zu products; speed over the library's choice\n%-44s %8s %8s %8s %8s %8s %8s\n",
              products, "", "geomean", "P10", "median", "P90", "% < 0.98", "worst");
}

std::string margin_name(double margin) {
  return concat("... or the library's below ", fixed(100 * margin, 0), " %");
}

// One product's class, speed and most that was possible, into the breakdown.
Status add_class(const ProductClasses& classes, const Problem& problem, double speed, double best,
                 Breakdown& breakdown) {
  const auto found = classes.find(problem);
  if (found == classes.end()) {
    return fail(ErrorCode::kNotFound, "no shape set names the regime of ", problem.text());
  }
  breakdown.add(found->second, speed, best);
  return {};
}

void print_counts(const JudgedSet& judged, double margin, std::string_view family,
                  Figures& figures) {
  const auto count = [&](std::string_view name, auto holds) {
    const auto found = static_cast<std::size_t>(
        std::count_if(judged.products.begin(), judged.products.end(),
                      [&](const JudgedProduct& product) { return holds(product.verdict); }));
    figures.add(concat(family, "_", name), static_cast<double>(found));
    return found;
  };
  std::printf(
      "the library's choice runs on %zu products outside of the model's applicability domain and "
      "%zu below the margin; %zu picks come after refused ones, %zu were stopped early, %zu took "
      "no turns; %zu products are left out because a pick failed\n",
      count("outside_of_domain", [](const Verdict& verdict) { return !verdict.is_covered; }),
      count("below_margin", [&](const Verdict& verdict) { return verdict.is_below(margin); }),
      count("after_refused", [](const Verdict& verdict) { return verdict.refused > 0; }),
      count("stopped_early", [](const Verdict& verdict) { return verdict.is_stopped_early; }),
      count("measured_once", [](const Verdict& verdict) { return !verdict.is_in_turns; }),
      judged.failed);
  std::printf(
      "the fast mode answers %zu products; on %zu more its pick was not measured, or failed\n",
      count("fast_answers", [](const Verdict& verdict) { return verdict.fast_pick.has_value(); }),
      count("fast_unknown", [](const Verdict& verdict) { return !verdict.is_fast_known; }));
  figures.add(concat(family, "_failed_picks"), static_cast<double>(judged.failed));
}

void print_margins(const JudgedSet& judged, Figures& figures) {
  std::vector<Verdict> verdicts;
  for (const JudgedProduct& product : judged.products) {
    verdicts.push_back(product.verdict);
  }
  std::printf("margin: geomean, %% < 0.98, worst\n");
  for (const double margin : kMargins) {
    std::vector<double> speeds;
    for (const Verdict& verdict : verdicts) {
      speeds.push_back(verdict.with_margin(margin));
    }
    std::printf("  %3.0f %%: %.4f %5.1f %.3f\n", 100 * margin, geometric_mean(speeds),
                100 * share_slower(speeds), quantile(speeds, 0));
  }
  const HalvesResult halves = choose_on_halves(verdicts, kMargins, kHalves);
  std::printf(
      "the margin chosen on one half and judged on the other, %zu times: geomean %.4f, %.2f %% "
      "below 0.98, above %.0f %% in %.0f %% of the halves\n",
      kHalves, halves.geomean, 100 * halves.share_slower, 100 * kMaxSlower,
      100 * halves.share_of_halves);
  figures.add(concat(judged.family, "_halves_geomean_vs_heuristic"), halves.geomean);
  figures.add(concat(judged.family, "_halves_share_slower_than_098"), halves.share_slower);
  figures.add(concat(judged.family, "_halves_above_limit"), halves.share_of_halves);
}

Status print_others(const JudgedSet& judged, std::size_t top, const ProductClasses& classes,
                    Figures& figures) {
  Breakdown breakdown;
  std::vector<double> first;
  std::vector<double> best;
  std::size_t once = 0;
  for (const auto& [problem, verdict] : judged.products) {
    if (verdict.own_efficiency) {
      once += verdict.is_own_in_turns ? 0U : 1U;
      first.push_back(*verdict.own_efficiency);
      best.push_back(verdict.own_top_efficiency);
      if (!classes.empty()) {
        FORETUNE_TRY_STATUS(add_class(classes, problem, first.back(), best.back(), breakdown));
      }
    }
  }
  if (first.empty()) {
    return {};
  }
  std::printf(
      "without the library's choice and abstaining nowhere, over the fastest other in turns, %zu "
      "products, of which %zu took no turns: first %.2f %% (P10 %.2f, min %.1f), best of %zu "
      "%.2f %%\n",
      first.size(), once, 100 * mean(first), 100 * quantile(first, 0.1), 100 * quantile(first, 0),
      top, 100 * mean(best));
  figures.add(concat(judged.family, "_top1_mean_efficiency"), mean(first));
  figures.add(concat(judged.family, "_p10_efficiency"), quantile(first, 0.1));
  figures.add(concat(judged.family, "_top", top, "_efficiency"), mean(best));
  if (!classes.empty()) {
    std::printf("their efficiency; fastest: the best of %zu\n", top);
    breakdown.print(concat(judged.family, "_own"), figures);
  }
  return {};
}

void print_selection_time(const Selector& selector, const JudgedSet& judged) {
  std::vector<Problem> problems;
  for (const JudgedProduct& product : judged.products) {
    problems.push_back(product.problem);
  }
  std::printf("a new problem takes %.1f us, %.2f us by the fast mode\n",
              selection_us(selector, problems, kTimedRuns, false),
              selection_us(selector, problems, kTimedRuns, true));
}

}  // namespace

Result<LibraryAnswers> read_answers(const std::string& path) {
  LibraryAnswers answers;
  if (path.empty()) {
    return answers;
  }
  FORETUNE_TRY(const std::string text, read_text_file(path));
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> parts = split(line, '\t');
    if (parts.size() == 3 && parts[1] == "1") {
      FORETUNE_TRY(const Config config, parse_config(cublaslt_schema(), parts[2]));
      answers.emplace(parts[0], config);
    }
  }
  return answers;
}

void JudgedSet::add(const Problem& problem, const Judgement& judgement) {
  if (judgement.verdict) {
    products.push_back({problem, *judgement.verdict});
    return;
  }
  failed += judgement.is_failed ? 1U : 0U;
  std::printf("left out: %s: %s\n", problem.text().c_str(), judgement.left_out.c_str());
}

Result<JudgedSet> judge_all(const Selector& selector, const Dataset& dataset,
                            const LibraryAnswers& answers, std::size_t top) {
  JudgedSet judged;
  judged.family = dataset.header().family;
  FamilyOptions options;
  options.fingerprint = dataset.header().fingerprint;
  FORETUNE_TRY(const std::unique_ptr<Family> family,
               create_detached_family(judged.family, options));
  for (const auto& [index, measured] : read_measured(dataset)) {
    const Problem& problem = dataset.problems()[index];
    const std::vector<Config> defaults = family->default_configs(problem);
    if (defaults.empty()) {
      std::printf("left out: %s: %s\n", problem.text().c_str(),
                  family->supports(problem).reason().c_str());
      continue;
    }
    const auto algorithm = answers.find(problem.text());
    FORETUNE_TRY(const ModelAnswer answer,
                 ask(selector, problem, defaults.front(),
                     algorithm == answers.end() ? nullptr : &algorithm->second));
    judged.add(problem, judge(answer, measured, defaults.front(), top));
  }
  if (judged.products.empty()) {
    return fail(ErrorCode::kInvalidArgument, "no product was compared");
  }
  return judged;
}

Status report(const Selector& selector, const JudgedSet& judged, const ReportOptions& options,
              const ProductClasses& classes, Figures& figures) {
  Line pick{"the model's pick", "", {}};
  Line careful{margin_name(options.margin), "careful_", {}};
  Line fast{"the fast mode's pick, measured once", "fast_", {}};
  Line best_of_top{concat("best of the model's first ", options.top, ", measured"), "top_", {}};
  Line ranks{"best of the heuristic's answers, measured", "ranks_", {}};
  Line oracle{"the fastest of the space", "oracle_", {}};
  Breakdown breakdown;
  for (const auto& [problem, verdict] : judged.products) {
    const double careful_speed = verdict.with_margin(options.margin);
    pick.speeds.push_back(verdict.pick);
    careful.speeds.push_back(careful_speed);
    if (verdict.is_fast_known) {
      fast.speeds.push_back(verdict.fast(options.margin));
    }
    best_of_top.speeds.push_back(verdict.best_of_top);
    if (judged.family == "cublaslt") {
      ranks.speeds.push_back(verdict.best_of_ranks);
    }
    oracle.speeds.push_back(verdict.oracle);
    if (!classes.empty()) {
      FORETUNE_TRY_STATUS(add_class(classes, problem, careful_speed, verdict.oracle, breakdown));
    }
  }
  std::printf("%s: ", judged.family.c_str());
  print_head(judged.products.size());
  for (const Line* line : {&pick, &careful, &fast, &best_of_top, &ranks, &oracle}) {
    if (!line->speeds.empty()) {
      line->print(judged.family, figures);
    }
  }
  if (!classes.empty()) {
    std::printf("%s\n", careful.name.c_str());
    breakdown.print(concat(judged.family, "_careful"), figures);
  }
  print_counts(judged, options.margin, judged.family, figures);
  print_margins(judged, figures);
  FORETUNE_TRY_STATUS(print_others(judged, options.top, classes, figures));
  print_selection_time(selector, judged);
  figures.add("problems", static_cast<double>(judged.products.size()));
  return {};
}

Status report_union(const JudgedSet& first, const JudgedSet& second, const ReportOptions& options,
                    const ProductClasses& classes, Figures& figures) {
  std::unordered_map<Problem, const Verdict*> of_second;
  for (const JudgedProduct& product : second.products) {
    of_second.emplace(product.problem, &product.verdict);
  }
  Line pick{"the pick that its model expects most of", "", {}};
  Line careful{margin_name(options.margin), "careful_", {}};
  Line best_of_top{"best of the first few of both, measured", "top_", {}};
  Line oracle{"the fastest of both spaces", "oracle_", {}};
  Breakdown breakdown;
  std::size_t from_second = 0;
  for (const auto& [problem, a] : first.products) {
    const auto found = of_second.find(problem);
    if (found == of_second.end()) {
      continue;
    }
    const Verdict& b = *found->second;
    const bool is_second = b.expected_gain.value_or(0) > a.expected_gain.value_or(0);
    const Verdict& chosen = is_second ? b : a;
    from_second += is_second ? 1U : 0U;
    pick.speeds.push_back(chosen.pick);
    careful.speeds.push_back(chosen.with_margin(options.margin));
    best_of_top.speeds.push_back(std::max(a.best_of_top, b.best_of_top));
    oracle.speeds.push_back(std::max(a.oracle, b.oracle));
    if (!classes.empty()) {
      FORETUNE_TRY_STATUS(
          add_class(classes, problem, careful.speeds.back(), oracle.speeds.back(), breakdown));
    }
  }
  std::printf("%s or %s, whichever expects more: ", first.family.c_str(), second.family.c_str());
  print_head(pick.speeds.size());
  if (pick.speeds.empty()) {
    return {};
  }
  for (const Line* line : {&pick, &careful, &best_of_top, &oracle}) {
    line->print("union", figures);
  }
  if (!classes.empty()) {
    breakdown.print("union_careful", figures);
  }
  std::printf("%zu picks are of %s\n", from_second, second.family.c_str());
  return {};
}

HalvesResult choose_on_halves(std::span<const Verdict> verdicts, std::span<const double> margins,
                              std::size_t halves) {
  std::vector<std::vector<double>> speeds(margins.size());
  for (std::size_t m = 0; m < margins.size(); ++m) {
    for (const Verdict& verdict : verdicts) {
      speeds[m].push_back(verdict.with_margin(margins[m]));
    }
  }
  std::vector<std::size_t> order(verdicts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t half = verdicts.size() / 2;
  const auto part_of = [&](std::size_t margin, std::span<const std::size_t> part) {
    std::vector<double> out;
    for (const std::size_t product : part) {
      out.push_back(speeds[margin][product]);
    }
    return out;
  };
  Rng rng(1);
  HalvesResult result;
  for (std::size_t draw = 0; draw < halves; ++draw) {
    rng.shuffle(std::span(order));
    std::size_t chosen = 0;
    // Ranks by few enough slower products first, then by speed.
    std::pair<double, double> best{2, 0};
    for (std::size_t m = 0; m < margins.size(); ++m) {
      const std::vector<double> here = part_of(m, std::span(order).first(half));
      const std::pair<double, double> rank{std::max(share_slower(here), kMaxSlower),
                                           -geometric_mean(here)};
      if (rank < best) {
        best = rank;
        chosen = m;
      }
    }
    const std::vector<double> there = part_of(chosen, std::span(order).subspan(half));
    const double share = share_slower(there);
    result.geomean += geometric_mean(there);
    result.share_slower += share;
    result.share_of_halves += share > kMaxSlower ? 1 : 0;
  }
  const auto count = static_cast<double>(halves);
  return {result.geomean / count, result.share_slower / count, result.share_of_halves / count};
}

}  // namespace foretune::bench
