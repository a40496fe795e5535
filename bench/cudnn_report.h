// Judges models' picks for convolutions by cuDNN beside two ways of doing without a model: A's
// first answer, and one short timing of several answers, as PyTorch's benchmark mode does.
//
//   FORETUNE_TRY(const CudnnModels models, CudnnModels::open("forward.ftm,data.ftm,weight.ftm"));
//   FORETUNE_TRY(const CudnnChoices choices, read_choices("answers.tsv"));
//   FORETUNE_TRY(const JudgedSet judged, judge_convolutions(models, dataset, choices, 5));
//   FORETUNE_TRY_STATUS(report_directions(models, judged, dataset, choices, 0, figures));
//
// Thread safety: free functions. Cost: ranking the pool for every layer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/pick_report.h"
#include "foretune/base/figures.h"
#include "foretune/dataset/dataset.h"

namespace foretune::bench {

// Configs by the problem's text, from the file that `cudnn_collect --answers` writes. Parameters
// that a line leaves out are the library's choice.
struct CudnnChoices {
  LibraryAnswers first;      // A's first answer
  LibraryAnswers benchmark;  // the choice of one short timing
};
// Errors: those of reading the file, and of a line without a config.
Result<CudnnChoices> read_choices(const std::string& path);

// One model for all directions, or one for each.
class CudnnModels {
 public:
  // Errors: kInvalidArgument for another number of paths than one or three, those of
  // Selector::open().
  static Result<CudnnModels> open(const std::string& paths);
  // Returns the models that this build ships. Errors: those of reading a model.
  static Result<CudnnModels> shipped();

  [[nodiscard]] const Selector& of(const Problem& problem) const;

 private:
  std::vector<std::unique_ptr<Selector>> selectors_;
};

// Ranks that a heuristic does not have count as refused. Prints the layers that are left out, and
// why. Errors: kInvalidArgument when none is left.
Result<JudgedSet> judge_convolutions(const CudnnModels& models, const Dataset& dataset,
                                     const CudnnChoices& choices, std::size_t top);

// Prints, and adds to the figures, the speeds of the picks over both, by direction, by type, and in
// all, and how long a pick takes. Prints the layers where the picks lose or gain most. Layers
// without a choice of the timing are left out and counted.
Status report_directions(const CudnnModels& models, const JudgedSet& judged, const Dataset& dataset,
                         const CudnnChoices& choices, double margin, Figures& figures);

}  // namespace foretune::bench
