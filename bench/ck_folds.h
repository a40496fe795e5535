// Judges ways of training on Composable Kernel's convolutions by nested folds: for ck_picks, and
// for two figures of conv_picks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foretune/base/figures.h"
#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/split.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/model/train/trainer.h"

namespace foretune::bench {

// Reads a table of times, in any format that `convert` knows, as measured on this architecture.
// Rows of one problem and kernel become their median.
Result<Dataset> read_ck_table(const std::string& path, const std::string& arch);

struct CkWay {
  const char* key = "";  // of the JSON figures, "" for the way that is judged
  const char* name = "the way";
  TrainOptions options;
};

// Returns what `train` does without options.
CkWay default_ck_way();

// Efficiencies of each way of picking, over all problems and all dealings of the folds.
class PicksTable {
 public:
  void add(const std::string& key, const std::string& name, const PickerResult& picks);
  // Prints the rows, and adds their figures in percent: HEAD + key + "_mean" and so on.
  void report(const std::string& title, const std::string& head, Figures& figures) const;

 private:
  struct Row {
    std::string key;
    std::string name;
    std::vector<double> efficiency;
    double hits = 0;
  };
  std::vector<Row> rows_;
};

struct CkJudge {
  const Dataset& dataset;
  std::uint32_t folds = 5;
  std::vector<std::uint64_t> seeds;  // each deals the folds anew, and is the seed of the trees
};

// Trains every way on what each fold leaves and judges its picks on the fold, beside the baselines
// of docs/explanation/evaluation.md. `key` says which problems a fold keeps together.
Status judge_ck_folds(const CkJudge& judge, const std::vector<CkWay>& ways, GroupKey key,
                      const std::string& head, Figures& figures);

}  // namespace foretune::bench
