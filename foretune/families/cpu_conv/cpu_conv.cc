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
#include "foretune/kernels/group_kernel.h"
#include "foretune/kernels/micro_kernel.h"
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
    data_.expect_tiles(plan_.tile_points());
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
  CpuConvFamily(FamilyInfo info, bool tiles, std::shared_ptr<SharedCpu> shared)
      : info_(std::move(info)), tiles_(tiles), shared_(std::move(shared)) {}

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
    if (conv->sizes().skip_taps > 0 && conv->sizes().g > 1) {
      return Support::no("cpu-conv leaves out points of filters of a single group only");
    }
    const double memory = info_.fingerprint.hardware.get(HardwareValue::kMemoryBytes);
    if (memory > 0 && conv->bytes() > 0.5 * memory) {
      return Support::no("the tensors take ", fixed(conv->bytes() / 1e9, 1), " GB of the ",
                         fixed(memory / 1e9, 1), " GB of memory");
    }
    return Support::yes();
  }

  // Returns what is fast on most layers: the largest register block, slabs of some rows, all
  // threads along the points. A value that is not legal becomes the next one that is.
  std::vector<Config> default_configs(const Problem& problem) const override {
    const Result<ConvProblem> conv = ConvProblem::from(problem);
    if (!conv || !supports(problem)) {
      return {};
    }
    const Hardware& hardware = info_.fingerprint.hardware;
    for (auto threads =
             static_cast<std::int32_t>(std::bit_floor(static_cast<unsigned>(info_.max_threads)));
         threads >= 1; threads /= 2) {
      for (const std::int32_t split : {0, 1}) {
        for (CpuConvConfig chosen : defaults_of(*conv)) {
          for (const int rows : {chosen.rows, 4, 1}) {
            chosen.rows = rows;
            chosen.threads = threads;
            chosen.split = static_cast<ConvSplit>(threads == 1 ? 0 : split);
            Config config = info_.space->canonical(chosen.to_config(), problem, hardware);
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
  // Returns configs for one thread, the best first; not all of them need be legal.
  [[nodiscard]] std::vector<CpuConvConfig> defaults_of(const ConvProblem& conv) const {
    const double vector_bytes = info_.fingerprint.hardware.get(HardwareValue::kVectorBytes);
    CpuConvConfig config{.isa = vector_bytes >= 64   ? CpuIsa::kAvx512
                                : vector_bytes >= 32 ? CpuIsa::kAvx2
                                                     : CpuIsa::kGeneric,
                         .mr = 6,
                         .rows = 16,
                         .order = ConvOrder::kPoints};
    const int lanes = kernel_limits(config.isa).lanes;
    config.nr = 2 * lanes;
    if (config.isa == CpuIsa::kAvx512) {
      config.mr = 14;
    }
    // Weights of narrower types are fewer bytes, and sums that are stored are not.
    const bool is_f32 = conv.dtype() == DataType::kF32;
    config.kc = is_f32 ? 64 : 512;
    const bool is_gradient = conv.operation() == ConvOperation::kBackwardWeight;
    const std::int64_t channels = conv.sizes().c / conv.sizes().g;
    std::vector<CpuConvConfig> found;
    if (conv.layout() == ConvLayout::kChannelsFirst) {
      config.algorithm = ConvAlgorithm::kPlanar;
    } else if ((is_f32 || (config.isa == CpuIsa::kAvx512 && !is_gradient)) && conv.sizes().g > 1 &&
               std::max(channels, conv.sizes().k / conv.sizes().g) <= lanes / 2) {
      CpuConvConfig groups = config;
      groups.algorithm = ConvAlgorithm::kGroups;
      groups.mr = is_gradient
                      ? kMaxGradientPoints
                      : max_group_points(GroupRun::kThree, kernel_limits(config.isa).registers);
      groups.rows = 8;
      groups.kc = 256;
      found.push_back(groups);
    } else if (is_f32 && is_gradient && channels <= 4) {
      CpuConvConfig turned = config;
      turned.algorithm = ConvAlgorithm::kTurned;
      turned.mr = 6;
      turned.nr = config.isa == CpuIsa::kAvx512 ? 4 * lanes : config.nr;
      turned.taps = ConvTaps::kRow;
      found.push_back(turned);
    } else if (is_f32 && !is_gradient) {
      CpuConvConfig inner = config;
      inner.order = ConvOrder::kFilters;
      inner.kc = 256;
      inner.taps = ConvTaps::kInner;
      found.push_back(inner);
      inner.taps = ConvTaps::kEach;
      found.push_back(inner);
    }
    if (!is_f32 && config.isa == CpuIsa::kAvx512) {
      // Rounded outputs are stored by whole cache lines where there are channels enough.
      const std::int64_t outputs =
          (conv.operation() == ConvOperation::kForward ? conv.sizes().k : conv.sizes().c) /
          conv.sizes().g;
      const int vectors = static_cast<int>(std::clamp<std::int64_t>((outputs + 15) / 16, 2, 4));
      config.nr = vectors * lanes;
      config.mr = max_kernel_rows(config.isa, vectors);
    }
    if (is_gradient) {
      // Slabs of about as many points, so that both operands stay in the second cache while all
      // blocks of channels read them.
      constexpr std::int64_t kMaxPoints = 600;
      config.rows = 4;
      while (config.rows < 64 && 2 * config.rows * conv.wo() <= kMaxPoints) {
        config.rows *= 2;
      }
      // A slab whose input is larger than that is read once for all output channels.
      constexpr std::int64_t kMaxInput = 150000;
      const bool is_small = config.rows * conv.wo() * conv.sizes().c <= kMaxInput;
      config.order = is_small ? ConvOrder::kFilters : ConvOrder::kPoints;
    } else if (!is_f32) {
      config.order = ConvOrder::kRows;
    }
    if (!is_f32 && !is_gradient && tiles_) {
      CpuConvConfig tiles = config;
      tiles.algorithm = ConvAlgorithm::kTiles;
      tiles.mr = 16;
      tiles.kc = 1024;  // sums stay in their tiles
      for (const ConvTaps taps : {ConvTaps::kRow, ConvTaps::kEach}) {
        tiles.taps = taps;
        found.push_back(tiles);
      }
    }
    for (const ConvTaps taps : {ConvTaps::kRow, ConvTaps::kEach}) {
      config.taps = taps;
      found.push_back(config);
    }
    return found;
  }

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
  bool tiles_;  // configs in matrix tiles are legal
  std::shared_ptr<SharedCpu> shared_;
};

// Returns true when the device has matrix tiles and, if it is this CPU, this process may use them.
bool has_tiles(const Fingerprint& device) {
  return device.hardware.get(HardwareValue::kVectorBytes) >= 64 &&
         device.isa.find("amx_bf16") != std::string::npos &&
         device.isa.find("amx_int8") != std::string::npos &&
         tap_kernel_set(CpuIsa::kAvx512, KernelMath::kI8Tiles) != nullptr;
}

Result<std::unique_ptr<Family>> make_cpu_conv(const FamilyOptions& options) {
  FORETUNE_TRY(std::unique_ptr<CpuConv> family, create_cpu_conv(options));
  return family;
}

}  // namespace

Result<std::unique_ptr<CpuConv>> create_cpu_conv(const FamilyOptions& options) {
  FamilyInfo info;
  info.fingerprint = options.fingerprint;
  std::vector<std::pair<std::string, std::string>> limits;
  CpuConvSpaceOptions legal{.tiles = true};
  for (const auto& parameter : options.parameters) {
    const auto& [name, value] = parameter;
    if (name != "winograd" && name != "tiles") {
      limits.push_back(parameter);
    } else if (value == "on" || value == "off") {
      (name == "tiles" ? legal.tiles : legal.winograd) = value == "on";
    } else {
      return fail(ErrorCode::kInvalidArgument, name, " is on or off, not '", value, "'");
    }
  }
  FORETUNE_TRY_STATUS(apply_cpu_limits(kName, options.threads, limits, info.fingerprint.hardware));
  info.name = kName;
  info.description = kDescription;
  info.problem_type = kConvProblem;
  info.config_schema = cpu_conv_schema();
  legal.tiles = legal.tiles && has_tiles(info.fingerprint);
  FORETUNE_TRY(info.space, cpu_conv_space(legal));
  info.feature_table = "conv-cpu";
  info.metrics = {metric_info(kPackNs), metric_info(kWorkspaceBytes)};
  info.max_threads = usable_threads(info.fingerprint.hardware);
  auto shared = std::make_shared<SharedCpu>(static_cast<std::size_t>(info.max_threads));
  return std::make_unique<CpuConvFamily>(std::move(info), legal.tiles, std::move(shared));
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
