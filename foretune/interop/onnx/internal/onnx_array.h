// Constants while a model is read: numbers or integers of a shape, and what is computed of them.
// Thread safety: free functions and plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"
#include "foretune/interop/onnx/internal/onnx_model.h"

namespace foretune::onnx_internal {

// Either `integers` or `numbers` has the elements, in row-major order.
struct Array {
  std::string name;  // of the file's tensor, or empty
  graph::Shape shape;
  bool is_integer = false;
  std::vector<std::int64_t> integers;
  std::shared_ptr<const std::vector<float>> numbers;
};
using ArrayPtr = std::shared_ptr<const Array>;

[[nodiscard]] ArrayPtr integer_array(graph::Shape shape, std::vector<std::int64_t> values);
[[nodiscard]] ArrayPtr number_array(graph::Shape shape, std::vector<float> values);
// Returns the numbers, converted where they are integers.
[[nodiscard]] std::shared_ptr<const std::vector<float>> numbers_of(const Array& array);

// Counts the elements of constants against OnnxOptions::max_constants.
class Allowance {
 public:
  explicit Allowance(std::int64_t elements) : left_(elements) {}
  // Takes a tensor of `shape`. Errors: kInvalidArgument for negative extents and when too little
  // is left.
  Status take(std::span<const std::int64_t> shape);

 private:
  std::int64_t left_;
};

// Returns the elements of a tensor of a file. Errors: kUnsupported for types that are not read and
// for elements in other files, kCorrupt where their number differs from the shape's.
Result<ArrayPtr> decode(const TensorData& tensor, Allowance& allowance);

// Compute constants of constants. Errors: kInvalidArgument for shapes and axes that do not fit.
Result<ArrayPtr> fold_unary(double (*function)(double, const graph::Attributes&),
                            const graph::Attributes& attributes, const Array& x,
                            Allowance& allowance);
// `op` is add, sub, mul, div, max, min, pow, equal, mod or fmod; all but the last three are
// operations of networks.
Result<ArrayPtr> fold_binary(std::string_view op, const Array& a, const Array& b,
                             Allowance& allowance);
Result<ArrayPtr> fold_where(const Array& condition, const Array& a, const Array& b,
                            Allowance& allowance);
Result<ArrayPtr> fold_reshape(const Array& x, graph::Shape shape);
Result<ArrayPtr> fold_transpose(const Array& x, std::span<const std::int64_t> order,
                                Allowance& allowance);
Result<ArrayPtr> fold_concat(std::span<const ArrayPtr> parts, std::size_t axis,
                             Allowance& allowance);
// Takes the elements `indices` along `axis`; the result has as many there.
Result<ArrayPtr> fold_take(const Array& x, std::size_t axis, std::span<const std::int64_t> indices,
                           Allowance& allowance);
Result<ArrayPtr> fold_expand(const Array& x, std::span<const std::int64_t> shape,
                             Allowance& allowance);
// Rounds toward zero. Errors: kInvalidArgument for numbers that no integer holds.
Result<ArrayPtr> to_integers(const Array& x, Allowance& allowance);

}  // namespace foretune::onnx_internal
