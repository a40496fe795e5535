#include "foretune/loop/problem_computation.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "foretune/base/text.h"
#include "foretune/loop/chains.h"
#include "foretune/loop/computation_text.h"
#include "foretune/problem/nest_conv/nest_conv.h"
#include "foretune/problem/nest_map/nest_map.h"
#include "foretune/problem/nest_mm/nest_mm.h"
#include "foretune/problem/nest_problems.h"
#include "foretune/problem/nest_reduce/nest_reduce.h"

namespace foretune::loop {
namespace {

static_assert(kMaxNestElements == kMaxElements);

// In the order of NestReduction.
constexpr std::array<Op, 3> kReductions{Op::kAdd, Op::kMax, Op::kMin};

template <class Field>
std::int64_t value_of(const Problem& problem, Field field) {
  return problem.field(static_cast<std::size_t>(field));
}
template <class Field>
bool is_on(const Problem& problem, Field field) {
  return value_of(problem, field) != 0;
}

MatmulSizes matmul_sizes(const Problem& problem) {
  return {.m = value_of(problem, NestMmField::kM),
          .n = value_of(problem, NestMmField::kN),
          .k = value_of(problem, NestMmField::kK),
          .batch = value_of(problem, NestMmField::kBatch),
          .transpose_a = is_on(problem, NestMmField::kTransposeA),
          .transpose_b = is_on(problem, NestMmField::kTransposeB),
          .epilogue = {.bias = is_on(problem, NestMmField::kBias),
                       .relu = is_on(problem, NestMmField::kRelu)}};
}

ConvSizes conv_sizes(const Problem& problem) {
  return {.batch = value_of(problem, NestConvField::kBatch),
          .channels = value_of(problem, NestConvField::kChannels),
          .out_channels = value_of(problem, NestConvField::kOutChannels),
          .height = value_of(problem, NestConvField::kHeight),
          .width = value_of(problem, NestConvField::kWidth),
          .kernel_height = value_of(problem, NestConvField::kKernelHeight),
          .kernel_width = value_of(problem, NestConvField::kKernelWidth),
          .stride = value_of(problem, NestConvField::kStride),
          .dilation = value_of(problem, NestConvField::kDilation),
          .pad = value_of(problem, NestConvField::kPad),
          .groups = value_of(problem, NestConvField::kGroups),
          .channels_last = value_of(problem, NestConvField::kLayout) ==
                           static_cast<std::int64_t>(NestConvLayout::kNhwc),
          .epilogue = {.bias = is_on(problem, NestConvField::kBias),
                       .relu = is_on(problem, NestConvField::kRelu)}};
}

// In the order of the fields.
Result<Problem> make_problem(ProblemType type, std::span<const std::int64_t> values) {
  Problem::Fields fields;
  for (const std::int64_t value : values) {
    fields.push_back(value);
  }
  return Problem::create(type, std::move(fields));
}

struct ProblemMaker {
  Result<Problem> operator()(const MatmulSizes& sizes) const {
    return make_problem(
        kNestMmProblem,
        std::array<std::int64_t, 8>{sizes.m, sizes.n, sizes.k, sizes.batch, sizes.transpose_a,
                                    sizes.transpose_b, sizes.epilogue.bias, sizes.epilogue.relu});
  }
  Result<Problem> operator()(const ConvSizes& sizes) const {
    return make_problem(kNestConvProblem,
                        std::array<std::int64_t, 14>{
                            sizes.batch, sizes.channels, sizes.height, sizes.width,
                            sizes.out_channels, sizes.kernel_height, sizes.kernel_width,
                            sizes.stride, sizes.dilation, sizes.pad, sizes.groups,
                            static_cast<std::int64_t>(sizes.channels_last ? NestConvLayout::kNhwc
                                                                          : NestConvLayout::kNchw),
                            sizes.epilogue.bias, sizes.epilogue.relu});
  }
  Result<Problem> operator()(const ReductionSizes& sizes) const {
    std::int64_t operation = 0;
    while (kReductions[static_cast<std::size_t>(operation)] != sizes.reduce) {
      ++operation;
    }
    return make_problem(
        kNestReduceProblem,
        std::array<std::int64_t, 4>{sizes.rows, sizes.columns, operation, sizes.of_columns});
  }
  Result<Problem> operator()(const ElementwiseSizes& sizes) const {
    const std::optional<NestChain> chain = find_chain(sizes.steps);
    if (!chain) {
      return fail(ErrorCode::kUnsupported,
                  "these elementwise steps are no chain with a name; there are ", chain_labels());
    }
    return make_problem(
        kNestMapProblem,
        std::array<std::int64_t, 3>{sizes.rows, sizes.columns, static_cast<std::int64_t>(*chain)});
  }
};

}  // namespace

Result<Computation> computation_of(const Problem& problem) {
  if (problem.type() == kNestMmProblem) {
    return matmul(matmul_sizes(problem));
  }
  if (problem.type() == kNestConvProblem) {
    return conv2d(conv_sizes(problem));
  }
  if (problem.type() == kNestReduceProblem) {
    const auto operation = static_cast<std::size_t>(value_of(problem, NestReduceField::kOperation));
    return reduction(value_of(problem, NestReduceField::kRows),
                     value_of(problem, NestReduceField::kColumns), kReductions[operation],
                     is_on(problem, NestReduceField::kOfColumns));
  }
  if (problem.type() == kNestMapProblem) {
    return elementwise(
        value_of(problem, NestMapField::kRows), value_of(problem, NestMapField::kColumns),
        chain_steps(static_cast<NestChain>(value_of(problem, NestMapField::kChain))));
  }
  return fail(ErrorCode::kInvalidArgument, "a ", problem.schema().name, " problem is no loop nest");
}

Result<Problem> problem_of(std::string_view computation_text) {
  FORETUNE_TRY(const ComputationSizes sizes, parse_sizes(computation_text));
  return std::visit(ProblemMaker(), sizes);
}

}  // namespace foretune::loop
