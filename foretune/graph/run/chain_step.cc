#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "foretune/graph/run/internal/steps.h"

namespace foretune::graph {

namespace {

// Registers of this many floats stay in the first cache.
constexpr std::size_t kBlock = 1024;

class ChainStep final : public Step {
 public:
  ChainStep(Chain chain, ValueId output) : chain_(std::move(chain)) {
    reads = chain_.values;
    write = output;
    works_in_place = true;
    // A constant of a short period is repeated, so that a block needs no end at each period.
    for (std::vector<float>& constant : chain_.constants) {
      const std::size_t period = constant.size();
      const std::size_t times = period < kBlock ? (kBlock + period - 1) / period : 1;
      constant.reserve(period * times);
      for (std::size_t i = period; i < period * times; ++i) {
        constant.push_back(constant[i - period]);
      }
    }
  }

  Status run(const Frame& frame) const override {
    alignas(64) std::array<float, kMaxChainRegisters * kBlock> registers;  // written before read
    float* const result = frame.out(write);
    std::size_t count = 0;
    for (std::size_t first = 0; first < chain_.elements; first += count) {
      count = std::min(kBlock, chain_.elements - first);
      for (const std::vector<float>& constant : chain_.constants) {
        count = std::min(count, constant.size() - first % constant.size());
      }
      const auto place = [&](const ChainOperand& operand) -> const float* {
        switch (operand.kind) {
          case ChainOperand::Kind::kValue:
            return frame.in(chain_.values[operand.index]) + first;
          case ChainOperand::Kind::kConstant:
            return chain_.constants[operand.index].data() +
                   first % chain_.constants[operand.index].size();
          case ChainOperand::Kind::kRegister:
            break;
        }
        return registers.data() + operand.index * kBlock;
      };
      for (std::size_t i = 0; i < chain_.instructions.size(); ++i) {
        const ChainInstruction& now = chain_.instructions[i];
        float* const to = i + 1 == chain_.instructions.size() ? result + first
                                                              : registers.data() + now.to * kBlock;
        if (now.unary != nullptr) {
          now.unary(place(now.a), to, count, now.p, now.q);
        } else {
          now.binary(place(now.a), place(now.b), to, count);
        }
      }
    }
    return {};
  }

  [[nodiscard]] std::string describe() const override { return chain_.text; }

 private:
  Chain chain_;
};

}  // namespace

std::unique_ptr<Step> make_chain_step(Chain chain, ValueId output) {
  return std::make_unique<ChainStep>(std::move(chain), output);
}

}  // namespace foretune::graph
