// Compares our declarations of cuBLASLt with cublasLt.h, where a toolkit is installed: a difference
// does not compile. Nothing of CUDA is linked.
#include <cublasLt.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "foretune/cuda/cublaslt_api.h"
#include "foretune/cuda/testing/abi.h"

namespace foretune::cublaslt {
namespace {

using cuda::kMatches;

static_assert(kMatches<decltype(Api::get_version), decltype(cublasLtGetVersion)>);
static_assert(kMatches<decltype(Api::get_status_string), decltype(cublasLtGetStatusString)>);
static_assert(kMatches<decltype(Api::create), decltype(cublasLtCreate)>);
static_assert(kMatches<decltype(Api::destroy), decltype(cublasLtDestroy)>);
static_assert(kMatches<decltype(Api::descriptor_create), decltype(cublasLtMatmulDescCreate)>);
static_assert(kMatches<decltype(Api::descriptor_destroy), decltype(cublasLtMatmulDescDestroy)>);
static_assert(kMatches<decltype(Api::descriptor_set), decltype(cublasLtMatmulDescSetAttribute)>);
static_assert(kMatches<decltype(Api::descriptor_get), decltype(cublasLtMatmulDescGetAttribute)>);
static_assert(kMatches<decltype(Api::layout_create), decltype(cublasLtMatrixLayoutCreate)>);
static_assert(kMatches<decltype(Api::layout_destroy), decltype(cublasLtMatrixLayoutDestroy)>);
static_assert(kMatches<decltype(Api::layout_set), decltype(cublasLtMatrixLayoutSetAttribute)>);
static_assert(kMatches<decltype(Api::layout_get), decltype(cublasLtMatrixLayoutGetAttribute)>);
static_assert(kMatches<decltype(Api::preference_create), decltype(cublasLtMatmulPreferenceCreate)>);
static_assert(
    kMatches<decltype(Api::preference_destroy), decltype(cublasLtMatmulPreferenceDestroy)>);
static_assert(
    kMatches<decltype(Api::preference_set), decltype(cublasLtMatmulPreferenceSetAttribute)>);
static_assert(kMatches<decltype(Api::algorithm_ids), decltype(cublasLtMatmulAlgoGetIds)>);
static_assert(kMatches<decltype(Api::algorithm_init), decltype(cublasLtMatmulAlgoInit)>);
static_assert(kMatches<decltype(Api::algorithm_check), decltype(cublasLtMatmulAlgoCheck)>);
static_assert(
    kMatches<decltype(Api::algorithm_heuristic), decltype(cublasLtMatmulAlgoGetHeuristic)>);
static_assert(kMatches<decltype(Api::capability_get), decltype(cublasLtMatmulAlgoCapGetAttribute)>);
static_assert(kMatches<decltype(Api::config_set), decltype(cublasLtMatmulAlgoConfigSetAttribute)>);
static_assert(kMatches<decltype(Api::config_get), decltype(cublasLtMatmulAlgoConfigGetAttribute)>);
static_assert(kMatches<decltype(Api::matmul), decltype(cublasLtMatmul)>);

static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(HeuristicResult, workspace_bytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(HeuristicResult, status) ==
              offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(offsetof(HeuristicResult, waves) ==
              offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));

template <class Ours, class Theirs>
void expect_number(Ours ours, Theirs theirs) {
  EXPECT_EQ(static_cast<long>(ours), static_cast<long>(theirs));
}

TEST(CublasltAbi, TypesAndStatusHaveTheNumbersOfTheHeader) {
  expect_number(kSuccess, CUBLAS_STATUS_SUCCESS);
  expect_number(kInvalidValue, CUBLAS_STATUS_INVALID_VALUE);
  expect_number(kNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
  expect_number(CudaType::kF32, CUDA_R_32F);
  expect_number(CudaType::kF64, CUDA_R_64F);
  expect_number(CudaType::kF16, CUDA_R_16F);
  expect_number(CudaType::kBf16, CUDA_R_16BF);
  expect_number(CudaType::kF8e4m3, CUDA_R_8F_E4M3);
  expect_number(ComputeType::kF32, CUBLAS_COMPUTE_32F);
  expect_number(ComputeType::kF32Pedantic, CUBLAS_COMPUTE_32F_PEDANTIC);
  expect_number(ComputeType::kF64, CUBLAS_COMPUTE_64F);
  expect_number(ComputeType::kTf32, CUBLAS_COMPUTE_32F_FAST_TF32);
  expect_number(Epilogue::kDefault, CUBLASLT_EPILOGUE_DEFAULT);
  expect_number(Epilogue::kRelu, CUBLASLT_EPILOGUE_RELU);
  expect_number(Epilogue::kBias, CUBLASLT_EPILOGUE_BIAS);
  expect_number(Epilogue::kReluBias, CUBLASLT_EPILOGUE_RELU_BIAS);
}

TEST(CublasltAbi, AttributesHaveTheNumbersOfTheHeader) {
  expect_number(DescriptorAttribute::kComputeType, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE);
  expect_number(DescriptorAttribute::kScaleType, CUBLASLT_MATMUL_DESC_SCALE_TYPE);
  expect_number(DescriptorAttribute::kPointerMode, CUBLASLT_MATMUL_DESC_POINTER_MODE);
  expect_number(DescriptorAttribute::kTransposeA, CUBLASLT_MATMUL_DESC_TRANSA);
  expect_number(DescriptorAttribute::kTransposeB, CUBLASLT_MATMUL_DESC_TRANSB);
  expect_number(DescriptorAttribute::kEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  expect_number(DescriptorAttribute::kBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  expect_number(DescriptorAttribute::kMultiprocessorCount, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET);
  expect_number(DescriptorAttribute::kFastAccumulation, CUBLASLT_MATMUL_DESC_FAST_ACCUM);
  expect_number(DescriptorAttribute::kBiasDataType, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
  expect_number(LayoutAttribute::kType, CUBLASLT_MATRIX_LAYOUT_TYPE);
  expect_number(LayoutAttribute::kOrder, CUBLASLT_MATRIX_LAYOUT_ORDER);
  expect_number(LayoutAttribute::kRows, CUBLASLT_MATRIX_LAYOUT_ROWS);
  expect_number(LayoutAttribute::kColumns, CUBLASLT_MATRIX_LAYOUT_COLS);
  expect_number(LayoutAttribute::kLeading, CUBLASLT_MATRIX_LAYOUT_LD);
  expect_number(LayoutAttribute::kBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  expect_number(LayoutAttribute::kStridedBatchOffset, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  expect_number(PreferenceAttribute::kMaxWorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  expect_number(PreferenceAttribute::kMinAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  expect_number(PreferenceAttribute::kMinAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
}

TEST(CublasltAbi, AlgorithmsHaveTheNumbersOfTheHeader) {
  expect_number(Capability::kSplitK, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT);
  expect_number(Capability::kReductionMask, CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK);
  expect_number(Capability::kSwizzling, CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT);
  expect_number(Capability::kTileIds, CUBLASLT_ALGO_CAP_TILE_IDS);
  expect_number(Capability::kCustomOptionMax, CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX);
  expect_number(Capability::kStagesIds, CUBLASLT_ALGO_CAP_STAGES_IDS);
  expect_number(Capability::kMinAlignmentA, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES);
  expect_number(Capability::kMinAlignmentD, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES);
  expect_number(ConfigAttribute::kAlgorithm, CUBLASLT_ALGO_CONFIG_ID);
  expect_number(ConfigAttribute::kTile, CUBLASLT_ALGO_CONFIG_TILE_ID);
  expect_number(ConfigAttribute::kSplitK, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  expect_number(ConfigAttribute::kReduction, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
  expect_number(ConfigAttribute::kSwizzle, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING);
  expect_number(ConfigAttribute::kCustom, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION);
  expect_number(ConfigAttribute::kStages, CUBLASLT_ALGO_CONFIG_STAGES_ID);
  expect_number(ConfigAttribute::kInnerShape, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID);
  expect_number(ConfigAttribute::kClusterShape, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
}

}  // namespace
}  // namespace foretune::cublaslt
