// A scorer orders the configs of a problem. Scores are the metric's natural logarithm up to a
// constant per problem: lower is better, differences are log ratios. The work is split: prepare()
// once per pool of candidates does all that depends on configs only; score() does the rest.
//
//   auto pool = scorer.prepare(configs, hardware);
//   std::vector<std::byte> workspace(pool->workspace_bytes());
//   pool->score(problem, workspace, scores, {});
//
// A scorer of several metrics has a column of scores for each (columns()): z of the metric, which
// its scale turns into a value. score() is of the first.
//
// Thread safety: scorers and prepared pools are immutable; every thread brings its own workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"
#include "foretune/metrics/metric.h"
#include "foretune/metrics/value_scale.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config_words.h"

namespace foretune {

struct Model;

// The metric of a column of scores.
struct ScoreColumn {
  MetricInfo metric = metric_info(kTimeNs);
  ValueScale scale;
  // Else scores are z up to a constant per problem, and no value can be said.
  bool is_absolute = false;
  bool operator==(const ScoreColumn&) const = default;
};

class PreparedPool {
 public:
  virtual ~PreparedPool() = default;
  virtual std::size_t size() const = 0;
  // Bytes score() needs, of any alignment.
  virtual std::size_t workspace_bytes() const = 0;
  // One score per candidate. `uncertainty` is empty, or gets one standard deviation of the log per
  // candidate. Does not allocate, lock or fail.
  virtual void score(const Problem& problem, std::span<std::byte> workspace,
                     std::span<double> scores, std::span<double> uncertainty) const noexcept = 0;
  // As many as the scorer has columns.
  virtual std::size_t column_count() const { return 1; }
  // The same as score() of one column; column 0 is score() to the bit.
  virtual void score_column(std::size_t column, const Problem& problem,
                            std::span<std::byte> workspace, std::span<double> scores,
                            std::span<double> uncertainty) const noexcept;
  // All columns one after another, a score per candidate each: [column][candidate].
  void score_columns(const Problem& problem, std::span<std::byte> workspace,
                     std::span<double> scores, std::span<double> uncertainty) const noexcept;
};

class Scorer {
 public:
  virtual ~Scorer() = default;
  // Configs are copied where needed.
  virtual Result<std::unique_ptr<PreparedPool>> prepare(ConfigWords configs,
                                                        const Hardware& hardware) const = 0;
  // The metrics that scores are of; one column of time unless the model says otherwise.
  std::span<const ScoreColumn> columns() const { return columns_; }

 protected:
  std::vector<ScoreColumn> columns_ = std::vector<ScoreColumn>(1);
  friend Result<std::unique_ptr<Scorer>> make_scorer(const Model& model);
};

}  // namespace foretune
