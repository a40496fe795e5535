// A neural network as a list of operations, each of which makes one tensor of others.
//
//   NetworkBuilder builder("tiny");
//   const TensorId image = builder.input("image", {1, 1, 28, 28});
//   const TensorId weights = builder.constant("w", {8, 1, 3, 3}, std::move(values));
//   const TensorId sums = builder.add("conv", "conv1", {image, weights},
//                                     {.integers = {1, 1, 1, 1, 1, 1, 1, 1, 1}});
//   const TensorId result = builder.add("relu", "relu1", {sums});
//   FORETUNE_TRY(const Network network, builder.finish({result}));
//
// Tensors are f32, images have their channels first, and the shapes are those of one image: a run
// with a batch of b multiplies the first extent of every input and of everything that is computed
// of it by b. Operations therefore keep the first dimension of such a tensor outermost. ops.h lists
// the operations and their attributes.
//
// Thread safety: constant once built. Cost: a network owns its weights; copies share them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::graph {

using Shape = std::vector<std::int64_t>;

// The limits of what is read from files.
inline constexpr std::size_t kMaxRank = 6;
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 31U;
inline constexpr std::size_t kMaxTensors = std::size_t{1} << 16U;
inline constexpr std::size_t kMaxName = 4096;  // bytes

// The position of a tensor in Network::tensors(). A tensor stands behind those it is computed of.
using TensorId = std::int32_t;
inline constexpr TensorId kNoTensor = -1;

struct Tensor {
  std::string name;
  Shape shape;  // for one image
  // The weights of a constant, in row-major order; nullptr for a tensor that is computed.
  std::shared_ptr<const std::vector<float>> values;
  // Position of the node that computes it, or -1 for constants and inputs.
  std::int32_t node = -1;

  [[nodiscard]] bool is_constant() const { return values != nullptr; }
  [[nodiscard]] bool is_input() const { return values == nullptr && node < 0; }
};

// Numbers that ops.h gives a meaning for each operation.
struct Attributes {
  std::vector<std::int64_t> integers;
  std::vector<double> numbers;
  bool operator==(const Attributes&) const = default;
};

struct OpInfo;

struct Node {
  const OpInfo* op = nullptr;
  std::string name;  // unique among the nodes
  std::vector<TensorId> inputs;
  TensorId output = kNoTensor;
  Attributes attributes;
};

// Returns the number of elements; 1 for a scalar.
[[nodiscard]] std::int64_t element_count(std::span<const std::int64_t> shape);
// Returns "1x64x28x28", or "scalar".
[[nodiscard]] std::string to_text(std::span<const std::int64_t> shape);

class Network {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::span<const Tensor> tensors() const { return tensors_; }
  [[nodiscard]] const Tensor& tensor(TensorId id) const {
    return tensors_[static_cast<std::size_t>(id)];
  }
  // Nodes in the order in which they can run.
  [[nodiscard]] std::span<const Node> nodes() const { return nodes_; }
  [[nodiscard]] std::span<const TensorId> inputs() const { return inputs_; }
  [[nodiscard]] std::span<const TensorId> outputs() const { return outputs_; }

  // Returns the multiply-adds of one image, counted for convolutions and products.
  [[nodiscard]] double multiply_adds() const;
  // Returns the bytes of all constants.
  [[nodiscard]] std::int64_t weight_bytes() const;

 private:
  friend class NetworkBuilder;
  std::string name_;
  std::vector<Tensor> tensors_;
  std::vector<Node> nodes_;
  std::vector<TensorId> inputs_;
  std::vector<TensorId> outputs_;
};

// Adds tensors and operations one by one. The first error is kept, later calls return kNoTensor,
// and finish() returns that error. Thread safety: belongs to one thread.
class NetworkBuilder {
 public:
  explicit NetworkBuilder(std::string name) { network_.name_ = std::move(name); }

  // `shape` is that of one image; its first extent is multiplied by the batch.
  TensorId input(std::string name, Shape shape);
  TensorId constant(std::string name, Shape shape, std::vector<float> values);
  TensorId constant(std::string name, Shape shape,
                    std::shared_ptr<const std::vector<float>> values);
  // Adds an operation of ops.h. An empty name, and one that is taken, get a number. Errors:
  // kInvalidArgument for an unknown operation, a wrong number of inputs or attributes, and shapes
  // that do not fit.
  TensorId add(std::string_view op, std::string name, std::vector<TensorId> inputs,
               Attributes attributes = {});

  // Returns the shape of a tensor added before; empty for kNoTensor.
  [[nodiscard]] const Shape& shape(TensorId id) const;
  [[nodiscard]] const Tensor* find(TensorId id) const;

  // Errors: the first of the calls before; kInvalidArgument without inputs or outputs.
  Result<Network> finish(std::vector<TensorId> outputs);

 private:
  TensorId add_tensor(Tensor tensor);
  template <class... Parts>
  TensorId refuse(const Parts&... parts) {
    if (status_) {
      status_ = fail(ErrorCode::kInvalidArgument, parts...);
    }
    return kNoTensor;
  }

  Network network_;
  std::unordered_set<std::string> names_;  // of nodes
  Status status_;
};

}  // namespace foretune::graph
