// One convolution as cuDNN sees it: a graph of operations, the engines that the library has for it,
// and the answers of its heuristics.
//
// A problem's layout is kept: channels last are the library's NHWC with weights KRSC, channels
// first its NCHW with KCRS. One dimension is two with a height of 1.
//
// Thread safety: one thread at a time. Threads that work at once need a Library and a ConvGraph
// each; the context of the device has to be current.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cuda/cudnn_api.h"
#include "foretune/cudnn/cudnn_config.h"
#include "foretune/cudnn/node.h"
#include "foretune/problem/conv/conv.h"

namespace foretune::cudnn {

// The loaded library with one of its handles, which enqueues on one stream.
class Library {
 public:
  // Errors: as Api::check().
  static Result<std::shared_ptr<const Library>> open(std::shared_ptr<const Api> api,
                                                     cuda::Stream stream);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  [[nodiscard]] const std::shared_ptr<const Api>& api() const { return api_; }
  [[nodiscard]] Handle handle() const { return handle_; }
  [[nodiscard]] cuda::Stream stream() const { return stream_; }

 private:
  Library(std::shared_ptr<const Api> api, cuda::Stream stream)
      : api_(std::move(api)), stream_(stream) {}
  std::shared_ptr<const Api> api_;
  cuda::Stream stream_;
  Handle handle_ = nullptr;
};

// Errors: kUnsupported for types whose convolutions are not supported here.
Result<TensorType> tensor_type(DataType type);
// Returns the type of the tensor that is computed.
DataType result_type(const ConvProblem& problem);

// The library's numbers of the tensors of a graph.
enum class TensorId : std::int64_t {
  kInput = 1,
  kWeights = 2,
  kOutput = 3,
  kBias = 4,
  kAdded = 5,
  kVirtual = 10,  // and above
};

struct KnobRange {
  std::int32_t type = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::int64_t step = 1;
};

struct EngineFacts {
  std::int32_t index = 0;
  std::vector<KnobRange> knobs;
  std::vector<NumericalNote> notes;
  bool compiles = false;  // kernels at run time

  [[nodiscard]] bool has(NumericalNote note) const;
  [[nodiscard]] bool is_deterministic() const { return !has(NumericalNote::kNondeterministic); }
  // Returns true for algorithms that compute in another domain, where more is lost.
  [[nodiscard]] bool is_transformed() const;
};

// The library's config of an engine, with the objects that it refers to.
struct EngineConfig {
  std::vector<std::shared_ptr<const Node>> parts;
  Node node;
};

class ConvGraph;

// An executable kernel.
struct Plan {
  std::shared_ptr<const ConvGraph> graph;
  std::shared_ptr<const EngineConfig> config;
  std::shared_ptr<const Node> node;
  std::size_t workspace_bytes = 0;
  EngineFacts engine;
};

class ConvGraph : public std::enable_shared_from_this<ConvGraph> {
 public:
  // Errors: kUnsupported when the library or this code cannot describe the problem, kIo.
  static Result<std::shared_ptr<ConvGraph>> create(std::shared_ptr<const Library> library,
                                                   const ConvProblem& problem);

  // Returns how many numbers of engines there are; not every number has one for this problem.
  [[nodiscard]] Result<std::int64_t> engine_numbers() const;
  // Errors: kUnsupported when there is no such engine.
  [[nodiscard]] Result<EngineFacts> facts(std::int32_t engine) const;
  // Returns the library's config. Errors: kUnsupported when it refuses.
  [[nodiscard]] Result<std::shared_ptr<const EngineConfig>> explicit_config(
      const CudnnConfig& config) const;
  // Returns the answers of a heuristic, best first. Errors: kUnsupported when it has none.
  [[nodiscard]] Result<std::vector<std::shared_ptr<const EngineConfig>>> heuristic(
      CudnnHeuristic heuristic) const;
  // Returns the engine and the knobs of the library's config. Errors: kUnsupported when it has more
  // knobs than a CudnnConfig.
  [[nodiscard]] Result<CudnnConfig> config_of(const EngineConfig& config) const;
  // Makes the kernel; some engines compile it, which takes up to seconds. Errors: kUnsupported when
  // the library refuses.
  [[nodiscard]] Result<Plan> build(std::shared_ptr<const EngineConfig> config,
                                   EngineFacts engine) const;
  [[nodiscard]] const Library& library() const { return *library_; }

 private:
  explicit ConvGraph(std::shared_ptr<const Library> library) : library_(std::move(library)) {}
  Status describe(const ConvProblem& problem);
  Result<const Node*> tensor(TensorId id, TensorType type, bool channels_last, bool is_virtual,
                             const std::vector<std::int64_t>& dimensions);
  Result<const Node*> convolution(const ConvProblem& problem);
  Result<const Node*> pointwise(PointwiseMode mode, const Node& x, const Node* b, const Node& y);
  Status add_epilogue(const ConvProblem& problem, const Node& sums, const Node& output,
                      std::vector<Descriptor>& operations);
  [[nodiscard]] Result<Node> engine_node(std::int32_t engine) const;
  [[nodiscard]] Result<Node> make(Kind kind) const { return Node::make(library_->api(), kind); }

  std::shared_ptr<const Library> library_;
  // The graph refers to them.
  std::vector<std::unique_ptr<Node>> parts_;
  std::int64_t virtuals_ = 0;
  Node graph_;
};

}  // namespace foretune::cudnn
