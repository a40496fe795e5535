// ListMLE (Xia et al., "Listwise approach to learning to rank: theory and algorithm", 2008): the
// likelihood of the measured order under the model of Plackett and Luce, in which the fastest is
// drawn first, then the fastest of the rest, each with probability proportional to exp(-score).
//
// That is the partial likelihood of Cox (1972), and ties and censored rows are as old as that. Rows
// that tie with the one drawn are all still there when it is (Breslow 1974), so their order costs
// nothing. A censored row is never drawn, and is there as long as its time is known to be longer.
#include <limits>

#include "losses.h"

namespace foretune::network_training {

at::Tensor listmle_loss(const LossBatch& batch) {
  const at::Tensor time = batch.relative;
  const at::Tensor itself = at::eye(time.size(1), time.options().dtype(at::kBool)).unsqueeze(0);
  // groups x drawn x still there
  const at::Tensor there =
      ((time.unsqueeze(1) >= time.unsqueeze(2) - batch.tie) & batch.present.unsqueeze(1)) | itself;
  const at::Tensor rates =
      (-batch.score)
          .unsqueeze(1)
          .expand_as(there)
          .masked_fill(there.logical_not(), -std::numeric_limits<double>::infinity());
  const at::Tensor drawn = (batch.exact & batch.present).to(batch.score.scalar_type());
  const at::Tensor terms = rates.logsumexp(2) + batch.score;
  return (terms * drawn).sum() / drawn.sum().clamp_min(1);
}

}  // namespace foretune::network_training
