#include "foretune/families/cpu_conv/cpu_conv.h"

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/families/cpu_conv/conv_data.h"
#include "foretune/families/cpu_conv/conv_plan.h"
#include "foretune/families/cpu_conv/cpu_conv_space.h"
#include "foretune/families/cpu_conv/word_conv.h"
#include "foretune/kernels/cpu_limits.h"
#include "foretune/kernels/shared_cpu.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune {
namespace {

using cpu_conv::ConvData;
using cpu_conv::ConvPlan;
using cpu_conv::WordConv;

constexpr std::string_view kName = "cpu-conv";
constexpr std::string_view kDescription =
    "convolutions on this CPU in three directions, with our own kernels";

class CpuConvRun final : public Run {
 public:
  CpuConvRun(ConvPlan plan, AlignedBuffer workspace, AlignedBuffer packed, ConvData& data,
             std::shared_ptr<SharedCpu> shared)
      : plan_(std::move(plan)),
        workspace_(std::move(workspace)),
        packed_(std::move(packed)),
        data_(data),
        is_gradient_(data.problem().operation() == ConvOperation::kBackwardWeight),
        packs_once_(data.problem().has_constant_weights()),
        shared_(std::move(shared)) {
    if (packs_once_) {
      plan_.pack_weights(data_.weights(), packed_.view());
    }
  }

  void run() override {
    if (is_gradient_) {
      plan_.run(data_.gradient_operands(), workspace_.view());
      return;
    }
    if (!packs_once_) {
      plan_.pack_weights(data_.weights(), packed_.view());
    }
    plan_.run(data_.operands(), packed_.view(), workspace_.view());
  }
  bool packs_operands() const override { return packs_once_; }
  std::vector<MetricValue> metrics() override {
    const std::size_t floats = workspace_.size() + packed_.size();
    return {{kWorkspaceBytes, static_cast<double>(floats * sizeof(float)), 0, 1}};
  }

 private:
  ConvPlan plan_;
  AlignedBuffer workspace_;
  AlignedBuffer packed_;
  ConvData& data_;
  bool is_gradient_;
  bool packs_once_;
  std::shared_ptr<SharedCpu> shared_;
};

class CpuConvArtifact final : public Artifact {
 public:
  CpuConvArtifact(const CpuConvConfig& config, std::shared_ptr<SharedCpu> shared)
      : config_(config), shared_(std::move(shared)) {}

  Result<std::unique_ptr<Run>> bind(const Problem& problem, ProblemData& data) override {
    auto* const conv_data = dynamic_cast<ConvData*>(&data);
    if (conv_data == nullptr || conv_data->problem().to_problem() != problem) {
      return fail(ErrorCode::kMismatch, "the data are not those of '", problem.text(), "'");
    }
    FORETUNE_TRY(ConvPlan plan, ConvPlan::create(conv_data->problem(), config_, *shared_));
    FORETUNE_TRY(AlignedBuffer workspace, AlignedBuffer::create(plan.workspace_size()));
    FORETUNE_TRY(AlignedBuffer packed, AlignedBuffer::create(plan.packed_size()));
    return std::make_unique<CpuConvRun>(std::move(plan), std::move(workspace), std::move(packed),
                                        *conv_data, shared_);
  }

 private:
  CpuConvConfig config_;
  std::shared_ptr<SharedCpu> shared_;
};

class CpuConvFamily final : public CpuConv {
 public:
  CpuConvFamily(FamilyInfo info, std::shared_ptr<SharedCpu> shared)
      : info_(std::move(info)), shared_(std::move(shared)) {}

  const FamilyInfo& info() const override { return info_; }

  Support supports(const Problem& problem) const override {
    const Result<ConvProblem> conv = ConvProblem::from(problem);
    if (!conv) {
      return Support::no(conv.error().message);
    }
    const DataType dtype = conv->dtype();
    if (dtype != DataType::kF32 && dtype != DataType::kBf16 && dtype != DataType::kI8) {
      return Support::no("cpu-conv computes in f32, bf16 and i8, not ", to_string(dtype));
    }
    if (dtype != DataType::kF32 && conv->layout() != ConvLayout::kChannelsLast) {
      return Support::no("cpu-conv computes in ", to_string(dtype), " with channels last, not ",
                         to_string(conv->layout()));
    }
    if (dtype == DataType::kI8 ||
        (dtype == DataType::kBf16 && conv->operation() != ConvOperation::kBackwardWeight)) {
      if (Support words = WordConv::supports(*conv); !words) {
        return words;
      }
    }
    const double memory = info_.fingerprint.hardware.get(HardwareValue::kMemoryBytes);
    if (memory > 0 && conv->bytes() > 0.5 * memory) {
      return Support::no("the tensors take ", fixed(conv->bytes() / 1e9, 1), " GB of the ",
                         fixed(memory / 1e9, 1), " GB of memory");
    }
    return Support::yes();
  }

  // Returns the largest register block, slabs of an image, and all threads along the points. A
  // value that is not legal becomes the next one that is.
  std::vector<Config> default_configs(const Problem& problem) const override {
    const Result<ConvProblem> conv = ConvProblem::from(problem);
    if (!conv || !supports(problem)) {
      return {};
    }
    const Hardware& hardware = info_.fingerprint.hardware;
    const double vector_bytes = hardware.get(HardwareValue::kVectorBytes);
    const std::int32_t isa = vector_bytes >= 64 ? 2 : vector_bytes >= 32 ? 1 : 0;
    const std::int32_t lanes = isa == 2 ? 16 : isa == 1 ? 8 : 4;
    const std::int32_t mr = isa == 2 ? 14 : 6;
    const std::int32_t nr = isa == 2 ? 32 : isa == 1 ? 16 : 8;
    // Weights of narrower types are fewer bytes, and sums that are stored are not.
    const std::int32_t kc = conv->dtype() == DataType::kF32 ? 64 : 512;
    const bool is_planar = conv->layout() == ConvLayout::kChannelsFirst;
    for (auto threads =
             static_cast<std::int32_t>(std::bit_floor(static_cast<unsigned>(info_.max_threads)));
         threads >= 1; threads /= 2) {
      for (const std::int32_t split : {0, 1}) {
        const std::int64_t channels = std::max(conv->sizes().c, conv->sizes().k) / conv->sizes().g;
        if (conv->dtype() == DataType::kF32 && !is_planar && conv->sizes().g > 1 &&
            channels <= lanes / 2) {
          Config config{
              .schema = info_.config_schema.id(),
              .words = {isa, 1, 7, nr, 8, 64, 0, 0, 0, threads, threads == 1 ? 0 : split}};
          config = info_.space->canonical(std::move(config), problem, hardware);
          if (info_.space->is_legal(config.words.view(), problem.fields(), hardware)) {
            return {std::move(config)};
          }
        }
        for (const std::int32_t taps : {1, 0}) {
          for (const std::int32_t rows : {32, 8, 1}) {
            Config config{.schema = info_.config_schema.id(),
                          .words = {isa, is_planar ? 2 : 0, mr, nr, rows, kc, 1, taps, 0, threads,
                                    threads == 1 ? 0 : split}};
            config = info_.space->canonical(std::move(config), problem, hardware);
            if (info_.space->is_legal(config.words.view(), problem.fields(), hardware)) {
              return {std::move(config)};
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
  std::string artifact_key(const Problem& problem, const Config& config) const override {
    return concat(problem.text(), " ", to_text(info_.config_schema, config));
  }

  Result<std::unique_ptr<Artifact>> prepare(const Problem& problem,
                                            const Config& config) const override {
    FORETUNE_TRY(const CpuConvConfig checked, config_for(problem, config));
    return std::make_unique<CpuConvArtifact>(checked, shared_);
  }

  Result<std::shared_ptr<const CpuConvKernel>> kernel(const Problem& problem,
                                                      const Config& config) const override {
    FORETUNE_TRY(const CpuConvConfig checked, config_for(problem, config));
    FORETUNE_TRY(const ConvProblem conv, ConvProblem::from(problem));
    FORETUNE_TRY(ConvPlan plan, ConvPlan::create(conv, checked, *shared_));
    return make_conv_kernel(std::move(plan), conv, shared_);
  }

  Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                 std::uint64_t seed) const override {
    if (const Support support = supports(problem); !support) {
      return fail(ErrorCode::kUnsupported, support.reason());
    }
    FORETUNE_TRY(const ConvProblem conv, ConvProblem::from(problem));
    FORETUNE_TRY(std::unique_ptr<ProblemData> data, ConvData::create(conv, seed, {}));
    return data;
  }

 private:
  // Returns the canonical form of a config for a problem.
  [[nodiscard]] Result<CpuConvConfig> config_for(const Problem& problem,
                                                 const Config& config) const {
    if (const Support support = supports(problem); !support) {
      return fail(ErrorCode::kUnsupported, support.reason());
    }
    const Hardware& hardware = info_.fingerprint.hardware;
    if (const Support legal = info_.space->why_not(config, problem, hardware); !legal) {
      return fail(ErrorCode::kUnsupported, legal.reason());
    }
    return CpuConvConfig::from(info_.space->canonical(config, problem, hardware));
  }

  FamilyInfo info_;
  std::shared_ptr<SharedCpu> shared_;
};

Result<std::unique_ptr<Family>> make_cpu_conv(const FamilyOptions& options) {
  FORETUNE_TRY(std::unique_ptr<CpuConv> family, create_cpu_conv(options));
  return family;
}

}  // namespace

Result<std::unique_ptr<CpuConv>> create_cpu_conv(const FamilyOptions& options) {
  FamilyInfo info;
  info.fingerprint = options.fingerprint;
  FORETUNE_TRY_STATUS(
      apply_cpu_limits(kName, options.threads, options.parameters, info.fingerprint.hardware));
  info.name = kName;
  info.description = kDescription;
  info.problem_type = kConvProblem;
  info.config_schema = cpu_conv_schema();
  FORETUNE_TRY(info.space, cpu_conv_space());
  info.feature_table = "conv-cpu";
  info.metrics = {metric_info(kPackNs), metric_info(kWorkspaceBytes)};
  info.max_threads = usable_threads(info.fingerprint.hardware);
  auto shared = std::make_shared<SharedCpu>(static_cast<std::size_t>(info.max_threads));
  return std::make_unique<CpuConvFamily>(std::move(info), std::move(shared));
}

const FamilyEntry& cpu_conv_family() {
  static const FamilyEntry entry{
      .name = std::string(kName),
      .description = std::string(kDescription),
      .available = [](const FamilyOptions&) { return kernel_set_support(CpuIsa::kGeneric); },
      .create = make_cpu_conv};
  return entry;
}

}  // namespace foretune
