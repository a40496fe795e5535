// One convolution on one device: plans of configs, made once, and runs of them.
//
//   FORETUNE_TRY(const auto convolution, Convolution::create(library, problem, options));
//   FORETUNE_TRY(const Plan plan, convolution->plan(config));
//   FORETUNE_TRY_STATUS(convolution->run(plan, operands));
//
// Thread safety: one thread at a time; build_all() uses others itself. The context of the device
// has to be current. Cost: a plan takes microseconds, or up to seconds where the engine compiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cudnn/conv_graph.h"
#include "foretune/cudnn/cudnn_config.h"
#include "foretune/problem/conv/conv.h"

namespace foretune::cudnn {

struct ConvolutionOptions {
  std::size_t workspace_bytes = std::size_t{256} << 20U;  // at most
  // Refuses engines whose results may differ from run to run.
  bool deterministic = false;
  // False: refuses plans whose kernel is compiled when they are made. They keep their ranks.
  bool compiles = true;
};

// Device addresses, stored as the problem's layout says. The one that the operation computes is
// written. `bias` and `added` are for epilogues that have them.
struct ConvOperands {
  const void* input = nullptr;
  const void* weights = nullptr;
  const void* output = nullptr;
  const void* bias = nullptr;
  const void* added = nullptr;
  void* workspace = nullptr;
};

// Enqueues a plan on the stream of a handle, which may be another one than the plan was made with.
// A plan runs in one thread at a time. Returns the library's status.
int execute(const Api& api, Handle handle, const Plan& plan, ConvEpilogue epilogue,
            const ConvOperands& operands) noexcept;

class Convolution {
 public:
  // Errors: kUnsupported, kIo.
  static Result<std::unique_ptr<Convolution>> create(std::shared_ptr<const Library> library,
                                                     const ConvProblem& problem,
                                                     const ConvolutionOptions& options);

  [[nodiscard]] const ConvProblem& problem() const { return problem_; }
  [[nodiscard]] const ConvolutionOptions& options() const { return options_; }
  // Allows or refuses plans that compile from now on. Those that exist stay; those that were
  // refused may be asked for again.
  void allow_compiling(bool allowed);
  // Returns no for a rank that the heuristic does not have, and for an engine that compiles where
  // that is not allowed. It makes no plan.
  Support allows(const CudnnConfig& config);
  // Returns the plan of a config; it is kept, and so is a refusal. Errors: kUnsupported with the
  // reason: the library's, a workspace that is too large, an engine that is not deterministic
  // though that was demanded, or one that rounds f32 operands to tf32.
  Result<Plan> plan(const CudnnConfig& config);
  // Returns the answers of a heuristic that may be used, best first, as explicit configs; rank r is
  // the r-th of them. The library is queried once. Errors: kUnsupported when it has none.
  Result<std::vector<CudnnConfig>> answers(CudnnHeuristic heuristic);
  // Returns the facts of all engines that the library has for the problem and that may be used.
  Result<std::vector<EngineFacts>> engines();
  // Says why an engine must not be used for the problem.
  [[nodiscard]] Support may_use(const EngineFacts& engine) const;

  // Makes the plans of explicit configs on as many threads as there are libraries, until `seconds`
  // have passed. `enter` makes the device's context current in a thread. Returns the configs whose
  // plans or refusals are known afterwards, in their order. Errors: kIo.
  Result<std::vector<CudnnConfig>> build_all(
      std::span<const CudnnConfig> configs,
      std::span<const std::shared_ptr<const Library>> libraries, double seconds,
      const std::function<void()>& enter);

  // Enqueues the convolution on the library's stream. Errors: kUnsupported when the library
  // refuses, kIo.
  [[nodiscard]] Status run(const Plan& plan, const ConvOperands& operands) const;

 private:
  struct Answers {
    std::vector<std::shared_ptr<const EngineConfig>> configs;
    std::vector<CudnnConfig> explicit_configs;
  };
  Convolution(const ConvProblem& problem, const ConvolutionOptions& options)
      : problem_(problem), options_(options) {}
  Result<const Answers*> ask(CudnnHeuristic heuristic);
  // Returns the engine behind a config. Errors: kUnsupported for a rank that there is not.
  Result<std::int32_t> engine_of(const CudnnConfig& config);
  Result<EngineFacts> facts(std::int32_t engine);
  [[nodiscard]] Result<Plan> build(const ConvGraph& graph, const EngineFacts& engine,
                                   std::shared_ptr<const EngineConfig> config) const;
  [[nodiscard]] Result<Plan> build_explicit(const ConvGraph& graph,
                                            const CudnnConfig& config) const;
  Result<Plan> make_plan(const CudnnConfig& config);

  ConvProblem problem_;
  ConvolutionOptions options_;
  std::shared_ptr<ConvGraph> graph_;
  std::map<std::int32_t, EngineFacts> facts_;
  std::map<CudnnHeuristic, Result<Answers>> answers_;
  std::map<Config, Result<Plan>> plans_;
};

}  // namespace foretune::cudnn
