// Steps that run kernels of the dispatchers.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/graph/run/internal/steps.h"

namespace foretune::graph {

namespace {

class ConvStep final : public Step {
 public:
  ConvStep(std::unique_ptr<ConvLayer> layer, const ConvStepOperands& operands,
           ConvConstants constants)
      : layer_(std::move(layer)),
        operands_(operands),
        bias_(std::move(constants.bias)),
        scales_(std::move(constants.scales)),
        quantization_(constants.quantization) {
    quantization_.scales = scales_.empty() ? nullptr : scales_.data();
    reads.push_back(operands.input);
    if (operands.addend != kNoValue) {
      reads.push_back(operands.addend);
    }
    write = operands.output;
  }

  Status run(const Frame& frame) const override {
    return layer_->run(
        {.input = frame.in(operands_.input),
         .bias = bias_.empty() ? nullptr : bias_.data(),
         .addend = operands_.addend == kNoValue ? nullptr : frame.in(operands_.addend),
         .result = frame.out(operands_.output),
         .quantization = &quantization_});
  }

  [[nodiscard]] bool is_settled() const override {
    const Result<Decision> decision = layer_->decision();
    return !decision || decision->is_settled;
  }

  [[nodiscard]] std::string describe() const override {
    const Result<Decision> decision = layer_->decision();
    return concat(layer_->problem().to_problem().text(), " by ",
                  decision ? decision->text() : decision.error().message);
  }

 private:
  std::unique_ptr<ConvLayer> layer_;
  ConvStepOperands operands_;
  std::vector<float> bias_;
  std::vector<float> scales_;
  ConvQuantization quantization_;
};

class ProductStep final : public Step {
 public:
  ProductStep(const GemmProblem& problem, std::shared_ptr<const CpuGemmKernel> kernel, ValueId a,
              ValueId b, ValueId output)
      : problem_(problem), kernel_(std::move(kernel)), a_(a), b_(b) {
    reads = {a, b};
    write = output;
  }

  Status run(const Frame& frame) const override {
    const GemmSizes& s = problem_.sizes();
    return kernel_->run(GemmOperands{.a = frame.in(a_),
                                     .a_stride = s.k,
                                     .a_batch_stride = s.m * s.k,
                                     .b = frame.in(b_),
                                     .b_stride = s.n,
                                     .b_batch_stride = s.k * s.n,
                                     .c = frame.out(write),
                                     .c_stride = s.n,
                                     .c_batch_stride = s.m * s.n});
  }

  [[nodiscard]] std::string describe() const override { return problem_.to_problem().text(); }

 private:
  GemmProblem problem_;
  std::shared_ptr<const CpuGemmKernel> kernel_;
  ValueId a_;
  ValueId b_;
};

}  // namespace

Result<std::unique_ptr<Step>> make_conv_step(ConvDispatcher& dispatcher, const ConvProblem& problem,
                                             const ConvStepOperands& operands,
                                             ConvConstants constants) {
  FORETUNE_TRY(std::unique_ptr<ConvLayer> layer, dispatcher.layer(problem));
  FORETUNE_TRY_STATUS(layer->pack(constants.weights.data()));
  return std::unique_ptr<Step>(
      std::make_unique<ConvStep>(std::move(layer), operands, std::move(constants)));
}

Result<std::unique_ptr<Step>> make_product_step(Executor& executor, const GemmProblem& problem,
                                                ValueId a, ValueId b, ValueId output) {
  FORETUNE_TRY(std::shared_ptr<const CpuGemmKernel> kernel, executor.products().kernel(problem));
  return std::unique_ptr<Step>(
      std::make_unique<ProductStep>(problem, std::move(kernel), a, b, output));
}

}  // namespace foretune::graph
