#include "foretune/cudnn/convolution.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "foretune/base/text.h"

namespace foretune::cudnn {
namespace {

// Compilations wait for each other, and none can be stopped: with 16 threads the last one took up
// to ten seconds.
constexpr std::size_t kThreadsPerCompiler = 4;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string compiles_text(std::int32_t engine) {
  return concat("engine ", engine, " compiles its kernel");
}

}  // namespace

Result<std::unique_ptr<Convolution>> Convolution::create(std::shared_ptr<const Library> library,
                                                         const ConvProblem& problem,
                                                         const ConvolutionOptions& options) {
  std::unique_ptr<Convolution> convolution(new Convolution(problem, options));
  FORETUNE_TRY(convolution->graph_, ConvGraph::create(std::move(library), problem));
  return convolution;
}

void Convolution::allow_compiling(bool allowed) {
  if (!std::exchange(options_.compiles, allowed) && allowed) {
    std::erase_if(plans_, [](const auto& known) { return !known.second; });
  }
}

Result<std::int32_t> Convolution::engine_of(const CudnnConfig& config) {
  if (config.heuristic == CudnnHeuristic::kNone) {
    return config.engine;
  }
  FORETUNE_TRY(const Answers* const answers, ask(config.heuristic));
  const auto place = static_cast<std::size_t>(config.rank) - 1;
  if (place >= answers->configs.size()) {
    return fail(ErrorCode::kUnsupported, "heuristic ", to_string(config.heuristic), " has ",
                answers->configs.size(), " answers that may be used");
  }
  return answers->explicit_configs[place].engine;
}

Support Convolution::allows(const CudnnConfig& config) {
  const Result<std::int32_t> index = engine_of(config);
  if (!index) {
    return Support::no(index.error().message);
  }
  const Result<EngineFacts> engine = facts(*index);
  return engine && engine->compiles && !options_.compiles ? Support::no(compiles_text(*index))
                                                          : Support::yes();
}

Support Convolution::may_use(const EngineFacts& engine) const {
  // Results of such engines differ from the reference by more than tf32 explains.
  if (engine.has(NumericalNote::kDownConvertInputs)) {
    return Support::no("engine ", engine.index, " rounds its operands to a narrower type");
  }
  // Tensor cores have no f32: they round it to tf32.
  if (problem_.dtype() == DataType::kF32 && engine.has(NumericalNote::kTensorCore)) {
    return Support::no("engine ", engine.index, " rounds f32 to tf32");
  }
  if (options_.deterministic && !engine.is_deterministic()) {
    return Support::no("engine ", engine.index, " is not deterministic");
  }
  return Support::yes();
}

Result<EngineFacts> Convolution::facts(std::int32_t engine) {
  if (const auto known = facts_.find(engine); known != facts_.end()) {
    return known->second;
  }
  FORETUNE_TRY(EngineFacts facts, graph_->facts(engine));
  return facts_.emplace(engine, std::move(facts)).first->second;
}

Result<std::vector<EngineFacts>> Convolution::engines() {
  FORETUNE_TRY(const std::int64_t numbers, graph_->engine_numbers());
  std::vector<EngineFacts> found;
  for (std::int32_t engine = 0; engine < numbers; ++engine) {
    const Result<EngineFacts> known = facts(engine);
    if (known && may_use(*known)) {
      found.push_back(*known);
    }
  }
  return found;
}

Result<const Convolution::Answers*> Convolution::ask(CudnnHeuristic heuristic) {
  auto known = answers_.find(heuristic);
  if (known == answers_.end()) {
    const auto asked = [&]() -> Result<Answers> {
      FORETUNE_TRY(const auto configs, graph_->heuristic(heuristic));
      Answers answers;
      for (const auto& config : configs) {
        FORETUNE_TRY(const CudnnConfig words, graph_->config_of(*config));
        FORETUNE_TRY(const EngineFacts engine, facts(words.engine));
        if (may_use(engine)) {
          answers.configs.push_back(config);
          answers.explicit_configs.push_back(words);
        }
      }
      return answers;
    };
    known = answers_.emplace(heuristic, asked()).first;
  }
  if (!known->second) {
    return fail(known->second.error().code, known->second.error().message);
  }
  return &*known->second;
}

Result<std::vector<CudnnConfig>> Convolution::answers(CudnnHeuristic heuristic) {
  FORETUNE_TRY(const Answers* const answers, ask(heuristic));
  return answers->explicit_configs;
}

Result<Plan> Convolution::build(const ConvGraph& graph, const EngineFacts& engine,
                                std::shared_ptr<const EngineConfig> config) const {
  if (const Support allowed = may_use(engine); !allowed) {
    return fail(ErrorCode::kUnsupported, allowed.reason());
  }
  if (engine.compiles && !options_.compiles) {
    return fail(ErrorCode::kUnsupported, compiles_text(engine.index));
  }
  FORETUNE_TRY(Plan plan, graph.build(std::move(config), engine));
  if (plan.workspace_bytes > options_.workspace_bytes) {
    return fail(ErrorCode::kUnsupported, "it needs ", plan.workspace_bytes,
                " bytes of workspace, and ", options_.workspace_bytes, " are allowed");
  }
  return plan;
}

Result<Plan> Convolution::build_explicit(const ConvGraph& graph, const CudnnConfig& config) const {
  FORETUNE_TRY(const EngineFacts engine, graph.facts(config.engine));
  FORETUNE_TRY(auto node, graph.explicit_config(config));
  return build(graph, engine, std::move(node));
}

Result<Plan> Convolution::make_plan(const CudnnConfig& config) {
  if (config.heuristic == CudnnHeuristic::kNone) {
    return build_explicit(*graph_, config);
  }
  FORETUNE_TRY(const std::int32_t index, engine_of(config));
  FORETUNE_TRY(const EngineFacts engine, facts(index));
  FORETUNE_TRY(const Answers* const answers, ask(config.heuristic));
  return build(*graph_, engine, answers->configs[static_cast<std::size_t>(config.rank) - 1]);
}

Result<Plan> Convolution::plan(const CudnnConfig& config) {
  Config key = config.to_config();
  auto known = plans_.find(key);
  if (known == plans_.end()) {
    known = plans_.emplace(std::move(key), make_plan(config)).first;
  }
  return known->second;
}

Result<std::vector<CudnnConfig>> Convolution::build_all(
    std::span<const CudnnConfig> configs, std::span<const std::shared_ptr<const Library>> libraries,
    double seconds, const std::function<void()>& enter) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::optional<Result<Plan>>> built(configs.size());
  std::vector<std::size_t> plain;
  std::vector<std::size_t> compiled;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const Result<EngineFacts> engine = facts(configs[i].engine);
    (engine && engine->compiles ? compiled : plain).push_back(i);
  }
  std::mutex mutex;
  Status failed;
  const auto build_some = [&](const std::vector<std::size_t>& some, std::size_t threads) {
    std::atomic<std::size_t> next = 0;
    const auto work = [&](const std::shared_ptr<const Library>& library) {
      enter();
      const Result<std::shared_ptr<ConvGraph>> graph = ConvGraph::create(library, problem_);
      if (!graph) {
        const std::lock_guard lock(mutex);
        failed = fail_because(graph.error(), "building plans");
        return;
      }
      for (std::size_t i = next++; i < some.size() && seconds_since(begin) < seconds; i = next++) {
        built[some[i]] = build_explicit(**graph, configs[some[i]]);
      }
    };
    std::vector<std::thread> pool;
    for (const std::shared_ptr<const Library>& library : libraries.first(threads)) {
      pool.emplace_back(work, library);
    }
    for (std::thread& thread : pool) {
      thread.join();
    }
  };
  build_some(plain, libraries.size());
  if (!compiled.empty()) {
    build_some(compiled, std::max<std::size_t>(1, libraries.size() / kThreadsPerCompiler));
  }
  FORETUNE_TRY_STATUS(failed);
  std::vector<CudnnConfig> known;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    if (built[i]) {
      known.push_back(configs[i]);
      plans_.emplace(configs[i].to_config(), *std::move(built[i]));
    }
  }
  return known;
}

Status Convolution::run(const Plan& plan, const ConvOperands& operands) const {
  const Library& library = graph_->library();
  return library.api()->check(
      execute(*library.api(), library.handle(), plan, problem_.epilogue(), operands),
      "cudnnBackendExecute");
}

int execute(const Api& api, Handle handle, const Plan& plan, ConvEpilogue epilogue,
            const ConvOperands& operands) noexcept {
  constexpr std::array<TensorId, 5> kIds{TensorId::kInput, TensorId::kWeights, TensorId::kOutput,
                                         TensorId::kBias, TensorId::kAdded};
  const std::array<const void*, 5> pointers{operands.input, operands.weights, operands.output,
                                            operands.bias, operands.added};
  const std::int64_t count = epilogue == ConvEpilogue::kNone          ? 3
                             : epilogue == ConvEpilogue::kBiasAddRelu ? 5
                                                                      : 4;
  Descriptor pack = nullptr;
  int status = api.descriptor_create(Kind::kVariantPack, &pack);
  const auto set = [&](Attribute attribute, Type type, std::int64_t values, const void* from) {
    if (status == kSuccess) {
      status = api.set(pack, attribute, type, values, from);
    }
  };
  set(Attribute::kPackIds, Type::kInt64, count, kIds.data());
  set(Attribute::kPackPointers, Type::kPointer, count, pointers.data());
  set(Attribute::kPackWorkspace, Type::kPointer, 1, &operands.workspace);
  if (status == kSuccess) {
    status = api.finalize(pack);
  }
  if (status == kSuccess) {
    status = api.execute(handle, plan.node->get(), pack);
  }
  if (pack != nullptr) {
    api.descriptor_destroy(pack);
  }
  return status;
}

}  // namespace foretune::cudnn
