#include "foretune/dispatch/conv_dispatch.h"

#include <utility>
#include <vector>

#include "foretune/dispatch/default_models.h"
#include "foretune/hardware/cpu.h"

namespace foretune {
namespace {

class CpuConvProvider final : public FamilyProvider {
 public:
  CpuConvProvider(std::shared_ptr<const CpuConv> family, int trials)
      : family_(std::move(family)), trials_(trials) {}
  const Family& family() const override { return *family_; }
  Result<std::shared_ptr<const void>> make_kernel(const Problem& problem,
                                                  const Config& config) const override {
    FORETUNE_TRY(const std::shared_ptr<const CpuConvKernel> kernel,
                 family_->kernel(problem, config));
    return std::shared_ptr<const void>(kernel);
  }
  std::vector<Config> variants(const Problem& problem) const override {
    return drawn_neighbours(*family_, problem, trials_);
  }

 private:
  std::shared_ptr<const CpuConv> family_;
  int trials_;
};

}  // namespace

Result<std::unique_ptr<ConvDispatcher>> ConvDispatcher::for_this_cpu(CpuDispatchOptions options) {
  const CpuFacts facts = read_cpu_facts();
  FamilyOptions family_options;
  // The legality of kernels depends only on the facts; peaks would have to be measured.
  family_options.fingerprint = cpu_fingerprint(facts, CpuPeaks{});
  family_options.threads = options.threads;
  FORETUNE_TRY(std::shared_ptr<const CpuConv> family, create_cpu_conv(family_options));
  if (!options.model) {
    options.model = default_cpu_model(family->info().name, facts.isa, family->info().max_threads);
  }
  auto dispatcher = std::make_unique<ConvDispatcher>(options.dispatch);
  FORETUNE_TRY_STATUS(dispatcher->add(std::move(family), std::move(options.model)));
  return dispatcher;
}

Status ConvDispatcher::add(std::shared_ptr<const CpuConv> family, std::optional<Model> model) {
  return dispatcher_.add(std::make_shared<CpuConvProvider>(std::move(family), trials_),
                         std::move(model));
}

Result<std::unique_ptr<ConvLayer>> ConvDispatcher::layer(const ConvProblem& problem) {
  return ConvLayer::create(dispatcher_, problem);
}

Status ConvDispatcher::run(const ConvProblem& problem, const CpuConvOperands& operands) {
  return dispatcher_.run(problem.to_problem(), [&](const void* kernel) {
    return static_cast<const CpuConvKernel*>(kernel)->run(operands);
  });
}

}  // namespace foretune
