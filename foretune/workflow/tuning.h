// The options of tuning, and the tuning itself: the best config of each problem by measuring.
// Nothing here prints.
//
//   TuneArguments arguments;
//   arguments.visit(list);  // parse, or set_option()
//   FORETUNE_TRY(const PreparedTuning prepared, prepare_tuning(arguments, invocation));
//   FORETUNE_TRY(const Tuning tuning, run_tuning(prepared, invocation, hooks));
//
// Thread safety: used by one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/journal.h"
#include "foretune/measure/known_measurer.h"
#include "foretune/measure/measure.h"
#include "foretune/model/model_file.h"
#include "foretune/model/scorer.h"
#include "foretune/problem/problem.h"
#include "foretune/tune/tune_problem.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/options.h"
#include "foretune/workflow/problem_arguments.h"

namespace foretune::workflow {

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
  std::string figures;
  std::string strategies;
  std::string folder;
  bool graphs = false;
  double peak = 0;
  FamilyArguments family;
  MeasureArguments measuring;

  void visit(OptionList& list);
  // Declares all but the problems, the files of results and contests.
  void visit_search(OptionList& list);
  [[nodiscard]] bool is_contest() const { return !strategies.empty(); }
};

struct PreparedTuning {
  LiveFamily live;
  std::vector<Problem> problems;
  Context context;
  std::unique_ptr<Measurer> measurer;
  const KnownMeasurer* known = nullptr;    // the measurer, with --cache
  std::unique_ptr<JournalWriter> journal;  // of --output; may be null
  std::unordered_set<Problem> tuned;       // problems that the journal already holds
  std::unique_ptr<Scorer> scorer;          // may be null
  std::unique_ptr<Model> prior;            // of the strategy guided; may be null
  std::unique_ptr<Model> policy;           // proposes configs; may be null
  std::string source;                      // one line below figures
  TuneOptions options;
};

// Opens the family, the problems, the model and the files. Errors: kInvalidArgument for options
// that make no sense together, kUnsupported when the family runs none of the problems; those of the
// files.
Result<PreparedTuning> prepare_tuning(const TuneArguments& arguments, const Invocation& invocation);

// Returns the problem or problems that the arguments name; `type` is the family's. Errors:
// kInvalidArgument; those of the files.
Result<std::vector<Problem>> tuning_problems(const TuneArguments& arguments, ProblemType type);

struct TuneHooks {
  const std::atomic<bool>* stop = nullptr;  // once true, the search ends after its measurement
  // With the position of the problem; may be empty.
  std::function<void(const CollectProgress&, std::size_t)> on_progress;
  // Once a problem is tuned; may be empty.
  std::function<void(const Problem&, const TuneResult&)> on_result;
};

struct Tuning {
  std::vector<std::pair<Problem, TuneResult>> tuned;
  std::vector<std::pair<Problem, Error>> refused;  // only of several problems
  std::size_t skipped = 0;                         // problems that --output already held
  std::uint64_t measured = 0;
};

// Tunes one problem after another. Errors: those of tune_problem() where there is one problem;
// kUnsupported when none of several could be tuned; those of the files.
Result<Tuning> run_tuning(const PreparedTuning& prepared, const Invocation& invocation,
                          const TuneHooks& hooks);

// Says how many measurements --cache answered. Errors: those of the cache's file.
Status remark_known(const PreparedTuning& prepared, const Invocation& invocation);

}  // namespace foretune::workflow
