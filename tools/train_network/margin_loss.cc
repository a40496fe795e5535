// The hinge over pairs of configs of one problem that WACO trains its cost model with (Won et al.,
// "WACO: learning workload-aware co-optimization of the format and schedule of a sparse tensor
// program", 2023): the slower one is to be predicted at least a margin slower, whatever the times.
#include "losses.h"

namespace foretune::network_training {
namespace {

constexpr double kMargin = 1;

}  // namespace

at::Tensor margin_loss(const LossBatch& batch) {
  const at::Tensor ahead = batch.score.unsqueeze(1) - batch.score.unsqueeze(2);
  const at::Tensor counted = batch.slower.to(ahead.scalar_type());
  return (at::relu(kMargin - ahead) * counted).sum() / counted.sum().clamp_min(1);
}

}  // namespace foretune::network_training
