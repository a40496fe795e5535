#include "losses.h"

#include <array>

namespace foretune::network_training {
namespace {

// In the order of LossKind.
constexpr std::array kLosses{&squared_error_loss, &margin_loss, &lambdarank_loss, &listmle_loss};

}  // namespace

void LossBatch::find_pairs() {
  const at::Tensor longer = relative.unsqueeze(1) - relative.unsqueeze(2) > tie;
  slower = longer & (exact & present).unsqueeze(2) & present.unsqueeze(1);
}

at::Tensor mixture_loss(std::span<const LossTerm> terms, const LossBatch& batch) {
  at::Tensor sum;
  for (const LossTerm& term : terms) {
    const at::Tensor part = kLosses[static_cast<std::size_t>(term.kind)](batch) * term.weight;
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

}  // namespace foretune::network_training
