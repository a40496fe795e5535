#include "foretune/dispatch/conv_dispatch.h"

#include <utility>

#include "foretune/hardware/cpu.h"

namespace foretune {
namespace {

class CpuConvProvider final : public FamilyProvider {
 public:
  explicit CpuConvProvider(std::shared_ptr<const CpuConv> family) : family_(std::move(family)) {}
  const Family& family() const override { return *family_; }
  Result<std::shared_ptr<const void>> make_kernel(const Problem& problem,
                                                  const Config& config) const override {
    FORETUNE_TRY(const std::shared_ptr<const CpuConvKernel> kernel,
                 family_->kernel(problem, config));
    return std::shared_ptr<const void>(kernel);
  }

 private:
  std::shared_ptr<const CpuConv> family_;
};

}  // namespace

Result<std::unique_ptr<ConvDispatcher>> ConvDispatcher::for_this_cpu(CpuDispatchOptions options) {
  FamilyOptions family_options;
  // The legality of kernels depends only on the facts; peaks would have to be measured.
  family_options.fingerprint = cpu_fingerprint(read_cpu_facts(), CpuPeaks{});
  family_options.threads = options.threads;
  FORETUNE_TRY(std::shared_ptr<const CpuConv> family, create_cpu_conv(family_options));
  auto dispatcher = std::make_unique<ConvDispatcher>(options.dispatch);
  FORETUNE_TRY_STATUS(dispatcher->add(std::move(family), std::move(options.model)));
  return dispatcher;
}

Status ConvDispatcher::add(std::shared_ptr<const CpuConv> family, std::optional<Model> model) {
  return dispatcher_.add(std::make_shared<CpuConvProvider>(std::move(family)), std::move(model));
}

Status ConvDispatcher::run(const ConvProblem& problem, const CpuConvOperands& operands) {
  return dispatcher_.run(problem.to_problem(), [&](const void* kernel) {
    return static_cast<const CpuConvKernel*>(kernel)->run(operands);
  });
}

}  // namespace foretune
