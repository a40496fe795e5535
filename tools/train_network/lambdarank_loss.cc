// LambdaRank (Burges, "From RankNet to LambdaRank to LambdaMART: an overview", 2010): the logistic
// loss of every pair, weighted by how much the discounted cumulative gain of the order would change
// were the two exchanged, over that of the ideal order. The gain of a config is its efficiency,
// best time / time: what picking it is worth. That of a censored one is at most its bound's.
#include <cmath>

#include "losses.h"

namespace foretune::network_training {
namespace {

// By predicted time, from 1; equal predictions in the order in which they stand.
at::Tensor ranks_of(const LossBatch& batch) {
  const at::Tensor score = batch.score.detach();
  const std::int64_t places = score.size(1);
  const at::Tensor first = score.unsqueeze(2);
  const at::Tensor second = score.unsqueeze(1);
  const at::Tensor place = at::arange(places, score.options());
  const at::Tensor earlier = place.unsqueeze(0) < place.unsqueeze(1);
  const at::Tensor ahead = (second < first) | ((second == first) & earlier);
  return (ahead & batch.present.unsqueeze(1)).sum(2).to(score.scalar_type()) + 1;
}

at::Tensor discount_of(const at::Tensor& rank) { return at::reciprocal(at::log2(rank + 1)); }

}  // namespace

at::Tensor lambdarank_loss(const LossBatch& batch) {
  const at::Tensor gain =
      at::exp(-batch.relative).clamp_max(1).masked_fill(batch.present.logical_not(), 0);
  const at::Tensor discount = discount_of(ranks_of(batch));
  const at::Tensor best_ranks = at::arange(gain.size(1), gain.options()) + 1;
  const at::Tensor ideal =
      (std::get<0>(gain.sort(1, true)) * discount_of(best_ranks)).sum(1).clamp_min(1e-12);
  const at::Tensor change = (gain.unsqueeze(1) - gain.unsqueeze(2)).abs() *
                            (discount.unsqueeze(1) - discount.unsqueeze(2)).abs() /
                            ideal.view({-1, 1, 1});
  const at::Tensor ahead = batch.score.unsqueeze(1) - batch.score.unsqueeze(2);
  const at::Tensor counted = change * batch.slower.to(change.scalar_type());
  return (at::softplus(-ahead) * counted).sum() / batch.score.size(0);
}

}  // namespace foretune::network_training
