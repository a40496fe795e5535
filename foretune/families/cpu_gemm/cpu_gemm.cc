#include "foretune/families/cpu_gemm/cpu_gemm.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "foretune/families/cpu_gemm/blocked_gemm.h"
#include "foretune/families/cpu_gemm/cpu_gemm_space.h"
#include "foretune/families/cpu_gemm/gemm_data.h"
#include "foretune/hardware/energy_meter.h"
#include "foretune/kernels/cpu_limits.h"
#include "foretune/kernels/micro_kernel.h"
#include "foretune/kernels/shared_cpu.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/payload_store.h"
#include "foretune/space/schemas/cpu_gemm.h"

namespace foretune {
namespace {

// A planned product, with the lock that a run with several threads needs.
class Plan {
 public:
  static Result<Plan> create(const GemmProblem& gemm, const CpuGemmConfig& config,
                             SharedCpu& shared) {
    const bool is_parallel = config.threads > 1;
    FORETUNE_TRY(BlockedGemm blocked,
                 BlockedGemm::create({.m = gemm.m(),
                                      .n = gemm.n(),
                                      .k = gemm.k(),
                                      .batch = gemm.batch(),
                                      .a_by_columns = a_by_columns(gemm.layout()),
                                      .b_by_columns = b_by_columns(gemm.layout()),
                                      .dtype = gemm.dtype(),
                                      .constant_b = gemm.has_constant_weights()},
                                     config, is_parallel ? &shared.pool.pool() : nullptr));
    return Plan(std::move(blocked), is_parallel ? &shared.pool.turn() : nullptr);
  }
  [[nodiscard]] const BlockedGemm& gemm() const { return gemm_; }
  template <class Operands>
  void run(const Operands& operands, std::span<float> workspace,
           std::span<float> weights = {}) const {
    if (turn_ == nullptr) {
      gemm_.run(operands, workspace, weights);
      return;
    }
    const std::lock_guard lock(*turn_);
    gemm_.run(operands, workspace, weights);
  }
  template <class Operands>
  void pack_weights(const Operands& operands, std::span<float> weights) const {
    if (turn_ == nullptr) {
      gemm_.pack_weights(operands, weights);
      return;
    }
    const std::lock_guard lock(*turn_);
    gemm_.pack_weights(operands, weights);
  }

 private:
  Plan(BlockedGemm gemm, ForkSafeTurn* turn) : gemm_(std::move(gemm)), turn_(turn) {}
  BlockedGemm gemm_;
  ForkSafeTurn* turn_;  // null with one thread
};

template <class Operands>
class CpuGemmRun final : public Run {
 public:
  CpuGemmRun(Plan plan, AlignedBuffer workspace, AlignedBuffer weights, bool has_constant_weights,
             const Operands& operands, std::shared_ptr<SharedCpu> shared)
      : plan_(std::move(plan)),
        workspace_(std::move(workspace)),
        weights_(std::move(weights)),
        has_constant_weights_(has_constant_weights),
        operands_(operands),
        shared_(std::move(shared)) {
    plan_.pack_weights(operands_, weights_.view());
  }

  void run() override { plan_.run(operands_, workspace_.view(), weights_.view()); }
  bool packs_operands() const override { return weights_.size() > 0; }
  std::vector<MetricValue> metrics() override {
    const std::size_t floats = workspace_.size() + weights_.size();
    std::vector<MetricValue> values{
        {kWorkspaceBytes, static_cast<double>(floats * sizeof(float)), 0, 1}};
    // Constant weights that a config does not pack.
    if (has_constant_weights_ && !packs_operands()) {
      values.emplace_back(kPackNs, 0, 0, 1);
    }
    return values;
  }

 private:
  Plan plan_;
  AlignedBuffer workspace_;
  AlignedBuffer weights_;
  bool has_constant_weights_;
  Operands operands_;
  std::shared_ptr<SharedCpu> shared_;
};

class PlannedKernel final : public CpuGemmKernel {
 public:
  PlannedKernel(Plan plan, DataType dtype, std::shared_ptr<SharedCpu> shared)
      : plan_(std::move(plan)), dtype_(dtype), shared_(std::move(shared)) {}

  Status run(const GemmOperands& operands) const override {
    return run_as(DataType::kF32, operands);
  }
  Status run(const Bf16GemmOperands& operands) const override {
    return run_as(DataType::kBf16, operands);
  }
  Status run(const I8GemmOperands& operands) const override {
    return run_as(DataType::kI8, operands);
  }

 private:
  template <class Operands>
  Status run_as(DataType dtype, const Operands& operands) const {
    if (dtype != dtype_) {
      return fail(ErrorCode::kInvalidArgument, "the kernel multiplies ", to_string(dtype_),
                  ", the operands are ", to_string(dtype));
    }
    const std::size_t size = plan_.gemm().workspace_size();
    if (size == 0) {
      plan_.run(operands, {});
      return {};
    }
    FORETUNE_TRY(AlignedBuffer workspace, shared_->workspaces.borrow(size));
    plan_.run(operands, workspace.view());
    shared_->workspaces.give_back(std::move(workspace));
    return {};
  }

  Plan plan_;
  DataType dtype_;
  std::shared_ptr<SharedCpu> shared_;
};

// Returns the canonical form of a config for a problem.
Result<CpuGemmConfig> config_for(const CompiledSpace& space, const Config& config,
                                 const Problem& problem, const Hardware& hardware) {
  if (const Support legal = space.why_not(config, problem, hardware); !legal) {
    return fail(ErrorCode::kUnsupported, legal.reason());
  }
  return CpuGemmConfig::from(space.canonical(config, problem, hardware));
}

class CpuGemmArtifact final : public Artifact {
 public:
  CpuGemmArtifact(const Config& config, const Hardware& hardware,
                  std::shared_ptr<const CompiledSpace> space, std::shared_ptr<SharedCpu> shared)
      : config_(config),
        hardware_(hardware),
        space_(std::move(space)),
        shared_(std::move(shared)) {}

  Result<std::unique_ptr<Run>> bind(const Problem& problem, ProblemData& data) override {
    auto* const gemm_data = dynamic_cast<GemmData*>(&data);
    if (gemm_data == nullptr || gemm_data->problem().to_problem() != problem) {
      return fail(ErrorCode::kMismatch, "the data are not those of '", problem.text(), "'");
    }
    FORETUNE_TRY(const CpuGemmConfig config, config_for(*space_, config_, problem, hardware_));
    FORETUNE_TRY(Plan plan, Plan::create(gemm_data->problem(), config, *shared_));
    FORETUNE_TRY(AlignedBuffer workspace, plan.gemm().make_workspace());
    FORETUNE_TRY(AlignedBuffer weights, AlignedBuffer::create(plan.gemm().weights_size()));
    gemm_data->set_register_block(config.mr, config.nr);
    const auto run_of = [&](const auto& operands) -> std::unique_ptr<Run> {
      using Operands = std::remove_cvref_t<decltype(operands)>;
      return std::make_unique<CpuGemmRun<Operands>>(
          std::move(plan), std::move(workspace), std::move(weights),
          gemm_data->problem().has_constant_weights(), operands, shared_);
    };
    switch (gemm_data->problem().dtype()) {
      case DataType::kBf16:
        return run_of(gemm_data->bf16_operands());
      case DataType::kI8:
        return run_of(gemm_data->i8_operands());
      default:
        return run_of(gemm_data->operands());
    }
  }

 private:
  Config config_;
  Hardware hardware_;
  std::shared_ptr<const CompiledSpace> space_;
  std::shared_ptr<SharedCpu> shared_;
};

class CpuGemmFamily final : public CpuGemm {
 public:
  CpuGemmFamily(FamilyInfo info, std::shared_ptr<SharedCpu> shared,
                std::shared_ptr<PayloadStore> payloads)
      : info_(std::move(info)), shared_(std::move(shared)), payloads_(std::move(payloads)) {}

  const FamilyInfo& info() const override { return info_; }

  Support supports(const Problem& problem) const override {
    const Result<GemmProblem> gemm = GemmProblem::from(problem);
    if (!gemm) {
      return Support::no(gemm.error().message);
    }
    if (!BlockedGemm::multiplies(gemm->dtype())) {
      return Support::no("cpu-gemm multiplies f32, bf16 and i8, not ", to_string(gemm->dtype()));
    }
    if (gemm->dtype() == DataType::kI8 && gemm->operation() == GemmOperation::kAddmmRelu) {
      return Support::no("cpu-gemm has no ReLU for sums of integers");
    }
    if (gemm->operation() == GemmOperation::kAddmmGelu) {
      return Support::no("cpu-gemm has no GELU");
    }
    const double memory = info_.fingerprint.hardware.get(HardwareValue::kMemoryBytes);
    if (memory > 0 && gemm->bytes() > 0.8 * memory) {
      return Support::no("the operands take ", fixed(gemm->bytes() / 1e9, 1), " GB of the ",
                         fixed(memory / 1e9, 1), " GB of memory");
    }
    return Support::yes();
  }

  // Returns Goto and van de Geijn's blocking with the largest register block, both operands packed,
  // all threads along the longer side. A value that is not legal becomes the next one that is.
  std::vector<Config> default_configs(const Problem& problem) const override {
    const Result<GemmProblem> gemm = GemmProblem::from(problem);
    if (!gemm || !supports(problem)) {
      return {};
    }
    const Hardware& hardware = info_.fingerprint.hardware;
    const double vector_bytes = hardware.get(HardwareValue::kVectorBytes);
    const bool is_wide = vector_bytes >= 64;
    const std::int32_t isa = is_wide ? 2 : vector_bytes >= 32 ? 1 : 0;
    const std::int32_t mr = is_wide ? 14 : 6;
    const std::int32_t nr = is_wide ? 32 : isa == 1 ? 16 : 8;
    const std::int32_t longer = gemm->n() > gemm->m() ? 1 : 0;
    for (auto threads =
             static_cast<std::int32_t>(std::bit_floor(static_cast<unsigned>(info_.max_threads)));
         threads >= 1; threads /= 2) {
      for (const std::int32_t split : {gemm->batch() > 1 ? 2 : longer, longer, 1 - longer, 0}) {
        for (const std::int32_t mc : {192, 64}) {
          for (const std::int32_t nc : {4096, 1024, 256, 128}) {
            for (const std::int32_t kc : {256, 1024, 64, 16}) {
              Config config{.schema = info_.config_schema.id(),
                            .words = {isa, 0, mr, nr, 1, 1, mc, nc, kc, 0, 1, 0, threads,
                                      threads == 1 ? 0 : split}};
              if (info_.space->is_legal(config.words.view(), problem.fields(), hardware)) {
                return {info_.space->canonical(std::move(config), problem, hardware)};
              }
            }
          }
        }
      }
    }
    return {};
  }

  Result<std::unique_ptr<Space>> space(const Problem& problem) const override {
    if (const Support support = supports(problem); !support) {
      return fail(ErrorCode::kUnsupported, support.reason());
    }
    FORETUNE_TRY(std::unique_ptr<Space> space,
                 ParametricSpace::bind(info_.space, problem, info_.fingerprint.hardware));
    return space;
  }

  // Preparing compiles nothing, but the artifact holds the config.
  std::string artifact_key(const Problem& /*problem*/, const Config& config) const override {
    return to_text(info_.config_schema, config);
  }

  Result<std::unique_ptr<Artifact>> prepare(const Problem& problem,
                                            const Config& config) const override {
    if (const Support support = supports(problem); !support) {
      return fail(ErrorCode::kUnsupported, support.reason());
    }
    const Hardware& hardware = info_.fingerprint.hardware;
    if (const Support legal = info_.space->why_not(config, problem, hardware); !legal) {
      return fail(ErrorCode::kUnsupported, legal.reason());
    }
    return std::make_unique<CpuGemmArtifact>(config, hardware, info_.space, shared_);
  }

  Result<std::shared_ptr<const CpuGemmKernel>> kernel(const Problem& problem,
                                                      const Config& config) const override {
    if (const Support support = supports(problem); !support) {
      return fail(ErrorCode::kUnsupported, support.reason());
    }
    FORETUNE_TRY(const GemmProblem gemm, GemmProblem::from(problem));
    if (gemm.has_constant_weights()) {
      return fail(ErrorCode::kUnsupported,
                  "a kernel takes B as it is in every call: weights=constant has none");
    }
    FORETUNE_TRY(const CpuGemmConfig checked,
                 config_for(*info_.space, config, problem, info_.fingerprint.hardware));
    FORETUNE_TRY(Plan plan, Plan::create(gemm, checked, *shared_));
    return std::make_shared<const PlannedKernel>(std::move(plan), gemm.dtype(), shared_);
  }

  Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                 std::uint64_t seed) const override {
    if (const Support support = supports(problem); !support) {
      return fail(ErrorCode::kUnsupported, support.reason());
    }
    FORETUNE_TRY(const GemmProblem gemm, GemmProblem::from(problem));
    if (!problem.has_payload()) {
      FORETUNE_TRY(std::unique_ptr<ProblemData> data, GemmData::create(gemm, seed));
      return data;
    }
    FORETUNE_TRY(const std::shared_ptr<const Payload> weights, payloads_->load(problem.payload()));
    auto data = GemmData::create(gemm, seed, weights->bytes());
    if (!data) {
      return fail_because(data.error(), weights->path());
    }
    return std::unique_ptr<ProblemData>(*std::move(data));
  }

 private:
  FamilyInfo info_;
  std::shared_ptr<SharedCpu> shared_;
  std::shared_ptr<PayloadStore> payloads_;
};

Result<std::unique_ptr<CpuGemm>> create(const FamilyOptions& options, bool measures_energy) {
  FamilyInfo info;
  info.fingerprint = options.fingerprint;
  FORETUNE_TRY_STATUS(
      apply_cpu_limits("cpu-gemm", options.threads, options.parameters, info.fingerprint.hardware));
  info.name = "cpu-gemm";
  info.description =
      "f32, bf16 and i8 matrix products on this CPU, blocked and packed in many ways";
  info.problem_type = kGemmProblem;
  info.config_schema = cpu_gemm_schema();
  FORETUNE_TRY(info.space, cpu_gemm_space());
  info.feature_table = "gemm-cpu";
  info.metrics = {metric_info(kPackNs), metric_info(kWorkspaceBytes)};
  if (measures_energy) {
    info.metrics.push_back(metric_info(kEnergyJ));
  }
  info.max_threads = usable_threads(info.fingerprint.hardware);
  FORETUNE_TRY(std::shared_ptr<PayloadStore> payloads, PayloadStore::open(options.payload_folders));
  auto shared = std::make_shared<SharedCpu>(static_cast<std::size_t>(info.max_threads));
  return std::make_unique<CpuGemmFamily>(std::move(info), std::move(shared), std::move(payloads));
}

}  // namespace

Support cpu_gemm_available(const FamilyOptions& /*options*/) {
  return kernel_set_support(CpuIsa::kGeneric);
}

Result<std::unique_ptr<CpuGemm>> create_cpu_gemm(const FamilyOptions& options) {
  // Products of an application need no energy meter, so its files are not looked for.
  return create(options, false);
}

Result<std::unique_ptr<Family>> make_cpu_gemm(const FamilyOptions& options) {
  FORETUNE_TRY(std::unique_ptr<Family> family, create(options, EnergyMeter::open().has_value()));
  return family;
}

const FamilyEntry& cpu_gemm_family() {
  static const FamilyEntry entry{.name = "cpu-gemm",
                                 .description = "matrix products on this CPU, with our own kernels",
                                 .available = cpu_gemm_available,
                                 .create = make_cpu_gemm};
  return entry;
}

}  // namespace foretune
