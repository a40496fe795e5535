#include "tools/foretune/collection.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <unordered_set>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/dataset/dataset_folder.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/load_recorded.h"
#include "foretune/metrics/objective.h"
#include "foretune/models/infer/model_file.h"
#include "foretune/models/infer/model_scorer.h"
#include "foretune/models/train/trainer.h"
#include "foretune/select/select.h"
#include "foretune/tune/tune_problem.h"

namespace foretune::cli {

namespace {

constexpr std::int64_t kChunkSize = 20;

}  // namespace

void CollectArguments::visit(OptionList& list) {
  const bool validation = role == DatasetRole::kValidation;
  list.add("output", output, "FILE",
           "data set to write (.ftd); with --format the export gets this name");
  list.add("budget", budget, "90s|500", "stop after this time (s, m, h) or number of measurements");
  list.add("search-space", search_space, "DEFAULT|EXHAUSTIVE|SAMPLE:n",
           validation ? "configs per problem; DEFAULT is SAMPLE:256"
                      : "configs per problem; DEFAULT is SAMPLE:64");
  list.add("search-mode", search_mode, "MODE",
           "max-autotune measures with the full protocol; fast with fewer windows, unless --repeat "
           "says how many")
      .choose({"max-autotune", "fast"});
  list.add("chunk-size", chunk_size, "N",
           concat("problems between two writes of the export (default: ", kChunkSize, ")"))
      .at_least(1);
  list.add(
          "metrics", metrics, "NAME,...",
          "also find out these metrics of every config that ran well, in a stage of its own (those "
          "that runs yield by themselves are always kept)")
      .only({"without --active", [this] { return !active; }});
  list.add_switch("dry-run", dry_run, "say how many measurements and how long, measure nothing");
  list.add_switch("no-resume", no_resume, "refuse to continue an existing data set");
  if (validation) {
    list.add("training-data", training_data, "PATH",
             "data set or folder whose problems must not appear here");
    list.add("model", model, "FILE", "also measure this model's best configs of every problem");
    list.add("model-top", model_top, "N", "how many of them")
        .at_least(0)
        .only({"with --model", [this] { return !model.empty(); }});
    list.add("confirm-top", confirm_top, "N",
             "re-measure the best N of every problem interleaved; 0 does not")
        .at_least(0);
  } else {
    visit_active(list);
  }
  problems.visit(list, [this] { return family.family == "recorded"; });
  family.visit(list);
  measuring.visit(list);
}

namespace {

// A tenth of the 256 that count as a full set.
constexpr std::int64_t kConfigsPerProblem = 26;
constexpr TrainObjective kActiveObjective = TrainObjective::kRegret;

}  // namespace

void CollectArguments::visit_active(OptionList& list) {
  std::vector<std::string> policies;
  for (const ActivePolicy& known : active_policies()) {
    policies.emplace_back(known.name);
  }
  list.add_switch("active", active,
                  "in rounds, a model trained on what is measured so far chooses what comes next");
  list.section("Active collection", {"with --active", [this] { return active; }});
  list.add("configs-per-problem", configs_per_problem, "N",
           concat("measurements in all, as a mean over the problems (default: ", kConfigsPerProblem,
                  ")"))
      .at_least(1);
  list.add("active-budget", active_budget, "N",
           "the same as a number; earlier runs into the same file count")
      .at_least(1);
  list.add("rounds", rounds, "N",
           concat("how many; before each but the first a model is trained (default: ",
                  ActiveOptions{}.rounds, ")"))
      .at_least(1)
      .at_most(1000);
  list.add("policy", policy, "NAME",
           concat("what the model chooses (default: ", active_policies().front().name, ")"))
      .choose(std::move(policies));
  list.add("active-objective", active_objective, "NAME",
           concat("what its trees minimise (default: ", to_string(kActiveObjective), ")"))
      .choose({"regret", "regression", "lambdarank"});
}

namespace {

// Forests whose disagreement is the uncertainty; few trees that learn fast, since they are trained
// anew for every round and forgotten.
constexpr std::uint32_t kCommitteeForests = 3;
constexpr std::uint32_t kCommitteeTrees = 150;
constexpr double kCommitteeLearningRate = 0.1;

ActiveTrainer committee_trainer(TrainObjective objective, std::uint64_t seed) {
  TrainOptions options;
  options.folds = 0;
  options.objective = objective;
  options.forests = kCommitteeForests;
  options.gbdt.trees = kCommitteeTrees;
  options.gbdt.learning_rate = kCommitteeLearningRate;
  // The order of sums, and so the choice, must not depend on the machine.
  options.gbdt.threads = 1;
  options.seed = seed;
  return [options](const Dataset& measured,
                   const std::function<bool()>& may_go_on) -> Result<std::unique_ptr<Scorer>> {
    FORETUNE_TRY(const TrainResult trained,
                 train_gbdt(measured, options,
                            [&](const TrainProgress& /*progress*/) { return may_go_on(); }));
    return make_scorer(trained.model);
  };
}

Status prepare_active(const CollectArguments& arguments, std::uint64_t seed,
                      PreparedCollection& prepared) {
  if (!arguments.active) {
    return {};
  }
  if (arguments.search_space != "DEFAULT") {
    return fail(ErrorCode::kInvalidArgument,
                "--active chooses the configs itself, so --search-space ", arguments.search_space,
                " cannot be had with it");
  }
  if (arguments.active_budget && arguments.configs_per_problem) {
    return fail(ErrorCode::kInvalidArgument,
                "--active-budget and --configs-per-problem say the same; give one of them");
  }
  ActiveOptions active;
  active.rounds = static_cast<std::uint32_t>(arguments.rounds.value_or(active.rounds));
  active.measurements = static_cast<std::uint64_t>(
      arguments.active_budget.value_or(arguments.configs_per_problem.value_or(kConfigsPerProblem) *
                                       static_cast<std::int64_t>(prepared.problems.size())));
  if (!arguments.policy.empty()) {
    FORETUNE_TRY(active.policy, find_active_policy(arguments.policy));
  }
  FORETUNE_TRY_STATUS(check_active_options(active, prepared.problems.size()));
  const FamilyInfo& info = prepared.live.family->info();
  if (active.policy.wants_model() && info.feature_table.empty()) {
    return fail(ErrorCode::kUnsupported, "no feature table describes the configs of the family ",
                info.name, ", so no model can choose among them");
  }
  prepared.active = active;
  prepared.train = committee_trainer(
      parse_objective(arguments.active_objective).value_or(kActiveObjective), seed);
  return {};
}

// The groups of problems that the training data holds.
Result<std::unordered_set<std::uint64_t>> training_groups(const std::string& path) {
  std::unordered_set<std::uint64_t> groups;
  if (path.empty()) {
    return groups;
  }
  FORETUNE_TRY(const DatasetFiles files, find_datasets(path));
  for (const std::filesystem::path& file : files.datasets) {
    FORETUNE_TRY(const Dataset dataset, import_measurements(file));
    if (dataset.header().role == DatasetRole::kValidation) {
      continue;
    }
    for (const Problem& problem : dataset.problems()) {
      groups.insert(problem.group());
    }
  }
  return groups;
}

Result<std::unique_ptr<Selector>> open_selector(const std::string& path, const FamilyInfo& info) {
  FORETUNE_TRY(std::unique_ptr<Selector> selector, Selector::open(path));
  FORETUNE_TRY_STATUS(check_model_fits(selector->model(), info, path));
  return selector;
}

}  // namespace

Result<PreparedCollection> prepare_collection(const CollectArguments& arguments,
                                              const Invocation& invocation) {
  PreparedCollection prepared;
  FORETUNE_TRY(prepared.paths, output_paths(arguments.output, *invocation.global));
  if (arguments.chunk_size && !prepared.paths.exported) {
    return without_effect({"--chunk-size"}, "with --format csv, json or msgpack");
  }
  prepared.chunk_size = static_cast<std::uint64_t>(arguments.chunk_size.value_or(kChunkSize));
  const auto seed = static_cast<std::uint64_t>(invocation.global->seed);
  const bool validation = arguments.role == DatasetRole::kValidation;
  if (arguments.no_resume && std::filesystem::exists(prepared.paths.journal)) {
    return fail(ErrorCode::kInvalidArgument, prepared.paths.journal.string(),
                " exists and --no-resume was given");
  }
  prepared.payloads = arguments.family.payloads;
  FORETUNE_TRY(const std::shared_ptr<PayloadStore> payloads, prepared.payloads.open());
  FORETUNE_TRY(prepared.live,
               open_family_for(arguments.family, prepared.paths.journal, invocation));
  FORETUNE_TRY(std::unordered_set<std::uint64_t> excluded,
               training_groups(arguments.training_data));
  FORETUNE_TRY(SampledProblems sampled, make_problems(arguments.problems, *prepared.live.family,
                                                      seed, *payloads, std::move(excluded)));
  if (sampled.skipped_by_limit > 0) {
    prepared.remarks.push_back(
        concat(sampled.skipped_by_limit, " drawn problems were over --max-flops or --max-bytes"));
  }
  if (!arguments.training_data.empty()) {
    prepared.remarks.push_back(concat(
        sampled.skipped_by_group, " drawn problems left out because the training data holds them"));
  }
  prepared.problems = std::move(sampled.problems);
  if (prepared.problems.empty()) {
    return fail(ErrorCode::kInvalidArgument, "no problem is left to measure",
                sampled.skipped_by_limit > 0 ? "; some were over --max-flops or --max-bytes" : "",
                sampled.skipped_by_group > 0 ? "; some are in the training data" : "");
  }
  FORETUNE_TRY_STATUS(check_supported(*prepared.live.family, prepared.problems));
  FORETUNE_TRY(prepared.options.search_space, parse_search_space(arguments.search_space));
  if (validation && arguments.search_space == "DEFAULT") {
    prepared.options.search_space.sample_size = 256;
  }
  if (!arguments.budget.empty()) {
    FORETUNE_TRY(prepared.options.budget, parse_budget(arguments.budget));
  }
  FORETUNE_TRY(prepared.options.evaluate,
               evaluated_metrics(arguments.metrics, prepared.live.family->info()));
  prepared.options.seed = seed;
  prepared.options.confirm_top = validation ? static_cast<int>(arguments.confirm_top) : 0;
  prepared.protocol = arguments.measuring.protocol(seed);
  if (arguments.search_mode == "fast" && arguments.measuring.repeat == 0) {
    prepared.protocol.windows = 3;
    prepared.protocol.max_windows = 3;
    prepared.protocol.look_briefly(prepared.live.family->info());
  }
  FORETUNE_TRY_STATUS(prepare_active(arguments, seed, prepared));
  FORETUNE_TRY(prepared.context, arguments.measuring.context(prepared.live.family->info()));
  if (!arguments.model.empty()) {
    FORETUNE_TRY(std::shared_ptr<Selector> selector,
                 open_selector(arguments.model, prepared.live.family->info()));
    const auto top = static_cast<std::size_t>(arguments.model_top);
    prepared.options.first = [selector, top](const Problem& problem) {
      return best_ranked(*selector, problem, top);
    };
  }
  return prepared;
}

Status check_measured(const CollectResult& result) {
  const CollectProgress& progress = result.progress;
  const auto count = [&](Outcome outcome) {
    return progress.by_outcome[static_cast<std::size_t>(outcome)];
  };
  if (result.stopped_by_request || progress.resumed > 0 || count(Outcome::kOk) > 0 ||
      count(Outcome::kCensored) > 0) {
    return {};
  }
  Refusals refusals(result.skipped.begin(), result.skipped.end());
  for (std::size_t i = 0; i < std::size(progress.by_outcome); ++i) {
    if (progress.by_outcome[i] > 0) {
      refusals[std::string(to_string(static_cast<Outcome>(i)))] = progress.by_outcome[i];
    }
  }
  return fail(ErrorCode::kUnsupported, "nothing could be measured: ", refusals_text(refusals));
}

Result<CollectResult> collect_prepared(const PreparedCollection& prepared, Measurer& measurer,
                                       JournalWriter& journal, const CollectHooks& hooks) {
  const Family& family = *prepared.live.family;
  CollectOptions options = prepared.options;
  std::optional<Dataset> previous;
  if (journal.row_count() > 0) {
    FORETUNE_TRY(previous, read_dataset(prepared.paths.journal));
    if (prepared.active) {
      FORETUNE_TRY_STATUS(prepared.payloads.describe(*previous).map([](std::size_t) {}));
    }
    options.previous = &*previous;
  }
  if (!prepared.active) {
    return collect(family, measurer, journal, prepared.problems, options, hooks);
  }
  return collect_active(family, measurer, journal, prepared.problems, options, *prepared.active,
                        prepared.train, hooks);
}

}  // namespace foretune::cli
