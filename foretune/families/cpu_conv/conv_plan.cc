#include "foretune/families/cpu_conv/conv_plan.h"

#include <cstdint>
#include <mutex>
#include <utility>

#include "foretune/kernels/aligned_buffer.h"

namespace foretune::cpu_conv {
namespace {

// A dense tensor in memory.
struct Extent {
  const void* start = nullptr;
  std::int64_t floats = 0;
};

bool overlap(const Extent& x, const Extent& y) {
  const auto begin = [](const Extent& extent) {
    return reinterpret_cast<std::uintptr_t>(extent.start);
  };
  const auto end = [&](const Extent& extent) {
    return begin(extent) + static_cast<std::uintptr_t>(extent.floats) * sizeof(float);
  };
  return x.start != nullptr && y.start != nullptr && begin(x) < end(y) && begin(y) < end(x);
}

class PlannedConvKernel final : public CpuConvKernel {
 public:
  PlannedConvKernel(ConvPlan plan, const ConvProblem& problem, std::shared_ptr<SharedCpu> shared)
      : plan_(std::move(plan)), problem_(problem), shared_(std::move(shared)) {}

  Status run(const CpuConvOperands& operands) const override {
    FORETUNE_TRY_STATUS(check(operands));
    const bool is_packed = operands.packed_weights != nullptr;
    const std::size_t packed_here = is_packed ? 0 : plan_.packed_size();
    FORETUNE_TRY(AlignedBuffer workspace,
                 shared_->workspaces.borrow(plan_.workspace_size() + packed_here));
    const std::span<float> packed = workspace.view().first(packed_here);
    const std::span<float> rest = workspace.view().subspan(packed_here);
    if (problem_.operation() == ConvOperation::kBackwardWeight) {
      plan_.run({.input = operands.input,
                 .output_gradient = operands.output,
                 .gradient = operands.result},
                rest);
    } else {
      if (!is_packed) {
        plan_.pack_weights(operands.weights, packed);
      }
      const bool is_forward = problem_.operation() == ConvOperation::kForward;
      plan_.run({.input = is_forward ? operands.input : operands.output,
                 .bias = has_bias() ? operands.bias : nullptr,
                 .residual = has_addend() ? operands.addend : nullptr,
                 .output = operands.result,
                 .relu = problem_.epilogue() >= ConvEpilogue::kBiasRelu},
                is_packed ? std::span(reinterpret_cast<const float*>(operands.packed_weights),
                                      plan_.packed_size())
                          : packed,
                rest);
    }
    shared_->workspaces.give_back(std::move(workspace));
    return {};
  }

  std::size_t packed_bytes() const override { return plan_.packed_size() * sizeof(float); }

  Status pack(const void* weights, std::span<std::byte> packed) const override {
    if (weights == nullptr && packed_bytes() > 0) {
      return fail(ErrorCode::kInvalidArgument, "there are no weights to pack");
    }
    if (packed.size() != packed_bytes() ||
        reinterpret_cast<std::uintptr_t>(packed.data()) % alignof(float) != 0) {
      return fail(ErrorCode::kInvalidArgument, "packed weights take ", packed_bytes(),
                  " aligned bytes, not ", packed.size());
    }
    plan_.pack_weights(static_cast<const float*>(weights),
                       {reinterpret_cast<float*>(packed.data()), plan_.packed_size()});
    return {};
  }

 private:
  [[nodiscard]] bool has_bias() const { return problem_.epilogue() != ConvEpilogue::kNone; }
  [[nodiscard]] bool has_addend() const {
    return problem_.epilogue() == ConvEpilogue::kBiasAddRelu;
  }

  [[nodiscard]] Status check(const CpuConvOperands& operands) const {
    const ConvOperation operation = problem_.operation();
    const bool reads_input = operation != ConvOperation::kBackwardData;
    const bool reads_weights = operation != ConvOperation::kBackwardWeight;
    const bool reads_output = operation != ConvOperation::kForward;
    if (operands.result == nullptr || (reads_input && operands.input == nullptr) ||
        (reads_weights && operands.weights == nullptr && operands.packed_weights == nullptr) ||
        (reads_output && operands.output == nullptr) || (has_bias() && operands.bias == nullptr) ||
        (has_addend() && operands.addend == nullptr)) {
      return fail(ErrorCode::kInvalidArgument, "a tensor of the convolution is missing");
    }
    const Extent input{reads_input ? operands.input : nullptr, problem_.input_elements()};
    const Extent weights{
        reads_weights && operands.packed_weights == nullptr ? operands.weights : nullptr,
        problem_.weight_elements()};
    const Extent output{reads_output ? operands.output : nullptr, problem_.output_elements()};
    const Extent result{operands.result,
                        reads_output ? (reads_input ? weights : input).floats : output.floats};
    if (overlap(result, input) || overlap(result, weights) || overlap(result, output) ||
        (has_bias() && overlap(result, {operands.bias, problem_.sizes().k})) ||
        (has_addend() && overlap(result, {operands.addend, output.floats}))) {
      return fail(ErrorCode::kInvalidArgument, "the tensor to be computed overlaps another one");
    }
    return {};
  }

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
