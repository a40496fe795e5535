// Descriptors, layouts and preferences of the fake cuBLASLt; see fake_gpu.h.
#include <cstdint>

#include "foretune/cuda/cublaslt_api.h"
#include "tests/fake_gpu/fake_abi.h"
#include "tests/fake_gpu/fake_objects.h"

namespace foretune::fake_gpu {
namespace {

using cublaslt::ComputeType;
using cublaslt::CudaType;
using cublaslt::Descriptor;
using cublaslt::DescriptorAttribute;
using cublaslt::kInvalidValue;
using cublaslt::Layout;
using cublaslt::LayoutAttribute;
using cublaslt::Preference;
using cublaslt::PreferenceAttribute;

// Calls `action` with the field of the attribute and returns its status.
template <class Action>
int with_field(Descriptor descriptor, DescriptorAttribute attribute, const Action& action) {
  if (!is_live(descriptor)) {
    return kInvalidValue;
  }
  switch (attribute) {
    case DescriptorAttribute::kComputeType:
      return action(descriptor->compute);
    case DescriptorAttribute::kScaleType:
      return action(descriptor->scale);
    case DescriptorAttribute::kPointerMode:
      return action(descriptor->pointer_mode);
    case DescriptorAttribute::kTransposeA:
      return action(descriptor->transpose_a);
    case DescriptorAttribute::kTransposeB:
      return action(descriptor->transpose_b);
    case DescriptorAttribute::kEpilogue:
      return action(descriptor->epilogue);
    case DescriptorAttribute::kBiasPointer:
      return action(descriptor->bias);
    case DescriptorAttribute::kBiasDataType:
      return action(descriptor->bias_type);
    case DescriptorAttribute::kMultiprocessorCount:
      return action(descriptor->multiprocessors);
    case DescriptorAttribute::kFastAccumulation:
      return action(descriptor->fast_accumulation);
    case DescriptorAttribute::kScaleModeA:
    case DescriptorAttribute::kScaleModeB:
      break;  // as before 12.8
  }
  return kInvalidValue;
}

template <class Action>
int with_field(Layout layout, LayoutAttribute attribute, const Action& action) {
  if (!is_live(layout)) {
    return kInvalidValue;
  }
  Matrix& matrix = layout->matrix;
  switch (attribute) {
    case LayoutAttribute::kType:
      return action(matrix.type);
    case LayoutAttribute::kOrder:
      return action(layout->order);
    case LayoutAttribute::kRows:
      return action(matrix.rows);
    case LayoutAttribute::kColumns:
      return action(matrix.columns);
    case LayoutAttribute::kLeading:
      return action(matrix.leading);
    case LayoutAttribute::kBatchCount:
      return action(matrix.batches);
    case LayoutAttribute::kStridedBatchOffset:
      return action(matrix.stride);
  }
  return kInvalidValue;
}

}  // namespace

int cublasLtMatmulDescCreate(Descriptor* descriptor, ComputeType compute, CudaType scale) {
  return make(descriptor, cublaslt::DescriptorObject{.compute = compute, .scale = scale});
}

int cublasLtMatmulDescDestroy(Descriptor descriptor) { return destroy(descriptor); }

int cublasLtMatmulDescSetAttribute(Descriptor descriptor, DescriptorAttribute attribute,
                                   const void* value, std::size_t bytes) {
  return with_field(descriptor, attribute,
                    [&](auto& field) { return set_field(field, value, bytes); });
}

int cublasLtMatmulDescGetAttribute(Descriptor descriptor, DescriptorAttribute attribute,
                                   void* value, std::size_t bytes, std::size_t* written) {
  return with_field(descriptor, attribute,
                    [&](const auto& field) { return give(field, value, bytes, written); });
}

int cublasLtMatrixLayoutCreate(Layout* layout, CudaType type, std::uint64_t rows,
                               std::uint64_t columns, std::int64_t leading) {
  if (type_bytes(type) == 0 || rows > 0x7fffffffU || columns > 0x7fffffffU) {
    return kInvalidValue;
  }
  Matrix matrix;
  matrix.type = type;
  matrix.rows = static_cast<std::int64_t>(rows);
  matrix.columns = static_cast<std::int64_t>(columns);
  matrix.leading = leading;
  return make(layout, cublaslt::LayoutObject{matrix});
}

int cublasLtMatrixLayoutDestroy(Layout layout) { return destroy(layout); }

int cublasLtMatrixLayoutSetAttribute(Layout layout, LayoutAttribute attribute, const void* value,
                                     std::size_t bytes) {
  return with_field(layout, attribute, [&](auto& field) { return set_field(field, value, bytes); });
}

int cublasLtMatrixLayoutGetAttribute(Layout layout, LayoutAttribute attribute, void* value,
                                     std::size_t bytes, std::size_t* written) {
  return with_field(layout, attribute,
                    [&](const auto& field) { return give(field, value, bytes, written); });
}

int cublasLtMatmulPreferenceCreate(Preference* preference) {
  return make(preference, cublaslt::PreferenceObject{});
}

int cublasLtMatmulPreferenceDestroy(Preference preference) { return destroy(preference); }

int cublasLtMatmulPreferenceSetAttribute(Preference preference, PreferenceAttribute attribute,
                                         const void* value, std::size_t bytes) {
  if (!is_live(preference)) {
    return kInvalidValue;
  }
  std::uint32_t alignment = 0;  // of no effect: every algorithm takes what its types allow
  switch (attribute) {
    case PreferenceAttribute::kMaxWorkspaceBytes:
      return set_field(preference->max_workspace_bytes, value, bytes);
    case PreferenceAttribute::kMinAlignmentA:
    case PreferenceAttribute::kMinAlignmentB:
    case PreferenceAttribute::kMinAlignmentC:
    case PreferenceAttribute::kMinAlignmentD:
      return set_field(alignment, value, bytes);
  }
  return kInvalidValue;
}

}  // namespace foretune::fake_gpu
