// The run-time part: a model file in, then for every problem a config or an abstention with its
// reason. Nothing of training, measuring or search is linked.
//
//   FORETUNE_TRY(const auto selector, Selector::open("gemm.ftm"));
//   const Choice choice = selector->select(problem);
//   if (choice.picked()) run(selector->words(choice.candidate));
//
// Of candidates that mean the same on a problem only the one in canonical form is picked: that is
// what was measured and learned from. Others take part where none is legal.
//
// Where configs are sequences (schedules), no pool has all that is worth a look. A selector ranks
// the portfolio, or the whole of a small pool, and select() allocates; generate.h finds others.
//
// Thread safety: select() may be called from any number of threads at once; it takes no lock and
// does not allocate. (Workspaces are lent: one is made with the selector, others when that many
// threads are inside for the first time; over 64 at once wait for one another.) Cost: a repeated
// problem under 100 ns, a new one a few milliseconds for thousands of candidates.
//
// A program that lives on select_fast() can leave the exact model for later (Preparation).
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"
#include "foretune/metrics/objective.h"
#include "foretune/models/infer/model_file.h"
#include "foretune/models/infer/scorer.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

enum class AbstainReason : std::uint8_t {
  kNone = 0,
  kInvalidProblem = 1,
  kOutsideTraining = 2,
  kNoLegalConfig = 3,
  kSmallMargin = 4,    // only where the caller asks for a margin
  kUnusableModel = 5,  // only with Preparation::kAtFirstUse: see there
  // Only with an objective: the candidate is the one that is predicted to miss its bounds least.
  kNoFeasibleConfig = 6,
};
// A sentence.
std::string_view to_string(AbstainReason reason);

struct Choice {
  AbstainReason reason = AbstainReason::kNone;
  // Also on abstention outside training: of the portfolio's legal configs the best-ranked, without
  // one of all.
  bool has_candidate = false;
  std::uint32_t candidate = 0;  // position in the model's pool
  double score = 0;
  double margin = 0;  // of the runner-up over this score; infinite when nothing else is legal
  [[nodiscard]] bool picked() const { return reason == AbstainReason::kNone; }
};

// An answer of the fast model, or of the exact one where the fast model does not answer.
struct FastChoice {
  Choice choice;  // scores of the fast model count from its best candidate's
  bool exact = false;
  // What the fast pick may lose against the exact one's in this region: the 95th percentile of the
  // difference of their exact scores, ln time. 0 when the choice is exact.
  double bound = 0;
};

struct RankedCandidate {
  std::uint32_t candidate = 0;
  double score = 0;
};

// What a model says of one metric of one candidate. NaN where nothing can be said: values of a
// model that knows times up to a factor, and everything of a candidate that is never legal.
struct PredictedMetric {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  double value = kUnknown;  // in the metric's unit
  double low = kUnknown;    // the value lies between them in 95 of 100 cases, if the model's errors
  double high = kUnknown;   // are normal and what it states of itself
  double z = kUnknown;      // what was learned: columns() has the scale
  double z_std = kUnknown;  // its standard deviation
};

// When the exact model is made ready: its body read, checked and laid out for the candidates
// that are legal on the hardware, which is most of the time that opening takes.
enum class Preparation : std::uint8_t {
  // Whatever is wrong with a model is said by open(), and no call of select() ever allocates, waits
  // or takes longer than others. The default, because that is what a program that calls select()
  // counts on, and it would only move the time to its first call.
  kAtOpen,
  // When select_fast() first needs it, select() or another member is called, or prepare() is: for
  // programs that mostly call select_fast(), whose first answer then comes within a
  // millisecond. open() has compared all checksums and checked all but the body, so that a
  // failure later on is that of a file that was written wrong, or of memory that ran out. It is
  // final: select() then abstains for ever with kUnusableModel and without a candidate, rank() is
  // empty and model() has no body, while select_fast() answers all that its fast model can.
  // The preparing call allocates, others that need the exact model wait for it meanwhile.
  kAtFirstUse,
};

struct SelectorOptions {
  Preparation preparation = Preparation::kAtOpen;
  // What picks and rankings follow: scores are z of its target where all bounds are predicted to
  // hold, and above kInfeasibleScore (models/infer/objective_scorer.h) where not. Without one they
  // are the model's, which are of time or of the first metric.
  std::optional<Objective> objective{};
};

class Selector {
 public:
  static Result<std::unique_ptr<Selector>> open(const std::filesystem::path& path,
                                                Preparation preparation = Preparation::kAtOpen);
  // Errors also: those of judge_of(), and kUnsupported for a Pareto objective.
  static Result<std::unique_ptr<Selector>> open(const std::filesystem::path& path,
                                                const SelectorOptions& options);
  // Features and legality use the hardware that the model was trained on.
  static Result<std::unique_ptr<Selector>> create(Model model);
  // A model in memory is prepared at once.
  static Result<std::unique_ptr<Selector>> create(Model model, const SelectorOptions& options);
  ~Selector();
  Selector(const Selector&) = delete;
  Selector& operator=(const Selector&) = delete;

  [[nodiscard]] Choice select(const Problem& problem) const noexcept;
  // The same for a problem without payload by its fields, which may be anything: when they are not
  // a problem the selector abstains. The shortest way to a cached answer.
  [[nodiscard]] Choice select(ProblemType type,
                              std::span<const std::int64_t> fields) const noexcept;
  // The same, but abstains (kSmallMargin) when the runner-up is predicted to be within `min_margin`
  // (ln time) of the pick: when a closer look, a measurement say, could pay.
  [[nodiscard]] Choice select(const Problem& problem, double min_margin) const noexcept;
  // Fast models promise to lose at most this much, by default, in 95 of 100 cases.
  static constexpr double kMaxFastRegret = 0.1;
  // Picks of the model's portfolio by the fast model, in about a microsecond also for a problem
  // never seen. Asks select() where the model has no fast one, outside of training, where the
  // region's bound is over `max_regret`, and where nothing of the portfolio is legal.
  [[nodiscard]] FastChoice select_fast(const Problem& problem,
                                       double max_regret = kMaxFastRegret) const noexcept;
  [[nodiscard]] FastChoice select_fast(ProblemType type, std::span<const std::int64_t> fields,
                                       double max_regret = kMaxFastRegret) const noexcept;
  // Why the selector abstained, with the numbers: which field or feature lies how far outside, how
  // small the margin is. One sentence, for people (allocates).
  [[nodiscard]] std::string explain(const Problem& problem, const Choice& choice) const;
  // Makes the exact model ready, if it is not yet. The same error every time.
  Status prepare() const;
  // Without looking into or filling the cache.
  [[nodiscard]] Choice select_uncached(const Problem& problem) const noexcept;
  // What select() would say of the problem itself, without scoring anything: kNone where it lies
  // inside of what the model was trained on. What is legal is not looked at.
  [[nodiscard]] AbstainReason coverage(const Problem& problem) const noexcept;
  // All legal candidates, best first, those in canonical form before others (allocates; for tools).
  [[nodiscard]] std::vector<RankedCandidate> rank(const Problem& problem) const;

  // Every metric of these candidates: [candidate][column]; empty where rank() is (allocates; scores
  // the whole pool once a column).
  [[nodiscard]] std::vector<std::vector<PredictedMetric>> predict_metrics(
      const Problem& problem, std::span<const std::uint32_t> candidates) const;
  // The metrics that the model predicts; they live as long as the selector.
  [[nodiscard]] std::span<const ScoreColumn> columns() const;
  // The objective that is followed; nullptr where the model's own order is.
  [[nodiscard]] const Judge* judge() const;

  // The type of the problems that the model is for.
  [[nodiscard]] ProblemType problem_type() const;
  // The whole model: prepares it.
  [[nodiscard]] const Model& model() const;
  [[nodiscard]] std::size_t pool_size() const;
  [[nodiscard]] Config config(std::uint32_t candidate) const;
  // The config's words; they live as long as the selector.
  [[nodiscard]] std::span<const std::int32_t> words(std::uint32_t candidate) const;
  [[nodiscard]] std::string config_text(std::uint32_t candidate) const;
  // The same for people, where words say little without the problem: a schedule as a schedule.
  [[nodiscard]] std::string describe(std::uint32_t candidate, const Problem& problem) const;

 private:
  Selector();
  static Result<std::unique_ptr<Selector>> make(ModelParts parts, const SelectorOptions& options);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretune
