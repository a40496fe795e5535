// The value in its unit that a score stands for, of models that learned a rate or a latency: their
// scores are a factor times what the trees predict, so that they order configs as times do.
//
//   const std::optional<LearnedRate> rate = learned_rate_of(model);
//   if (rate) print(rate->value(score));  // TFLOPS, of a model of "tflops"
//
// Thread safety: plain values and free functions. Cost: learned_rate_of() parses the model card.
#pragma once

#include <cstdint>
#include <optional>

#include "foretune/model/model_file.h"
#include "foretune/problem/problem_type.h"

namespace foretune {

struct LearnedRate {
  enum class Unit : std::uint8_t { kTflops, kMilliseconds, kGigabytesPerSecond };
  Unit unit = Unit::kTflops;
  bool log1p = false;  // ln(1 + value) was learned
  double factor = 1;   // score = factor * what was learned

  // Never below 0.
  [[nodiscard]] double value(double score) const;
  // The time that a value takes on the work of a problem; NaN without the work, or for a value of
  // 0.
  [[nodiscard]] double time_ns(double value, const std::optional<ProblemWork>& work) const;
};

// Returns nothing for models of other targets, for rankings, and for models whose card does not say
// how scores came about.
std::optional<LearnedRate> learned_rate_of(const Model& model);

}  // namespace foretune
