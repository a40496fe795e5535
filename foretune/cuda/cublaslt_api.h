// Declares the parts of cuBLASLt that are used here and loads them at run time, so that a build
// needs no part of CUDA. Types, numbers and names are those of cublasLt.h (12 and 13); the tests
// compare them where a toolkit is installed. Thread safety: constant after loading; the library's
// own functions may be called from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cuda/driver_api.h"

namespace foretune::cublaslt {

struct HandleObject;
struct DescriptorObject;
struct LayoutObject;
struct PreferenceObject;
using Handle = HandleObject*;
using Descriptor = DescriptorObject*;  // cublasLtMatmulDesc_t
using Layout = LayoutObject*;          // cublasLtMatrixLayout_t
using Preference = PreferenceObject*;  // cublasLtMatmulPreference_t

inline constexpr int kSuccess = 0;
inline constexpr int kInvalidValue = 7;
inline constexpr int kNotSupported = 15;

// cudaDataType.
enum class CudaType : int {
  kF32 = 0,
  kF64 = 1,
  kF16 = 2,
  kBf16 = 14,
  kF8e4m3 = 28,
};
// cublasComputeType_t.
enum class ComputeType : int {
  kF32 = 68,
  kF32Pedantic = 69,
  kF64 = 70,
  kTf32 = 77,
};
// cublasLtMatmulDescAttributes_t.
enum class DescriptorAttribute : int {
  kComputeType = 0,           // int32, ComputeType
  kScaleType = 1,             // int32, CudaType
  kPointerMode = 2,           // int32: 0 alpha and beta on the host, else on the device
  kTransposeA = 3,            // int32: 0 no, 1 yes, 2 yes and conjugate
  kTransposeB = 4,            // int32
  kEpilogue = 7,              // uint32, Epilogue
  kBiasPointer = 8,           // device pointer
  kMultiprocessorCount = 15,  // int32: how many to use, 0 all
  kFastAccumulation = 25,     // int8
  kBiasDataType = 26,         // int32, CudaType
  kScaleModeA = 31,           // int32, since 12.8: 0 one number for all
  kScaleModeB = 32,           // int32
};
// cublasLtEpilogue_t.
enum class Epilogue : std::uint32_t {
  kDefault = 1,
  kRelu = 2,
  kBias = 4,
  kReluBias = 6,
  kGelu = 32,
  kGeluBias = 36,
};
// cublasLtMatrixLayoutAttribute_t.
enum class LayoutAttribute : int {
  kType = 0,                // int32, CudaType
  kOrder = 1,               // int32: 0 by columns, 1 by rows
  kRows = 2,                // uint64
  kColumns = 3,             // uint64
  kLeading = 4,             // int64, elements
  kBatchCount = 5,          // int32
  kStridedBatchOffset = 6,  // int64, elements
};
// cublasLtMatmulPreferenceAttributes_t.
enum class PreferenceAttribute : int {
  kMaxWorkspaceBytes = 1,  // uint64
  kMinAlignmentA = 5,      // uint32, bytes; 256 if not set
  kMinAlignmentB = 6,      // uint32
  kMinAlignmentC = 7,      // uint32
  kMinAlignmentD = 8,      // uint32
};
// cublasLtMatmulAlgoCapAttributes_t.
enum class Capability : int {
  kSplitK = 0,           // int32
  kReductionMask = 1,    // uint32
  kSwizzling = 2,        // uint32
  kTileIds = 6,          // uint32[]
  kCustomOptionMax = 7,  // int32
  kStagesIds = 13,       // uint32[]
  kMinAlignmentA = 16,   // uint32, bytes
  kMinAlignmentB = 17,   // uint32
  kMinAlignmentC = 18,   // uint32
  kMinAlignmentD = 19,   // uint32
};
// cublasLtMatmulAlgoConfigAttributes_t.
enum class ConfigAttribute : int {
  kAlgorithm = 0,     // int32, read only
  kTile = 1,          // uint32
  kSplitK = 2,        // int32
  kReduction = 3,     // uint32
  kSwizzle = 4,       // uint32
  kCustom = 5,        // uint32
  kStages = 6,        // uint32
  kInnerShape = 7,    // uint16
  kClusterShape = 8,  // uint16
};

struct Algorithm {
  std::array<std::uint64_t, 8> data{};
};
struct HeuristicResult {
  Algorithm algorithm;
  std::size_t workspace_bytes = 0;
  int status = 0;
  float waves = 0;
  std::array<int, 4> reserved{};
};

struct Api {
  // Loads the first of `libraries` that can be loaded. Errors: kUnsupported with the loader's
  // reasons or the symbol that is missing.
  static Result<std::shared_ptr<const Api>> load(const std::vector<std::string>& libraries);
  // Does the same, but prefers a copy that the process has loaded already.
  static Result<std::shared_ptr<const Api>> load_or_share(
      const std::vector<std::string>& libraries);
  // Returns success, or an error with the call and the library's own words: kUnsupported for "not
  // supported" and "invalid value", which are about the config; otherwise kIo.
  [[nodiscard]] Status check(int status, std::string_view call) const;

  std::size_t (*get_version)() = nullptr;  // 130100 is 13.1
  const char* (*get_status_string)(int status) = nullptr;
  int (*create)(Handle* handle) = nullptr;
  int (*destroy)(Handle handle) = nullptr;
  int (*descriptor_create)(Descriptor* descriptor, ComputeType compute, CudaType scale) = nullptr;
  int (*descriptor_destroy)(Descriptor descriptor) = nullptr;
  int (*descriptor_set)(Descriptor descriptor, DescriptorAttribute attribute, const void* value,
                        std::size_t bytes) = nullptr;
  // `written` may be null.
  int (*descriptor_get)(Descriptor descriptor, DescriptorAttribute attribute, void* value,
                        std::size_t bytes, std::size_t* written) = nullptr;
  int (*layout_create)(Layout* layout, CudaType type, std::uint64_t rows, std::uint64_t columns,
                       std::int64_t leading) = nullptr;
  int (*layout_destroy)(Layout layout) = nullptr;
  int (*layout_set)(Layout layout, LayoutAttribute attribute, const void* value,
                    std::size_t bytes) = nullptr;
  int (*layout_get)(Layout layout, LayoutAttribute attribute, void* value, std::size_t bytes,
                    std::size_t* written) = nullptr;
  int (*preference_create)(Preference* preference) = nullptr;
  int (*preference_destroy)(Preference preference) = nullptr;
  int (*preference_set)(Preference preference, PreferenceAttribute attribute, const void* value,
                        std::size_t bytes) = nullptr;
  int (*algorithm_ids)(Handle handle, ComputeType compute, CudaType scale, CudaType a, CudaType b,
                       CudaType c, CudaType d, int requested, int* ids, int* returned) = nullptr;
  int (*algorithm_init)(Handle handle, ComputeType compute, CudaType scale, CudaType a, CudaType b,
                        CudaType c, CudaType d, int id, Algorithm* algorithm) = nullptr;
  int (*algorithm_check)(Handle handle, Descriptor descriptor, Layout a, Layout b, Layout c,
                         Layout d, const Algorithm* algorithm, HeuristicResult* result) = nullptr;
  int (*algorithm_heuristic)(Handle handle, Descriptor descriptor, Layout a, Layout b, Layout c,
                             Layout d, Preference preference, int requested,
                             HeuristicResult* results, int* returned) = nullptr;
  int (*capability_get)(const Algorithm* algorithm, Capability capability, void* value,
                        std::size_t bytes, std::size_t* written) = nullptr;
  int (*config_set)(Algorithm* algorithm, ConfigAttribute attribute, const void* value,
                    std::size_t bytes) = nullptr;
  int (*config_get)(const Algorithm* algorithm, ConfigAttribute attribute, void* value,
                    std::size_t bytes, std::size_t* written) = nullptr;
  int (*matmul)(Handle handle, Descriptor descriptor, const void* alpha, const void* a,
                Layout a_layout, const void* b, Layout b_layout, const void* beta, const void* c,
                Layout c_layout, void* d, Layout d_layout, const Algorithm* algorithm,
                void* workspace, std::size_t workspace_bytes, cuda::Stream stream) = nullptr;

 private:
  static Result<std::shared_ptr<const Api>> of(const cuda::SharedLibrary& library);
};

}  // namespace foretune::cublaslt
