// The weighted mean of squared errors. A censored row is a lower bound: what is predicted above it
// may be right, and costs nothing (Tobin 1958 in its simplest form: one side of the residual).
#include "losses.h"

namespace foretune::network_training {

at::Tensor squared_error_loss(const LossBatch& batch) {
  const at::Tensor residual = batch.output - batch.target;
  const at::Tensor counted = residual.masked_fill(batch.censored & (residual > 0), 0);
  return (batch.weight * counted.square()).sum() / batch.weight.sum().clamp_min(1e-12);
}

}  // namespace foretune::network_training
