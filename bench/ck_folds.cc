#include "bench/ck_folds.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/cross_evaluate.h"
#include "foretune/interop/tables/exchange.h"

namespace foretune::bench {

Result<Dataset> read_ck_table(const std::string& path, const std::string& arch) {
  ImportFacts facts{.family = "recorded", .role = DatasetRole::kTraining, .fingerprint = {}};
  FORETUNE_TRY(facts.fingerprint, ck_fingerprint(arch));
  FORETUNE_TRY(Dataset dataset, import_dataset(path, std::nullopt, nullptr, facts));
  dataset.deduplicate();
  return dataset;
}

CkWay default_ck_way() {
  CkWay way;
  way.options.held_out = false;
  return way;
}

void PicksTable::add(const std::string& key, const std::string& name, const PickerResult& picks) {
  auto found =
      std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) { return row.key == key; });
  if (found == rows_.end()) {
    rows_.push_back({.key = key, .name = name, .efficiency = {}, .hits = 0});
    found = rows_.end() - 1;
  }
  found->efficiency.insert(found->efficiency.end(), picks.efficiency.begin(),
                           picks.efficiency.end());
  found->hits += picks.top1_hit * static_cast<double>(picks.problems);
}

void PicksTable::report(const std::string& title, const std::string& head, Figures& figures) const {
  std::printf("\n%-34s%8s%8s%8s%8s%8s\n", title.c_str(), "mean", "median", "P10", "min", "top 1");
  for (const Row& row : rows_) {
    const double mean_share = 100 * mean(row.efficiency);
    const double median_share = 100 * median(row.efficiency);
    const double p10 = 100 * quantile(row.efficiency, 0.1);
    const double top1 = 100 * row.hits / static_cast<double>(row.efficiency.size());
    std::printf("%-34s%8.1f%8.1f%8.1f%8.1f%8.1f\n", row.name.c_str(), mean_share, median_share, p10,
                100 * quantile(row.efficiency, 0), top1);
    figures.add(concat(head, row.key, "_mean"), mean_share);
    figures.add(concat(head, row.key, "_median"), median_share);
    figures.add(concat(head, row.key, "_p10"), p10);
    figures.add(concat(head, row.key, "_top1"), top1);
  }
  std::fflush(stdout);
}

Status judge_ck_folds(const CkJudge& judge, const std::vector<CkWay>& ways, GroupKey key,
                      const std::string& head, Figures& figures) {
  PicksTable table;
  for (const std::uint64_t seed : judge.seeds) {
    FORETUNE_TRY(const std::vector<OuterSplit> splits,
                 nested_folds(judge.dataset, judge.folds, seed, key));
    for (const CkWay& way : ways) {
      TrainOptions options = way.options;
      options.group_key = key;
      options.seed = seed;
      const TrainRecipe train = [&](const Dataset& training, const OuterSplit&) -> Result<Model> {
        FORETUNE_TRY(TrainResult trained, train_gbdt(training, options));
        return std::move(trained.model);
      };
      FORETUNE_TRY(const CrossEvaluation out,
                   cross_evaluate(judge.dataset, splits, train, {.bootstrap_samples = 0}));
      table.add(way.key, way.name, out.evaluation.model);
      if (&way == &ways.back()) {
        for (const PickerResult& baseline : out.evaluation.baselines) {
          table.add(concat("_", baseline.key), baseline.name, baseline);
        }
      }
    }
  }
  table.report(concat("folds by ", key == GroupKey::kWeights ? "weights" : "layer"), head, figures);
  return {};
}

}  // namespace foretune::bench
