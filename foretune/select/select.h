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
// Thread safety: select() may be called from any number of threads at once; it takes no lock and
// does not allocate. (Workspaces are lent: one is made with the selector, others when that many
// threads are inside for the first time; over 64 at once wait for one another.) Cost: a repeated
// problem under 100 ns, a new one a few milliseconds for thousands of candidates.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"
#include "foretune/models/infer/model_file.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

enum class AbstainReason : std::uint8_t {
  kNone = 0,
  kInvalidProblem = 1,
  kOutsideTraining = 2,
  kNoLegalConfig = 3,
  kSmallMargin = 4,  // only where the caller asks for a margin
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

class Selector {
 public:
  static Result<std::unique_ptr<Selector>> open(const std::filesystem::path& path);
  // Features and legality use the hardware that the model was trained on.
  static Result<std::unique_ptr<Selector>> create(Model model);
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
  // Without looking into or filling the cache.
  [[nodiscard]] Choice select_uncached(const Problem& problem) const noexcept;
  // All legal candidates, best first, those in canonical form before others (allocates; for tools).
  [[nodiscard]] std::vector<RankedCandidate> rank(const Problem& problem) const;

  [[nodiscard]] const Model& model() const;
  [[nodiscard]] std::size_t pool_size() const;
  [[nodiscard]] Config config(std::uint32_t candidate) const;
  // The config's words; they live as long as the selector.
  [[nodiscard]] std::span<const std::int32_t> words(std::uint32_t candidate) const;
  [[nodiscard]] std::string config_text(std::uint32_t candidate) const;

 private:
  Selector();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretune
