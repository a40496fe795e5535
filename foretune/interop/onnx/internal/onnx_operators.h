// The table of operators: a function each, which gives the outputs of a node.
// Thread safety: free functions.
#pragma once

#include <string_view>

#include "foretune/base/result.h"
#include "foretune/interop/onnx/internal/onnx_converter.h"

namespace foretune::onnx_internal {

using ConvertOperator = Status (*)(NodeContext& context);

// Returns nullptr for an operator that is not read.
[[nodiscard]] ConvertOperator find_operator(std::string_view name);

// onnx_windows.cc
Status convert_conv(NodeContext& context);
Status convert_pool(NodeContext& context);
Status convert_global_pool(NodeContext& context);
// onnx_elementwise.cc
Status convert_unary(NodeContext& context);
Status convert_clip(NodeContext& context);
Status convert_leaky_relu(NodeContext& context);
Status convert_prelu(NodeContext& context);
Status convert_hard_sigmoid(NodeContext& context);
Status convert_gelu(NodeContext& context);
Status convert_reciprocal(NodeContext& context);
Status convert_binary(NodeContext& context);
Status convert_variadic(NodeContext& context);
Status convert_batch_norm(NodeContext& context);
// onnx_products.cc
Status convert_gemm(NodeContext& context);
Status convert_matmul(NodeContext& context);
// onnx_rows.cc
Status convert_reduce(NodeContext& context);
Status convert_softmax(NodeContext& context);
Status convert_layer_norm(NodeContext& context);
Status convert_lrn(NodeContext& context);
// onnx_movement.cc
Status convert_reshape(NodeContext& context);
Status convert_flatten(NodeContext& context);
Status convert_squeeze(NodeContext& context);
Status convert_unsqueeze(NodeContext& context);
Status convert_transpose(NodeContext& context);
Status convert_concat(NodeContext& context);
Status convert_slice(NodeContext& context);
Status convert_split(NodeContext& context);
Status convert_gather(NodeContext& context);
Status convert_pad(NodeContext& context);
// onnx_constants.cc
Status convert_identity(NodeContext& context);
Status convert_dropout(NodeContext& context);
Status convert_cast(NodeContext& context);
Status convert_constant(NodeContext& context);
Status convert_constant_of_shape(NodeContext& context);
Status convert_shape(NodeContext& context);
Status convert_mod(NodeContext& context);
Status convert_equal(NodeContext& context);
Status convert_where(NodeContext& context);
Status convert_expand(NodeContext& context);

}  // namespace foretune::onnx_internal
