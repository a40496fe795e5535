#include "foretune/cudnn/conv_graph.h"

#include <algorithm>
#include <span>
#include <utility>

namespace foretune::cudnn {
namespace {

constexpr std::int64_t kAlignment = 16;  // bytes; allocations have more
// More than the library has.
constexpr std::size_t kMaxAnswers = 256;
constexpr std::size_t kMaxKnobs = 64;
constexpr std::size_t kMaxNotes = 32;

// The attributes of an operation's node, which differ from direction to direction.
struct OperationAttributes {
  Kind kind;
  Attribute convolution;
  Attribute input;
  Attribute weights;
  Attribute output;
  Attribute alpha;
  Attribute beta;
};

constexpr OperationAttributes attributes_of(ConvOperation operation) {
  switch (operation) {
    case ConvOperation::kBackwardData:
      return {Kind::kBackwardData,     Attribute::kDataConvolution, Attribute::kDataInput,
              Attribute::kDataWeights, Attribute::kDataOutput,      Attribute::kDataAlpha,
              Attribute::kDataBeta};
    case ConvOperation::kBackwardWeight:
      return {Kind::kBackwardWeight,     Attribute::kWeightConvolution, Attribute::kWeightInput,
              Attribute::kWeightWeights, Attribute::kWeightOutput,      Attribute::kWeightAlpha,
              Attribute::kWeightBeta};
    case ConvOperation::kForward:
      break;
  }
  return {Kind::kForward,
          Attribute::kForwardConvolution,
          Attribute::kForwardInput,
          Attribute::kForwardWeights,
          Attribute::kForwardOutput,
          Attribute::kForwardAlpha,
          Attribute::kForwardBeta};
}

// Returns the distances of packed elements; dimensions are batch, channels, points.
std::vector<std::int64_t> packed_strides(const std::vector<std::int64_t>& dimensions,
                                         bool channels_last) {
  std::vector<std::int64_t> strides(dimensions.size());
  std::int64_t stride = 1;
  if (channels_last) {
    strides[1] = stride;
    stride = dimensions[1];
  }
  for (std::size_t i = dimensions.size(); i-- > 0;) {
    if (i != 1 || !channels_last) {
      strides[i] = stride;
      stride *= dimensions[i];
    }
  }
  return strides;
}

// Returns the last two of three numbers for a convolution of two dimensions, else all.
std::vector<std::int64_t> spatial(const ConvProblem& problem, std::int64_t depth,
                                  std::int64_t height, std::int64_t width) {
  return problem.is_3d() ? std::vector<std::int64_t>{depth, height, width}
                         : std::vector<std::int64_t>{height, width};
}

std::vector<std::int64_t> joined(std::int64_t first, std::int64_t second,
                                 const std::vector<std::int64_t>& rest) {
  std::vector<std::int64_t> all{first, second};
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

HeuristicMode mode_of(CudnnHeuristic heuristic) {
  switch (heuristic) {
    case CudnnHeuristic::kB:
      return HeuristicMode::kB;
    case CudnnHeuristic::kFallback:
      return HeuristicMode::kFallback;
    default:
      return HeuristicMode::kA;
  }
}

}  // namespace

Result<std::shared_ptr<const Library>> Library::open(std::shared_ptr<const Api> api,
                                                     cuda::Stream stream) {
  std::shared_ptr<Library> library(new Library(std::move(api), stream));
  const Api& calls = *library->api_;
  FORETUNE_TRY_STATUS(calls.check(calls.create(&library->handle_), "cudnnCreate"));
  FORETUNE_TRY_STATUS(calls.check(calls.set_stream(library->handle_, stream), "cudnnSetStream"));
  return library;
}

Library::~Library() {
  if (handle_ != nullptr) {
    api_->destroy(handle_);
  }
}

Result<TensorType> tensor_type(DataType type) {
  switch (type) {
    case DataType::kF32:
    case DataType::kTf32:
      return TensorType::kF32;
    case DataType::kF16:
      return TensorType::kF16;
    case DataType::kBf16:
      return TensorType::kBf16;
    default:
      return fail(ErrorCode::kUnsupported, "cudnn computes in f32, tf32, f16 and bf16 here, not ",
                  to_string(type));
  }
}

DataType result_type(const ConvProblem& problem) {
  return problem.has_sums() ? DataType::kF32 : problem.dtype();
}

bool EngineFacts::has(NumericalNote note) const {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

bool EngineFacts::is_transformed() const {
  return std::any_of(notes.begin(), notes.end(), [](NumericalNote note) {
    return note == NumericalNote::kFft ||
           (note >= NumericalNote::kWinograd && note <= NumericalNote::kWinograd13);
  });
}

Result<std::shared_ptr<ConvGraph>> ConvGraph::create(std::shared_ptr<const Library> library,
                                                     const ConvProblem& problem) {
  std::shared_ptr<ConvGraph> graph(new ConvGraph(std::move(library)));
  FORETUNE_TRY_STATUS(graph->describe(problem));
  return graph;
}

Result<const Node*> ConvGraph::tensor(TensorId id, TensorType type, bool channels_last,
                                      bool is_virtual,
                                      const std::vector<std::int64_t>& dimensions) {
  FORETUNE_TRY(Node node, make(Kind::kTensor));
  const std::vector<std::int64_t> strides = packed_strides(dimensions, channels_last);
  std::int64_t number = static_cast<std::int64_t>(id);
  if (is_virtual) {
    number += virtuals_++;
  }
  FORETUNE_TRY_STATUS(node.set(Attribute::kTensorType, Type::kDataType, type));
  FORETUNE_TRY_STATUS(node.set(Attribute::kTensorDimensions, Type::kInt64,
                               std::span<const std::int64_t>(dimensions)));
  FORETUNE_TRY_STATUS(
      node.set(Attribute::kTensorStrides, Type::kInt64, std::span<const std::int64_t>(strides)));
  FORETUNE_TRY_STATUS(node.set(Attribute::kTensorId, Type::kInt64, number));
  FORETUNE_TRY_STATUS(node.set(Attribute::kTensorAlignment, Type::kInt64, kAlignment));
  if (is_virtual) {
    FORETUNE_TRY_STATUS(node.set(Attribute::kTensorIsVirtual, Type::kBoolean, true));
  }
  FORETUNE_TRY_STATUS(node.finalize("tensor"));
  parts_.push_back(std::make_unique<Node>(std::move(node)));
  return parts_.back().get();
}

Result<const Node*> ConvGraph::convolution(const ConvProblem& problem) {
  const ConvSizes& sizes = problem.sizes();
  FORETUNE_TRY(Node node, make(Kind::kConvolution));
  const auto set = [&](Attribute attribute, const std::vector<std::int64_t>& values) {
    return node.set(attribute, Type::kInt64, std::span<const std::int64_t>(values));
  };
  const std::vector<std::int64_t> pads = spatial(problem, sizes.pad_d, sizes.pad_h, sizes.pad_w);
  FORETUNE_TRY_STATUS(
      node.set(Attribute::kConvolutionPrecision, Type::kDataType, TensorType::kF32));
  FORETUNE_TRY_STATUS(
      node.set(Attribute::kConvolutionMode, Type::kConvolutionMode, kCrossCorrelation));
  FORETUNE_TRY_STATUS(node.set(Attribute::kConvolutionDimensions, Type::kInt64,
                               static_cast<std::int64_t>(pads.size())));
  FORETUNE_TRY_STATUS(set(Attribute::kConvolutionDilations,
                          spatial(problem, sizes.dilation_d, sizes.dilation_h, sizes.dilation_w)));
  FORETUNE_TRY_STATUS(set(Attribute::kConvolutionStrides,
                          spatial(problem, sizes.stride_d, sizes.stride_h, sizes.stride_w)));
  FORETUNE_TRY_STATUS(set(Attribute::kConvolutionPrePaddings, pads));
  FORETUNE_TRY_STATUS(set(Attribute::kConvolutionPostPaddings, pads));
  FORETUNE_TRY_STATUS(node.finalize("convolution"));
  parts_.push_back(std::make_unique<Node>(std::move(node)));
  return parts_.back().get();
}

Result<const Node*> ConvGraph::pointwise(PointwiseMode mode, const Node& x, const Node* b,
                                         const Node& y) {
  FORETUNE_TRY(Node what, make(Kind::kPointwise));
  FORETUNE_TRY_STATUS(what.set(Attribute::kPointwiseMode, Type::kPointwiseMode, mode));
  FORETUNE_TRY_STATUS(what.set(Attribute::kPointwisePrecision, Type::kDataType, TensorType::kF32));
  FORETUNE_TRY_STATUS(what.finalize("pointwise"));
  FORETUNE_TRY(Node operation, make(Kind::kPointwiseOperation));
  FORETUNE_TRY_STATUS(operation.set(Attribute::kOperationPointwise, what));
  FORETUNE_TRY_STATUS(operation.set(Attribute::kOperationX, x));
  if (b != nullptr) {
    FORETUNE_TRY_STATUS(operation.set(Attribute::kOperationB, *b));
  }
  FORETUNE_TRY_STATUS(operation.set(Attribute::kOperationY, y));
  FORETUNE_TRY_STATUS(operation.finalize("pointwise operation"));
  parts_.push_back(std::make_unique<Node>(std::move(what)));
  parts_.push_back(std::make_unique<Node>(std::move(operation)));
  return parts_.back().get();
}

// The order is the one that the library fuses: the added tensor, the bias, then ReLU.
Status ConvGraph::add_epilogue(const ConvProblem& problem, const Node& sums, const Node& output,
                               std::vector<Descriptor>& operations) {
  FORETUNE_TRY(const TensorType type, tensor_type(problem.dtype()));
  FORETUNE_TRY(const TensorType computed, tensor_type(result_type(problem)));
  const bool channels_last = problem.layout() == ConvLayout::kChannelsLast;
  const std::vector<std::int64_t> dimensions =
      joined(problem.sizes().n, problem.sizes().k,
             spatial(problem, problem.depth_out(), problem.ho(), problem.wo()));
  const bool has_relu = problem.epilogue() != ConvEpilogue::kBias;
  const Node* last = &sums;
  const auto append = [&](PointwiseMode mode, const Node* b, bool is_last) -> Status {
    const Node* to = &output;
    if (!is_last) {
      FORETUNE_TRY(to,
                   tensor(TensorId::kVirtual, TensorType::kF32, channels_last, true, dimensions));
    }
    FORETUNE_TRY(const Node* const operation, pointwise(mode, *last, b, *to));
    operations.push_back(operation->get());
    last = to;
    return {};
  };
  if (problem.epilogue() == ConvEpilogue::kBiasAddRelu) {
    FORETUNE_TRY(const Node* const added,
                 tensor(TensorId::kAdded, computed, channels_last, false, dimensions));
    FORETUNE_TRY_STATUS(append(PointwiseMode::kAdd, added, false));
  }
  FORETUNE_TRY(const Node* const bias,
               tensor(TensorId::kBias, type, channels_last, false,
                      joined(1, problem.sizes().k, spatial(problem, 1, 1, 1))));
  FORETUNE_TRY_STATUS(append(PointwiseMode::kAdd, bias, !has_relu));
  return has_relu ? append(PointwiseMode::kRelu, nullptr, true) : Status();
}

Status ConvGraph::describe(const ConvProblem& problem) {
  const ConvSizes& sizes = problem.sizes();
  FORETUNE_TRY(const TensorType type, tensor_type(problem.dtype()));
  FORETUNE_TRY(const TensorType computed, tensor_type(result_type(problem)));
  const bool channels_last = problem.layout() == ConvLayout::kChannelsLast;
  const ConvOperation operation = problem.operation();
  const bool is_fused = problem.epilogue() != ConvEpilogue::kNone;
  const auto type_of = [&](ConvOperation of) { return operation == of ? computed : type; };
  FORETUNE_TRY(const Node* const input,
               tensor(TensorId::kInput, type_of(ConvOperation::kBackwardData), channels_last, false,
                      joined(sizes.n, sizes.c, spatial(problem, sizes.di, sizes.hi, sizes.wi))));
  FORETUNE_TRY(
      const Node* const weights,
      tensor(TensorId::kWeights, type_of(ConvOperation::kBackwardWeight), channels_last, false,
             joined(sizes.k, sizes.c / sizes.g, spatial(problem, sizes.z, sizes.y, sizes.x))));
  const std::vector<std::int64_t> out =
      joined(sizes.n, sizes.k, spatial(problem, problem.depth_out(), problem.ho(), problem.wo()));
  FORETUNE_TRY(const Node* const output, tensor(TensorId::kOutput, type_of(ConvOperation::kForward),
                                                channels_last, false, out));
  const Node* sums = output;
  if (is_fused) {
    FORETUNE_TRY(sums, tensor(TensorId::kVirtual, TensorType::kF32, channels_last, true, out));
  }
  FORETUNE_TRY(const Node* const convolved, convolution(problem));
  const OperationAttributes attributes = attributes_of(operation);
  FORETUNE_TRY(Node node, make(attributes.kind));
  FORETUNE_TRY_STATUS(node.set(attributes.convolution, *convolved));
  FORETUNE_TRY_STATUS(node.set(attributes.input, *input));
  FORETUNE_TRY_STATUS(node.set(attributes.weights, *weights));
  FORETUNE_TRY_STATUS(node.set(attributes.output, *sums));
  FORETUNE_TRY_STATUS(node.set(attributes.alpha, Type::kFloat, 1.0F));
  FORETUNE_TRY_STATUS(node.set(attributes.beta, Type::kFloat, 0.0F));
  FORETUNE_TRY_STATUS(node.finalize("operation"));
  std::vector<Descriptor> operations{node.get()};
  parts_.push_back(std::make_unique<Node>(std::move(node)));
  if (is_fused) {
    FORETUNE_TRY_STATUS(add_epilogue(problem, *sums, *output, operations));
  }
  FORETUNE_TRY(graph_, make(Kind::kGraph));
  FORETUNE_TRY_STATUS(graph_.set(Attribute::kGraphHandle, Type::kHandle, library_->handle()));
  FORETUNE_TRY_STATUS(graph_.set(Attribute::kGraphOperations, Type::kDescriptor,
                                 std::span<const Descriptor>(operations)));
  return graph_.finalize("operation graph");
}

Result<std::int64_t> ConvGraph::engine_numbers() const {
  return graph_.value<std::int64_t>(Attribute::kGraphEngines, Type::kInt64);
}

Result<Node> ConvGraph::engine_node(std::int32_t engine) const {
  FORETUNE_TRY(Node node, make(Kind::kEngine));
  FORETUNE_TRY_STATUS(node.set(Attribute::kEngineGraph, graph_));
  FORETUNE_TRY_STATUS(
      node.set(Attribute::kEngineIndex, Type::kInt64, static_cast<std::int64_t>(engine)));
  FORETUNE_TRY_STATUS(node.finalize("engine"));
  return node;
}

Result<EngineFacts> ConvGraph::facts(std::int32_t engine) const {
  FORETUNE_TRY(const Node node, engine_node(engine));
  EngineFacts facts{.index = engine};
  facts.notes =
      node.values<NumericalNote>(Attribute::kEngineNotes, Type::kNumericalNote, kMaxNotes);
  const std::vector<int> behavior =
      node.values<int>(Attribute::kEngineBehavior, Type::kBehaviorNote, kMaxNotes);
  facts.compiles =
      std::find(behavior.begin(), behavior.end(), kRuntimeCompilation) != behavior.end();
  FORETUNE_TRY(const std::vector<Node> knobs,
               node.nodes(Attribute::kEngineKnobs, Kind::kKnobInfo, kMaxKnobs));
  for (const Node& knob : knobs) {
    KnobRange range;
    FORETUNE_TRY(range.type, knob.value<std::int32_t>(Attribute::kKnobType, Type::kKnobType));
    FORETUNE_TRY(range.low, knob.value<std::int64_t>(Attribute::kKnobMinimum, Type::kInt64));
    FORETUNE_TRY(range.high, knob.value<std::int64_t>(Attribute::kKnobMaximum, Type::kInt64));
    FORETUNE_TRY(range.step, knob.value<std::int64_t>(Attribute::kKnobStep, Type::kInt64));
    facts.knobs.push_back(range);
  }
  return facts;
}

Result<std::shared_ptr<const EngineConfig>> ConvGraph::explicit_config(
    const CudnnConfig& config) const {
  auto out = std::make_shared<EngineConfig>();
  FORETUNE_TRY(Node engine, engine_node(config.engine));
  std::vector<Descriptor> choices;
  const auto add = [&](std::int32_t type, std::int32_t value) -> Status {
    FORETUNE_TRY(Node choice, make(Kind::kKnobChoice));
    FORETUNE_TRY_STATUS(choice.set(Attribute::kChoiceType, Type::kKnobType, type));
    FORETUNE_TRY_STATUS(
        choice.set(Attribute::kChoiceValue, Type::kInt64, static_cast<std::int64_t>(value)));
    FORETUNE_TRY_STATUS(choice.finalize("knob"));
    choices.push_back(choice.get());
    out->parts.push_back(std::make_shared<const Node>(std::move(choice)));
    return {};
  };
  Status added;
  config.for_each_knob([&](std::int32_t type, std::int32_t value) {
    if (added) {
      added = add(type, value);
    }
  });
  FORETUNE_TRY_STATUS(added);
  FORETUNE_TRY(out->node, make(Kind::kEngineConfig));
  FORETUNE_TRY_STATUS(out->node.set(Attribute::kConfigEngine, engine));
  if (!choices.empty()) {
    FORETUNE_TRY_STATUS(out->node.set(Attribute::kConfigKnobs, Type::kDescriptor,
                                      std::span<const Descriptor>(choices)));
  }
  FORETUNE_TRY_STATUS(out->node.finalize("engine config"));
  out->parts.push_back(std::make_shared<const Node>(std::move(engine)));
  return out;
}

Result<std::vector<std::shared_ptr<const EngineConfig>>> ConvGraph::heuristic(
    CudnnHeuristic heuristic) const {
  FORETUNE_TRY(Node node, make(Kind::kHeuristic));
  FORETUNE_TRY_STATUS(node.set(Attribute::kHeuristicGraph, graph_));
  FORETUNE_TRY_STATUS(
      node.set(Attribute::kHeuristicMode, Type::kHeuristicMode, mode_of(heuristic)));
  FORETUNE_TRY_STATUS(node.finalize("heuristic"));
  FORETUNE_TRY(std::vector<Node> answers,
               node.nodes(Attribute::kHeuristicResults, Kind::kEngineConfig, kMaxAnswers));
  const auto asked = std::make_shared<const Node>(std::move(node));
  std::vector<std::shared_ptr<const EngineConfig>> configs;
  for (Node& answer : answers) {
    auto config = std::make_shared<EngineConfig>();
    config->parts.push_back(asked);
    config->node = std::move(answer);
    configs.push_back(std::move(config));
  }
  return configs;
}

Result<CudnnConfig> ConvGraph::config_of(const EngineConfig& config) const {
  FORETUNE_TRY(const std::vector<Node> engines,
               config.node.nodes(Attribute::kConfigEngine, Kind::kEngine, 1));
  if (engines.empty()) {
    return fail(ErrorCode::kInternal, "cuDNN's config has no engine");
  }
  FORETUNE_TRY(const auto index,
               engines.front().value<std::int64_t>(Attribute::kEngineIndex, Type::kInt64));
  CudnnConfig out = CudnnConfig::of_engine(static_cast<std::int32_t>(index));
  FORETUNE_TRY(const std::vector<Node> choices,
               config.node.nodes(Attribute::kConfigKnobs, Kind::kKnobChoice, kMaxKnobs));
  for (const Node& choice : choices) {
    FORETUNE_TRY(const auto type,
                 choice.value<std::int32_t>(Attribute::kChoiceType, Type::kKnobType));
    FORETUNE_TRY(const auto value,
                 choice.value<std::int64_t>(Attribute::kChoiceValue, Type::kInt64));
    if (!out.set_knob(type, static_cast<std::int32_t>(value))) {
      return fail(ErrorCode::kUnsupported, "engine ", index, " has more unknown knobs than ",
                  kCudnnOtherKnobs);
    }
  }
  return out;
}

Result<Plan> ConvGraph::build(std::shared_ptr<const EngineConfig> config,
                              EngineFacts engine) const {
  FORETUNE_TRY(Node node, make(Kind::kPlan));
  FORETUNE_TRY_STATUS(node.set(Attribute::kPlanHandle, Type::kHandle, library_->handle()));
  FORETUNE_TRY_STATUS(node.set(Attribute::kPlanConfig, config->node));
  FORETUNE_TRY_STATUS(node.finalize("plan"));
  Plan plan{.graph = shared_from_this(), .config = std::move(config), .engine = std::move(engine)};
  FORETUNE_TRY(const auto workspace,
               node.value<std::int64_t>(Attribute::kPlanWorkspace, Type::kInt64));
  plan.workspace_bytes = static_cast<std::size_t>(std::max<std::int64_t>(0, workspace));
  plan.node = std::make_shared<const Node>(std::move(node));
  return plan;
}

}  // namespace foretune::cudnn
