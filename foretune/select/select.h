// The run-time part: opens a model file and returns for every problem a config, or an abstention
// with its reason. It links nothing of training, measuring or search.
//
//   FORETUNE_TRY(const auto selector, Selector::open("gemm.ftm"));
//   const Choice choice = selector->select(problem);
//   if (choice.picked()) run(selector->words(choice.candidate));
//
// Among candidates that are equivalent on a problem only the one in canonical form is picked, since
// measurements and training use that form. Others are considered where no canonical form is legal.
//
// Where configs are sequences (schedules), no pool has all good candidates. A selector ranks the
// portfolio, or the whole of a small pool, and select() allocates; generate.h finds further
// candidates.
//
// Thread safety: select() may be called from any number of threads at once; it takes no lock and
// does not allocate. (Threads borrow workspaces: one is made with the selector, others when that
// many threads call at once for the first time; more than 64 at once wait for one another.) Cost: a
// repeated problem under 100 ns, a new one a few milliseconds for thousands of candidates.
//
// A program that mostly calls select_fast() can defer preparing the exact model (Preparation).
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
#include "foretune/model/model_file.h"
#include "foretune/model/scorer.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

enum class AbstainReason : std::uint8_t {
  kNone = 0,
  kInvalidProblem = 1,
  kOutsideTraining = 2,
  kNoLegalConfig = 3,
  kSmallMargin = 4,    // only where the caller passes a margin
  kUnusableModel = 5,  // only with Preparation::kAtFirstUse: see there
  // Only with an objective: the candidate is the one with the least predicted violation of the
  // bounds.
  kNoFeasibleConfig = 6,
};
// Returns a sentence.
std::string_view to_string(AbstainReason reason);

struct Choice {
  AbstainReason reason = AbstainReason::kNone;
  // Also true for an abstention outside training: then the candidate is the best-ranked legal
  // config of the portfolio, or of all configs when the portfolio has none.
  bool has_candidate = false;
  std::uint32_t candidate = 0;  // position in the model's pool
  double score = 0;
  double margin = 0;  // of the runner-up over this score; infinite when nothing else is legal
  [[nodiscard]] bool picked() const { return reason == AbstainReason::kNone; }
};

// An answer of the distilled model, or of the exact one where the distilled model does not answer.
struct FastChoice {
  Choice choice;  // scores of the distilled model are relative to its best candidate's
  bool exact = false;
  // The possible loss of the distilled model's pick against the exact one in this region: the 95th
  // percentile of the difference of their exact scores, ln time. 0 when the choice is exact.
  double bound = 0;
};

struct RankedCandidate {
  std::uint32_t candidate = 0;
  double score = 0;
};

// A model's prediction of one metric of one candidate. NaN where it is unknown: values of a model
// that knows times only up to a factor, and everything for a candidate that is never legal.
struct PredictedMetric {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  double value = kUnknown;  // in the metric's unit
  double low = kUnknown;    // the value lies between them in 95 of 100 cases, if the model's errors
  double high = kUnknown;   // are normal and what it states of itself
  double z = kUnknown;      // as the model learned it: columns() has the scale
  double z_std = kUnknown;  // its standard deviation
};

// When the exact model is prepared: its body is read, checked and laid out for the candidates that
// are legal on the hardware. This takes most of the time of opening.
enum class Preparation : std::uint8_t {
  // open() reports every error of a model, and no call of select() ever allocates, waits or takes
  // longer than others. This is the default, because programs that call select() rely on it, and
  // deferring would only move the time to their first call.
  kAtOpen,
  // Prepared when select_fast() first needs it, or select(), prepare() or another member is first
  // called. This is for programs that mostly call select_fast(), whose first answer then comes
  // within a millisecond. open() has compared all checksums and checked everything but the body, so
  // a later failure means a file that was written wrong, or a lack of memory. It is final: select()
  // then always abstains with kUnusableModel and without a candidate, rank() is empty and model()
  // has no body, while select_fast() still gives all answers of its distilled model. The preparing
  // call allocates; other calls that need the exact model wait for it.
  kAtFirstUse,
};

struct SelectorOptions {
  Preparation preparation = Preparation::kAtOpen;
  // The objective of picks and rankings: scores are z of its target where all bounds are predicted
  // to hold, and above kInfeasibleScore (model/objective_scorer.h) elsewhere. Without an objective
  // they are the model's own, which predict time or the first metric.
  std::optional<Objective> objective{};
  // The machine to pick for, with a joint model (model/joint_model.h); others ignore it. Without
  // it, this machine.
  std::optional<Fingerprint> machine{};
};

class Selector {
 public:
  static Result<std::unique_ptr<Selector>> open(const std::filesystem::path& path,
                                                Preparation preparation = Preparation::kAtOpen);
  // Errors also: those of judge_of(), and kUnsupported for a Pareto objective.
  static Result<std::unique_ptr<Selector>> open(const std::filesystem::path& path,
                                                const SelectorOptions& options);
  // Features and legality use the hardware of the model's training data.
  static Result<std::unique_ptr<Selector>> create(Model model);
  // A model in memory is prepared at once.
  static Result<std::unique_ptr<Selector>> create(Model model, const SelectorOptions& options);
  ~Selector();
  Selector(const Selector&) = delete;
  Selector& operator=(const Selector&) = delete;

  [[nodiscard]] Choice select(const Problem& problem) const noexcept;
  // Selects for a problem without payload by its fields, which may be anything: the selector
  // abstains when they are not a problem. This is the shortest path to a cached answer.
  [[nodiscard]] Choice select(ProblemType type,
                              std::span<const std::int64_t> fields) const noexcept;
  // Selects, but abstains (kSmallMargin) when the runner-up is predicted to be within `min_margin`
  // (ln time) of the pick, so that a measurement could pay off.
  [[nodiscard]] Choice select(const Problem& problem, double min_margin) const noexcept;
  // The default limit of a distilled model's loss (ln time), which holds in 95 of 100 cases.
  static constexpr double kMaxDistilledRegret = 0.1;
  // Picks from the model's portfolio by the distilled model, in about a microsecond even for a new
  // problem. Calls select() where the model has no distilled one, outside of training, where the
  // region's bound is over `max_regret`, and where no config of the portfolio is legal.
  [[nodiscard]] FastChoice select_fast(const Problem& problem,
                                       double max_regret = kMaxDistilledRegret) const noexcept;
  [[nodiscard]] FastChoice select_fast(ProblemType type, std::span<const std::int64_t> fields,
                                       double max_regret = kMaxDistilledRegret) const noexcept;
  // Returns one sentence for people that says why the selector abstained, with the numbers: the
  // field or feature outside of the range and its distance, or the margin (allocates).
  [[nodiscard]] std::string explain(const Problem& problem, const Choice& choice) const;
  // Prepares the exact model, if it is not yet prepared. Returns the same error every time.
  Status prepare() const;
  // Selects without reading or filling the cache.
  [[nodiscard]] Choice select_uncached(const Problem& problem) const noexcept;
  // Returns the reason for which select() would abstain because of the problem itself, without
  // scoring: kNone where the problem is inside of the training data. It ignores legality.
  [[nodiscard]] AbstainReason coverage(const Problem& problem) const noexcept;
  // Returns all legal candidates, best first, those in canonical form before others (allocates; for
  // tools).
  [[nodiscard]] std::vector<RankedCandidate> rank(const Problem& problem) const;

  // Predicts every metric of these candidates: [candidate][column]; empty where rank() is
  // (allocates; scores the whole pool once per column).
  [[nodiscard]] std::vector<std::vector<PredictedMetric>> predict_metrics(
      const Problem& problem, std::span<const std::uint32_t> candidates) const;
  // Returns the metrics that the model predicts; they live as long as the selector.
  [[nodiscard]] std::span<const ScoreColumn> columns() const;
  // Returns the objective of the selector; nullptr where it uses the model's own order.
  [[nodiscard]] const Judge* judge() const;

  // Returns the type of the model's problems.
  [[nodiscard]] ProblemType problem_type() const;
  // Returns the whole model; prepares it.
  [[nodiscard]] const Model& model() const;
  [[nodiscard]] std::size_t pool_size() const;
  [[nodiscard]] Config config(std::uint32_t candidate) const;
  // Returns the config's values; they live as long as the selector.
  [[nodiscard]] std::span<const std::int32_t> words(std::uint32_t candidate) const;
  [[nodiscard]] std::string config_text(std::uint32_t candidate) const;
  // Returns a text for people, where values say little without the problem: a schedule as a
  // schedule.
  [[nodiscard]] std::string describe(std::uint32_t candidate, const Problem& problem) const;

 private:
  Selector();
  static Result<std::unique_ptr<Selector>> make(ModelParts parts, const SelectorOptions& options);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretune
