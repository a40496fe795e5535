#include "foretune/interop/onnx/internal/onnx_operators.h"

#include <array>
#include <string_view>

namespace foretune::onnx_internal {

namespace {

struct Row {
  std::string_view name;
  ConvertOperator convert;
};

constexpr std::array kRows{
    Row{"Abs", &convert_unary},
    Row{"Add", &convert_binary},
    Row{"AveragePool", &convert_pool},
    Row{"BatchNormalization", &convert_batch_norm},
    Row{"Cast", &convert_cast},
    Row{"Clip", &convert_clip},
    Row{"Concat", &convert_concat},
    Row{"Constant", &convert_constant},
    Row{"ConstantOfShape", &convert_constant_of_shape},
    Row{"Conv", &convert_conv},
    Row{"Div", &convert_binary},
    Row{"Dropout", &convert_dropout},
    Row{"Equal", &convert_equal},
    Row{"Erf", &convert_unary},
    Row{"Exp", &convert_unary},
    Row{"Expand", &convert_expand},
    Row{"Flatten", &convert_flatten},
    Row{"Gather", &convert_gather},
    Row{"Gelu", &convert_gelu},
    Row{"Gemm", &convert_gemm},
    Row{"GlobalAveragePool", &convert_global_pool},
    Row{"GlobalMaxPool", &convert_global_pool},
    Row{"HardSigmoid", &convert_hard_sigmoid},
    Row{"HardSwish", &convert_unary},
    Row{"Identity", &convert_identity},
    Row{"LRN", &convert_lrn},
    Row{"LayerNormalization", &convert_layer_norm},
    Row{"LeakyRelu", &convert_leaky_relu},
    Row{"MatMul", &convert_matmul},
    Row{"Max", &convert_variadic},
    Row{"MaxPool", &convert_pool},
    Row{"Mean", &convert_variadic},
    Row{"Min", &convert_variadic},
    Row{"Mod", &convert_mod},
    Row{"Mul", &convert_binary},
    Row{"Neg", &convert_unary},
    Row{"PRelu", &convert_prelu},
    Row{"Pad", &convert_pad},
    Row{"Pow", &convert_binary},
    Row{"Reciprocal", &convert_reciprocal},
    Row{"ReduceMax", &convert_reduce},
    Row{"ReduceMean", &convert_reduce},
    Row{"ReduceSum", &convert_reduce},
    Row{"Relu", &convert_unary},
    Row{"Reshape", &convert_reshape},
    Row{"Shape", &convert_shape},
    Row{"Sigmoid", &convert_unary},
    Row{"Slice", &convert_slice},
    Row{"Softmax", &convert_softmax},
    Row{"Softplus", &convert_unary},
    Row{"Split", &convert_split},
    Row{"Sqrt", &convert_unary},
    Row{"Squeeze", &convert_squeeze},
    Row{"Sub", &convert_binary},
    Row{"Sum", &convert_variadic},
    Row{"Tanh", &convert_unary},
    Row{"Transpose", &convert_transpose},
    Row{"Unsqueeze", &convert_unsqueeze},
    Row{"Where", &convert_where},
};

}  // namespace

ConvertOperator find_operator(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) {
      return row.convert;
    }
  }
  return nullptr;
}

}  // namespace foretune::onnx_internal
