#include "foretune/families/cpu_conv/conv_plan.h"

#include <mutex>
#include <utility>

#include "foretune/kernels/aligned_buffer.h"

namespace foretune::cpu_conv {
namespace {

class PlannedConvKernel final : public CpuConvKernel {
 public:
  PlannedConvKernel(ConvPlan plan, const ConvProblem& problem, std::shared_ptr<SharedCpu> shared)
      : plan_(std::move(plan)), problem_(problem), shared_(std::move(shared)) {}

  Status run(const CpuConvOperands& operands) const override {
    const ConvOperation operation = problem_.operation();
    const bool has_bias = problem_.epilogue() != ConvEpilogue::kNone;
    const bool has_addend = problem_.epilogue() == ConvEpilogue::kBiasAddRelu;
    if (operands.result == nullptr ||
        (operation != ConvOperation::kBackwardData && operands.input == nullptr) ||
        (operation != ConvOperation::kBackwardWeight && operands.weights == nullptr) ||
        (operation != ConvOperation::kForward && operands.output == nullptr) ||
        (has_bias && operands.bias == nullptr) || (has_addend && operands.addend == nullptr)) {
      return fail(ErrorCode::kInvalidArgument, "a tensor of the convolution is missing");
    }
    FORETUNE_TRY(AlignedBuffer workspace,
                 shared_->workspaces.borrow(plan_.workspace_size() + plan_.packed_size()));
    const std::span<float> packed = workspace.view().first(plan_.packed_size());
    const std::span<float> rest = workspace.view().subspan(plan_.packed_size());
    if (operation == ConvOperation::kBackwardWeight) {
      plan_.run({.input = operands.input,
                 .output_gradient = operands.output,
                 .gradient = operands.result},
                rest);
    } else {
      plan_.pack_weights(operands.weights, packed);
      plan_.run({.input = operation == ConvOperation::kForward ? operands.input : operands.output,
                 .bias = has_bias ? operands.bias : nullptr,
                 .residual = has_addend ? operands.addend : nullptr,
                 .output = operands.result,
                 .relu = problem_.epilogue() >= ConvEpilogue::kBiasRelu},
                packed, rest);
    }
    shared_->workspaces.give_back(std::move(workspace));
    return {};
  }

 private:
  ConvPlan plan_;
  ConvProblem problem_;
  std::shared_ptr<SharedCpu> shared_;
};

}  // namespace

Result<ConvPlan> ConvPlan::create(const ConvProblem& problem, const CpuConvConfig& config,
                                  SharedCpu& shared) {
  ConvPlan plan;
  ThreadPool* const pool = config.threads > 1 ? &shared.pool.pool() : nullptr;
  plan.turn_ = config.threads > 1 ? &shared.pool.turn() : nullptr;
  const bool of_groups = config.algorithm == ConvAlgorithm::kGroups;
  if (problem.operation() == ConvOperation::kBackwardWeight) {
    if (of_groups) {
      FORETUNE_TRY(plan.group_gradient_, GroupGradient::create(problem, config, pool));
    } else {
      FORETUNE_TRY(plan.gradient_, WeightGradient::create(problem, config, pool));
    }
  } else if (of_groups) {
    FORETUNE_TRY(plan.groups_, GroupConv::create(problem, config, pool));
  } else {
    FORETUNE_TRY(plan.taps_, TapConv::create(problem, config, pool));
  }
  return plan;
}

std::size_t ConvPlan::workspace_size() const {
  return taps_             ? taps_->workspace_size()
         : gradient_       ? gradient_->workspace_size()
         : group_gradient_ ? group_gradient_->workspace_size()
                           : 0;
}

std::size_t ConvPlan::packed_size() const {
  return taps_ ? taps_->packed_size() : groups_ ? groups_->packed_size() : 0;
}

void ConvPlan::pack_weights(const float* weights, std::span<float> packed) const {
  if (taps_) {
    taps_->pack_weights(weights, packed);
  } else if (groups_) {
    groups_->pack_weights(weights, packed);
  }
}

template <class Body>
void ConvPlan::in_turn(const Body& body) const {
  if (turn_ == nullptr) {
    body();
    return;
  }
  const std::lock_guard lock(*turn_);
  body();
}

void ConvPlan::run(const ConvOperands& operands, std::span<const float> packed,
                   std::span<float> workspace) const {
  in_turn([&] {
    if (taps_) {
      taps_->run(operands, packed, workspace);
    } else {
      groups_->run(operands, packed);
    }
  });
}

void ConvPlan::run(const WeightGradientOperands& operands, std::span<float> workspace) const {
  in_turn([&] {
    if (gradient_) {
      gradient_->run(operands, workspace);
    } else {
      group_gradient_->run(operands, workspace);
    }
  });
}

std::shared_ptr<const CpuConvKernel> make_conv_kernel(ConvPlan plan, const ConvProblem& problem,
                                                      std::shared_ptr<SharedCpu> shared) {
  return std::make_shared<const PlannedConvKernel>(std::move(plan), problem, std::move(shared));
}

}  // namespace foretune::cpu_conv
