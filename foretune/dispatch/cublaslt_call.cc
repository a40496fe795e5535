#include "foretune/dispatch/cublaslt_call.h"

#include <algorithm>
#include <optional>

#include "foretune/cublaslt/matmul.h"

namespace foretune::dispatch_internal {
namespace {

using cublaslt::Api;
using cublaslt::ComputeType;
using cublaslt::CudaType;
using cublaslt::DescriptorAttribute;
using cublaslt::Epilogue;
using cublaslt::Layout;
using cublaslt::LayoutAttribute;

constexpr std::uintptr_t kWorkspaceAlignment = 256;
constexpr std::int32_t kByColumns = 0;
constexpr std::int32_t kLastTranspose = 2;  // of real numbers the conjugate is no other

// Stops at the first error.
class Reader {
 public:
  explicit Reader(const Api& api) : api_(api) {}
  [[nodiscard]] int status() const { return status_; }

  template <class T>
  void read(cublaslt::Descriptor descriptor, DescriptorAttribute attribute, T& value) {
    if (status_ == cublaslt::kSuccess) {
      std::size_t written = 0;
      status_ = api_.descriptor_get(descriptor, attribute, &value, sizeof(value), &written);
    }
  }
  // Leaves the value where the library does not know the attribute yet.
  template <class T>
  void read_if_known(cublaslt::Descriptor descriptor, DescriptorAttribute attribute, T& value) {
    std::size_t written = 0;
    T found{};
    if (status_ == cublaslt::kSuccess &&
        api_.descriptor_get(descriptor, attribute, &found, sizeof(found), &written) ==
            cublaslt::kSuccess) {
      value = found;
    }
  }
  template <class T>
  void read(Layout layout, LayoutAttribute attribute, T& value) {
    if (status_ == cublaslt::kSuccess) {
      std::size_t written = 0;
      status_ = api_.layout_get(layout, attribute, &value, sizeof(value), &written);
    }
  }
  void read(Layout layout, LayoutKey& key) {
    read(layout, LayoutAttribute::kType, key.type);
    read(layout, LayoutAttribute::kOrder, key.order);
    read(layout, LayoutAttribute::kRows, key.rows);
    read(layout, LayoutAttribute::kColumns, key.columns);
    read(layout, LayoutAttribute::kLeading, key.leading);
    read(layout, LayoutAttribute::kBatchCount, key.batches);
    if (key.batches != 1) {
      read(layout, LayoutAttribute::kStridedBatchOffset, key.stride);
    }
  }

 private:
  const Api& api_;
  int status_ = cublaslt::kSuccess;
};

bool is_16_bit(CudaType type) { return type == CudaType::kF16 || type == CudaType::kBf16; }

std::optional<DataType> data_type_of(const CallKey& key) {
  const auto ab = static_cast<CudaType>(key.a.type);
  const auto d = static_cast<CudaType>(key.d.type);
  const auto compute = static_cast<ComputeType>(key.compute);
  if (key.b.type != key.a.type || key.c.type != key.d.type ||
      static_cast<CudaType>(key.scale) != CudaType::kF32) {
    return std::nullopt;
  }
  if (ab == CudaType::kF32 && d == CudaType::kF32) {
    return compute == ComputeType::kF32    ? std::optional(DataType::kF32)
           : compute == ComputeType::kTf32 ? std::optional(DataType::kTf32)
                                           : std::nullopt;
  }
  if (compute != ComputeType::kF32) {
    return std::nullopt;
  }
  if (is_16_bit(ab) && d == ab) {
    return ab == CudaType::kF16 ? DataType::kF16 : DataType::kBf16;
  }
  if (ab == CudaType::kF8e4m3 && d == CudaType::kBf16) {
    return DataType::kF8e4m3;
  }
  return std::nullopt;
}

std::optional<GemmOperation> operation_of(const CallKey& key) {
  if (key.epilogue == static_cast<std::uint32_t>(Epilogue::kDefault)) {
    return key.d.batches > 1 ? GemmOperation::kBmm : GemmOperation::kMm;
  }
  for (const GemmOperation operation :
       {GemmOperation::kAddmm, GemmOperation::kAddmmRelu, GemmOperation::kAddmmGelu}) {
    if (key.d.batches == 1 &&
        key.epilogue == static_cast<std::uint32_t>(cublaslt::epilogue_of(operation))) {
      return operation;
    }
  }
  return std::nullopt;
}

bool is_transpose(std::int32_t operation) { return operation > 0 && operation <= kLastTranspose; }

}  // namespace

std::int32_t alignment_of(const MatmulCall& call) {
  const auto bits = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  const std::uintptr_t all = bits(call.a) | bits(call.b) | bits(call.c) | bits(call.d);
  const int zeros = std::countr_zero(all);
  return zeros >= kAligned ? kAligned : std::min(zeros, kAlignedForKernels);
}

std::uint64_t usable_workspace(const MatmulCall& call) {
  const auto address = reinterpret_cast<std::uintptr_t>(call.workspace);
  return address == 0 || address % kWorkspaceAlignment != 0 ? 0 : call.workspace_bytes;
}

int read_descriptors(const Api& api, const MatmulCall& call, CallKey& key) {
  Reader reader(api);
  reader.read(call.descriptor, DescriptorAttribute::kComputeType, key.compute);
  reader.read(call.descriptor, DescriptorAttribute::kScaleType, key.scale);
  reader.read(call.descriptor, DescriptorAttribute::kPointerMode, key.pointer_mode);
  reader.read(call.descriptor, DescriptorAttribute::kTransposeA, key.transpose_a);
  reader.read(call.descriptor, DescriptorAttribute::kTransposeB, key.transpose_b);
  reader.read(call.descriptor, DescriptorAttribute::kEpilogue, key.epilogue);
  reader.read_if_known(call.descriptor, DescriptorAttribute::kMultiprocessorCount,
                       key.multiprocessors);
  reader.read(call.a_layout, key.a);
  reader.read(call.b_layout, key.b);
  reader.read(call.d_layout, key.d);
  if (call.c_layout == call.d_layout) {
    key.c = key.d;
  } else {
    reader.read(call.c_layout, key.c);
  }
  if (static_cast<CudaType>(key.a.type) == CudaType::kF8e4m3) {
    std::int8_t fast = 0;
    std::int32_t scales_a = 0;
    std::int32_t scales_b = 0;
    reader.read_if_known(call.descriptor, DescriptorAttribute::kFastAccumulation, fast);
    reader.read_if_known(call.descriptor, DescriptorAttribute::kScaleModeA, scales_a);
    reader.read_if_known(call.descriptor, DescriptorAttribute::kScaleModeB, scales_b);
    key.f8_modes = (fast != 0 ? 1 : 0) + 2 * scales_a + 256 * scales_b;
  }
  return reader.status();
}

Result<GemmProblem> problem_of(const CallKey& key) {
  const auto unknown = [](const auto&... parts) { return fail(ErrorCode::kUnsupported, parts...); };
  for (const LayoutKey* const layout : {&key.a, &key.b, &key.c, &key.d}) {
    if (layout->order != kByColumns) {
      return unknown("a matrix is stored in another order than by columns");
    }
    if (layout->batches != key.d.batches || layout->batches < 1) {
      return unknown("the matrices differ in their number of batches");
    }
  }
  const std::optional<DataType> type = data_type_of(key);
  if (!type) {
    return unknown("models do not know these types: compute type ", key.compute, ", A ", key.a.type,
                   ", B ", key.b.type, ", C ", key.c.type, ", D ", key.d.type);
  }
  if (key.f8_modes > 1) {
    return unknown("models do not know inputs that are scaled in blocks");
  }
  if (key.multiprocessors != 0) {
    return unknown("the number of multiprocessors to use is limited");
  }
  const std::optional<GemmOperation> operation = operation_of(key);
  if (!operation) {
    return unknown("models do not know epilogue ", key.epilogue,
                   key.d.batches > 1 ? " of batches" : "");
  }
  // A product by columns is the product of the transposes by rows, the other way round.
  const bool b_by_columns = is_transpose(key.transpose_a);
  const bool a_by_columns = is_transpose(key.transpose_b);
  const auto signed_size = [](std::uint64_t size) { return static_cast<std::int64_t>(size); };
  const GemmLayout layout = a_by_columns ? (b_by_columns ? GemmLayout::kCcr : GemmLayout::kCrr)
                                         : (b_by_columns ? GemmLayout::kRcr : GemmLayout::kRrr);
  return GemmProblem::create({.m = signed_size(key.d.columns),
                              .n = signed_size(key.d.rows),
                              .k = signed_size(b_by_columns ? key.a.rows : key.a.columns),
                              .batch = key.d.batches,
                              .operation = *operation,
                              .dtype = *type,
                              .layout = layout});
}

}  // namespace foretune::dispatch_internal
