#include "foretune/cublaslt/matmul.h"

#include <array>
#include <span>
#include <string>
#include <utility>

#include "foretune/base/text.h"

namespace foretune::cublaslt {
namespace {

constexpr int kMaxAlgorithms = 256;
constexpr std::int32_t kClusterShapes = 64;  // more than the API names

template <class Value>
Status set_config(const Api& api, Algorithm& algorithm, ConfigAttribute attribute,
                  std::int32_t value, std::string_view name) {
  const auto narrow = static_cast<Value>(value);
  const Status set =
      api.check(api.config_set(&algorithm, attribute, &narrow, sizeof(narrow)), name);
  return set;
}

template <class Value>
std::int32_t get_config(const Api& api, const Algorithm& algorithm, ConfigAttribute attribute) {
  Value value{};
  std::size_t written = 0;
  if (api.config_get(&algorithm, attribute, &value, sizeof(value), &written) != kSuccess) {
    return 0;
  }
  return static_cast<std::int32_t>(value);
}

template <class Value>
Value capability(const Api& api, const Algorithm& algorithm, Capability which) {
  Value value{};
  std::size_t written = 0;
  return api.capability_get(&algorithm, which, &value, sizeof(value), &written) == kSuccess
             ? value
             : Value{};
}

// Returns the ids of tiles or stages; {0}, "undefined", for an algorithm that has none.
std::vector<std::int32_t> capability_ids(const Api& api, const Algorithm& algorithm,
                                         Capability which) {
  std::size_t bytes = 0;
  if (api.capability_get(&algorithm, which, nullptr, 0, &bytes) != kSuccess ||
      bytes < sizeof(std::uint32_t)) {
    return {0};
  }
  std::vector<std::uint32_t> ids(bytes / sizeof(std::uint32_t));
  if (api.capability_get(&algorithm, which, ids.data(), ids.size() * sizeof(std::uint32_t),
                         &bytes) != kSuccess) {
    return {0};
  }
  std::vector<std::int32_t> out;
  for (const std::uint32_t id : ids) {
    out.push_back(static_cast<std::int32_t>(id));
  }
  return out.empty() ? std::vector<std::int32_t>{0} : out;
}

}  // namespace

Status set_words(const Api& api, Algorithm& algorithm, const CublasltConfig& config) {
  FORETUNE_TRY_STATUS(
      set_config<std::uint32_t>(api, algorithm, ConfigAttribute::kTile, config.tile, "tile"));
  FORETUNE_TRY_STATUS(
      set_config<std::uint32_t>(api, algorithm, ConfigAttribute::kStages, config.stages, "stages"));
  FORETUNE_TRY_STATUS(set_config<std::int32_t>(api, algorithm, ConfigAttribute::kSplitK,
                                               config.split_k, "split_k"));
  FORETUNE_TRY_STATUS(set_config<std::uint32_t>(api, algorithm, ConfigAttribute::kReduction,
                                                config.reduction, "reduction"));
  FORETUNE_TRY_STATUS(set_config<std::uint32_t>(api, algorithm, ConfigAttribute::kSwizzle,
                                                config.swizzle, "swizzle"));
  FORETUNE_TRY_STATUS(
      set_config<std::uint32_t>(api, algorithm, ConfigAttribute::kCustom, config.custom, "custom"));
  FORETUNE_TRY_STATUS(set_config<std::uint16_t>(api, algorithm, ConfigAttribute::kClusterShape,
                                                config.cluster, "cluster"));
  return set_config<std::uint16_t>(api, algorithm, ConfigAttribute::kInnerShape, config.inner,
                                   "inner");
}

CublasltConfig words_of(const Api& api, const Algorithm& algorithm) {
  return {.algorithm = get_config<std::int32_t>(api, algorithm, ConfigAttribute::kAlgorithm),
          .tile = get_config<std::uint32_t>(api, algorithm, ConfigAttribute::kTile),
          .stages = get_config<std::uint32_t>(api, algorithm, ConfigAttribute::kStages),
          .split_k = get_config<std::int32_t>(api, algorithm, ConfigAttribute::kSplitK),
          .reduction = get_config<std::uint32_t>(api, algorithm, ConfigAttribute::kReduction),
          .swizzle = get_config<std::uint32_t>(api, algorithm, ConfigAttribute::kSwizzle),
          .custom = get_config<std::uint32_t>(api, algorithm, ConfigAttribute::kCustom),
          .cluster = get_config<std::uint16_t>(api, algorithm, ConfigAttribute::kClusterShape),
          .inner = get_config<std::uint16_t>(api, algorithm, ConfigAttribute::kInnerShape)};
}

Result<std::shared_ptr<const Library>> Library::open(std::shared_ptr<const Api> api) {
  std::shared_ptr<Library> library(new Library(std::move(api)));
  FORETUNE_TRY_STATUS(
      library->api_->check(library->api_->create(&library->handle_), "cublasLtCreate"));
  return library;
}

Library::~Library() {
  if (handle_ != nullptr) {
    api_->destroy(handle_);
  }
}

Result<Types> types_of(DataType type) {
  switch (type) {
    case DataType::kF32:
      return Types{};
    case DataType::kTf32:
      return Types{.compute = ComputeType::kTf32};
    case DataType::kF16:
      return Types{.ab = CudaType::kF16, .cd = CudaType::kF16};
    case DataType::kBf16:
      return Types{.ab = CudaType::kBf16, .cd = CudaType::kBf16};
    case DataType::kF8e4m3:
      return Types{.ab = CudaType::kF8e4m3, .cd = CudaType::kBf16};
    default:
      return fail(ErrorCode::kUnsupported,
                  "cublaslt multiplies f32, tf32, f16, bf16 and f8e4m3 here, not ",
                  to_string(type));
  }
}

Epilogue epilogue_of(GemmOperation operation) {
  switch (operation) {
    case GemmOperation::kAddmm:
      return Epilogue::kBias;
    case GemmOperation::kAddmmRelu:
      return Epilogue::kReluBias;
    case GemmOperation::kAddmmGelu:
      return Epilogue::kGeluBias;
    case GemmOperation::kMm:
    case GemmOperation::kBmm:
      break;
  }
  return Epilogue::kDefault;
}

DataType result_type(DataType type) { return type == DataType::kF8e4m3 ? DataType::kBf16 : type; }

Result<std::unique_ptr<Matmul>> Matmul::create(std::shared_ptr<const Library> library,
                                               const GemmProblem& problem,
                                               const MatmulOptions& options, const void* bias) {
  FORETUNE_TRY(Types types, types_of(problem.dtype()));
  if (options.pedantic) {
    if (problem.dtype() != DataType::kF32) {
      return fail(ErrorCode::kInvalidArgument, "only f32 products can be pedantic");
    }
    types.compute = ComputeType::kF32Pedantic;
  }
  std::unique_ptr<Matmul> matmul(new Matmul(std::move(library), types, options.workspace_bytes));
  FORETUNE_TRY_STATUS(matmul->describe(problem, options, bias));
  return matmul;
}

Matmul::~Matmul() {
  const Api& api = library_->api();
  for (const Layout layout : {a_, b_, d_}) {
    if (layout != nullptr) {
      api.layout_destroy(layout);
    }
  }
  if (descriptor_ != nullptr) {
    api.descriptor_destroy(descriptor_);
  }
}

Status Matmul::make_layout(Layout& layout, CudaType type, std::int64_t rows, std::int64_t columns,
                           std::int64_t leading, const GemmProblem& problem) {
  const Api& api = library_->api();
  FORETUNE_TRY_STATUS(api.check(api.layout_create(&layout, type, static_cast<std::uint64_t>(rows),
                                                  static_cast<std::uint64_t>(columns), leading),
                                "cublasLtMatrixLayoutCreate"));
  if (problem.batch() > 1) {
    const auto batch = static_cast<std::int32_t>(problem.batch());
    const std::int64_t offset = leading * columns;
    FORETUNE_TRY_STATUS(api.check(
        api.layout_set(layout, LayoutAttribute::kBatchCount, &batch, sizeof(batch)), "batch"));
    FORETUNE_TRY_STATUS(api.check(
        api.layout_set(layout, LayoutAttribute::kStridedBatchOffset, &offset, sizeof(offset)),
        "batch offset"));
  }
  return {};
}

Status Matmul::describe(const GemmProblem& problem, const MatmulOptions& options,
                        const void* bias) {
  const Api& api = library_->api();
  FORETUNE_TRY_STATUS(api.check(api.descriptor_create(&descriptor_, types_.compute, types_.scale),
                                "cublasLtMatmulDescCreate"));
  // A matrix stored by rows is, to the column-major library, its transpose stored by columns.
  const std::int32_t transpose_a = b_by_columns(problem.layout()) ? 1 : 0;
  const std::int32_t transpose_b = a_by_columns(problem.layout()) ? 1 : 0;
  const auto set = [&](DescriptorAttribute attribute, const auto& value, std::string_view name) {
    return api.check(api.descriptor_set(descriptor_, attribute, &value, sizeof(value)), name);
  };
  FORETUNE_TRY_STATUS(set(DescriptorAttribute::kTransposeA, transpose_a, "transpose"));
  FORETUNE_TRY_STATUS(set(DescriptorAttribute::kTransposeB, transpose_b, "transpose"));
  if (has_bias(problem.operation())) {
    FORETUNE_TRY_STATUS(
        set(DescriptorAttribute::kEpilogue, epilogue_of(problem.operation()), "epilogue"));
    FORETUNE_TRY_STATUS(set(DescriptorAttribute::kBiasPointer, bias, "bias"));
    FORETUNE_TRY_STATUS(set(DescriptorAttribute::kBiasDataType, types_.cd, "bias type"));
  }
  const std::int64_t m = problem.m();
  const std::int64_t n = problem.n();
  const std::int64_t k = problem.k();
  const auto leading = [](std::int64_t stride, std::int64_t dense) {
    return stride > 0 ? stride : dense;
  };
  FORETUNE_TRY_STATUS(
      transpose_a != 0 ? make_layout(a_, types_.ab, k, n, leading(options.strides.b, k), problem)
                       : make_layout(a_, types_.ab, n, k, leading(options.strides.b, n), problem));
  FORETUNE_TRY_STATUS(
      transpose_b != 0 ? make_layout(b_, types_.ab, m, k, leading(options.strides.a, m), problem)
                       : make_layout(b_, types_.ab, k, m, leading(options.strides.a, k), problem));
  return make_layout(d_, types_.cd, n, m, leading(options.strides.c, n), problem);
}

Result<Algorithm> Matmul::start(int id) const {
  const Api& api = library_->api();
  Algorithm algorithm;
  FORETUNE_TRY_STATUS(
      api.check(api.algorithm_init(library_->handle(), types_.compute, types_.scale, types_.ab,
                                   types_.ab, types_.cd, types_.cd, id, &algorithm),
                "cublasLtMatmulAlgoInit"));
  return algorithm;
}

Result<Plan> Matmul::checked(const Algorithm& algorithm) const {
  const Api& api = library_->api();
  HeuristicResult result;
  FORETUNE_TRY_STATUS(api.check(
      api.algorithm_check(library_->handle(), descriptor_, a_, b_, d_, d_, &algorithm, &result),
      "cublasLtMatmulAlgoCheck"));
  if (result.workspace_bytes > workspace_bytes_) {
    return fail(ErrorCode::kUnsupported, "it needs ", result.workspace_bytes,
                " bytes of workspace, and ", workspace_bytes_, " are allowed");
  }
  return Plan{algorithm, result.workspace_bytes};
}

Result<std::vector<Plan>> Matmul::heuristic() {
  if (heuristic_) {
    return *heuristic_;
  }
  const Api& api = library_->api();
  Preference preference = nullptr;
  FORETUNE_TRY_STATUS(
      api.check(api.preference_create(&preference), "cublasLtMatmulPreferenceCreate"));
  const auto limit = static_cast<std::uint64_t>(workspace_bytes_);
  std::array<HeuristicResult, kCublasltHeuristicRanks> results;
  int count = 0;
  Status asked = api.check(api.preference_set(preference, PreferenceAttribute::kMaxWorkspaceBytes,
                                              &limit, sizeof(limit)),
                           "workspace limit");
  if (asked) {
    asked = api.check(
        api.algorithm_heuristic(library_->handle(), descriptor_, a_, b_, d_, d_, preference,
                                kCublasltHeuristicRanks, results.data(), &count),
        "cublasLtMatmulAlgoGetHeuristic");
  }
  api.preference_destroy(preference);
  FORETUNE_TRY_STATUS(asked);
  std::vector<Plan> plans;
  for (int i = 0; i < count; ++i) {
    const HeuristicResult& result = results.at(static_cast<std::size_t>(i));
    if (result.status == kSuccess) {
      plans.push_back({result.algorithm, result.workspace_bytes});
    }
  }
  heuristic_ = plans;
  return plans;
}

Result<Plan> Matmul::plan(const CublasltConfig& config) {
  if (config.heuristic > 0) {
    FORETUNE_TRY(const std::vector<Plan> plans, heuristic());
    const auto rank = static_cast<std::size_t>(config.heuristic);
    if (rank > plans.size()) {
      return fail(ErrorCode::kUnsupported, "the heuristic returns ", plans.size(), " algorithms");
    }
    return plans[rank - 1];
  }
  FORETUNE_TRY(Algorithm algorithm, start(config.algorithm));
  FORETUNE_TRY_STATUS(set_words(library_->api(), algorithm, config));
  return checked(algorithm);
}

CublasltConfig Matmul::config_of(const Plan& plan) const {
  return words_of(library_->api(), plan.algorithm);
}

namespace {

// The reductions that do not add the parts of k in place. Adding in place rounds each sum to the
// type of the result; this is not the requested product.
constexpr std::array<std::int32_t, 2> kReductions{2, 4};
// No cluster shape has this number: an algorithm that accepts it ignores the cluster.
constexpr std::int32_t kNoCluster = 63;

// The values of an algorithm's options that can be combined.
struct Choices {
  std::int32_t id = 0;
  std::vector<std::int32_t> tiles;
  std::vector<std::int32_t> stages;
  std::int32_t custom_max = 0;
  std::int32_t swizzle_max = 0;
  std::vector<std::int32_t> reductions;  // none: no split of k

  static Choices of(const Api& api, int id, const Algorithm& algorithm) {
    Choices choices{
        .id = id,
        .tiles = capability_ids(api, algorithm, Capability::kTileIds),
        .stages = capability_ids(api, algorithm, Capability::kStagesIds),
        .custom_max = capability<std::int32_t>(api, algorithm, Capability::kCustomOptionMax),
        .swizzle_max = capability<std::uint32_t>(api, algorithm, Capability::kSwizzling) != 0};
    const auto mask = capability<std::uint32_t>(api, algorithm, Capability::kReductionMask);
    for (const std::int32_t scheme : kReductions) {
      if (capability<std::int32_t>(api, algorithm, Capability::kSplitK) != 0 &&
          (mask & static_cast<std::uint32_t>(scheme)) != 0) {
        choices.reductions.push_back(scheme);
      }
    }
    return choices;
  }
};

// Calls visit(config) for every tile, stages, cluster and custom option.
template <class Visit>
void for_each_kernel(const Choices& choices, std::int32_t clusters, const Visit& visit) {
  for (const std::int32_t tile : choices.tiles) {
    for (const std::int32_t stages : choices.stages) {
      for (std::int32_t cluster = 0; cluster < clusters; ++cluster) {
        for (std::int32_t custom = 0; custom <= choices.custom_max; ++custom) {
          visit(CublasltConfig{.algorithm = choices.id,
                               .tile = tile,
                               .stages = stages,
                               .split_k = 1,
                               .custom = custom,
                               .cluster = cluster});
        }
      }
    }
  }
}

}  // namespace

bool Matmul::accepts(Algorithm algorithm, const CublasltConfig& config) const {
  const Api& api = library_->api();
  HeuristicResult result;
  return set_words(api, algorithm, config) &&
         api.algorithm_check(library_->handle(), descriptor_, a_, b_, d_, d_, &algorithm,
                             &result) == kSuccess &&
         result.workspace_bytes <= workspace_bytes_;
}

Result<std::vector<CublasltConfig>> Matmul::enumerate(const std::vector<std::int32_t>& splits) {
  const Api& api = library_->api();
  std::array<int, kMaxAlgorithms> ids{};
  int count = 0;
  FORETUNE_TRY_STATUS(api.check(
      api.algorithm_ids(library_->handle(), types_.compute, types_.scale, types_.ab, types_.ab,
                        types_.cd, types_.cd, kMaxAlgorithms, ids.data(), &count),
      "cublasLtMatmulAlgoGetIds"));
  std::vector<CublasltConfig> found;
  for (const int id : std::span(ids).first(static_cast<std::size_t>(count))) {
    const Result<Algorithm> algorithm = start(id);
    if (!algorithm) {
      continue;
    }
    const Choices choices = Choices::of(api, id, *algorithm);
    // Kernels without clusters accept every number for one.
    bool ignores_clusters = false;
    for_each_kernel(choices, 1, [&](CublasltConfig config) {
      config.cluster = kNoCluster;
      ignores_clusters = ignores_clusters || accepts(*algorithm, config);
    });
    for_each_kernel(choices, ignores_clusters ? 1 : kClusterShapes, [&](CublasltConfig config) {
      if (!accepts(*algorithm, config)) {
        return;
      }
      found.push_back(config);
      const auto try_out = [&](const CublasltConfig& other) {
        if (accepts(*algorithm, other)) {
          found.push_back(other);
        }
      };
      for (config.swizzle = 0; config.swizzle <= choices.swizzle_max; ++config.swizzle) {
        if (config.swizzle > 0) {
          try_out(config);
        }
        for (const std::int32_t split : splits) {
          for (const std::int32_t reduction : choices.reductions) {
            CublasltConfig parts = config;
            parts.split_k = split;
            parts.reduction = reduction;
            try_out(parts);
          }
        }
      }
    });
  }
  return found;
}

Status Matmul::run(const Plan& plan, const Operands& operands, cuda::Stream stream) const {
  const Api& api = library_->api();
  return api.check(api.matmul(library_->handle(), descriptor_, &operands.alpha, operands.b, a_,
                              operands.a, b_, &operands.beta, operands.d, d_, operands.d, d_,
                              &plan.algorithm, operands.workspace, plan.workspace_bytes, stream),
                   "cublasLtMatmul");
}

}  // namespace foretune::cublaslt
