#include "foretune/workflow/tuning.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "foretune/base/clock.h"
#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/model/joint_model.h"
#include "foretune/model/model_kind.h"
#include "foretune/model/model_scorer.h"
#include "foretune/search/strategy.h"
#include "foretune/workflow/output.h"
#include "foretune/workflow/source.h"

namespace foretune::workflow {

void TuneArguments::visit(OptionList& list) {
  problem.visit(list);
  list.add("shapeset", shapeset, "FILE",
           concat("tune every problem of an operation shape set or a CSV file, or of ",
                  shape_set_names()));
  list.add("json", json, "FILE", "write the figures and all results as JSON");
  list.add("report", report, "FILE", "write plots and finalists as one self-contained HTML page");
  list.add("figures", figures, "DIR", "write each plot of the page as an SVG file");
  visit_search(list);
  list.section("Comparing strategies", {"with --strategies", [this] { return is_contest(); }});
  list.add("strategies", strategies, "LIST",
           "search with each of these strategies, --budget for each, and time their results in "
           "turns: start, textbook, greedy2, beam4bfs (any numbers) or a strategy's name")
      .only({"without --strategy, --objective, --json, --report and --figures", [this] {
               return strategy.empty() && objective.empty() && json.empty() && report.empty() &&
                      figures.empty();
             }});
  list.add("folder", folder, "FOLDER", "write tables, plots and logs into this new folder");
  list.add_switch("graphs", graphs, "also draw every search as a graph")
      .only({"with --folder", [this] { return !folder.empty(); }});
  list.add("peak", peak, "SPEED",
           "value that counts as 100 %, in GFLOP/s, or in runs per second where these are shown")
      .at_least(0);
}

void TuneArguments::visit_search(OptionList& list) {
  list.add("objective", objective, "TEXT",
           "objective: \"minimise time_ns subject to pack_ns <= 2 ms\", or \"pareto "
           "time_ns pack_ns\" (default: minimise time_ns)");
  list.add("budget", budget, "60s|500",
           "search each problem for this long (s, m, h) or by this many measurements; the final "
           "comparison, of --finalists in --rounds, comes on top");
  list.add("strategy", strategy, "NAME", "search strategy (default: local; model with --model)")
      .choose(strategy_names());
  list.add("model", model, "FILE",
           "measure first what this model ranks best; with --strategy guided, start from its "
           "predictions; a policy proposes configs, to itself, to a beam or to guided")
      .only({"with --strategy model, policy, beam-bfs, beam-dfs or guided", [this] {
               return strategy.empty() || strategy == "model" || strategy == "policy" ||
                      strategy == "guided" || strategy.starts_with("beam");
             }});
  list.add("lookahead", lookahead, "N",
           "number of changes that one step of the search may make (default: 1)")
      .at_least(1)
      .only({"with --strategy greedy", [this] { return strategy == "greedy"; }});
  list.add("width", width, "N", "number of configs that a beam keeps per level (default: 4)")
      .at_least(1)
      .only({"with --strategy beam-bfs, beam-dfs or guided",
             [this] { return strategy.starts_with("beam") || strategy == "guided"; }});
  list.add("max-steps", max_steps, "N",
           "maximum number of actions, where configs are built step by step")
      .at_least(1);
  list.add(
      "output", output, "FILE",
      "keep every measurement in this data set (.ftd), and skip problems that were tuned there");
  list.add("cache", cache, "FILE",
           "reuse the measurements of this data set (.ftd), and append new ones");
  list.add("finalists", finalists, "N", "number of best configs to time once more").at_least(1);
  list.add("rounds", rounds, "N", "rounds in which they are timed against each other").at_least(1);
  family.visit(list);
  measuring.visit(list);
}

Result<std::vector<Problem>> tuning_problems(const TuneArguments& arguments, ProblemType type) {
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

namespace {

// Returns the problems whose finalists a data set already holds. Rows do not store the objective
// that chose them, so a data set belongs to one: that of the command that began it.
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

Result<Model> open_model(const std::string& path, const FamilyInfo& info) {
  FORETUNE_TRY(Model model, read_model_for(info, path));
  if (is_joint(model)) {
    adapt_to_machine(model, info.fingerprint);
  }
  return model;
}

}  // namespace

Result<PreparedTuning> prepare_tuning(const TuneArguments& arguments,
                                      const Invocation& invocation) {
  PreparedTuning ready;
  OutputPaths paths;
  if (!arguments.output.empty()) {
    FORETUNE_TRY(paths, output_paths(arguments.output, invocation));
  }
  FORETUNE_TRY(ready.live, open_family_for(arguments.family, paths.journal, invocation));
  FORETUNE_TRY(ready.problems, tuning_problems(arguments, ready.live.family->info().problem_type));
  FORETUNE_TRY_STATUS(check_supported(*ready.live.family, ready.problems));
  const FamilyInfo& info = ready.live.family->info();
  const auto seed = invocation.seed;
  Protocol protocol = arguments.measuring.protocol(seed);
  if (arguments.measuring.repeat == 0) {
    // The best are timed against each other at the end, so the search may time many configs
    // briefly.
    protocol.windows = 2;
    protocol.max_windows = 3;
    protocol.look_briefly(info);
  }
  FORETUNE_TRY(ready.context, arguments.measuring.context(info));
  std::string model_name;
  if (!arguments.model.empty()) {
    FORETUNE_TRY(Model model, open_model(arguments.model, info));
    model_name = model_source(arguments.model, model);
    FORETUNE_TRY(const ModelKind* const kind, find_model_kind(model.kind));
    if (kind->make_proposer != nullptr && arguments.strategy != "model") {
      ready.policy = std::make_unique<Model>(std::move(model));
    } else if (arguments.strategy == "policy" || arguments.strategy.starts_with("beam")) {
      return fail(ErrorCode::kMismatch, "--strategy ", arguments.strategy,
                  " takes a model of kind policy, and ", arguments.model, " is of kind ",
                  kind->name);
    } else if (arguments.strategy == "guided") {
      ready.prior = std::make_unique<Model>(std::move(model));
    } else {
      FORETUNE_TRY(ready.scorer, make_scorer(model));
    }
  }
  ready.source =
      source_line({family_source(arguments.family), model_name}, info.fingerprint.device);
  ready.options.prior = ready.prior.get();
  ready.options.policy = ready.policy.get();
  const auto size_or = [](const std::optional<std::int64_t>& value, std::size_t usual) {
    return value ? static_cast<std::size_t>(*value) : usual;
  };
  ready.options.lookahead = size_or(arguments.lookahead, ready.options.lookahead);
  ready.options.width = size_or(arguments.width, ready.options.width);
  ready.options.max_steps = size_or(arguments.max_steps, ready.options.max_steps);
  ready.options.strategy = !arguments.strategy.empty() ? arguments.strategy
                           : ready.scorer != nullptr   ? "model"
                           : ready.policy != nullptr   ? "policy"
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
        open_journal(paths.journal, dataset_header(info, DatasetRole::kTraining, invocation),
                     invocation));
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

Status remark_known(const PreparedTuning& prepared, const Invocation& invocation) {
  if (prepared.known == nullptr) {
    return {};
  }
  invocation.remark(concat(count_of(prepared.known->hits(), "measurement"), " known, ",
                           count_text(prepared.known->misses()), " new"));
  return prepared.known->status();
}

Result<Tuning> run_tuning(const PreparedTuning& prepared, const Invocation& invocation,
                          const TuneHooks& hooks) {
  const std::vector<Problem>& problems = prepared.problems;
  if (!prepared.live.family->info().simulated) {
    for (const std::string& warning : load_warnings()) {
      invocation.warn(warning);
    }
  }
  Tuning out;
  std::size_t index = 0;
  CollectHooks inner;
  inner.now_s = &monotonic_s;
  inner.stop = hooks.stop;
  inner.on_progress = [&](const CollectProgress& progress) {
    if (hooks.on_progress) {
      hooks.on_progress(progress, index);
    }
  };
  const auto is_stopped = [&] { return hooks.stop != nullptr && hooks.stop->load(); };
  for (; index < problems.size() && !is_stopped(); ++index) {
    const Problem& problem = problems[index];
    if (prepared.tuned.contains(problem)) {
      ++out.skipped;
      continue;
    }
    Result<TuneResult> result =
        tune_problem(*prepared.live.family, *prepared.measurer, prepared.journal.get(), problem,
                     prepared.options, inner);
    if (!result) {
      if (problems.size() == 1) {
        return tl::unexpected(result.error());
      }
      out.refused.emplace_back(problem, result.error());
      continue;
    }
    if (hooks.on_result) {
      hooks.on_result(problem, *result);
    }
    out.measured += result->progress.measured;
    out.tuned.emplace_back(problem, *std::move(result));
  }
  if (prepared.journal != nullptr) {
    FORETUNE_TRY_STATUS(prepared.journal->sync());
  }
  FORETUNE_TRY_STATUS(remark_known(prepared, invocation));
  if (out.skipped > 0) {
    invocation.remark(concat(count_of(out.skipped, "problem"),
                             word_for(out.skipped, " was", " were"), " tuned already"));
  }
  if (!out.refused.empty()) {
    Refusals refusals;
    for (const auto& [problem, error] : out.refused) {
      ++refusals[error.message];
    }
    const std::string text = refusals_text(refusals);
    if (out.measured == 0 && out.skipped == 0) {
      return fail(ErrorCode::kUnsupported, "none of the problems could be tuned: ", text);
    }
    invocation.warn(concat("problems could not be tuned: ", text));
  }
  return out;
}

}  // namespace foretune::workflow
