// Declares the parts of cuDNN's backend API (version 9) that convolutions need, and loads them at
// run time, so that a build needs no part of CUDA. Types, numbers and names are those of
// cudnn_graph.h; a test compares them where the header is installed.
//
// The library consists of several files. The one that is named here loads the others itself, from
// its own folder; some engines also load cuBLASLt and NVRTC.
//
// Thread safety: constant after loading. The library's own functions may be called from any thread,
// each thread with a handle and descriptors of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cuda/driver_api.h"

namespace foretune::cudnn {

struct HandleObject;
struct BackendObject;
using Handle = HandleObject*;
using Descriptor = BackendObject*;  // cudnnBackendDescriptor_t

// cudnnStatus_t: thousands are categories.
inline constexpr int kSuccess = 0;
inline constexpr int kBadParameter = 2000;
inline constexpr int kNotSupported = 3000;
inline constexpr int kInternalError = 4000;
inline constexpr int kCompilationFailed = 4001;
inline constexpr int kExecutionFailed = 5000;
// The first version with this API.
inline constexpr std::size_t kLeastVersion = 90000;

// cudnnDataType_t.
enum class TensorType : int {
  kF32 = 0,
  kF16 = 2,
  kBf16 = 9,
};

// cudnnBackendDescriptorType_t.
enum class Kind : int {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristic = 4,
  kPlan = 5,
  kKnobChoice = 7,
  kKnobInfo = 8,
  kForward = 10,
  kBackwardWeight = 11,
  kBackwardData = 12,
  kPointwiseOperation = 13,
  kGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
};

// cudnnBackendAttributeType_t.
enum class Type : int {
  kHandle = 0,
  kDataType = 1,
  kBoolean = 2,
  kInt64 = 3,
  kFloat = 4,
  kPointer = 6,
  kConvolutionMode = 7,
  kHeuristicMode = 8,
  kKnobType = 9,
  kNumericalNote = 11,
  kPointwiseMode = 14,
  kDescriptor = 15,
  kBehaviorNote = 19,
};

// cudnnBackendAttributeName_t.
enum class Attribute : int {
  kPointwiseMode = 0,
  kPointwisePrecision = 1,  // TensorType
  kConvolutionPrecision = 100,
  kConvolutionMode = 101,          // 1: cross-correlation
  kConvolutionDilations = 102,     // int64, one for each spatial dimension
  kConvolutionStrides = 103,       // int64[]
  kConvolutionPostPaddings = 104,  // int64[]
  kConvolutionPrePaddings = 105,   // int64[]
  kConvolutionDimensions = 106,    // int64: 1 to 3
  kHeuristicMode = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,  // engine configs
  kConfigEngine = 300,
  kConfigKnobs = 302,  // knob choices
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspace = 402,  // int64, bytes
  kChoiceType = 600,
  kChoiceValue = 601,  // int64
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConvolution = 702,
  kForwardWeights = 703,
  kForwardInput = 704,
  kForwardOutput = 705,
  kDataAlpha = 706,
  kDataBeta = 707,
  kDataConvolution = 708,
  kDataWeights = 709,
  kDataInput = 710,
  kDataOutput = 711,
  kWeightAlpha = 712,
  kWeightBeta = 713,
  kWeightConvolution = 714,
  kWeightWeights = 715,
  kWeightInput = 716,
  kWeightOutput = 717,
  kOperationPointwise = 750,
  kOperationX = 751,
  kOperationB = 752,
  kOperationY = 753,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kGraphEngines = 802,  // int64: how many numbers of engines there are
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorDimensions = 902,  // int64[]: batch, channels, points
  kTensorStrides = 903,     // int64[], elements
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kKnobType = 1200,
  kKnobMaximum = 1201,  // int64
  kKnobMinimum = 1202,
  kKnobStep = 1203,
  kEngineGraph = 1300,
  kEngineIndex = 1301,  // int64
  kEngineKnobs = 1302,  // knob infos
  kEngineNotes = 1303,  // numerical notes
  kEngineBehavior = 1305,
};

// cudnnBackendHeurMode_t.
enum class HeuristicMode : int {
  kB = 1,
  kFallback = 2,
  kA = 3,
};

// cudnnPointwiseMode_t.
enum class PointwiseMode : int {
  kAdd = 0,
  kRelu = 100,
};
inline constexpr int kCrossCorrelation = 1;  // cudnnConvolutionMode_t

// cudnnBackendNumericalNote_t.
enum class NumericalNote : int {
  kTensorCore = 0,
  kDownConvertInputs = 1,
  kFft = 3,
  kNondeterministic = 4,
  kWinograd = 5,
  kWinograd13 = 8,
};
// cudnnBackendBehaviorNote_t.
inline constexpr int kRuntimeCompilation = 0;

struct Api {
  // Loads the first of these libraries that the system finds. Errors: kUnsupported with the reasons
  // of all of them, with the symbol that is missing, and for a library older than version 9.
  static Result<std::shared_ptr<const Api>> load(const std::vector<std::string>& libraries);
  // Does the same, but prefers a copy that the process has loaded already.
  static Result<std::shared_ptr<const Api>> load_or_share(
      const std::vector<std::string>& libraries);
  // Returns success, kUnsupported for a refusal (a bad parameter, not supported, an internal error
  // such as a kernel that does not compile), else kIo; both with the library's own last message
  // where it has one.
  [[nodiscard]] Status check(int status, std::string_view call) const;

  std::size_t (*get_version)() = nullptr;
  const char* (*get_error_string)(int status) = nullptr;
  void (*get_last_error)(char* message, std::size_t bytes) = nullptr;
  int (*create)(Handle* handle) = nullptr;
  int (*destroy)(Handle handle) = nullptr;
  int (*set_stream)(Handle handle, cuda::Stream stream) = nullptr;
  int (*get_stream)(Handle handle, cuda::Stream* stream) = nullptr;
  int (*descriptor_create)(Kind kind, Descriptor* descriptor) = nullptr;
  int (*descriptor_destroy)(Descriptor descriptor) = nullptr;
  int (*finalize)(Descriptor descriptor) = nullptr;
  int (*set)(Descriptor descriptor, Attribute attribute, Type type, std::int64_t count,
             const void* values) = nullptr;
  int (*get)(Descriptor descriptor, Attribute attribute, Type type, std::int64_t requested,
             std::int64_t* count, void* values) = nullptr;
  int (*execute)(Handle handle, Descriptor plan, Descriptor variant_pack) = nullptr;

 private:
  static Result<std::shared_ptr<const Api>> of(const cuda::SharedLibrary& library);
};

}  // namespace foretune::cudnn
