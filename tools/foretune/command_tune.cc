// foretune tune: finds the best config of a problem by measuring.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/clock.h"
#include "foretune/base/figures.h"
#include "foretune/base/file.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/report/tune_report.h"
#include "foretune/tune/strategy_contest.h"
#include "foretune/workflow/output.h"
#include "foretune/workflow/tuning.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/contest_log.h"
#include "tools/foretune/reporting.h"
#include "tools/foretune/shared_run.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

std::string progress_text(const CollectProgress& progress, std::size_t index, std::size_t count) {
  std::string out = count > 1 ? concat("problem ", index + 1, "/", count, "  ") : std::string();
  out += concat(count_text(progress.measured), " measured, ", duration_text(progress.elapsed_s));
  if (progress.best_ns > 0) {
    out += concat("  best ", time_text(progress.best_ns), "  ", progress.best_config);
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> facts_of(const PreparedTuning& ready,
                                                          const Invocation& invocation) {
  const FamilyInfo& info = ready.live.family->info();
  const Budget& budget = ready.options.budget;
  std::vector<std::pair<std::string, std::string>> out{
      {"family", info.name},
      {"strategy", ready.options.strategy},
      {"budget of a problem", budget.seconds
                                  ? duration_text(*budget.seconds)
                                  : count_of(budget.measurements.value_or(0), "measurement")},
      {"rounds of the final comparison", concat(ready.options.rounds)}};
  for (auto& fact : machine_facts(info.fingerprint)) {
    out.push_back(std::move(fact));
  }
  out.emplace_back("command", invocation.command_line);
  return out;
}

// Runs several strategies, each with the budget, on every problem.
Result<int> compare_strategies(const TuneArguments& arguments, const PreparedTuning& ready,
                               const std::vector<Contestant>& contestants,
                               const Invocation& invocation) {
  // A strategy that cannot run is refused before there is a folder.
  FORETUNE_TRY(const std::unique_ptr<Space> first,
               ready.live.family->space(ready.problems.front()));
  FORETUNE_TRY_STATUS(check_contestants(contestants, *first));
  FORETUNE_TRY(ContestLog log,
               ContestLog::create({.folder = arguments.folder,
                                   .source = ready.source,
                                   .has_graphs = arguments.graphs,
                                   .manifest = {{"command", json_quoted(invocation.command_line)},
                                                {"family", json_quoted(arguments.family.family)},
                                                {"budget", json_quoted(arguments.budget)},
                                                {"seed", concat(invocation.seed)}}},
                                  contestants));
  ContestOptions options{.tune = ready.options, .on_search = {}};
  std::string searching;
  options.on_search = [&](const Contestant& contestant) { searching = contestant.name; };
  ProgressLine line;
  CollectHooks hooks;
  hooks.now_s = &monotonic_s;
  hooks.stop = &stop_flag();
  ContestResults results{.unit = std::string(speed_unit(ready.problems.front())),
                         .peak = arguments.peak,
                         .problems = {}};
  hooks.on_progress = [&](const CollectProgress& progress) {
    if (line.due()) {
      line.show(concat(searching, ": ",
                       progress_text(progress, results.problems.size(), ready.problems.size())));
    }
  };
  for (const Problem& problem : ready.problems) {
    FORETUNE_TRY(const std::unique_ptr<Space> space, ready.live.family->space(problem));
    FORETUNE_TRY(ContestResult result,
                 run_contest(*ready.live.family, *ready.measurer, ready.journal.get(), problem,
                             contestants, options, hooks));
    line.clear();
    if (stop_flag().load()) {
      break;
    }
    results.problems.push_back(std::move(result));
    FORETUNE_TRY_STATUS(log.add(results, *space));
  }
  if (ready.journal != nullptr) {
    FORETUNE_TRY_STATUS(ready.journal->sync());
  }
  FORETUNE_TRY_STATUS(remark_known(ready, invocation));
  FORETUNE_TRY_STATUS(log.finish(results));
  return stop_flag().load() ? kExitInterrupted : kExitOk;
}

Status write_tune_json(const std::string& path, const FamilyInfo& info, const Tuning& tuning,
                       const TuneReport& report, const Invocation& invocation) {
  Figures figures{.name = "tune",
                  .metrics = {},
                  .machine = machine_facts(info.fingerprint),
                  .command = invocation.command_line};
  std::vector<double> gains;
  for (const auto& [problem, result] : tuning.tuned) {
    if (result.by_default) {
      gains.push_back(result.by_default->time_ns / result.finalists.front().time_ns);
    }
  }
  const std::size_t problems = tuning.tuned.size() + tuning.refused.size();
  if (problems == 1 && tuning.skipped == 0 && !tuning.tuned.empty()) {
    const TunedConfig& best = tuning.tuned.front().second.finalists.front();
    figures.add("best_ns", best.time_ns);
    figures.add("spread", best.spread);
  }
  figures.add("problems", static_cast<double>(problems));
  figures.add("measurements", static_cast<double>(tuning.measured));
  if (!gains.empty()) {
    figures.add("geomean_speedup_over_default", geometric_mean(gains));
  }
  return write_text_file_atomically(path, tune_json(figures, report.problems, info.config_schema));
}

Result<int> tune(const TuneArguments& arguments, const Invocation& invocation) {
  // A mistyped name is refused before anything is measured.
  std::vector<Contestant> contestants;
  if (arguments.is_contest()) {
    FORETUNE_TRY(contestants, Contestant::parse_list(arguments.strategies));
  }
  FORETUNE_TRY(const PreparedTuning ready, prepare_tuning(arguments, invocation));
  if (arguments.is_contest()) {
    return compare_strategies(arguments, ready, contestants, invocation);
  }
  const FamilyInfo& info = ready.live.family->info();
  ProgressLine line;
  TuneHooks hooks;
  hooks.stop = &stop_flag();
  hooks.on_progress = [&](const CollectProgress& progress, std::size_t index) {
    if (line.due()) {
      line.show(progress_text(progress, index, ready.problems.size()));
    }
  };
  hooks.on_result = [&](const Problem& problem, const TuneResult& result) {
    line.clear();
    print(tune_text(problem, result, info.config_schema));
  };
  FORETUNE_TRY(const Tuning tuning, run_tuning(ready, invocation, hooks));
  line.clear();
  TuneReport report{.problems = {},
                    .refused = {},
                    .schema = info.config_schema,
                    .facts = {},
                    .source = ready.source};
  for (const auto& [problem, result] : tuning.tuned) {
    report.problems.push_back({problem, result});
  }
  for (const auto& [problem, error] : tuning.refused) {
    report.refused.emplace_back(problem.shown_text(), error.message);
  }
  if (!arguments.json.empty()) {
    FORETUNE_TRY_STATUS(write_tune_json(arguments.json, info, tuning, report, invocation));
  }
  if (!arguments.report.empty()) {
    report.facts = facts_of(ready, invocation);
    FORETUNE_TRY_STATUS(write_text_file_atomically(
        arguments.report, tune_html(report, concat("Tuning ", info.name))));
    print(concat("report: ", arguments.report, "\n"));
  }
  if (!arguments.figures.empty()) {
    FORETUNE_TRY_STATUS(write_figures(arguments.figures, tune_figures(report)));
  }
  return stop_flag().load() ? kExitInterrupted : kExitOk;
}

// Prints the best config of each problem, by the final comparisons, for each context.
void print_best(const Dataset& dataset) {
  std::map<std::pair<std::uint32_t, std::uint16_t>, const Dataset::Row*> best;
  for (const Dataset::Row& row : dataset.rows()) {
    if (!row.is_timed() || (row.flags & kFlagReference) == 0) {
      continue;
    }
    const Dataset::Row*& known = best[{row.problem, row.context}];
    if (known == nullptr || row.time_ns < known->time_ns) {
      known = &row;
    }
  }
  for (const auto& [key, row] : best) {
    print(concat(dataset.problems()[key.first].shown_text(), ": ",
                 time_text(static_cast<double>(row->time_ns)), "  ",
                 to_text(dataset.header().config_schema, dataset.configs()[row->config]), "\n"));
  }
}

Result<int> tune_or_share(const SharedOut<TuneArguments>& arguments, const Invocation& invocation) {
  if (!arguments.cluster.is_shared_out()) {
    return tune(arguments.work, invocation);
  }
  FORETUNE_TRY(SharedRun shared, shared_run("tune", arguments.work, invocation));
  shared.on_merged = &print_best;
  return share_out(shared, arguments.cluster, invocation);
}

}  // namespace

std::function<int(const Invocation&)> prepare_tune(OptionList& list) {
  return prepare_with<SharedOut<TuneArguments>, tune_or_share>(list);
}

}  // namespace foretune::cli
