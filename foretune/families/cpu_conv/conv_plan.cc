#include "foretune/families/cpu_conv/conv_plan.h"

#include <cstdint>
#include <mutex>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/kernels/aligned_buffer.h"

namespace foretune::cpu_conv {
namespace {

// A dense tensor in memory.
struct Extent {
  const void* start = nullptr;
  std::int64_t elements = 0;
  double element_bytes = sizeof(float);
};

bool overlap(const Extent& x, const Extent& y) {
  const auto begin = [](const Extent& extent) {
    return reinterpret_cast<std::uintptr_t>(extent.start);
  };
  const auto end = [&](const Extent& extent) {
    return begin(extent) +
           static_cast<std::uintptr_t>(static_cast<double>(extent.elements) * extent.element_bytes);
  };
  return x.start != nullptr && y.start != nullptr && begin(x) < end(y) && begin(y) < end(x);
}

// Checks the demands of types that are read by words.
Status check_words(const ConvProblem& problem, const CpuConvOperands& operands) {
  if (problem.dtype() == DataType::kF32) {
    return {};
  }
  const float* const read =
      problem.operation() == ConvOperation::kForward ? operands.input : operands.output;
  if (reinterpret_cast<std::uintptr_t>(read) % sizeof(float) != 0) {
    return fail(ErrorCode::kInvalidArgument, "a tensor of ", to_string(problem.dtype()),
                " has to begin at a multiple of four bytes");
  }
  const ConvQuantization* const quantization = operands.quantization;
  if (problem.dtype() != DataType::kI8) {
    return {};
  }
  if (!problem.has_sums() && (quantization == nullptr || quantization->scales == nullptr)) {
    return fail(ErrorCode::kInvalidArgument, "an output of i8 needs a scale for each filter");
  }
  const auto is_byte = [](std::int32_t zero) { return zero >= -128 && zero <= 127; };
  if (quantization != nullptr &&
      !(is_byte(quantization->input_zero) && is_byte(quantization->output_zero) &&
        is_byte(quantization->addend_zero))) {
    return fail(ErrorCode::kInvalidArgument, "a zero of i8 is from -128 to 127");
  }
  return {};
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
                 .relu = problem_.epilogue() >= ConvEpilogue::kBiasRelu,
                 .quantization = operands.quantization},
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
    const double bytes = bytes_per_element(problem_.dtype());
    const double result_bytes = problem_.has_sums() ? sizeof(float) : bytes;
    const Extent input{reads_input ? operands.input : nullptr, problem_.input_elements(), bytes};
    const Extent weights{
        reads_weights && operands.packed_weights == nullptr ? operands.weights : nullptr,
        problem_.weight_elements(), bytes};
    const Extent output{reads_output ? operands.output : nullptr, problem_.output_elements(),
                        bytes};
    const Extent result{operands.result,
                        reads_output ? (reads_input ? weights : input).elements : output.elements,
                        result_bytes};
    if (overlap(result, input) || overlap(result, weights) || overlap(result, output) ||
        (has_bias() && overlap(result, {operands.bias, problem_.sizes().k})) ||
        (has_addend() && overlap(result, {operands.addend, output.elements, result_bytes}))) {
      return fail(ErrorCode::kInvalidArgument, "the tensor to be computed overlaps another one");
    }
    return check_words(problem_, operands);
  }

  ConvPlan plan_;
  ConvProblem problem_;
  std::shared_ptr<SharedCpu> shared_;
};

}  // namespace

Result<ConvPlan> ConvPlan::create(const ConvProblem& problem, const CpuConvConfig& config,
                                  SharedCpu& shared) {
  ThreadPool* const pool = config.threads > 1 ? &shared.pool.pool() : nullptr;
  ForkSafeTurn* const turn = config.threads > 1 ? &shared.pool.turn() : nullptr;
  const auto plan = [turn](auto made) -> Result<ConvPlan> {
    FORETUNE_TRY(auto algorithm, std::move(made));
    return ConvPlan(std::make_shared<const Algorithm>(std::move(algorithm)), turn);
  };
  const bool is_f32 = problem.dtype() == DataType::kF32;
  const bool of_groups = config.algorithm == ConvAlgorithm::kGroups;
  const bool is_planar = config.algorithm == ConvAlgorithm::kPlanar;
  if (problem.operation() == ConvOperation::kBackwardWeight) {
    return !is_f32     ? plan(WidenedGradient::create(problem, config, pool))
           : of_groups ? plan(GroupGradient::create(problem, config, pool))
           : is_planar ? plan(PlanarGradient::create(problem, config, pool))
                       : plan(WeightGradient::create(problem, config, pool));
  }
  const bool is_winograd = config.algorithm == ConvAlgorithm::kWinograd2 ||
                           config.algorithm == ConvAlgorithm::kWinograd4;
  return of_groups     ? plan(GroupConv::create(problem, config, pool))
         : !is_f32     ? plan(WordConv::create(problem, config, pool))
         : is_winograd ? plan(WinogradConv::create(problem, config, pool))
         : is_planar   ? plan(PlanarConv::create(problem, config, pool))
                       : plan(TapConv::create(problem, config, pool));
}

std::size_t ConvPlan::workspace_size() const {
  return std::visit([](const auto& algorithm) { return algorithm.workspace_size(); }, *algorithm_);
}

int ConvPlan::tile_points() const {
  const auto* const winograd = std::get_if<WinogradConv>(algorithm_.get());
  return winograd == nullptr ? 0 : winograd->tile_points();
}

std::size_t ConvPlan::packed_size() const {
  return std::visit(
      [](const auto& algorithm) -> std::size_t {
        if constexpr (requires { algorithm.packed_size(); }) {
          return algorithm.packed_size();
        }
        return 0;
      },
      *algorithm_);
}

void ConvPlan::pack_weights(const float* weights, std::span<float> packed) const {
  std::visit(
      [&](const auto& algorithm) {
        if constexpr (requires { algorithm.pack_weights(weights, packed); }) {
          algorithm.pack_weights(weights, packed);
        }
      },
      *algorithm_);
}

namespace {

std::unique_lock<ForkSafeTurn> turn_of(ForkSafeTurn* turn) {
  return turn == nullptr ? std::unique_lock<ForkSafeTurn>() : std::unique_lock(*turn);
}

}  // namespace

void ConvPlan::run(const ConvOperands& operands, std::span<const float> packed,
                   std::span<float> workspace) const {
  const auto turn = turn_of(turn_);
  std::visit(
      [&](const auto& algorithm) {
        if constexpr (requires { algorithm.run(operands, packed, workspace); }) {
          algorithm.run(operands, packed, workspace);
        } else {
          FORETUNE_CHECK(false);
        }
      },
      *algorithm_);
}

void ConvPlan::run(const WeightGradientOperands& operands, std::span<float> workspace) const {
  const auto turn = turn_of(turn_);
  std::visit(
      [&](const auto& algorithm) {
        if constexpr (requires { algorithm.run(operands, workspace); }) {
          algorithm.run(operands, workspace);
        } else {
          FORETUNE_CHECK(false);
        }
      },
      *algorithm_);
}

std::shared_ptr<const CpuConvKernel> make_conv_kernel(ConvPlan plan, const ConvProblem& problem,
                                                      std::shared_ptr<SharedCpu> shared) {
  return std::make_shared<const PlannedConvKernel>(std::move(plan), problem, std::move(shared));
}

}  // namespace foretune::cpu_conv
