// Compares our declarations of cuDNN with cudnn_graph.h, where it is installed: a difference does
// not compile. Nothing of CUDA is linked.
#include <cudnn_graph.h>
#include <gtest/gtest.h>

#include "foretune/cuda/cudnn_api.h"
#include "foretune/cuda/testing/abi.h"

namespace foretune::cudnn {
namespace {

using cuda::kMatches;

static_assert(kMatches<decltype(Api::get_version), decltype(cudnnGetVersion)>);
static_assert(kMatches<decltype(Api::get_error_string), decltype(cudnnGetErrorString)>);
static_assert(kMatches<decltype(Api::create), decltype(cudnnCreate)>);
static_assert(kMatches<decltype(Api::destroy), decltype(cudnnDestroy)>);
static_assert(kMatches<decltype(Api::set_stream), decltype(cudnnSetStream)>);
static_assert(kMatches<decltype(Api::get_stream), decltype(cudnnGetStream)>);
static_assert(kMatches<decltype(Api::descriptor_create), decltype(cudnnBackendCreateDescriptor)>);
static_assert(kMatches<decltype(Api::descriptor_destroy), decltype(cudnnBackendDestroyDescriptor)>);
static_assert(kMatches<decltype(Api::finalize), decltype(cudnnBackendFinalize)>);
static_assert(kMatches<decltype(Api::set), decltype(cudnnBackendSetAttribute)>);
static_assert(kMatches<decltype(Api::get), decltype(cudnnBackendGetAttribute)>);
static_assert(kMatches<decltype(Api::execute), decltype(cudnnBackendExecute)>);

template <class Ours, class Theirs>
void expect_number(Ours ours, Theirs theirs) {
  EXPECT_EQ(static_cast<long>(ours), static_cast<long>(theirs));
}

TEST(CudnnAbi, TypesAndStatusHaveTheNumbersOfTheHeader) {
  expect_number(kSuccess, CUDNN_STATUS_SUCCESS);
  expect_number(kBadParameter, CUDNN_STATUS_BAD_PARAM);
  expect_number(kNotSupported, CUDNN_STATUS_NOT_SUPPORTED);
  expect_number(kInternalError, CUDNN_STATUS_INTERNAL_ERROR);
  expect_number(kCompilationFailed, CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED);
  expect_number(kExecutionFailed, CUDNN_STATUS_EXECUTION_FAILED);
  expect_number(TensorType::kF32, CUDNN_DATA_FLOAT);
  expect_number(TensorType::kF16, CUDNN_DATA_HALF);
  expect_number(TensorType::kBf16, CUDNN_DATA_BFLOAT16);
  expect_number(Type::kHandle, CUDNN_TYPE_HANDLE);
  expect_number(Type::kDataType, CUDNN_TYPE_DATA_TYPE);
  expect_number(Type::kBoolean, CUDNN_TYPE_BOOLEAN);
  expect_number(Type::kInt64, CUDNN_TYPE_INT64);
  expect_number(Type::kFloat, CUDNN_TYPE_FLOAT);
  expect_number(Type::kPointer, CUDNN_TYPE_VOID_PTR);
  expect_number(Type::kConvolutionMode, CUDNN_TYPE_CONVOLUTION_MODE);
  expect_number(Type::kHeuristicMode, CUDNN_TYPE_HEUR_MODE);
  expect_number(Type::kKnobType, CUDNN_TYPE_KNOB_TYPE);
  expect_number(Type::kNumericalNote, CUDNN_TYPE_NUMERICAL_NOTE);
  expect_number(Type::kPointwiseMode, CUDNN_TYPE_POINTWISE_MODE);
  expect_number(Type::kDescriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  expect_number(Type::kBehaviorNote, CUDNN_TYPE_BEHAVIOR_NOTE);
}

TEST(CudnnAbi, DescriptorsAndModesHaveTheNumbersOfTheHeader) {
  expect_number(Kind::kPointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  expect_number(Kind::kConvolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  expect_number(Kind::kEngine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  expect_number(Kind::kEngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  expect_number(Kind::kHeuristic, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  expect_number(Kind::kPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  expect_number(Kind::kKnobChoice, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  expect_number(Kind::kKnobInfo, CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR);
  expect_number(Kind::kForward, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  expect_number(Kind::kBackwardWeight,
                CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
  expect_number(Kind::kBackwardData, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
  expect_number(Kind::kPointwiseOperation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  expect_number(Kind::kGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  expect_number(Kind::kVariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  expect_number(Kind::kTensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  expect_number(HeuristicMode::kA, CUDNN_HEUR_MODE_A);
  expect_number(HeuristicMode::kB, CUDNN_HEUR_MODE_B);
  expect_number(HeuristicMode::kFallback, CUDNN_HEUR_MODE_FALLBACK);
  expect_number(PointwiseMode::kAdd, CUDNN_POINTWISE_ADD);
  expect_number(PointwiseMode::kRelu, CUDNN_POINTWISE_RELU_FWD);
  expect_number(kCrossCorrelation, CUDNN_CROSS_CORRELATION);
  expect_number(NumericalNote::kTensorCore, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  expect_number(NumericalNote::kDownConvertInputs, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  expect_number(NumericalNote::kFft, CUDNN_NUMERICAL_NOTE_FFT);
  expect_number(NumericalNote::kNondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  expect_number(NumericalNote::kWinograd, CUDNN_NUMERICAL_NOTE_WINOGRAD);
  expect_number(NumericalNote::kWinograd13, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
  expect_number(kRuntimeCompilation, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
}

TEST(CudnnAbi, AttributesHaveTheNumbersOfTheHeader) {
  expect_number(Attribute::kPointwiseMode, CUDNN_ATTR_POINTWISE_MODE);
  expect_number(Attribute::kPointwisePrecision, CUDNN_ATTR_POINTWISE_MATH_PREC);
  expect_number(Attribute::kConvolutionPrecision, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  expect_number(Attribute::kConvolutionMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
  expect_number(Attribute::kConvolutionDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS);
  expect_number(Attribute::kConvolutionStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  expect_number(Attribute::kConvolutionPostPaddings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  expect_number(Attribute::kConvolutionPrePaddings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  expect_number(Attribute::kConvolutionDimensions, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
  expect_number(Attribute::kHeuristicMode, CUDNN_ATTR_ENGINEHEUR_MODE);
  expect_number(Attribute::kHeuristicGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  expect_number(Attribute::kHeuristicResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
  expect_number(Attribute::kConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
  expect_number(Attribute::kConfigKnobs, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
  expect_number(Attribute::kPlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
  expect_number(Attribute::kPlanConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  expect_number(Attribute::kPlanWorkspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  expect_number(Attribute::kChoiceType, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
  expect_number(Attribute::kChoiceValue, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
  expect_number(Attribute::kGraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
  expect_number(Attribute::kGraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  expect_number(Attribute::kGraphEngines, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT);
  expect_number(Attribute::kTensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  expect_number(Attribute::kTensorType, CUDNN_ATTR_TENSOR_DATA_TYPE);
  expect_number(Attribute::kTensorDimensions, CUDNN_ATTR_TENSOR_DIMENSIONS);
  expect_number(Attribute::kTensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
  expect_number(Attribute::kTensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
  expect_number(Attribute::kTensorIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  expect_number(Attribute::kPackIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  expect_number(Attribute::kPackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  expect_number(Attribute::kPackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  expect_number(Attribute::kKnobType, CUDNN_ATTR_KNOB_INFO_TYPE);
  expect_number(Attribute::kKnobMaximum, CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE);
  expect_number(Attribute::kKnobMinimum, CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE);
  expect_number(Attribute::kKnobStep, CUDNN_ATTR_KNOB_INFO_STRIDE);
  expect_number(Attribute::kEngineGraph, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  expect_number(Attribute::kEngineIndex, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  expect_number(Attribute::kEngineKnobs, CUDNN_ATTR_ENGINE_KNOB_INFO);
  expect_number(Attribute::kEngineNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
  expect_number(Attribute::kEngineBehavior, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE);
}

TEST(CudnnAbi, AttributesOfOperationsHaveTheNumbersOfTheHeader) {
  expect_number(Attribute::kForwardAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
  expect_number(Attribute::kForwardBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
  expect_number(Attribute::kForwardConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  expect_number(Attribute::kForwardWeights, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
  expect_number(Attribute::kForwardInput, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
  expect_number(Attribute::kForwardOutput, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
  expect_number(Attribute::kDataAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA);
  expect_number(Attribute::kDataBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
  expect_number(Attribute::kDataConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
  expect_number(Attribute::kDataWeights, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
  expect_number(Attribute::kDataInput, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
  expect_number(Attribute::kDataOutput, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
  expect_number(Attribute::kWeightAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
  expect_number(Attribute::kWeightBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
  expect_number(Attribute::kWeightConvolution,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
  expect_number(Attribute::kWeightWeights, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
  expect_number(Attribute::kWeightInput, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
  expect_number(Attribute::kWeightOutput, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
  expect_number(Attribute::kOperationPointwise, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  expect_number(Attribute::kOperationX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  expect_number(Attribute::kOperationB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  expect_number(Attribute::kOperationY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
}

}  // namespace
}  // namespace foretune::cudnn
