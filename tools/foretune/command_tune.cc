// foretune tune: the best config of a problem, found by measuring.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <unordered_set>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/dataset/exchange.h"
#include "foretune/evaluate/tune_report.h"
#include "foretune/measure/known_measurer.h"
#include "foretune/models/infer/model_scorer.h"
#include "foretune/tune/strategy_contest.h"
#include "foretune/tune/tune_problem.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/common.h"
#include "tools/foretune/contest_log.h"
#include "tools/foretune/problem_arguments.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct TuneArguments {
  OneProblemArguments problem;
  std::string shapeset;
  std::string objective;
  std::string budget = "60s";
  std::string strategy;
  std::string model;
  std::optional<std::int64_t> lookahead;
  std::optional<std::int64_t> width;
  std::optional<std::int64_t> max_steps;
  std::string output;
  std::string cache;
  std::int64_t finalists = 8;
  std::int64_t rounds = 15;
  std::string json;
  std::string report;
  std::string strategies;
  std::string folder;
  bool graphs = false;
  double peak = 0;
  FamilyArguments family;
  MeasureArguments measuring;

  void visit(OptionList& list) {
    problem.visit(list);
    list.add("shapeset", shapeset, "FILE",
             concat("tune every problem of an operation shape set or a CSV file, or of ",
                    shape_set_names()));
    list.add("objective", objective, "TEXT",
             "\"minimise time_ns subject to pack_ns <= 2 ms\", or \"pareto time_ns pack_ns\" "
             "(default: minimise time_ns)");
    list.add("budget", budget, "60s|500", "time (s, m, h) or number of measurements of a problem");
    list.add("strategy", strategy, "NAME", "how to search (default: local; model with --model)")
        .choose(strategy_names());
    list.add("model", model, "FILE",
             "measure what this model ranks best first; with --strategy guided, begin with what it "
             "knows of other problems")
        .only({"with --strategy model or guided",
               [this] { return strategy.empty() || strategy == "model" || strategy == "guided"; }});
    list.add("lookahead", lookahead, "N", "changes that one step of the search may make (1)")
        .at_least(1)
        .only({"with --strategy greedy", [this] { return strategy == "greedy"; }});
    list.add("width", width, "N", "configs of a level that a beam goes on from (4)")
        .at_least(1)
        .only({"with --strategy beam-bfs, beam-dfs or guided",
               [this] { return strategy.starts_with("beam") || strategy == "guided"; }});
    list.add("max-steps", max_steps, "N",
             "actions that build a config, at most, where configs are built step by step")
        .at_least(1);
    list.add("output", output, "FILE",
             "keep every measurement in this data set (.ftd); problems tuned there are skipped");
    list.add("cache", cache, "FILE",
             "answer from this data set (.ftd) what it knows, and keep in it what is measured");
    list.add("finalists", finalists, "N", "how many of the best to time once more").at_least(1);
    list.add("rounds", rounds, "N", "of timing them against each other").at_least(1);
    list.add("json", json, "FILE", "write the figures and all results as JSON");
    list.add("report", report, "FILE", "write plots and finalists as one self-contained HTML page");
    list.section("Comparing strategies", {"with --strategies", [this] { return is_contest(); }});
    list.add(
            "strategies", strategies, "LIST",
            "search with each of these, with --budget for each, and time what they found in turns: "
            "start, textbook, greedy2, beam4bfs (any numbers) or a strategy's name")
        .only({"without --strategy, --objective, --json and --report", [this] {
                 return strategy.empty() && objective.empty() && json.empty() && report.empty();
               }});
    list.add("folder", folder, "FOLDER", "write tables, plots and logs into this new folder");
    list.add_switch("graphs", graphs, "draw every search as a graph, too")
        .only({"with --folder", [this] { return !folder.empty(); }});
    list.add("peak", peak, "SPEED", "what is 100 %: GFLOP/s, or runs a second where that is shown")
        .at_least(0);
    family.visit(list);
    measuring.visit(list);
  }

  [[nodiscard]] bool is_contest() const { return !strategies.empty(); }
};

Result<std::vector<Problem>> problems_of(const TuneArguments& arguments, ProblemType type) {
  FORETUNE_TRY(const std::shared_ptr<PayloadStore> payloads, arguments.family.payloads.open());
  if (arguments.shapeset.empty()) {
    FORETUNE_TRY(const Problem problem, arguments.problem.parse(type, *payloads));
    return std::vector{problem};
  }
  if (arguments.problem.given()) {
    return fail(ErrorCode::kInvalidArgument, "give a problem or --shapeset, not both");
  }
  FORETUNE_TRY(std::vector<Problem> problems, read_shapes(arguments.shapeset, *payloads));
  FORETUNE_TRY_STATUS(resolve_all(problems, *payloads));
  return problems;
}

// The problems whose finalists a data set holds already. Rows do not say for which objective they
// were chosen, so a data set is of one: that of the command that began it.
Result<std::unordered_set<Problem>> tuned_problems(const std::filesystem::path& journal,
                                                   Context context, const std::string& objective) {
  std::unordered_set<Problem> tuned;
  if (!std::filesystem::exists(journal)) {
    return tuned;
  }
  FORETUNE_TRY(const Dataset dataset, read_dataset(journal));
  const std::string& begun_by = dataset.header().created_by;
  const bool is_same = objective.empty() ? begun_by.find("--objective") == std::string::npos
                                         : begun_by.find(objective) != std::string::npos;
  if (!is_same) {
    return fail(ErrorCode::kInvalidArgument, journal.string(), " was begun for another objective (",
                begun_by, "): give another --output");
  }
  context.fidelity = kReferenceFidelity;
  for (const Dataset::Row& row : dataset.rows()) {
    if ((row.flags & kFlagReference) != 0 && dataset.contexts()[row.context] == context) {
      tuned.insert(dataset.problems()[row.problem]);
    }
  }
  return tuned;
}

std::string progress_text(const CollectProgress& progress, std::size_t index, std::size_t count) {
  std::string out = count > 1 ? concat("problem ", index + 1, "/", count, "  ") : std::string();
  out += concat(count_text(progress.measured), " measured, ", duration_text(progress.elapsed_s));
  if (progress.best_ns > 0) {
    out += concat("  best ", time_text(progress.best_ns), "  ", progress.best_config);
  }
  return out;
}

struct Ready {
  LiveFamily live;
  std::vector<Problem> problems;
  Context context;
  std::unique_ptr<Measurer> measurer;
  const KnownMeasurer* known = nullptr;    // the measurer, with --cache
  std::unique_ptr<JournalWriter> journal;  // may be null
  std::unordered_set<Problem> tuned;       // what the journal holds already
  std::unique_ptr<Scorer> scorer;          // may be null
  std::unique_ptr<Model> prior;            // of the strategy guided; may be null
  TuneOptions options;
};

Result<Model> open_model(const std::string& path, const FamilyInfo& info) {
  FORETUNE_TRY(Model model, read_model(path));
  FORETUNE_TRY_STATUS(check_model_fits(model, info, path));
  return model;
}

Result<Ready> get_ready(const TuneArguments& arguments, const Invocation& invocation) {
  Ready ready;
  OutputPaths paths;
  if (!arguments.output.empty()) {
    FORETUNE_TRY(paths, output_paths(arguments.output, *invocation.global));
  }
  FORETUNE_TRY(ready.live, open_family_for(arguments.family, paths.journal, invocation));
  FORETUNE_TRY(ready.problems, problems_of(arguments, ready.live.family->info().problem_type));
  FORETUNE_TRY_STATUS(check_supported(*ready.live.family, ready.problems));
  const FamilyInfo& info = ready.live.family->info();
  const auto seed = static_cast<std::uint64_t>(invocation.global->seed);
  Protocol protocol = arguments.measuring.protocol(seed);
  if (arguments.measuring.repeat == 0) {
    // The best are timed against each other at the end, so the search may look at many configs
    // briefly.
    protocol.windows = 2;
    protocol.max_windows = 3;
    protocol.look_briefly(info);
  }
  FORETUNE_TRY(ready.context, arguments.measuring.context(info));
  if (!arguments.model.empty()) {
    FORETUNE_TRY(Model model, open_model(arguments.model, info));
    if (arguments.strategy == "guided") {
      ready.prior = std::make_unique<Model>(std::move(model));
    } else {
      FORETUNE_TRY(ready.scorer, make_scorer(model));
    }
  }
  ready.options.prior = ready.prior.get();
  const auto size_or = [](const std::optional<std::int64_t>& value, std::size_t usual) {
    return value ? static_cast<std::size_t>(*value) : usual;
  };
  ready.options.lookahead = size_or(arguments.lookahead, ready.options.lookahead);
  ready.options.width = size_or(arguments.width, ready.options.width);
  ready.options.max_steps = size_or(arguments.max_steps, ready.options.max_steps);
  ready.options.strategy = !arguments.strategy.empty() ? arguments.strategy
                           : ready.scorer != nullptr   ? "model"
                                                       : "local";
  ready.options.scorer = ready.scorer.get();
  if (!arguments.objective.empty()) {
    FORETUNE_TRY(ready.options.objective, Objective::parse(arguments.objective));
    FORETUNE_TRY_STATUS(check_objective(ready.options.objective, info));
  }
  FORETUNE_TRY(ready.options.budget, parse_budget(arguments.budget));
  ready.options.seed = seed;
  ready.options.finalists = static_cast<int>(arguments.finalists);
  ready.options.rounds = static_cast<int>(arguments.rounds);
  if (!arguments.output.empty()) {
    FORETUNE_TRY(ready.tuned, tuned_problems(paths.journal, ready.context, arguments.objective));
    FORETUNE_TRY(
        ready.journal,
        open_journal(paths.journal, dataset_header(info, DatasetRole::kTraining, invocation)));
  }
  FORETUNE_TRY(ready.measurer, open_measurer(ready.live, protocol, ready.context, invocation));
  if (!arguments.cache.empty()) {
    FORETUNE_TRY(auto stored,
                 KnownMeasurements::open(arguments.cache,
                                         dataset_header(info, DatasetRole::kTraining, invocation)));
    auto known = std::make_unique<KnownMeasurer>(std::move(ready.measurer), std::move(stored));
    ready.known = known.get();
    ready.measurer = std::move(known);
  }
  return ready;
}

std::vector<std::pair<std::string, std::string>> facts_of(const Ready& ready,
                                                          const Invocation& invocation) {
  const FamilyInfo& info = ready.live.family->info();
  const Budget& budget = ready.options.budget;
  std::vector<std::pair<std::string, std::string>> out{
      {"family", info.name},
      {"strategy", ready.options.strategy},
      {"budget of a problem",
       budget.seconds ? duration_text(*budget.seconds)
                      : concat(count_text(budget.measurements.value_or(0)), " measurements")},
      {"rounds of the final comparison", concat(ready.options.rounds)}};
  for (auto& fact : machine_facts(info.fingerprint)) {
    out.push_back(std::move(fact));
  }
  out.emplace_back("command", invocation.command_line);
  return out;
}

// Says how much --cache knew.
Status report_known(const Ready& ready) {
  if (ready.known == nullptr) {
    return {};
  }
  remark(concat(count_text(ready.known->hits()), " measurements were known, ",
                count_text(ready.known->misses()), " are now"));
  return ready.known->status();
}

// Several strategies, each with the budget, on every problem.
Result<int> compare_strategies(const TuneArguments& arguments, const Ready& ready,
                               const std::vector<Contestant>& contestants,
                               const Invocation& invocation) {
  FORETUNE_TRY(ContestLog log,
               ContestLog::create({.folder = arguments.folder,
                                   .has_graphs = arguments.graphs,
                                   .manifest = {{"command", json_quoted(invocation.command_line)},
                                                {"family", json_quoted(arguments.family.family)},
                                                {"budget", json_quoted(arguments.budget)},
                                                {"seed", concat(invocation.global->seed)}}},
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
  FORETUNE_TRY_STATUS(report_known(ready));
  FORETUNE_TRY_STATUS(log.finish(results));
  return stop_flag().load() ? kExitInterrupted : kExitOk;
}

Result<int> tune(const TuneArguments& arguments, const Invocation& invocation) {
  // A mistyped name is refused before anything is measured.
  std::vector<Contestant> contestants;
  if (arguments.is_contest()) {
    FORETUNE_TRY(contestants, Contestant::parse_list(arguments.strategies));
  }
  FORETUNE_TRY(const Ready ready, get_ready(arguments, invocation));
  if (arguments.is_contest()) {
    return compare_strategies(arguments, ready, contestants, invocation);
  }
  const std::vector<Problem>& problems = ready.problems;
  const FamilyInfo& info = ready.live.family->info();
  if (!info.simulated) {
    for (const std::string& warning : load_warnings()) {
      warn(warning);
    }
  }
  Figures figures{.name = "tune",
                  .metrics = {},
                  .machine = machine_facts(info.fingerprint),
                  .command = invocation.command_line};
  ProgressLine line;
  std::size_t index = 0;
  CollectHooks hooks;
  hooks.now_s = &monotonic_s;
  hooks.stop = &stop_flag();
  hooks.on_progress = [&](const CollectProgress& progress) {
    if (line.due()) {
      line.show(progress_text(progress, index, problems.size()));
    }
  };
  double measured = 0;
  std::size_t skipped = 0;
  std::vector<double> gains;
  Refusals refusals;
  TuneReport report{.problems = {}, .refused = {}, .schema = info.config_schema, .facts = {}};
  for (; index < problems.size() && !stop_flag().load(); ++index) {
    const Problem& problem = problems[index];
    if (ready.tuned.contains(problem)) {
      ++skipped;
      continue;
    }
    Result<TuneResult> result = tune_problem(*ready.live.family, *ready.measurer,
                                             ready.journal.get(), problem, ready.options, hooks);
    line.clear();
    if (!result) {
      if (problems.size() == 1) {
        return fail(result.error().code, result.error().message);
      }
      ++refusals[result.error().message];
      report.refused.emplace_back(problem.text(), result.error().message);
      continue;
    }
    print(tune_text(problem, *result, info.config_schema));
    measured += static_cast<double>(result->progress.measured);
    const TunedConfig& best = result->finalists.front();
    if (result->by_default) {
      gains.push_back(result->by_default->time_ns / best.time_ns);
    }
    if (problems.size() == 1) {
      figures.add("best_ns", best.time_ns);
      figures.add("spread", best.spread);
    }
    if (!arguments.json.empty() || !arguments.report.empty()) {
      report.problems.push_back({problem, *std::move(result)});
    }
  }
  if (ready.journal != nullptr) {
    FORETUNE_TRY_STATUS(ready.journal->sync());
  }
  FORETUNE_TRY_STATUS(report_known(ready));
  if (skipped > 0) {
    remark(concat(skipped, " problems were tuned already"));
  }
  if (!refusals.empty()) {
    const std::string text = refusals_text(refusals);
    if (measured == 0 && skipped == 0) {
      return fail(ErrorCode::kUnsupported, "none of the problems could be tuned: ", text);
    }
    warn(concat("problems could not be tuned: ", text));
  }
  if (!arguments.json.empty()) {
    figures.add("problems", static_cast<double>(problems.size() - skipped));
    figures.add("measurements", measured);
    if (!gains.empty()) {
      figures.add("geomean_speedup_over_default", geometric_mean(gains));
    }
    FORETUNE_TRY_STATUS(write_text_file_atomically(
        arguments.json, tune_json(figures, report.problems, info.config_schema)));
  }
  if (!arguments.report.empty()) {
    report.facts = facts_of(ready, invocation);
    FORETUNE_TRY_STATUS(write_text_file_atomically(
        arguments.report, tune_html(report, concat("Tuning ", info.name))));
    print(concat("report: ", arguments.report, "\n"));
  }
  return stop_flag().load() ? kExitInterrupted : kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_tune(OptionList& list) {
  return prepare_with<TuneArguments, tune>(list);
}

}  // namespace foretune::cli
