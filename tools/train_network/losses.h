// The losses that training minimises: functions of a batch's outputs in units of the standardised
// target, where a lower output means a faster config. Each lives in a file of its own with its
// source; a mixture is their weighted sum.
//
// In a pair of configs of one problem the slower one is known when the faster one's time was
// measured to its end and the other's time, or the bound that it is known to exceed, is longer by
// more than a tie. Other pairs do not count.
//
// Thread safety: free functions. Errors: libtorch's exceptions.
#pragma once

#include <ATen/ATen.h>

#include <span>

#include "options.h"

namespace foretune::network_training {

struct LossBatch {
  // Per row.
  at::Tensor output;
  at::Tensor target;
  at::Tensor weight;
  at::Tensor censored;  // bool
  // For ranking losses: groups of rows of one problem, each padded to the longest.
  at::Tensor score;     // groups x places
  at::Tensor relative;  // ln(time / best of the problem), or ln(bound / best)
  at::Tensor exact;     // bool: a row that is not censored
  at::Tensor present;   // bool: a row, not padding
  double tie = 0;
  // groups x places x places: true when the second is known to be slower than the first.
  at::Tensor slower;
  void find_pairs();
};

at::Tensor squared_error_loss(const LossBatch& batch);
at::Tensor margin_loss(const LossBatch& batch);
at::Tensor lambdarank_loss(const LossBatch& batch);
at::Tensor listmle_loss(const LossBatch& batch);

// Returns a scalar that can be differentiated.
at::Tensor mixture_loss(std::span<const LossTerm> terms, const LossBatch& batch);

}  // namespace foretune::network_training
