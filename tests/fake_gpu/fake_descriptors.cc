// Descriptors, layouts and preferences of the fake cuBLASLt; see fake_gpu.h.
#include <cstdint>

#include "foretune/cuda/cublaslt_api.h"
#include "tests/fake_gpu/fake_objects.h"

namespace foretune::fake_gpu {
namespace {

using cublaslt::Api;
using cublaslt::ComputeType;
using cublaslt::CudaType;
using cublaslt::Descriptor;
using cublaslt::DescriptorAttribute;
using cublaslt::kInvalidValue;
using cublaslt::kSuccess;
using cublaslt::Layout;
using cublaslt::LayoutAttribute;
using cublaslt::Preference;
using cublaslt::PreferenceAttribute;

}  // namespace
}  // namespace foretune::fake_gpu

// Names of cuBLASLt's ABI. Each is declared with the type by which the table calls it.
// NOLINTBEGIN(readability-identifier-naming)
#pragma GCC visibility push(default)
extern "C" {

using namespace foretune::fake_gpu;  // NOLINT(google-build-using-namespace)
namespace cublaslt = foretune::cublaslt;

EntryOf<decltype(Api::descriptor_create)> cublasLtMatmulDescCreate;
EntryOf<decltype(Api::descriptor_destroy)> cublasLtMatmulDescDestroy;
EntryOf<decltype(Api::descriptor_set)> cublasLtMatmulDescSetAttribute;
EntryOf<decltype(Api::descriptor_get)> cublasLtMatmulDescGetAttribute;
EntryOf<decltype(Api::layout_create)> cublasLtMatrixLayoutCreate;
EntryOf<decltype(Api::layout_destroy)> cublasLtMatrixLayoutDestroy;
EntryOf<decltype(Api::layout_set)> cublasLtMatrixLayoutSetAttribute;
EntryOf<decltype(Api::layout_get)> cublasLtMatrixLayoutGetAttribute;
EntryOf<decltype(Api::preference_create)> cublasLtMatmulPreferenceCreate;
EntryOf<decltype(Api::preference_destroy)> cublasLtMatmulPreferenceDestroy;
EntryOf<decltype(Api::preference_set)> cublasLtMatmulPreferenceSetAttribute;

int cublasLtMatmulDescCreate(Descriptor* descriptor, ComputeType compute, CudaType scale) {
  return make(descriptor, cublaslt::DescriptorObject{.compute = compute, .scale = scale});
}

int cublasLtMatmulDescDestroy(Descriptor descriptor) { return destroy(descriptor); }

int cublasLtMatmulDescSetAttribute(Descriptor descriptor, DescriptorAttribute attribute,
                                   const void* value, std::size_t bytes) {
  if (!is_live(descriptor)) {
    return kInvalidValue;
  }
  switch (attribute) {
    case DescriptorAttribute::kComputeType:
      return set_field(descriptor->compute, value, bytes);
    case DescriptorAttribute::kScaleType:
      return set_field(descriptor->scale, value, bytes);
    case DescriptorAttribute::kPointerMode:
      return set_field(descriptor->pointer_mode, value, bytes);
    case DescriptorAttribute::kMultiprocessorCount:
      return set_field(descriptor->multiprocessors, value, bytes);
    case DescriptorAttribute::kFastAccumulation:
      return set_field(descriptor->fast_accumulation, value, bytes);
    case DescriptorAttribute::kScaleModeA:
    case DescriptorAttribute::kScaleModeB:
      return kInvalidValue;  // as before 12.8
    case DescriptorAttribute::kTransposeA:
      return set_field(descriptor->transpose_a, value, bytes);
    case DescriptorAttribute::kTransposeB:
      return set_field(descriptor->transpose_b, value, bytes);
    case DescriptorAttribute::kEpilogue:
      return set_field(descriptor->epilogue, value, bytes);
    case DescriptorAttribute::kBiasPointer:
      return set_field(descriptor->bias, value, bytes);
    case DescriptorAttribute::kBiasDataType: {
      CudaType type{};
      const int status = set_field(type, value, bytes);
      if (status == kSuccess) {
        descriptor->bias_type = type;
      }
      return status;
    }
  }
  return kInvalidValue;
}

int cublasLtMatmulDescGetAttribute(Descriptor descriptor, DescriptorAttribute attribute,
                                   void* value, std::size_t bytes, std::size_t* written) {
  if (!is_live(descriptor)) {
    return kInvalidValue;
  }
  switch (attribute) {
    case DescriptorAttribute::kComputeType:
      return give(descriptor->compute, value, bytes, written);
    case DescriptorAttribute::kScaleType:
      return give(descriptor->scale, value, bytes, written);
    case DescriptorAttribute::kPointerMode:
      return give(descriptor->pointer_mode, value, bytes, written);
    case DescriptorAttribute::kTransposeA:
      return give(descriptor->transpose_a, value, bytes, written);
    case DescriptorAttribute::kTransposeB:
      return give(descriptor->transpose_b, value, bytes, written);
    case DescriptorAttribute::kEpilogue:
      return give(descriptor->epilogue, value, bytes, written);
    case DescriptorAttribute::kBiasPointer:
      return give(descriptor->bias, value, bytes, written);
    case DescriptorAttribute::kMultiprocessorCount:
      return give(descriptor->multiprocessors, value, bytes, written);
    case DescriptorAttribute::kFastAccumulation:
      return give(descriptor->fast_accumulation, value, bytes, written);
    case DescriptorAttribute::kBiasDataType:
      return give(descriptor->bias_type ? static_cast<std::int32_t>(*descriptor->bias_type) : -1,
                  value, bytes, written);
    case DescriptorAttribute::kScaleModeA:
    case DescriptorAttribute::kScaleModeB:
      break;
  }
  return kInvalidValue;
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
  if (!is_live(layout)) {
    return kInvalidValue;
  }
  const auto set_size = [&](std::int64_t& size) {
    std::uint64_t given = 0;
    const int status = set_field(given, value, bytes);
    if (status == kSuccess) {
      size = static_cast<std::int64_t>(given);
    }
    return status;
  };
  switch (attribute) {
    case LayoutAttribute::kType:
      return set_field(layout->matrix.type, value, bytes);
    case LayoutAttribute::kOrder:
      return set_field(layout->order, value, bytes);
    case LayoutAttribute::kRows:
      return set_size(layout->matrix.rows);
    case LayoutAttribute::kColumns:
      return set_size(layout->matrix.columns);
    case LayoutAttribute::kLeading:
      return set_field(layout->matrix.leading, value, bytes);
    case LayoutAttribute::kBatchCount: {
      std::int32_t count = 0;
      const int status = set_field(count, value, bytes);
      if (status == kSuccess) {
        layout->matrix.batches = count;
      }
      return status;
    }
    case LayoutAttribute::kStridedBatchOffset:
      return set_field(layout->matrix.stride, value, bytes);
  }
  return kInvalidValue;
}

int cublasLtMatrixLayoutGetAttribute(Layout layout, LayoutAttribute attribute, void* value,
                                     std::size_t bytes, std::size_t* written) {
  if (!is_live(layout)) {
    return kInvalidValue;
  }
  const Matrix& matrix = layout->matrix;
  switch (attribute) {
    case LayoutAttribute::kType:
      return give(matrix.type, value, bytes, written);
    case LayoutAttribute::kOrder:
      return give(layout->order, value, bytes, written);
    case LayoutAttribute::kRows:
      return give(static_cast<std::uint64_t>(matrix.rows), value, bytes, written);
    case LayoutAttribute::kColumns:
      return give(static_cast<std::uint64_t>(matrix.columns), value, bytes, written);
    case LayoutAttribute::kLeading:
      return give(matrix.leading, value, bytes, written);
    case LayoutAttribute::kBatchCount:
      return give(static_cast<std::int32_t>(matrix.batches), value, bytes, written);
    case LayoutAttribute::kStridedBatchOffset:
      return give(matrix.stride, value, bytes, written);
  }
  return kInvalidValue;
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

}  // extern "C"
#pragma GCC visibility pop
// NOLINTEND(readability-identifier-naming)
