// Measures the gain from more measurements, and from letting a model choose them: learning curves
// over measured problems and configs per problem, and active collection against uniform sampling at
// equal numbers of measurements. Replays the recorded H200 measurements; every figure is the mean
// over the held-out problems of folds by group.
//
//   build/bench/bench/h200_learning --data triton_mm_bf16.csv.gz [--folds 5] [--trees 300]
//                                   [--leaves 63] [--threads 2] [--seed 42] [--json FILE]
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/training_data.h"
#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/dataset/split.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/measured_times.h"
#include "foretune/model/train/trainer.h"

namespace foretune {
namespace {

// Rows chosen for learning, per problem of the training side.
using Chosen = std::vector<std::vector<RowIndex>>;

struct Fold {
  Dataset training;
  Dataset test;
  Chosen all;  // rows of every problem in random order: a prefix is a uniform sample
};

struct Score {
  std::vector<double> efficiencies;  // of the test problems of all folds
  std::size_t measurements = 0;      // on the training side, over all folds

  [[nodiscard]] double mean_efficiency() const { return mean(efficiencies); }
  [[nodiscard]] double p10_efficiency() const { return quantile(efficiencies, 0.1); }
};

Dataset rows_of(const Dataset& dataset, const Chosen& chosen) {
  Dataset out(dataset.header());
  for (const std::vector<RowIndex>& rows : chosen) {
    for (const RowIndex row : rows) {
      out.add(dataset.measurement(row));
    }
  }
  return out;
}

std::vector<Fold> make_folds(const Dataset& dataset, std::uint32_t folds, Rng& rng) {
  const std::vector<std::uint32_t> fold_of = group_folds(dataset.problems(), folds, rng);
  std::vector<Fold> out;
  for (std::uint32_t fold = 0; fold < folds; ++fold) {
    std::vector<bool> is_test;
    for (const std::uint32_t of : fold_of) {
      is_test.push_back(of == fold);
    }
    Dataset test = dataset.filter_problems(is_test);
    is_test.flip();
    Dataset training = dataset.filter_problems(is_test);
    Chosen all = training.rows_by_problem();
    rng.shuffle(std::span(all));
    for (std::vector<RowIndex>& rows : all) {
      rng.shuffle(std::span(rows));
    }
    out.push_back({std::move(training), std::move(test), std::move(all)});
  }
  return out;
}

Chosen prefix(const Chosen& all, std::size_t problems, std::size_t configs) {
  Chosen out;
  for (std::size_t p = 0; p < std::min(problems, all.size()); ++p) {
    const auto count = static_cast<std::ptrdiff_t>(std::min(configs, all[p].size()));
    out.emplace_back(all[p].begin(), all[p].begin() + count);
  }
  return out;
}

std::size_t count_of(const Chosen& chosen) {
  return std::accumulate(
      chosen.begin(), chosen.end(), std::size_t{0},
      [](std::size_t sum, const std::vector<RowIndex>& rows) { return sum + rows.size(); });
}

// Learns from `chosen` and adds the efficiencies of the picks on the fold's test problems.
Result<Model> learn(const Fold& fold, const Chosen& chosen, const TrainOptions& options,
                    Score& score) {
  FORETUNE_TRY(TrainResult trained, train_gbdt(rows_of(fold.training, chosen), options));
  FORETUNE_TRY(const std::vector<RankedProblem> ranked, rank_with_model(trained.model, fold.test));
  const MeasuredTimes times(fold.test);
  for (const RankedProblem& entry : ranked) {
    const MeasuredCandidate* pick =
        entry.configs.empty() ? nullptr : times.find(entry.problem, entry.configs[0]);
    score.efficiencies.push_back(pick == nullptr ? 0
                                                 : times.compare(entry.problem, *pick).efficiency);
  }
  score.measurements += count_of(chosen);
  return std::move(trained.model);
}

// Adds the next `count` rows of every problem: a share of the model's best, the rest at random.
Status choose_next(const Fold& fold, const Model& model, std::size_t count, double best_share,
                   Chosen& chosen) {
  FORETUNE_TRY(const std::vector<RankedProblem> ranked, rank_with_model(model, fold.training));
  std::vector<const RankedProblem*> of_problem(fold.training.problems().size(), nullptr);
  for (const RankedProblem& entry : ranked) {
    of_problem[entry.problem] = &entry;
  }
  for (std::size_t p = 0; p < chosen.size(); ++p) {
    std::unordered_set<std::uint32_t> taken;
    for (const RowIndex row : chosen[p]) {
      taken.insert(fold.training.rows()[row].config);
    }
    std::unordered_map<std::uint32_t, RowIndex> row_of;
    for (const RowIndex row : fold.all[p]) {
      row_of.emplace(fold.training.rows()[row].config, row);
    }
    const std::size_t wanted = std::min(chosen[p].size() + count, fold.all[p].size());
    const std::size_t random =
        static_cast<std::size_t>((1 - best_share) * static_cast<double>(count));
    const RankedProblem* entry = of_problem[fold.training.rows()[fold.all[p].front()].problem];
    for (std::size_t i = 0;
         entry != nullptr && i < entry->configs.size() && chosen[p].size() + random < wanted; ++i) {
      const auto row = row_of.find(entry->configs[i]);
      if (row != row_of.end() && taken.insert(entry->configs[i]).second) {
        chosen[p].push_back(row->second);
      }
    }
    for (const RowIndex row : fold.all[p]) {
      if (chosen[p].size() >= wanted) {
        break;
      }
      if (taken.insert(fold.training.rows()[row].config).second) {
        chosen[p].push_back(row);
      }
    }
  }
  return {};
}

constexpr std::size_t kAll = 100000;
std::string size_text(std::size_t size) { return size == kAll ? "all" : concat(size); }

class Learning {
 public:
  Learning(std::vector<Fold> folds, TrainOptions options, Figures& figures)
      : folds_(std::move(folds)), options_(std::move(options)), figures_(figures) {}

  Status curves() {
    const std::vector<std::size_t> configs{8, 16, 32, 64, 128, 256, kAll};
    std::printf("\nmean efficiency in %% (P10) of unseen problems\n%16s", "problems");
    for (const std::size_t count : configs) {
      std::printf("%15s", concat(size_text(count), count == 8 ? " configs" : "").c_str());
    }
    for (const std::size_t problems : {10U, 20U, 40U, 80U, unsigned{kAll}}) {
      std::printf("\n%16s", size_text(problems).c_str());
      for (const std::size_t count : configs) {
        Score score;
        for (const Fold& fold : folds_) {
          FORETUNE_TRY(const Model model,
                       learn(fold, prefix(fold.all, problems, count), options_, score));
        }
        report(score, concat("curve_", size_text(problems), "_", size_text(count)));
      }
    }
    std::printf("\n");
    return {};
  }

  // Runs rounds that double the measurements: 8, 16, 32, ... configs of every problem.
  Status active(const char* name, double best_share, std::size_t last) {
    std::printf("%16s", name);
    std::vector<Chosen> chosen;
    for (const Fold& fold : folds_) {
      chosen.push_back(prefix(fold.all, kAll, 8));
    }
    for (std::size_t configs = 8; configs <= last; configs *= 2) {
      Score score;
      for (std::size_t f = 0; f < folds_.size(); ++f) {
        FORETUNE_TRY(const Model model, learn(folds_[f], chosen[f], options_, score));
        FORETUNE_TRY_STATUS(choose_next(folds_[f], model, configs, best_share, chosen[f]));
      }
      report(score, concat("active_", fixed(best_share, 2), "_", configs));
    }
    std::printf("\n");
    return {};
  }

 private:
  void report(const Score& score, const std::string& key) {
    std::printf("%15s", concat(fixed(100 * score.mean_efficiency(), 1), " (",
                               fixed(100 * score.p10_efficiency(), 1), ")")
                            .c_str());
    std::fflush(stdout);
    figures_.add(concat(key, "_mean_efficiency"), score.mean_efficiency());
    figures_.add(concat(key, "_p10_efficiency"), score.p10_efficiency());
    figures_.add(concat(key, "_measurements"),
                 static_cast<double>(score.measurements) / static_cast<double>(folds_.size()));
  }

  std::vector<Fold> folds_;
  TrainOptions options_;
  Figures& figures_;
};

Status run(int argc, char** argv, Figures& figures) {
  FORETUNE_TRY(Dataset dataset, bench::read_h200(bench::argument(argc, argv, "data")));
  dataset.deduplicate();
  TrainOptions options;
  options.objective = TrainObjective::kRegression;
  // A fixed number of trees: choosing it would take more time than all the rest.
  options.folds = 0;
  options.gbdt.trees = bench::count_argument(argc, argv, "trees", 300U);
  options.gbdt.leaves = bench::count_argument(argc, argv, "leaves", options.gbdt.leaves);
  options.gbdt.threads = bench::count_argument(argc, argv, "threads", options.gbdt.threads);
  options.seed = bench::count_argument(argc, argv, "seed", 42U);
  const std::uint32_t folds = bench::count_argument(argc, argv, "folds", 5U);
  Rng rng(options.seed);
  std::printf("%zu measurements of %zu problems, %u folds\n", dataset.size(),
              dataset.problems().size(), folds);
  Learning learning(make_folds(dataset, folds, rng), options, figures);
  FORETUNE_TRY_STATUS(learning.curves());
  std::printf("\nall problems, 8 configs each at random, then chosen in rounds\n%16s", "configs");
  for (std::size_t configs = 8; configs <= 128; configs *= 2) {
    std::printf("%15zu", configs);
  }
  std::printf("\n");
  FORETUNE_TRY_STATUS(learning.active("random", 0, 128));
  FORETUNE_TRY_STATUS(learning.active("half by model", 0.5, 128));
  FORETUNE_TRY_STATUS(learning.active("all by model", 1, 128));
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("h200_learning", argc, argv, &foretune::run);
}
