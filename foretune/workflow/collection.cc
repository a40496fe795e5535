#include "foretune/workflow/collection.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <unordered_set>
#include <utility>

#include "foretune/base/clock.h"
#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/load_recorded.h"
#include "foretune/interop/tables/dataset_folder.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/metrics/objective.h"
#include "foretune/model/model_file.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/train/trainer.h"
#include "foretune/select/select.h"
#include "foretune/tune/tune_problem.h"
#include "foretune/workflow/judge.h"

namespace foretune::workflow {

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
           "max-autotune measures by the full protocol; fast takes fewer windows, unless --repeat "
           "says how many")
      .choose({"max-autotune", "fast"});
  list.add("chunk-size", chunk_size, "N",
           concat("write the export after every N problems (default: ", kChunkSize, ")"))
      .at_least(1);
  list.add("metrics", metrics, "NAME,...",
           "also evaluate these metrics for every config that ran well, in a stage of its own "
           "(metrics that a run yields anyway are always kept)")
      .only({"without --active", [this] { return !active; }});
  list.add_switch(
      "dry-run", dry_run,
      "say how many measurements it would make and how long they would take; measure nothing");
  list.add_switch("no-resume", no_resume, "refuse to continue an existing data set");
  if (validation) {
    list.add("training-data", training_data, "PATH",
             "leave out problems that this data set or folder holds");
    list.add("confirm-top", confirm_top, "N",
             "measure the best N of every problem once more, interleaved; 0 skips this")
        .at_least(0);
  }
  Option& by_model = list.add("model", model, "FILE",
                              "also measure the best configs of every problem by this model");
  if (!validation) {
    by_model.only({"without --active", [this] { return !active; }});
  }
  list.add("model-top", model_top, "N", "number of these configs")
      .at_least(0)
      .only({"with --model", [this] { return !model.empty(); }});
  if (!validation) {
    visit_active(list);
  }
  problems.visit(list, [this] { return family.family == "recorded"; });
  family.visit(list);
  measuring.visit(list);
}

namespace {

// A tenth of a full set of 256 configs.
constexpr std::int64_t kConfigsPerProblem = 26;
constexpr TrainObjective kActiveObjective = TrainObjective::kRegret;

}  // namespace

void CollectArguments::visit_active(OptionList& list) {
  std::vector<std::string> policies;
  for (const ActivePolicy& known : active_policies()) {
    policies.emplace_back(known.name);
  }
  list.add_switch(
      "active", active,
      "work in rounds: a model trained on the measurements so far chooses the next ones");
  list.section("Active collection", {"with --active", [this] { return active; }});
  list.add("configs-per-problem", configs_per_problem, "N",
           concat("mean number of measurements per problem (default: ", kConfigsPerProblem, ")"))
      .at_least(1);
  list.add("active-budget", active_budget, "N",
           "total number of measurements, instead; earlier runs into the same file count")
      .at_least(1);
  list.add("rounds", rounds, "N",
           concat("number of rounds; a model is trained before each but the first (default: ",
                  ActiveOptions{}.rounds, ")"))
      .at_least(1)
      .at_most(1000);
  list.add("policy", policy, "NAME",
           concat("how configs are chosen (default: ", active_policies().front().name, ")"))
      .choose(std::move(policies));
  list.add("active-objective", active_objective, "NAME",
           concat("loss of the model's trees (default: ", to_string(kActiveObjective), ")"))
      .choose({"regret", "regression", "lambdarank"});
}

namespace {

// The disagreement of these forests is the uncertainty. They have few trees that learn fast, since
// every round trains new ones.
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

// Returns the groups of the problems in the training data.
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

}  // namespace

namespace {

// Draws or reads the problems; remarks on those that were left out.
Result<std::vector<Problem>> chosen_problems(const CollectArguments& arguments,
                                             const Family& family, PayloadStore& payloads,
                                             const Invocation& invocation) {
  FORETUNE_TRY(std::unordered_set<std::uint64_t> excluded,
               training_groups(arguments.training_data));
  FORETUNE_TRY(SampledProblems sampled, make_problems(arguments.problems, family, invocation.seed,
                                                      payloads, std::move(excluded)));
  const auto over_limit = static_cast<std::uint64_t>(sampled.skipped_by_limit);
  const auto known = static_cast<std::uint64_t>(sampled.skipped_by_group);
  if (over_limit > 0) {
    invocation.remark(concat(count_of(over_limit, "drawn problem"),
                             word_for(over_limit, " was", " were"),
                             " over --max-flops or --max-bytes"));
  }
  if (!arguments.training_data.empty()) {
    invocation.remark(concat(count_of(known, "drawn problem"),
                             " left out because the training data holds ",
                             word_for(known, "it", "them")));
  }
  if (sampled.problems.empty()) {
    return fail(ErrorCode::kInvalidArgument, "no problem is left to measure",
                over_limit > 0 ? "; some were over --max-flops or --max-bytes" : "",
                known > 0 ? "; some are in the training data" : "");
  }
  return std::move(sampled.problems);
}

// Prepares the given problems, or those that the arguments choose.
Result<PreparedCollection> prepare(std::optional<std::vector<Problem>> given,
                                   const CollectArguments& arguments,
                                   const Invocation& invocation) {
  PreparedCollection prepared;
  prepared.role = arguments.role;
  FORETUNE_TRY(prepared.paths, output_paths(arguments.output, invocation));
  if (arguments.chunk_size && !prepared.paths.exported) {
    return without_effect({"--chunk-size"}, "with --format csv, json or msgpack");
  }
  prepared.chunk_size = static_cast<std::uint64_t>(arguments.chunk_size.value_or(kChunkSize));
  const auto seed = invocation.seed;
  const bool validation = arguments.role == DatasetRole::kValidation;
  if (arguments.no_resume && std::filesystem::exists(prepared.paths.journal)) {
    return fail(ErrorCode::kInvalidArgument, prepared.paths.journal.string(),
                " exists and --no-resume was given");
  }
  prepared.payloads = arguments.family.payloads;
  FORETUNE_TRY(const std::shared_ptr<PayloadStore> payloads, prepared.payloads.open());
  FORETUNE_TRY(prepared.live,
               open_family_for(arguments.family, prepared.paths.journal, invocation));
  if (given) {
    prepared.problems = *std::move(given);
  } else {
    FORETUNE_TRY(prepared.problems,
                 chosen_problems(arguments, *prepared.live.family, *payloads, invocation));
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

}  // namespace

Result<std::vector<Problem>> collection_problems(const CollectArguments& arguments,
                                                 const Invocation& invocation) {
  FORETUNE_TRY(const LiveFamily live, open_family_of(arguments.family, Fingerprint()));
  FORETUNE_TRY(const std::shared_ptr<PayloadStore> payloads, arguments.family.payloads.open());
  return chosen_problems(arguments, *live.family, *payloads, invocation);
}

Result<PreparedCollection> prepare_collection_of(std::vector<Problem> problems,
                                                 const CollectArguments& arguments,
                                                 const Invocation& invocation) {
  return prepare(std::move(problems), arguments, invocation);
}

Result<PreparedCollection> prepare_collection(const CollectArguments& arguments,
                                              const Invocation& invocation) {
  return prepare(std::nullopt, arguments, invocation);
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

DatasetHeader collection_header(const PreparedCollection& prepared, const Invocation& invocation) {
  return dataset_header(prepared.live.family->info(), prepared.role, invocation);
}

Result<CollectPlan> plan_of(const PreparedCollection& prepared, const Invocation& invocation) {
  std::unique_ptr<JournalWriter> journal;
  CollectOptions options = prepared.options;
  if (prepared.active) {
    options.search_space.sample_size =
        prepared.active->measurements / std::max<std::size_t>(1, prepared.problems.size());
  }
  if (std::filesystem::exists(prepared.paths.journal)) {
    FORETUNE_TRY(journal, JournalWriter::open(prepared.paths.journal,
                                              collection_header(prepared, invocation)));
  }
  return plan_collection(*prepared.live.family, prepared.problems, options, prepared.protocol,
                         journal.get(), prepared.context);
}

namespace {

Status export_now(const OutputPaths& paths) {
  if (!paths.exported) {
    return {};
  }
  FORETUNE_TRY(const Dataset dataset, read_dataset(paths.journal));
  return export_dataset(dataset, *paths.exported, paths.format);
}

// Measures into the journal: by collect(), or by collect_active() with the measurements that the
// file already holds.
Result<CollectResult> measure_into(const PreparedCollection& prepared, Measurer& measurer,
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

}  // namespace

Result<CollectResult> collect_problems(const PreparedCollection& prepared, Measurer& measurer,
                                       JournalWriter& journal, const std::vector<Problem>& problems,
                                       const Dataset* elsewhere, const CollectHooks& hooks) {
  CollectOptions options = prepared.options;
  options.elsewhere = elsewhere;
  return collect(*prepared.live.family, measurer, journal, problems, options, hooks);
}

Result<CollectResult> run_collection(const PreparedCollection& prepared,
                                     const Invocation& invocation, CollectHooks hooks) {
  if (!prepared.live.family->info().simulated) {
    for (const std::string& warning : load_warnings()) {
      invocation.warn(warning);
    }
  }
  FORETUNE_TRY(auto journal, open_journal(prepared.paths.journal,
                                          collection_header(prepared, invocation), invocation));
  FORETUNE_TRY(auto measurer,
               open_measurer(prepared.live, prepared.protocol, prepared.context, invocation));
  Status exported;
  hooks.now_s = &monotonic_s;
  hooks.on_problem_done = [&](std::uint64_t done) {
    if (done % prepared.chunk_size == 0 && exported) {
      exported = export_now(prepared.paths);
    }
  };
  FORETUNE_TRY(CollectResult result, measure_into(prepared, *measurer, *journal, hooks));
  FORETUNE_TRY_STATUS(exported);
  FORETUNE_TRY_STATUS(journal->sync());
  journal.reset();
  if (!result.stopped_by_request) {
    FORETUNE_TRY_STATUS(seal(prepared.paths.journal));
  }
  FORETUNE_TRY_STATUS(export_now(prepared.paths));
  return result;
}

}  // namespace foretune::workflow
