#include "foretune/dispatch/gemm_dispatch.h"

#include <utility>

#include "foretune/dispatch/default_models.h"
#include "foretune/hardware/cpu.h"

namespace foretune {
namespace {

class CpuGemmProvider final : public FamilyProvider {
 public:
  explicit CpuGemmProvider(std::shared_ptr<const CpuGemm> family) : family_(std::move(family)) {}
  const Family& family() const override { return *family_; }
  Result<std::shared_ptr<const void>> make_kernel(const Problem& problem,
                                                  const Config& config) const override {
    FORETUNE_TRY(const std::shared_ptr<const CpuGemmKernel> kernel,
                 family_->kernel(problem, config));
    return std::shared_ptr<const void>(kernel);
  }

 private:
  std::shared_ptr<const CpuGemm> family_;
};

}  // namespace

Result<std::unique_ptr<GemmDispatcher>> GemmDispatcher::for_this_cpu(CpuDispatchOptions options) {
  const CpuFacts facts = read_cpu_facts();
  FamilyOptions family_options;
  // The legality of kernels depends only on the facts; peaks would have to be measured.
  family_options.fingerprint = cpu_fingerprint(facts, CpuPeaks{});
  family_options.threads = options.threads;
  FORETUNE_TRY(std::shared_ptr<const CpuGemm> family, create_cpu_gemm(family_options));
  if (!options.model) {
    options.model = default_cpu_model(family->info().name, facts.isa, family->info().max_threads);
  }
  auto dispatcher = std::make_unique<GemmDispatcher>(options.dispatch);
  FORETUNE_TRY_STATUS(dispatcher->add(std::move(family), std::move(options.model)));
  return dispatcher;
}

Status GemmDispatcher::add(std::shared_ptr<const CpuGemm> family, std::optional<Model> model) {
  return dispatcher_.add(std::make_shared<CpuGemmProvider>(std::move(family)), std::move(model));
}

template <class Operands>
Status GemmDispatcher::run_any(const GemmProblem& problem, const Operands& operands) {
  return dispatcher_.run(problem.to_problem(), [&](const void* kernel) {
    return static_cast<const CpuGemmKernel*>(kernel)->run(operands);
  });
}

template Status GemmDispatcher::run_any(const GemmProblem&, const GemmOperands&);
template Status GemmDispatcher::run_any(const GemmProblem&, const Bf16GemmOperands&);
template Status GemmDispatcher::run_any(const GemmProblem&, const I8GemmOperands&);

Result<std::shared_ptr<const CpuGemmKernel>> GemmDispatcher::kernel(const GemmProblem& problem) {
  FORETUNE_TRY(const Dispatcher::Turn turn, dispatcher_.best(problem.to_problem()));
  return std::static_pointer_cast<const CpuGemmKernel>(turn.shared_kernel());
}

}  // namespace foretune
