#include "foretune/families/cpu_gemm/cpu_gemm.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "foretune/base/thread_pool.h"
#include "foretune/families/cpu_gemm/blocked_gemm.h"
#include "foretune/families/cpu_gemm/cpu_gemm_config.h"
#include "foretune/families/cpu_gemm/cpu_gemm_space.h"
#include "foretune/families/cpu_gemm/gemm_data.h"
#include "foretune/kernels/micro_kernel.h"
#include "foretune/problem/gemm.h"

namespace foretune {
namespace {

constexpr int kMaxThreads = 64;

// One pool for all runs, made when the first one needs it. A pool runs one loop at a time, so runs
// of several threads take turns; a single one never waits.
class SharedPool {
 public:
  explicit SharedPool(std::size_t threads) : threads_(threads) {}
  ThreadPool& pool() {
    const std::lock_guard lock(mutex_);
    if (pool_ == nullptr) {
      pool_ = std::make_unique<ThreadPool>(threads_);
    }
    return *pool_;
  }
  std::mutex& turn() { return turn_; }

 private:
  std::size_t threads_;
  std::mutex mutex_;
  std::mutex turn_;
  std::unique_ptr<ThreadPool> pool_;
};

class CpuGemmRun final : public Run {
 public:
  CpuGemmRun(BlockedGemm gemm, const GemmOperands& operands, std::shared_ptr<SharedPool> pool)
      : gemm_(std::move(gemm)), operands_(operands), pool_(std::move(pool)) {}

  void run() override {
    if (pool_ == nullptr) {
      gemm_.run(operands_);
      return;
    }
    const std::lock_guard lock(pool_->turn());
    gemm_.run(operands_);
  }

 private:
  BlockedGemm gemm_;
  GemmOperands operands_;
  std::shared_ptr<SharedPool> pool_;  // null with one thread
};

class CpuGemmArtifact final : public Artifact {
 public:
  CpuGemmArtifact(const Config& config, const Hardware& hardware,
                  std::shared_ptr<const CompiledSpace> space, std::shared_ptr<SharedPool> pool)
      : config_(config), hardware_(hardware), space_(std::move(space)), pool_(std::move(pool)) {}

  Result<std::unique_ptr<Run>> bind(const Problem& problem, ProblemData& data) override {
    auto* const gemm_data = dynamic_cast<GemmData*>(&data);
    if (gemm_data == nullptr || gemm_data->problem().to_problem() != problem) {
      return fail(ErrorCode::kMismatch, "the data are not those of '", problem.text(), "'");
    }
    if (const Support legal = space_->why_not(config_, problem, hardware_); !legal) {
      return fail(ErrorCode::kUnsupported, legal.reason());
    }
    FORETUNE_TRY(const CpuGemmConfig config,
                 CpuGemmConfig::from(space_->canonical(config_, problem, hardware_)));
    const GemmProblem& gemm = gemm_data->problem();
    const bool is_parallel = config.threads > 1;
    FORETUNE_TRY(BlockedGemm blocked,
                 BlockedGemm::create({.m = gemm.m(),
                                      .n = gemm.n(),
                                      .k = gemm.k(),
                                      .batch = gemm.batch(),
                                      .a_by_columns = a_by_columns(gemm.layout()),
                                      .b_by_columns = b_by_columns(gemm.layout())},
                                     config, is_parallel ? &pool_->pool() : nullptr));
    gemm_data->set_register_block(config.mr, config.nr);
    return std::make_unique<CpuGemmRun>(std::move(blocked), gemm_data->operands(),
                                        is_parallel ? pool_ : nullptr);
  }

 private:
  Config config_;
  Hardware hardware_;
  std::shared_ptr<const CompiledSpace> space_;
  std::shared_ptr<SharedPool> pool_;
};

class CpuGemmFamily final : public Family {
 public:
  CpuGemmFamily(FamilyInfo info, std::shared_ptr<SharedPool> pool)
      : info_(std::move(info)), pool_(std::move(pool)) {}

  const FamilyInfo& info() const override { return info_; }

  Support supports(const Problem& problem) const override {
    const Result<GemmProblem> gemm = GemmProblem::from(problem);
    if (!gemm) {
      return Support::no(gemm.error().message);
    }
    if (gemm->dtype() != DataType::kF32) {
      return Support::no("cpu-gemm computes in f32 only, not in ", to_string(gemm->dtype()));
    }
    const double memory = info_.fingerprint.hardware.get(HardwareValue::kMemoryBytes);
    if (memory > 0 && gemm->bytes() > 0.8 * memory) {
      return Support::no("the operands take ", fixed(gemm->bytes() / 1e9, 1), " GB of the ",
                         fixed(memory / 1e9, 1), " GB of memory");
    }
    return Support::yes();
  }

  // Goto and van de Geijn's blocking with the largest register block, both operands packed, all
  // threads along the longer side. Where a value is not legal the next one that is.
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
        for (const std::int32_t mc : {512, 64}) {
          for (const std::int32_t nc : {4096, 1024, 256}) {
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

  // Nothing is compiled, but the artifact carries the config.
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
    return std::make_unique<CpuGemmArtifact>(config, hardware, info_.space, pool_);
  }

  Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                 std::uint64_t seed) const override {
    if (const Support support = supports(problem); !support) {
      return fail(ErrorCode::kUnsupported, support.reason());
    }
    FORETUNE_TRY(const GemmProblem gemm, GemmProblem::from(problem));
    FORETUNE_TRY(std::unique_ptr<ProblemData> data, GemmData::create(gemm, seed));
    return data;
  }

 private:
  FamilyInfo info_;
  std::shared_ptr<SharedPool> pool_;
};

}  // namespace

Support cpu_gemm_available(const FamilyOptions& /*options*/) {
  return kernel_set_support(CpuIsa::kGeneric);
}

Result<std::unique_ptr<Family>> make_cpu_gemm(const FamilyOptions& options) {
  if (!options.parameters.empty()) {
    return fail(ErrorCode::kInvalidArgument, "cpu-gemm has no option '",
                options.parameters.front().first, "'");
  }
  FamilyInfo info;
  info.name = "cpu-gemm";
  info.description = "f32 matrix products on this CPU, blocked and packed in many ways";
  info.problem_type = ProblemType::kGemm;
  info.config_schema = cpu_gemm_schema();
  FORETUNE_TRY(info.space, cpu_gemm_space());
  info.fingerprint = options.fingerprint;
  info.feature_table = "gemm-cpu";
  const double cores = info.fingerprint.hardware.get(HardwareValue::kCores);
  info.max_threads = std::clamp(static_cast<int>(cores), 1, kMaxThreads);
  auto pool = std::make_shared<SharedPool>(static_cast<std::size_t>(info.max_threads));
  return std::make_unique<CpuGemmFamily>(std::move(info), std::move(pool));
}

}  // namespace foretune
