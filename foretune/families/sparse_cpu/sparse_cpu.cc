#include "foretune/families/sparse_cpu/sparse_cpu.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/families/sparse_cpu/sparse_cpu_space.h"
#include "foretune/families/sparse_cpu/sparse_data.h"
#include "foretune/families/sparse_cpu/sparse_plan.h"
#include "foretune/family/family.h"
#include "foretune/kernels/cpu_limits.h"
#include "foretune/kernels/shared_cpu.h"
#include "foretune/problem/payload_store.h"
#include "foretune/problem/sparse/sparse_payload.h"
#include "foretune/problem/sparse/sparse_problem.h"

namespace foretune {

namespace {

using sparse_cpu::SparseData;
using sparse_cpu::SparseOperands;
using sparse_cpu::SparsePlan;
using sparse_cpu::TypedSparseData;

// The share of the memory that a packed matrix may take.
constexpr double kPackedShare = 0.5;

template <class T>
class SparseRun final : public Run {
 public:
  SparseRun(SparsePlan<T> plan, TypedSparseData<T>& data, std::shared_ptr<SharedCpu> shared,
            bool is_parallel)
      : plan_(std::move(plan)),
        operands_{data.first().data(), data.second().empty() ? nullptr : data.second().data(),
                  data.output().data()},
        shared_(std::move(shared)),
        is_parallel_(is_parallel) {}

  void run() override {
    if (!is_parallel_) {
      plan_.run(operands_);
      return;
    }
    const std::lock_guard lock(shared_->pool.turn());
    plan_.run(operands_);
  }
  bool packs_operands() const override { return plan_.packed_bytes() > 0; }
  std::vector<MetricValue> metrics() override {
    std::vector<MetricValue> values{
        {kWorkspaceBytes, static_cast<double>(plan_.packed_bytes()), 0, 1}};
    if (!packs_operands()) {
      values.emplace_back(kPackNs, 0, 0, 1);
    }
    return values;
  }

 private:
  SparsePlan<T> plan_;
  SparseOperands<T> operands_;
  std::shared_ptr<SharedCpu> shared_;
  bool is_parallel_;
};

class SparseArtifact final : public Artifact {
 public:
  SparseArtifact(const SparseCpuConfig& config, std::uint64_t max_bytes,
                 std::shared_ptr<SharedCpu> shared)
      : config_(config), max_bytes_(max_bytes), shared_(std::move(shared)) {}

  Result<std::unique_ptr<Run>> bind(const Problem& problem, ProblemData& data) override {
    auto* const sparse_data = dynamic_cast<SparseData*>(&data);
    if (sparse_data == nullptr || sparse_data->problem().to_problem() != problem) {
      return fail(ErrorCode::kMismatch, "the data are not those of '", problem.text(), "'");
    }
    if (sparse_data->problem().sizes().dtype == DataType::kF64) {
      return bind_typed<double>(*sparse_data);
    }
    return bind_typed<float>(*sparse_data);
  }

 private:
  template <class T>
  Result<std::unique_ptr<Run>> bind_typed(SparseData& data) {
    auto& typed = static_cast<TypedSparseData<T>&>(data);
    const bool is_parallel = config_.threads > 1;
    FORETUNE_TRY(SparsePlan<T> plan,
                 SparsePlan<T>::create(typed.matrix(), typed.problem().sizes(), config_,
                                       is_parallel ? &shared_->pool.pool() : nullptr, max_bytes_));
    return std::make_unique<SparseRun<T>>(std::move(plan), typed, shared_, is_parallel);
  }

  SparseCpuConfig config_;
  std::uint64_t max_bytes_;
  std::shared_ptr<SharedCpu> shared_;
};

// Returns what is tried first, for one thread, in the order of preference. A subspace may lack the
// first one.
std::vector<SparseCpuConfig> textbook_configs(const SparseSizes& sizes, const Hardware& hardware) {
  const double vector_bytes = hardware.get(HardwareValue::kVectorBytes);
  SparseCpuConfig config{.isa = vector_bytes >= 64   ? CpuIsa::kAvx512
                                : vector_bytes >= 32 ? CpuIsa::kAvx2
                                                     : CpuIsa::kGeneric};
  switch (sizes.operation) {
    case SparseOperation::kSpmv:
    case SparseOperation::kGespmv:
      config.vector = SparseVector::kEntries;
      break;
    case SparseOperation::kSddmm:
      config.unroll = 8;
      // Rows that miss the caches are worth fetching ahead.
      config.prefetch =
          static_cast<double>(sizes.columns * sizes.width) * bytes_per_element(sizes.dtype) >
                  16 * hardware.get(HardwareValue::kL2Bytes)
              ? 16
              : 0;
      break;
    case SparseOperation::kMmadd:
    case SparseOperation::kPlus2:
    case SparseOperation::kPlus3:
      break;
    case SparseOperation::kMttkrp:
      config.vectors = vector_bytes >= 64 ? 8 : 4;
      break;
    case SparseOperation::kSpmm:
    case SparseOperation::kGespmm: {
      SparseCpuConfig in_registers = config;
      in_registers.vectors = 8;
      // Rows that registers hold at once stay there.
      const double lanes = std::max(vector_bytes, 16.0) / bytes_per_element(sizes.dtype);
      if (static_cast<double>(sizes.width) <= 8 * lanes) {
        return {in_registers};
      }
      config.sums = SparseSums::kBuffer;
      config.unroll = 2;
      // A buffer pays where registers are filled and emptied for a few non-zeros.
      constexpr std::int64_t kFewOfRow = 5;
      if (sizes.non_zeros < kFewOfRow * sizes.rows) {
        return {config, in_registers};
      }
      return {in_registers, config};
    }
  }
  return {config};
}

class SparseCpuFamily final : public Family {
 public:
  SparseCpuFamily(FamilyInfo info, std::shared_ptr<SharedCpu> shared,
                  std::shared_ptr<PayloadStore> payloads)
      : info_(std::move(info)), shared_(std::move(shared)), payloads_(std::move(payloads)) {}

  const FamilyInfo& info() const override { return info_; }

  Support supports(const Problem& problem) const override {
    const Result<SparseProblem> typed = SparseProblem::from(problem);
    if (!typed) {
      return Support::no(typed.error().message);
    }
    const double memory = memory_bytes();
    if (memory > 0 && typed->bytes() > 0.8 * memory) {
      return Support::no("the operands take ", fixed(typed->bytes() / 1e9, 1), " GB of the ",
                         fixed(memory / 1e9, 1), " GB of memory");
    }
    return Support::yes();
  }

  Result<std::unique_ptr<Space>> space(const Problem& problem) const override {
    FORETUNE_TRY_STATUS(check(problem));
    FORETUNE_TRY(std::unique_ptr<Space> space,
                 ParametricSpace::bind(info_.space, problem, info_.fingerprint.hardware));
    return space;
  }

  // Returns plain rows, in registers as far as these hold them, shared by their non-zeros.
  std::vector<Config> default_configs(const Problem& problem) const override {
    const Result<SparseProblem> typed = SparseProblem::from(problem);
    if (!typed || !supports(problem)) {
      return {};
    }
    const Hardware& hardware = info_.fingerprint.hardware;
    for (SparseCpuConfig config : textbook_configs(typed->sizes(), hardware)) {
      for (config.threads =
               static_cast<std::int32_t>(std::bit_floor(static_cast<unsigned>(info_.max_threads)));
           config.threads >= 1; config.threads /= 2) {
        for (const SparsePartition partition :
             {SparsePartition::kNonZeros, SparsePartition::kRows}) {
          config.partition = config.threads == 1 ? SparsePartition::kRows : partition;
          Config words = info_.space->canonical(config.to_config(), problem, hardware);
          if (info_.space->is_legal(words.words.view(), problem.fields(), hardware)) {
            return {std::move(words)};
          }
        }
      }
    }
    return {};
  }

  // Preparing compiles nothing, but the artifact holds the config.
  std::string artifact_key(const Problem& /*problem*/, const Config& config) const override {
    return to_text(info_.config_schema, config);
  }

  Result<std::unique_ptr<Artifact>> prepare(const Problem& problem,
                                            const Config& config) const override {
    FORETUNE_TRY_STATUS(check(problem));
    FORETUNE_TRY(const SparseCpuConfig typed, sparse_cpu_config(info_, problem, config));
    return std::make_unique<SparseArtifact>(typed, max_packed_bytes(info_), shared_);
  }

  Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                 std::uint64_t seed) const override {
    FORETUNE_TRY_STATUS(check(problem));
    if (!problem.has_payload()) {
      return fail(ErrorCode::kUnsupported,
                  "only the sizes of the matrix are known: name its file "
                  "(payload=@FILE, --payloads DIR)");
    }
    FORETUNE_TRY(const SparseProblem typed, SparseProblem::from(problem));
    FORETUNE_TRY(const std::shared_ptr<const Payload> payload, payloads_->load(problem.payload()));
    auto coordinates = read_sparse_payload(typed, payload->bytes());
    if (!coordinates) {
      return fail_because(coordinates.error(), payload->path());
    }
    if (typed.sizes().dtype == DataType::kF64) {
      FORETUNE_TRY(std::unique_ptr<ProblemData> data,
                   TypedSparseData<double>::create(typed, *coordinates, seed));
      return data;
    }
    FORETUNE_TRY(std::unique_ptr<ProblemData> data,
                 TypedSparseData<float>::create(typed, *coordinates, seed));
    return data;
  }

 private:
  Status check(const Problem& problem) const {
    const Support support = supports(problem);
    return support ? Status() : fail(ErrorCode::kUnsupported, support.reason());
  }
  double memory_bytes() const {
    return info_.fingerprint.hardware.get(HardwareValue::kMemoryBytes);
  }

  FamilyInfo info_;
  std::shared_ptr<SharedCpu> shared_;
  std::shared_ptr<PayloadStore> payloads_;
};

}  // namespace

Result<SparseCpuConfig> sparse_cpu_config(const FamilyInfo& info, const Problem& problem,
                                          const Config& config) {
  const Hardware& hardware = info.fingerprint.hardware;
  if (const Support legal = info.space->why_not(config, problem, hardware); !legal) {
    return fail(ErrorCode::kUnsupported, legal.reason());
  }
  return SparseCpuConfig::from(info.space->canonical(config, problem, hardware));
}

std::uint64_t max_packed_bytes(const FamilyInfo& info) {
  const double memory = info.fingerprint.hardware.get(HardwareValue::kMemoryBytes);
  return memory > 0 ? static_cast<std::uint64_t>(kPackedShare * memory) : ~std::uint64_t{0};
}

Result<std::unique_ptr<Family>> create_sparse_cpu(const FamilyOptions& options,
                                                  InflateGzip inflate) {
  FamilyInfo info;
  info.fingerprint = options.fingerprint;
  std::string_view subspace = sparse_cpu::kFullSpace;
  auto limits = options.parameters;
  std::erase_if(limits, [](const auto& parameter) { return parameter.first == "space"; });
  for (const auto& [name, value] : options.parameters) {
    if (name == "space") {
      subspace = value;
    }
  }
  FORETUNE_TRY_STATUS(
      apply_cpu_limits(kSparseCpuName, options.threads, limits, info.fingerprint.hardware));
  info.name = kSparseCpuName;
  info.description = kSparseCpuDescription;
  info.problem_type = kSparseProblem;
  info.config_schema = sparse_cpu_schema();
  FORETUNE_TRY(info.space, sparse_cpu::sparse_cpu_space(subspace));
  info.feature_table = kSparseCpuName;
  info.metrics = {metric_info(kPackNs), metric_info(kWorkspaceBytes)};
  info.max_threads = usable_threads(info.fingerprint.hardware);
  FORETUNE_TRY(std::shared_ptr<PayloadStore> payloads,
               PayloadStore::open(options.payload_folders, inflate));
  auto shared = std::make_shared<SharedCpu>(static_cast<std::size_t>(info.max_threads));
  return std::make_unique<SparseCpuFamily>(std::move(info), std::move(shared), std::move(payloads));
}

}  // namespace foretune
