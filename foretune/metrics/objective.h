// An objective: which metric to optimise under which bounds, or which metrics to trade off.
//
//   minimise time_ns subject to pack_ns <= 2 ms and bytes <= 1 MiB
//   minimise time_ns subject to qos_tune >= baseline - 2 keep baseline - 3
//   maximise qos_tune subject to time_ns <= 0.8 * baseline
//   pareto time_ns pack_ns subject to bytes <= 1 MiB
//
// A bound is absolute, or relative to the baseline (the config that a user without tuning would
// run) by a difference or a factor. `keep` gives a second, looser bound: points between the two are
// kept and shown, but never win. Numbers may carry a unit that converts to the metric's (ns us ms
// s; B kB MB GB KiB MiB GiB; nJ uJ mJ J); any other (%, dB, pp) must be the metric's own.
//
//   OBJECTIVE = TARGETS [subject to BOUND [and BOUND]...]
//   TARGETS   = minimise METRIC | maximise METRIC | pareto METRIC METRIC...
//   BOUND     = METRIC <= VALUE [keep VALUE] | METRIC >= VALUE [keep VALUE]
//   VALUE     = NUMBER [UNIT] | baseline | baseline + NUMBER [UNIT] | baseline - NUMBER [UNIT]
//             | NUMBER * baseline | baseline * NUMBER
//
// "minimize" and "maximize" are accepted, too. Blanks are needed only between words: "bytes<=1MiB".
// The words of bounds (subject, and, keep, baseline) cannot be metrics or units here.
//
//   FORETUNE_TRY(const Objective objective, Objective::parse(text));
//   FORETUNE_TRY(const Judge judge, Judge::create(objective, family.info().metrics, baseline));
//   const Judgement judgement = judge.judge(measurement.metrics);
//
// Thread safety: plain values; a Judge is immutable. Cost: judge() does not allocate for up to four
// targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/small_vector.h"
#include "foretune/metrics/metric.h"

namespace foretune {

// A number of an objective: absolute, or relative to the baseline's value of the same metric.
struct BoundValue {
  enum class Kind : std::uint8_t { kAbsolute, kDifference, kFactor };
  Kind kind = Kind::kAbsolute;
  double value = 0;  // in `unit`; for kDifference signed, added to the baseline's value
  std::string unit;  // as written; empty: the metric's own; a factor has none
  // Returns the text in an objective: "2 ms", "baseline - 3", "0.8 * baseline".
  [[nodiscard]] std::string text() const;
  bool operator==(const BoundValue&) const = default;
};

struct MetricBound {
  std::string metric;
  bool is_upper = true;  // <=, else >=
  BoundValue bound;
  std::optional<BoundValue> keep;  // looser
  bool operator==(const MetricBound&) const = default;
};

struct Objective {
  // One target is optimised in `direction`; several give their Pareto set, each in the direction
  // that it declares.
  std::vector<std::string> targets;
  Direction direction = Direction::kMinimise;  // of a single target
  std::vector<MetricBound> bounds;

  // Returns "minimise time_ns", the default.
  static Objective time();
  // Errors: kInvalidArgument with the word at which the text stops making sense.
  static Result<Objective> parse(std::string_view text);
  // Returns a text that parses back to the same value.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool is_pareto() const { return targets.size() > 1; }
  // Returns every metric that is named, targets first, each once.
  [[nodiscard]] std::vector<std::string> metrics() const;
  bool operator==(const Objective&) const = default;
};

struct Judgement {
  // Values of the targets, oriented so that smaller is better (a metric to maximise is negated).
  // Empty when one of them is missing.
  SmallVector<double, 4> targets;
  // The sum over all bounds of the excess relative to the bound (for a bound of 0, the excess
  // itself). 0: feasible. Infinite when a bounded metric is missing.
  double violation = 0;
  double keep_violation = 0;  // the same for the looser bounds
  [[nodiscard]] bool has_targets() const { return !targets.empty(); }
  [[nodiscard]] bool is_feasible() const { return has_targets() && violation == 0; }
  [[nodiscard]] bool is_kept() const { return has_targets() && keep_violation == 0; }
};

// The objective with names, units and the baseline resolved.
class Judge {
 public:
  // `infos` lists the metrics; common metrics that it lacks are known too. Errors: kNotFound for an
  // unknown metric, with the known ones; kInvalidArgument for a unit that is not the metric's, a
  // direction that contradicts it, a `keep` that is tighter than its bound, a bound that is not
  // finite, and a relative bound whose metric has no finite value in `baseline`.
  static Result<Judge> create(const Objective& objective, std::span<const MetricInfo> infos,
                              std::span<const MetricValue> baseline);

  [[nodiscard]] Judgement judge(std::span<const MetricValue> values) const;
  // Judges values in the order of `metrics()`, one each; a NaN is a missing value.
  [[nodiscard]] Judgement judge(std::span<const double> values) const;

  [[nodiscard]] const Objective& objective() const { return objective_; }
  // Returns the metrics that judge() reads, targets first.
  [[nodiscard]] std::span<const MetricInfo> metrics() const { return metrics_; }
  // Returns the resolved limit of a bound, in the metric's unit. `bound` is its position in
  // objective().bounds.
  [[nodiscard]] double limit(std::size_t bound) const { return limits_[bound].limit; }
  [[nodiscard]] double keep_limit(std::size_t bound) const { return limits_[bound].keep; }

 private:
  struct Limit {
    std::size_t metric = 0;  // position in metrics_
    bool is_upper = true;
    double limit = 0;
    double keep = 0;
  };
  // `value_of` yields the value of a position in metrics_, a NaN where it is missing.
  template <class ValueOf>
  [[nodiscard]] Judgement judge_by(const ValueOf& value_of) const;

  Objective objective_;
  std::vector<MetricInfo> metrics_;
  std::vector<Limit> limits_;
  std::vector<bool> is_maximised_;  // of each target
};

}  // namespace foretune
