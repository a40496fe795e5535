// A scorer orders the configs of a problem. Scores are the metric's natural logarithm up to a
// constant per problem: lower is better, differences are log ratios. The work is split: prepare()
// once per pool of candidates does all that depends on configs only; score() does the rest.
//
//   auto pool = scorer.prepare(words, width, hardware);
//   std::vector<std::byte> workspace(pool->workspace_bytes());
//   pool->score(problem, workspace, scores, {});
//
// Thread safety: scorers and prepared pools are immutable; every thread brings its own workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"
#include "foretune/problem/problem.h"

namespace foretune {

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
};

class Scorer {
 public:
  virtual ~Scorer() = default;
  virtual std::string_view kind() const = 0;  // "gbdt"
  // `words` holds the configs one after another, `width` words each; it is copied where needed.
  virtual Result<std::unique_ptr<PreparedPool>> prepare(std::span<const std::int32_t> words,
                                                        std::size_t width,
                                                        const Hardware& hardware) const = 0;
};

}  // namespace foretune
