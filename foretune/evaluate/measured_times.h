// The measured times of a data set by problem and config, and the one rule by which two of them are
// compared.
//
//   const MeasuredTimes times(dataset);
//   if (const MeasuredCandidate* pick = times.find(problem, config)) {
//     use(times.compare(problem, *pick).efficiency);
//   }
//
// The rule: a config and the problem's best are compared by the times that were re-measured
// interleaved (kFlagReference) when the config and the fastest ordinary time's config both have
// them, else by the ordinary times of both. So an interleaved time is never compared with one that
// was taken alone, and an efficiency is never above 1.
//
// A time that neighbours disturbed (kFlagLoaded) is never a problem's best; of a config it counts
// where there is no other. A problem with nothing but such times has no best.
//
// Rows of another config schema than the header's are not candidates and are left out.
//
// Thread safety: immutable after construction. Cost: a sort of the rows; 56 bytes per (problem,
// config).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/dataset/dataset.h"

namespace foretune {

enum class MeasuredState : std::uint8_t {
  kOk,
  kBound,    // stopped early: the time is a lower bound
  kFailed,   // did not prepare, crashed, hung or computed something wrong
  kRefused,  // unsupported: known before anything runs
};

// All rows of one (problem, config): ok beats bounds beats failures; several times give their
// median, several bounds the highest. Times of later comparisons of a problem are first brought to
// the scale of the earlier ones by the configs that they share.
struct MeasuredCandidate {
  std::uint32_t config = 0;
  MeasuredState state = MeasuredState::kOk;
  Outcome outcome = Outcome::kOk;  // of the row that says why
  double time_ns = 0;              // a lower bound for kBound, 0 for failures
  bool has_ordinary_time = false;  // else an ok time_ns is reference_ns
  double spread = 0;
  double reference_ns = -1;  // re-measured interleaved; negative when it was not
  double reference_spread = 0;
  // There is no time that neighbours did not disturb (kFlagLoaded).
  bool is_disturbed = false;
  bool is_reference_disturbed = false;
};

// One candidate beside the best of its problem.
struct Comparison {
  double efficiency = 0;  // best_ns / pick_ns; at most 1; 0 for failures
  double pick_ns = -1;    // negative for failures
  double best_ns = -1;
  double tolerance = 0.01;  // a time up to (1 + tolerance) * best_ns is a tie
  std::uint32_t best_config = 0;
  bool is_tie = false;
  bool is_bound = false;      // pick_ns is a lower bound, so the efficiency is an upper one
  bool is_reference = false;  // both times were re-measured interleaved
};

// Two configs within this share are a tie, or within their stored spreads when those are larger.
inline constexpr double kTieTolerance = 0.01;

class MeasuredTimes {
 public:
  explicit MeasuredTimes(const Dataset& dataset);

  [[nodiscard]] std::size_t problem_count() const { return oracles_.size(); }
  // By ascending config id.
  [[nodiscard]] std::span<const MeasuredCandidate> candidates(std::uint32_t problem) const {
    return std::span(candidates_)
        .subspan(begins_[problem], begins_[problem + 1] - begins_[problem]);
  }
  // nullptr when there is no row of it.
  [[nodiscard]] const MeasuredCandidate* find(std::uint32_t problem, std::uint32_t config) const;

  // True when a config of the problem has a time that was not disturbed.
  [[nodiscard]] bool has_oracle(std::uint32_t problem) const {
    return oracles_[problem].time_ns > 0;
  }
  // True when the best of the problem was re-measured interleaved with others.
  [[nodiscard]] bool has_reference(std::uint32_t problem) const {
    return oracles_[problem].reference_ns > 0;
  }
  // Best time; negative without an oracle.
  [[nodiscard]] double oracle_ns(std::uint32_t problem) const;
  // By ordinary times only, for times that came from elsewhere.
  [[nodiscard]] double ordinary_oracle_ns(std::uint32_t problem) const {
    return oracles_[problem].time_ns;
  }
  [[nodiscard]] double ordinary_oracle_spread(std::uint32_t problem) const {
    return oracles_[problem].spread;
  }
  [[nodiscard]] std::uint32_t oracle_config(std::uint32_t problem) const;

  // The problem must have an oracle.
  [[nodiscard]] Comparison compare(std::uint32_t problem, const MeasuredCandidate& pick) const;

 private:
  struct Oracle {
    double time_ns = -1;
    double spread = 0;
    double reference_ns = -1;  // negative unless the config of time_ns was re-measured
    double reference_spread = 0;
    std::uint32_t config = 0;
    std::uint32_t reference_config = 0;
  };
  void find_oracle(std::uint32_t problem);

  std::vector<std::size_t> begins_;  // of each problem in candidates_, and the end
  std::vector<MeasuredCandidate> candidates_;
  std::vector<Oracle> oracles_;
};

}  // namespace foretune
