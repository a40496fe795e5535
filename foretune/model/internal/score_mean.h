// Mean of the scores that several members of a model give, and how far they are apart. Internal to
// the module. Thread safety: works on what it is given.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "foretune/base/result.h"

namespace foretune {

// Sums in `scores`; in `uncertainty`, where it is not empty, the sums of squared distances from the
// mean so far (Welford 1962). Members come one after another, `index` from 0.
inline void add_score(std::size_t index, std::size_t i, double score, std::span<double> scores,
                      std::span<double> uncertainty) {
  const auto before = static_cast<double>(index);
  if (!uncertainty.empty()) {
    const double distance = index == 0 ? 0 : score - scores[i] / before;
    uncertainty[i] = index == 0 ? 0 : uncertainty[i] + distance * distance * before / (before + 1);
  }
  scores[i] = index == 0 ? score : scores[i] + score;
}

// Errors: kInvalidArgument for what is no standard deviation.
inline Status check_residual(double residual_std) {
  if (!(residual_std >= 0 && std::isfinite(residual_std))) {
    return fail(ErrorCode::kInvalidArgument, "the residual of the model is not a number from 0");
  }
  return {};
}

// Turns the sums of `members` into means and standard deviations.
inline void finish_scores(std::size_t members, double residual_variance, std::span<double> scores,
                          std::span<double> uncertainty) {
  const auto count = static_cast<double>(members);
  if (members > 1) {
    for (double& score : scores) {
      score /= count;
    }
  }
  for (double& value : uncertainty) {
    const double variance = members > 1 ? value / (count - 1) : 0;
    value = std::sqrt(residual_variance + variance);
  }
}

}  // namespace foretune
