// The cuBLASLt of the fake device; see fake_gpu.h.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "foretune/cuda/cublaslt_api.h"
#include "tests/fake_gpu/fake_abi.h"
#include "tests/fake_gpu/fake_algorithms.h"
#include "tests/fake_gpu/fake_objects.h"
#include "tests/fake_gpu/fake_product.h"
#include "tests/fake_gpu/fake_state.h"

namespace foretune::fake_gpu {
namespace {

using cublaslt::Algorithm;
using cublaslt::Capability;
using cublaslt::ComputeType;
using cublaslt::ConfigAttribute;
using cublaslt::CudaType;
using cublaslt::Descriptor;
using cublaslt::Epilogue;
using cublaslt::Handle;
using cublaslt::HeuristicResult;
using cublaslt::kInvalidValue;
using cublaslt::kNotSupported;
using cublaslt::kSuccess;
using cublaslt::Layout;
using cublaslt::Preference;

constexpr std::uint32_t kMinAlignment = 2;
constexpr int kHandleMissing = 1;     // CUBLAS_STATUS_NOT_INITIALIZED
constexpr int kExecutionFailed = 13;  // CUBLAS_STATUS_EXECUTION_FAILED

int give_ids(std::span<const std::uint32_t> ids, void* to, std::size_t bytes,
             std::size_t* written) {
  // A caller may also query a list of one id with a larger buffer.
  const std::size_t fitting =
      ids.size() == 1 && bytes >= ids.size_bytes() ? ids.size_bytes() : bytes;
  return give_bytes(ids.data(), ids.size_bytes(), sizeof(std::uint32_t), to, fitting, written);
}

Types types_of(ComputeType compute, CudaType scale, CudaType a, CudaType b, CudaType c,
               CudaType d) {
  return {compute, scale, a, b, c, d};
}

// A product of live objects, without its pointers.
struct Request {
  Product product;
  Types types;
  bool is_known = false;  // true when the fake can compute it
};

Activation activation_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kRelu:
    case Epilogue::kReluBias:
      return Activation::kRelu;
    case Epilogue::kGelu:
    case Epilogue::kGeluBias:
      return Activation::kGelu;
    default:
      return Activation::kNone;
  }
}

Request request_of(Descriptor descriptor, Layout a, Layout b, Layout c, Layout d) {
  Request request;
  Product& product = request.product;
  product.compute = descriptor->compute;
  product.transpose_a = descriptor->transpose_a != 0;
  product.transpose_b = descriptor->transpose_b != 0;
  product.a = a->matrix;
  product.b = b->matrix;
  product.c = c->matrix;
  product.d = d->matrix;
  product.k = product.transpose_a ? product.a.rows : product.a.columns;
  const Epilogue epilogue = descriptor->epilogue;
  product.activation = activation_of(epilogue);
  product.has_bias = epilogue == Epilogue::kBias || epilogue == Epilogue::kReluBias ||
                     epilogue == Epilogue::kGeluBias;
  const bool by_columns = a->order == 0 && b->order == 0 && c->order == 0 && d->order == 0;
  request.is_known = by_columns && descriptor->pointer_mode == 0 &&
                     (product.activation != Activation::kNone || product.has_bias ||
                      epilogue == Epilogue::kDefault);
  product.bias = descriptor->bias;
  // There is no bias in F8.
  product.bias_type = descriptor->bias_type.value_or(
      product.d.type == CudaType::kF8e4m3 ? CudaType::kBf16 : product.d.type);
  request.types = types_of(descriptor->compute, descriptor->scale, product.a.type, product.b.type,
                           product.c.type, product.d.type);
  return request;
}

Verdict judge(const Config& config, const Request& request) {
  return request.is_known ? judge(config, request.product, request.types) : Verdict{};
}

// Returns the config that the library runs when the call has no algorithm.
std::optional<Config> own_choice(const Request& request, std::size_t workspace_bytes) {
  if (!request.is_known) {
    return std::nullopt;
  }
  const std::vector<Config> best = heuristic(request.product, request.types, workspace_bytes, 1);
  return best.empty() ? std::nullopt : std::optional(best.front());
}

void count_call(const char* symbol) {
  State& device = state();
  const std::lock_guard lock(device.mutex);
  ++device.calls[symbol];
}

double number(const void* value, CudaType type) {
  if (type == CudaType::kF64) {
    return *static_cast<const double*>(value);
  }
  return static_cast<double>(*static_cast<const float*>(value));
}

bool aligned(const Matrix& matrix) { return matrix.pointer % type_bytes(matrix.type) == 0; }

// Computes the product and advances the clock.
int execute_product(State& device, const Config& config, const Product& product,
                    cuda::DevicePointer workspace, std::size_t workspace_bytes) {
  if (workspace_bytes > 0 && device.memory.writable(workspace, workspace_bytes) == nullptr) {
    return kIllegalAddress;
  }
  if (!run_product(device.memory, product)) {
    return kIllegalAddress;
  }
  double time = simulated_ns(config, product);
  if (!device.cached.contains(product.a.pointer)) {
    time += 600 + static_cast<double>(product.a.bytes()) / 4800;
  }
  const double jitter = static_cast<double>(mix(device.products) >> 11) * 0x1p-53;
  device.clock_ns += time * (1 + 0.005 * jitter);
  ++device.products;
  device.last_algorithm = pack(config).data;
  device.cached.insert({product.a.pointer, product.b.pointer, product.d.pointer});
  if (product.beta != 0) {
    device.cached.insert(product.c.pointer);
  }
  device.hung = device.hung || faults().hang.contains(config.tile);
  return cuda::kDriverSuccess;
}

}  // namespace

std::size_t cublasLtGetVersion() { return 130000; }

const char* cublasLtGetStatusString(int status) {
  switch (status) {
    case kSuccess:
      return "CUBLAS_STATUS_SUCCESS";
    case kHandleMissing:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case kInvalidValue:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case kExecutionFailed:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case kNotSupported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_UNKNOWN";
  }
}

int cublasLtCreate(Handle* handle) { return make(handle, cublaslt::HandleObject{}); }

int cublasLtDestroy(Handle handle) { return destroy(handle); }

int cublasLtMatmulAlgoGetIds(Handle handle, ComputeType compute, CudaType scale, CudaType a,
                             CudaType b, CudaType c, CudaType d, int requested, int* ids,
                             int* returned) {
  if (!is_live(handle)) {
    return kHandleMissing;
  }
  if (requested <= 0 || ids == nullptr) {
    return kInvalidValue;
  }
  const auto algorithms = algorithms_for(types_of(compute, scale, a, b, c, d));
  if (algorithms.empty()) {
    return kNotSupported;
  }
  int count = 0;
  for (const AlgorithmFacts& facts : algorithms) {
    if (count < requested) {
      ids[count++] = facts.id;
    }
  }
  if (returned != nullptr) {
    *returned = count;
  }
  return kSuccess;
}

int cublasLtMatmulAlgoInit(Handle handle, ComputeType compute, CudaType scale, CudaType a,
                           CudaType b, CudaType c, CudaType d, int id, Algorithm* algorithm) {
  count_call("cublasLtMatmulAlgoInit");
  if (!is_live(handle)) {
    return kHandleMissing;
  }
  const Types types = types_of(compute, scale, a, b, c, d);
  if (algorithm == nullptr) {
    return kInvalidValue;
  }
  if (find_algorithm(types, id) == nullptr) {
    return algorithms_for(types).empty() ? kNotSupported : kInvalidValue;
  }
  *algorithm = pack({.mark = Config::kMark, .algorithm = id, .types = types});
  return kSuccess;
}

int cublasLtMatmulAlgoCheck(Handle handle, Descriptor descriptor, Layout a, Layout b, Layout c,
                            Layout d, const Algorithm* algorithm, HeuristicResult* result) {
  count_call("cublasLtMatmulAlgoCheck");
  if (!is_live(handle)) {
    return kHandleMissing;
  }
  const auto config = unpack(algorithm);
  if (!config || result == nullptr || !all_live({descriptor, a, b, c, d})) {
    return kInvalidValue;
  }
  const Verdict verdict = judge(*config, request_of(descriptor, a, b, c, d));
  *result = HeuristicResult{.algorithm = *algorithm,
                            .workspace_bytes = verdict.workspace_bytes,
                            .status = verdict.status,
                            .waves = verdict.waves};
  return verdict.status;
}

int cublasLtMatmulAlgoGetHeuristic(Handle handle, Descriptor descriptor, Layout a, Layout b,
                                   Layout c, Layout d, Preference preference, int requested,
                                   HeuristicResult* results, int* returned) {
  count_call("cublasLtMatmulAlgoGetHeuristic");
  if (!is_live(handle)) {
    return kHandleMissing;
  }
  if (requested <= 0 || results == nullptr || returned == nullptr ||
      !all_live({descriptor, a, b, c, d, preference})) {
    return kInvalidValue;
  }
  const Request request = request_of(descriptor, a, b, c, d);
  *returned = 0;
  if (!request.is_known) {
    return kNotSupported;
  }
  const std::vector<Config> configs =
      heuristic(request.product, request.types, preference->max_workspace_bytes,
                static_cast<std::size_t>(requested));
  for (const Config& config : configs) {
    const Verdict verdict = judge(config, request);
    results[(*returned)++] = HeuristicResult{.algorithm = pack(config),
                                             .workspace_bytes = verdict.workspace_bytes,
                                             .status = kSuccess,
                                             .waves = verdict.waves};
  }
  return *returned == 0 ? kNotSupported : kSuccess;
}

int cublasLtMatmulAlgoCapGetAttribute(const Algorithm* algorithm, Capability capability,
                                      void* value, std::size_t bytes, std::size_t* written) {
  const auto config = unpack(algorithm);
  const AlgorithmFacts* const facts =
      config ? find_algorithm(config->types, config->algorithm) : nullptr;
  if (facts == nullptr) {
    return kInvalidValue;
  }
  switch (capability) {
    case Capability::kSplitK:
      return give(facts->split_k, value, bytes, written);
    case Capability::kReductionMask:
      return give(facts->reduction_mask, value, bytes, written);
    case Capability::kSwizzling:
      return give(facts->swizzling, value, bytes, written);
    case Capability::kCustomOptionMax:
      return give(facts->custom_max, value, bytes, written);
    case Capability::kTileIds:
      return give_ids(facts->tiles, value, bytes, written);
    case Capability::kStagesIds:
      return give_ids(facts->stages, value, bytes, written);
    case Capability::kMinAlignmentA:
    case Capability::kMinAlignmentB:
    case Capability::kMinAlignmentC:
    case Capability::kMinAlignmentD:
      return give(kMinAlignment, value, bytes, written);
  }
  return kInvalidValue;
}

int cublasLtMatmulAlgoConfigSetAttribute(Algorithm* algorithm, ConfigAttribute attribute,
                                         const void* value, std::size_t bytes) {
  auto config = unpack(algorithm);
  if (!config) {
    return kInvalidValue;
  }
  const auto set = [&](auto& field) {
    const int status = set_field(field, value, bytes);
    if (status == kSuccess) {
      *algorithm = pack(*config);
    }
    return status;
  };
  switch (attribute) {
    case ConfigAttribute::kAlgorithm:  // read only
      break;
    case ConfigAttribute::kTile:
      return set(config->tile);
    case ConfigAttribute::kSplitK:
      return set(config->split_k);
    case ConfigAttribute::kReduction:
      return set(config->reduction);
    case ConfigAttribute::kSwizzle:
      return set(config->swizzle);
    case ConfigAttribute::kCustom:
      return set(config->custom);
    case ConfigAttribute::kStages:
      return set(config->stages);
    case ConfigAttribute::kInnerShape:
      return set(config->inner_shape);
    case ConfigAttribute::kClusterShape:
      return set(config->cluster_shape);
  }
  return kInvalidValue;
}

int cublasLtMatmulAlgoConfigGetAttribute(const Algorithm* algorithm, ConfigAttribute attribute,
                                         void* value, std::size_t bytes, std::size_t* written) {
  const auto config = unpack(algorithm);
  if (!config) {
    return kInvalidValue;
  }
  switch (attribute) {
    case ConfigAttribute::kAlgorithm:
      return give(config->algorithm, value, bytes, written);
    case ConfigAttribute::kTile:
      return give(config->tile, value, bytes, written);
    case ConfigAttribute::kSplitK:
      return give(config->split_k, value, bytes, written);
    case ConfigAttribute::kReduction:
      return give(config->reduction, value, bytes, written);
    case ConfigAttribute::kSwizzle:
      return give(config->swizzle, value, bytes, written);
    case ConfigAttribute::kCustom:
      return give(config->custom, value, bytes, written);
    case ConfigAttribute::kStages:
      return give(config->stages, value, bytes, written);
    case ConfigAttribute::kInnerShape:
      return give(config->inner_shape, value, bytes, written);
    case ConfigAttribute::kClusterShape:
      return give(config->cluster_shape, value, bytes, written);
  }
  return kInvalidValue;
}

int cublasLtMatmul(Handle handle, Descriptor descriptor, const void* alpha, const void* a,
                   Layout a_layout, const void* b, Layout b_layout, const void* beta, const void* c,
                   Layout c_layout, void* d, Layout d_layout, const Algorithm* algorithm,
                   void* workspace, std::size_t workspace_bytes, cuda::Stream stream) {
  count_call("cublasLtMatmul");
  if (!is_live(handle)) {
    return kHandleMissing;
  }
  if (alpha == nullptr || beta == nullptr || a == nullptr || b == nullptr || d == nullptr ||
      !all_live({descriptor, a_layout, b_layout, c_layout, d_layout})) {
    return kInvalidValue;
  }
  Request request = request_of(descriptor, a_layout, b_layout, c_layout, d_layout);
  const std::optional<Config> config =
      algorithm == nullptr ? own_choice(request, workspace_bytes) : unpack(algorithm);
  if (!config) {
    return algorithm == nullptr ? kNotSupported : kInvalidValue;
  }
  const Verdict verdict = judge(*config, request);
  if (verdict.status != kSuccess || faults().refuse.contains(config->tile)) {
    return kNotSupported;
  }
  Product& product = request.product;
  product.a.pointer = to_device(a);
  product.b.pointer = to_device(b);
  product.c.pointer = to_device(c);
  product.d.pointer = to_device(d);
  product.alpha = number(alpha, request.types.scale);
  product.beta = number(beta, request.types.scale);
  product.wrong = faults().wrong.contains(config->tile);
  product.last_not_written = faults().not_written.contains(config->tile);
  const bool aligned_all = aligned(product.a) && aligned(product.b) && aligned(product.d) &&
                           (product.beta == 0 || aligned(product.c));
  if (!aligned_all || workspace_bytes < verdict.workspace_bytes ||
      (product.has_bias && product.bias == 0)) {
    return kInvalidValue;
  }
  State& device = state();
  const std::lock_guard lock(device.mutex);
  if (device.broken != 0) {
    return kExecutionFailed;
  }
  if (faults().crash.contains(config->tile)) {
    device.broken = kLaunchFailed;
    return kExecutionFailed;
  }
  const int code =
      device.submit(stream, [config = *config, product, workspace = to_device(workspace),
                             bytes = verdict.workspace_bytes](State& on) {
        return execute_product(on, config, product, workspace, bytes);
      });
  return code == cuda::kDriverSuccess ? kSuccess : kExecutionFailed;
}

}  // namespace foretune::fake_gpu
