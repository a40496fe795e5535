// The kinds of steps of a pass. Sizes are of all images of the pass.
// Thread safety: steps are constant and run by any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dispatch/conv_dispatch.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/run/executor.h"
#include "foretune/graph/run/internal/pass.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::graph {

// A convolution, or a product with weights as one with filters of one point. `weights` are in the
// problem's order, channels last. `addend` may be kNoValue. Errors: kUnsupported when no kernel
// runs it.
struct ConvStepOperands {
  ValueId input = kNoValue;
  ValueId addend = kNoValue;
  ValueId output = kNoValue;
};
// In the types of the problem. A bias of integers is of i32, whose bits are here.
struct ConvConstants {
  std::span<const std::byte> weights;
  std::vector<float> bias;
  std::vector<float> scales;  // only for a result of i8
  ConvQuantization quantization;
};
Result<std::unique_ptr<Step>> make_conv_step(ConvDispatcher& dispatcher, const ConvProblem& problem,
                                             const ConvStepOperands& operands,
                                             ConvConstants constants);

// Converts the elements of `input` to the type of `output`; both are dense and in the same order.
std::unique_ptr<Step> make_convert_step(const VectorOps& loops, const Value& from, ValueId input,
                                        const Value& to, ValueId output);

// Turns sums of integers into numbers of f32, adds a tensor (or kNoValue) and applies a ReLU.
std::unique_ptr<Step> make_sums_step(const VectorOps& loops, std::size_t rows,
                                     std::vector<float> scales, bool relu, ValueId sums,
                                     ValueId addend, ValueId output);

// Fills the rows and columns that a convolution has left out with the mean of their neighbours, or
// a copy of the only one.
struct Skipping {
  std::int64_t rows = 0;  // one of so many; 0: none
  std::int64_t rows_at = 0;
  std::int64_t columns = 0;
  std::int64_t columns_at = 0;
  bool operator==(const Skipping&) const = default;
};
std::unique_ptr<Step> make_interpolate_step(const VectorOps& loops, const Value& value, ValueId id,
                                            const Skipping& skipping);

// A product of two tensors, batched. Errors: kUnsupported when no kernel runs it.
Result<std::unique_ptr<Step>> make_product_step(Executor& executor, const GemmProblem& problem,
                                                ValueId a, ValueId b, ValueId output);

// Copies elements between two dense tensors. The walk has the extents of `shape`; neighbours in a
// dimension lie `from` and `to` elements apart. A distance of 0 in `from` repeats.
struct Copying {
  Shape shape;
  Shape from;
  Shape to;
  std::int64_t from_first = 0;
  std::int64_t to_first = 0;
};
// A constant operand is copied of `constant`, with `input` kNoValue. With `fills` the whole result
// is set to `fill` first.
struct CopyStepOptions {
  std::vector<float> constant;
  bool fills = false;
  float fill = 0;
  std::size_t elements = 0;  // of the result
};
std::unique_ptr<Step> make_copy_step(ValueId input, ValueId output, Copying copying,
                                     CopyStepOptions options);

// A chain of element-wise operations, computed block by block. An instruction reads and writes
// registers: blocks of the chain, operands, or constants that repeat with a period.
struct ChainOperand {
  enum class Kind : std::uint8_t { kRegister, kValue, kConstant };
  Kind kind = Kind::kRegister;
  std::size_t index = 0;
};
struct ChainInstruction {
  UnaryFunction unary = nullptr;  // else `binary`
  BinaryFunction binary = nullptr;
  ChainOperand a;
  ChainOperand b;
  std::size_t to = 0;  // a register; the last instruction writes the result
  float p = 0;
  float q = 0;
};
struct Chain {
  std::vector<ValueId> values;
  std::vector<std::vector<float>> constants;  // one period each
  std::vector<ChainInstruction> instructions;
  std::size_t registers = 0;
  std::size_t elements = 0;
  std::string text;
};
inline constexpr std::size_t kMaxChainRegisters = 8;
std::unique_ptr<Step> make_chain_step(Chain chain, ValueId output);

// Pooling, channels last.
struct PoolSizes {
  std::int64_t images = 1;
  std::int64_t channels = 1;
  std::int64_t rows_in = 1;
  std::int64_t columns_in = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  bool is_i8 = false;  // only for maxima
};
std::unique_ptr<Step> make_pool_step(const VectorOps& loops, const Window& window, bool is_max,
                                     const PoolSizes& sizes, ValueId input, ValueId output);

// Sums `rows` rows of `channels` for each of `count`, times `factor`.
// `from` is of f32 or i8.
std::unique_ptr<Step> make_sum_step(const VectorOps& loops, std::size_t count, std::size_t rows,
                                    std::size_t channels, float factor, const Value& from,
                                    ValueId input, ValueId output);

// Softmax or normalisation of each row of `length`.
std::unique_ptr<Step> make_softmax_step(const VectorOps& loops, std::size_t rows,
                                        std::size_t length, ValueId input, ValueId output);
std::unique_ptr<Step> make_normalise_step(const VectorOps& loops, std::size_t rows,
                                          std::size_t length, float epsilon,
                                          std::vector<float> scale, std::vector<float> shift,
                                          ValueId input, ValueId output);

// Any operation, by its slow function. `constants` hold the values of constant operands, whose
// inputs are kNoValue.
struct SlowOperand {
  ValueId value = kNoValue;
  Shape shape;
  std::vector<double> constant;
};
std::unique_ptr<Step> make_slow_step(const OpInfo& op, Attributes attributes,
                                     std::vector<SlowOperand> operands, Shape shape,
                                     ValueId output);

}  // namespace foretune::graph
