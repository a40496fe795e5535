// Judges a model's pick for one product, as the dispatcher would run it, by the product's
// measurements: speeds relative to the library's choice.
//
//   FORETUNE_TRY(const ModelAnswer answer, ask(selector, problem, library, nullptr));
//   const Judgement judgement = judge(answer, measured, library, 5);
//   if (judgement.verdict) use(judgement.verdict->with_margin(0.06));
//
// As in the dispatcher, the library's choice runs when the model abstains, when it expects less
// than the margin, and when the library refuses every pick. A config that was stopped early counts
// by its bound, which flatters it but still shows that it is slow. A config that failed (a wrong
// result, a crash) has no speed: the product is left out, with the reason.
//
// Thread safety: plain values and free functions. Cost: ask() ranks the whole pool.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/select/select.h"

namespace foretune::bench {

// One config on one product.
struct MeasuredConfig {
  Outcome outcome = Outcome::kOk;
  std::optional<double> once_ns;      // measured by itself; a lower bound if stopped early
  std::optional<double> in_turns_ns;  // median, in turns with the other contenders
};
using MeasuredConfigs = std::map<Config, MeasuredConfig>;
// Returns the measurements by the problem's id in the data set.
std::map<std::uint32_t, MeasuredConfigs> read_measured(const Dataset& dataset);

struct ScoredConfig {
  Config config;
  double score = 0;  // ln time, up to a constant
};

// The answers of a model, and of the library, about one product.
struct ModelAnswer {
  bool is_covered = true;             // the product lies in the model's applicability domain
  std::vector<ScoredConfig> ranking;  // best first
  std::optional<double> library_score;
  std::optional<Config> library_algorithm;  // the values of the library's choice, if known
  std::optional<Config> fast_pick;          // nothing: the fast mode leaves it to the exact one
};
// `library`: the config that stands for the library's choice. `algorithm`: the config behind it.
// With nullptr, the choice gets the model's score of `library`, which is an average over
// algorithms.
Result<ModelAnswer> ask(const Selector& selector, const Problem& problem, const Config& library,
                        const Config* algorithm);

struct Verdict {
  bool is_covered = true;  // else the library's choice runs
  double pick = 1;         // speed without a margin
  // The model's smallest expected gain of the pick and of the configs tried before it (ln of the
  // speed); nothing when it cannot score the library's choice.
  std::optional<double> expected_gain;
  bool is_library = true;               // the library's choice runs anyway
  bool is_in_turns = true;              // else the pick was measured once
  bool is_stopped_early = false;        // the pick's speed is a bound
  std::size_t refused = 0;              // configs before the pick that the library refuses
  double best_of_top = 1;               // the fastest of the model's best few
  std::optional<double> fast_pick;      // measured once; nothing: the exact mode answers
  std::optional<double> fast_in_turns;  // the same pick, where it took turns
  bool is_fast_known = true;            // else the fast mode's pick was not measured, or failed
  double best_of_ranks = 1;  // the fastest of the heuristic's answers, measured once each
  double oracle = 1;         // the fastest of all that took turns
  // Without the library's choice: the first and the best few of the others over the fastest other.
  std::optional<double> own_efficiency;
  bool is_own_in_turns = true;  // else the first of the others was measured once
  double own_top_efficiency = 0;

  // Returns true when the library's choice runs because the model's pick gains less than `margin`.
  [[nodiscard]] bool is_below(double margin) const {
    return !is_library && margin > 0 && expected_gain && *expected_gain < margin;
  }
  // Returns the speed of the config that the dispatcher runs.
  [[nodiscard]] double with_margin(double margin) const { return is_below(margin) ? 1 : pick; }
  [[nodiscard]] double fast(double margin) const {
    return fast_pick ? *fast_pick : with_margin(margin);
  }
};

struct Judgement {
  std::optional<Verdict> verdict;
  std::string left_out;    // why there is none
  bool is_failed = false;  // because a pick failed
};
Judgement judge(const ModelAnswer& answer, const MeasuredConfigs& measured, const Config& library,
                std::size_t top);

}  // namespace foretune::bench
