// What a model's pick for one product comes to when the dispatcher runs it, by what was measured
// of the product: speeds relative to the library's choice.
//
//   FORETUNE_TRY(const ModelAnswer answer, ask(selector, problem, library, nullptr));
//   const Judgement judgement = judge(answer, measured, library, 5);
//   if (judgement.verdict) use(judgement.verdict->with_margin(0.06));
//
// As in the dispatcher the library's choice runs where the model abstains, where it expects less
// than the margin, and where the library refuses all that is tried. A config that was stopped early
// counts by its bound, which flatters it and still says that it is slow. One that failed (a wrong
// result, a crash) has no speed: the product is left out, and the reason says so.
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
  std::optional<double> once_ns;  // measured by itself; a lower bound where it was stopped early
  std::optional<double> in_turns_ns;  // median, in turns with the other contenders
};
using MeasuredConfigs = std::map<Config, MeasuredConfig>;
// By the problem's id in the data set.
std::map<std::uint32_t, MeasuredConfigs> read_measured(const Dataset& dataset);

struct ScoredConfig {
  Config config;
  double score = 0;  // ln time, up to a constant
};

// What the dispatcher learns from a model, and from the library, about one product.
struct ModelAnswer {
  bool is_covered = true;             // the product lies in the model's applicability domain
  std::vector<ScoredConfig> ranking;  // best first
  std::optional<double> library_score;
  std::optional<Config> library_algorithm;  // the words of the library's choice, where known
  std::optional<Config> fast_pick;          // nothing: the fast mode leaves it to the exact one
};
// `library`: the config that stands for the library's choice. `algorithm`: the words behind it, or
// nullptr: then the choice is scored as the model knows that config, by what it is on average.
Result<ModelAnswer> ask(const Selector& selector, const Problem& problem, const Config& library,
                        const Config* algorithm);

struct Verdict {
  bool is_covered = true;  // else the library's choice runs
  double pick = 1;         // of what runs without a margin
  // The least that the model expects of the pick and of what it tried before (ln of the speed);
  // nothing where it cannot score the library's choice.
  std::optional<double> expected_gain;
  bool is_library = true;           // the library's choice runs anyway
  bool is_in_turns = true;          // else the pick was measured once
  bool is_stopped_early = false;    // the pick's speed is a bound
  std::size_t refused = 0;          // configs before the pick that the library refuses
  double best_of_top = 1;           // the fastest of the model's best few
  std::optional<double> fast_pick;  // measured once; nothing: the exact mode answers
  bool is_fast_known = true;        // else the fast mode's pick was not measured, or failed
  double best_of_ranks = 1;         // the fastest of the heuristic's answers, measured once each
  double oracle = 1;                // the fastest of all that took turns
  // Without the library's choice: the first and the best few of the others over the fastest other.
  std::optional<double> own_efficiency;
  bool is_own_in_turns = true;  // else the first of the others was measured once
  double own_top_efficiency = 0;

  // Whether the model's pick is left for the library's choice.
  [[nodiscard]] bool is_below(double margin) const {
    return !is_library && margin > 0 && expected_gain && *expected_gain < margin;
  }
  // What the dispatcher runs.
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
