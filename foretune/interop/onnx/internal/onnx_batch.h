// Finds where a model's tensors have the batch. Networks have it first. A model may put other
// dimensions before it (tokens first, for example), which for one image makes no difference.
// Thread safety: belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "foretune/graph/network.h"
#include "foretune/interop/onnx/internal/onnx_model.h"

namespace foretune::onnx_internal {

// The place of the batch: dimension `axis` consists of `inside` points, then the batch, then the
// rest. `inside` is above 1 where a reshape has merged the dimensions before the batch with it.
struct BatchPlace {
  std::size_t axis = 0;
  std::int64_t inside = 1;
  bool operator==(const BatchPlace&) const = default;
};

// Follows the batch from node to node. The shapes are those of one image.
class BatchTracker {
 public:
  // Returns the shape of a value, or nullptr for values that are not computed.
  using ShapeOf = std::function<const graph::Shape*(const std::string&)>;
  // Returns the integers of a constant, or nullptr.
  using IntegersOf = std::function<const std::vector<std::int64_t>*(const std::string&)>;

  BatchTracker(ShapeOf shape_of, IntegersOf integers_of)
      : shape_of_(std::move(shape_of)), integers_of_(std::move(integers_of)) {}

  // An input has the batch first. One whose first extent is above 1 has none.
  void start(const std::string& input);
  void follow(const NodeData& node);
  // Returns the points that lie before the batch: 1 where it comes first. A value without a batch
  // has 1.
  [[nodiscard]] std::int64_t points_before(const std::string& name) const;

 private:
  [[nodiscard]] std::vector<std::int64_t> listed(const NodeData& node, const std::string& attribute,
                                                 std::size_t input) const;
  [[nodiscard]] BatchPlace moved(const NodeData& node, const graph::Shape& from,
                                 const BatchPlace& place, const graph::Shape& to) const;

  ShapeOf shape_of_;
  IntegersOf integers_of_;
  std::unordered_map<std::string, BatchPlace> places_;
};

}  // namespace foretune::onnx_internal
