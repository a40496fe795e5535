#include "foretune/loop/chains.h"

#include <algorithm>
#include <cstddef>

#include "foretune/base/text.h"

namespace foretune::loop {

std::vector<Step> chain_steps(NestChain chain) {
  constexpr Step kRelu{.op = Op::kMax};
  constexpr Step kScale{.op = Op::kMultiply, .input = 1};
  constexpr auto kAdd = [](int input) { return Step{.op = Op::kAdd, .input = input}; };
  switch (chain) {
    case NestChain::kRelu:
      return {kRelu};
    case NestChain::kRelu6:
      return {kRelu, {.op = Op::kMin, .constant = 6}};
    case NestChain::kBiasRelu:
      return {kAdd(1), kRelu};
    case NestChain::kResidual:
      return {kAdd(1)};
    case NestChain::kScale:
      return {kScale};
    case NestChain::kScaleShift:
      return {kScale, kAdd(2)};
    case NestChain::kScaleShiftRelu:
      return {kScale, kAdd(2), kRelu};
    case NestChain::kScaleShiftResidualRelu:
      return {kScale, kAdd(2), kAdd(3), kRelu};
  }
  return {};
}

std::optional<NestChain> find_chain(std::span<const Step> steps) {
  for (std::size_t i = 0; i < kNestChains.size(); ++i) {
    const auto chain = static_cast<NestChain>(i);
    if (std::ranges::equal(chain_steps(chain), steps)) {
      return chain;
    }
  }
  return std::nullopt;
}

std::string chain_labels() {
  std::vector<std::string> labels;
  for (const NestChainInfo& chain : kNestChains) {
    labels.emplace_back(chain.label);
  }
  return join(labels, ", ");
}

}  // namespace foretune::loop
