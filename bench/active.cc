// Compares active collection (foretune/collect/active.h) with random configs at equal numbers of
// measurements, on the recorded H200 measurements. Group k-fold: the training problems of a fold
// are collected, through the recorded family and a journal as `foretune collect --active` does. A
// model is then trained on the collected data, and its picks for the problems of the held-out fold
// are judged by all of their measured configs.
//
//   build/bench/bench/active --data triton_mm_bf16.csv.gz [--policies random,mixed] [--full 256]
//                            [--parts 1,40,20,10,5] [--rounds 5] [--first-share 0.3]
//                            [--committee 3] [--committee-trees 150] [--objective regret]
//                            [--target relative-log] [--trees 300] [--forests 1] [--folds 5]
//                            [--seeds 3] [--seed 42] [--threads 1] [--json FILE]
//
// A part is the inverse of the share of the full set: 10 measures a tenth. The full set itself
// (part 1) is the stratified sample of `collect --search-space SAMPLE:256`, whatever the policy.
#include "foretune/collect/active.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "foretune/base/statistics.h"
#include "foretune/dataset/journal.h"
#include "foretune/dataset/split.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/measured_times.h"
#include "foretune/families/load_recorded.h"
#include "foretune/families/recorded/recorded.h"
#include "foretune/measure/dataset_header.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/train/trainer.h"

namespace foretune {
namespace {

struct Setup {
  std::uint64_t full = 256;
  ActiveOptions active;
  TrainOptions judged;     // options of the model whose picks count
  TrainOptions committee;  // options of the models that choose
  std::uint32_t folds = 5;
  std::uint32_t seeds = 3;
  std::uint64_t seed = 42;  // the first
};

struct Fold {
  std::shared_ptr<const Family> family;
  std::vector<Problem> training;
  Dataset test;
};

// Efficiencies of the picks for all test problems of all folds and seeds.
struct Score {
  std::vector<double> pick;
  std::vector<double> first_5;
  std::vector<double> mean_of_seed;
  std::uint64_t measurements = 0;
  std::uint64_t problems = 0;  // number of measured problems
  std::uint64_t trainings = 0;
  double training_s = 0;
};

Result<std::vector<Fold>> make_folds(const Dataset& dataset, std::uint32_t folds,
                                     std::uint64_t seed) {
  FORETUNE_TRY(RecordedTable table, recorded_table(dataset));
  FORETUNE_TRY(std::shared_ptr<const Family> family, make_recorded(std::move(table)));
  Rng rng(seed);
  const std::vector<std::uint32_t> fold_of = group_folds(dataset.problems(), folds, rng);
  std::vector<Fold> out;
  for (std::uint32_t fold = 0; fold < folds; ++fold) {
    std::vector<bool> is_test;
    std::vector<Problem> training;
    for (std::size_t p = 0; p < fold_of.size(); ++p) {
      is_test.push_back(fold_of[p] == fold);
      if (fold_of[p] != fold) {
        training.push_back(dataset.problems()[p]);
      }
    }
    out.push_back({family, std::move(training), dataset.filter_problems(is_test)});
  }
  return out;
}

// Collects with a policy; without one, the stratified sample of the full set.
Result<Dataset> collected(const Fold& fold, const Setup& setup, std::optional<ActivePolicy> policy,
                          std::uint64_t per_problem_parts, std::uint64_t seed, Score& score) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / concat("foretune_active_", ::getpid(), ".ftd");
  std::filesystem::remove(path);
  const FamilyInfo& info = fold.family->info();
  FORETUNE_TRY(const auto journal, JournalWriter::open(path, header_of(info)));
  Context context;
  context.machine = info.fingerprint.digest();
  // No early stopping, so that the training data differ only in the choice of configs.
  const auto measurer = make_local_measurer(fold.family, {.censor_factor = 0}, context);
  CollectOptions options{.seed = seed};
  CollectHooks hooks;
  hooks.now_s = &bench::seconds_now;
  if (!policy) {
    options.search_space.sample_size = setup.full;
    FORETUNE_TRY(const CollectResult result,
                 collect(*fold.family, *measurer, *journal, fold.training, options, hooks));
    score.measurements += result.progress.measured;
  } else {
    ActiveOptions active = setup.active;
    active.policy = *policy;
    active.measurements = setup.full * fold.training.size() / per_problem_parts;
    TrainOptions committee = setup.committee;
    committee.seed = seed;
    const ActiveTrainer train =
        [&](const Dataset& measured,
            const std::function<bool()>& may_go_on) -> Result<std::unique_ptr<Scorer>> {
      FORETUNE_TRY(const TrainResult trained,
                   train_gbdt(measured, committee,
                              [&](const TrainProgress& /*progress*/) { return may_go_on(); }));
      return make_scorer(trained.model);
    };
    FORETUNE_TRY(const CollectResult result,
                 collect_active(*fold.family, *measurer, *journal, fold.training, options, active,
                                train, hooks));
    score.measurements += result.progress.measured;
    score.trainings += result.progress.trainings;
    score.training_s += result.progress.training_s;
  }
  FORETUNE_TRY(Dataset dataset, read_dataset(path));
  std::filesystem::remove(path);
  return dataset;
}

Status judge(const Dataset& training, const Dataset& test, const TrainOptions& options,
             Score& score) {
  FORETUNE_TRY(const TrainResult trained, train_gbdt(training, options));
  FORETUNE_TRY(const std::vector<RankedProblem> ranked, rank_with_model(trained.model, test));
  const MeasuredTimes times(test);
  for (const RankedProblem& entry : ranked) {
    double first_5 = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(5, entry.configs.size()); ++i) {
      const MeasuredCandidate* const pick = times.find(entry.problem, entry.configs[i]);
      const double efficiency =
          pick == nullptr ? 0 : times.compare(entry.problem, *pick).efficiency;
      first_5 = std::max(first_5, efficiency);
      if (i == 0) {
        score.pick.push_back(efficiency);
      }
    }
    score.first_5.push_back(first_5);
  }
  return {};
}

Result<Score> score_of(const std::vector<std::vector<Fold>>& folds_of_seed, const Setup& setup,
                       std::optional<ActivePolicy> policy, std::uint64_t parts) {
  Score score;
  for (std::size_t seed = 0; seed < folds_of_seed.size(); ++seed) {
    const std::size_t before = score.pick.size();
    for (const Fold& fold : folds_of_seed[seed]) {
      FORETUNE_TRY(const Dataset training,
                   collected(fold, setup, policy, parts, setup.seed + seed, score));
      score.problems += fold.training.size();
      TrainOptions judged = setup.judged;
      judged.seed = setup.seed + seed;
      FORETUNE_TRY_STATUS(judge(training, fold.test, judged, score));
    }
    score.mean_of_seed.push_back(mean(std::span(score.pick).subspan(before)));
  }
  return score;
}

void report(const std::string& name, std::uint64_t parts, const Score& score, const Score* full,
            Figures& figures) {
  const double p10 = quantile(score.pick, 0.1);
  std::printf("%-16s 1/%-4llu %8.1f  %6.2f  %6.2f  %6.2f ", name.c_str(),
              static_cast<unsigned long long>(parts),
              static_cast<double>(score.measurements) / static_cast<double>(score.problems),
              100 * mean(score.pick), 100 * p10, 100 * mean(score.first_5));
  if (full != nullptr) {
    Rng rng(1);
    const BootstrapInterval interval =
        paired_bootstrap_interval(full->pick, score.pick, &mean, 2000, rng);
    std::printf(" %+6.2f (%+.2f to %+.2f)", 100 * (mean(score.pick) - mean(full->pick)),
                100 * interval.low, 100 * interval.high);
  }
  const auto [least, most] =
      std::minmax_element(score.mean_of_seed.begin(), score.mean_of_seed.end());
  std::printf("  seeds %.2f to %.2f", 100 * *least, 100 * *most);
  if (score.trainings > 0) {
    std::printf("  training %.2f s each", score.training_s / static_cast<double>(score.trainings));
  }
  std::printf("\n");
  std::fflush(stdout);
  const std::string key = concat(name, "_", parts);
  figures.add(concat(key, "_mean_efficiency"), mean(score.pick));
  figures.add(concat(key, "_p10_efficiency"), p10);
  figures.add(concat(key, "_top5_measured_efficiency"), mean(score.first_5));
  figures.add(concat(key, "_measurements"), static_cast<double>(score.measurements));
}

Result<Setup> read_setup(int argc, char** argv) {
  Setup setup;
  const std::string objective = bench::argument(argc, argv, "objective", "regret");
  const std::string target = bench::argument(argc, argv, "target", "relative-log");
  const auto parsed_objective = parse_objective(objective);
  const auto parsed_target = parse_target(target);
  if (!parsed_objective || !parsed_target) {
    return fail(ErrorCode::kInvalidArgument, "no such way: ", objective, ", ", target);
  }
  // A fixed number of trees: choosing it would take more time than all the rest.
  setup.judged.folds = 0;
  setup.judged.objective = *parsed_objective;
  setup.judged.target = *parsed_target;
  setup.judged.gbdt.trees = bench::count_argument(argc, argv, "trees", 300U);
  setup.judged.gbdt.threads = bench::count_argument(argc, argv, "threads", 1U);
  setup.judged.forests = bench::count_argument(argc, argv, "forests", 1U);
  setup.committee = setup.judged;
  setup.committee.forests = bench::count_argument(argc, argv, "committee", 3U);
  setup.committee.gbdt.trees = bench::count_argument(argc, argv, "committee-trees", 150U);
  setup.committee.gbdt.learning_rate = 0.1;
  setup.full = bench::count_argument(argc, argv, "full", 256U);
  setup.folds = bench::count_argument(argc, argv, "folds", setup.folds);
  setup.seeds = bench::count_argument(argc, argv, "seeds", setup.seeds);
  setup.seed = bench::count_argument(argc, argv, "seed", 42U);
  setup.active.rounds = bench::count_argument(argc, argv, "rounds", setup.active.rounds);
  setup.active.first_share =
      bench::number_argument(argc, argv, "first-share", setup.active.first_share);
  return setup;
}

Status run(int argc, char** argv, Figures& figures) {
  FORETUNE_TRY(Dataset dataset, import_csv_file(bench::argument(argc, argv, "data"), {}));
  dataset.deduplicate();
  FORETUNE_TRY(const Setup setup, read_setup(argc, argv));
  std::vector<std::vector<Fold>> folds_of_seed;
  for (std::uint32_t seed = 0; seed < setup.seeds; ++seed) {
    FORETUNE_TRY(std::vector<Fold> folds, make_folds(dataset, setup.folds, setup.seed + seed));
    folds_of_seed.push_back(std::move(folds));
  }
  std::printf("%zu measurements of %zu problems, %u folds, %u seeds, objective %s\n",
              dataset.size(), dataset.problems().size(), setup.folds, setup.seeds,
              std::string(to_string(setup.judged.objective)).c_str());
  std::printf(
      "efficiency in %% on problems left out; difference from the full set, paired 95 %%\n");
  std::printf("%-16s %-6s %8s  %6s  %6s  %6s\n", "policy", "part", "each", "mean", "P10", "top 5");
  const std::string parts = bench::argument(argc, argv, "parts", "1,40,20,10,5");
  const std::string policies = bench::argument(argc, argv, "policies", "random,mixed");
  std::optional<Score> full;
  for (const std::string_view text : split(parts, ',')) {
    const std::uint64_t part = parse_uint(text).value_or(10);
    if (part <= 1) {
      FORETUNE_TRY(full, score_of(folds_of_seed, setup, std::nullopt, 1));
      report("full", 1, *full, nullptr, figures);
      continue;
    }
    for (const std::string_view name : split(policies, ',')) {
      FORETUNE_TRY(const ActivePolicy policy, find_active_policy(name));
      FORETUNE_TRY(const Score score, score_of(folds_of_seed, setup, policy, part));
      report(std::string(name), part, score, full ? &*full : nullptr, figures);
    }
  }
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("active", argc, argv, &foretune::run);
}
