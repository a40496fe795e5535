// The row of matrix products as loop nests in the table of problem types.
#include <algorithm>
#include <array>
#include <cmath>

#include "foretune/problem/nest_mm/nest_mm.h"
#include "foretune/problem/nest_problems.h"
#include "foretune/problem/problem_type.h"

namespace foretune {

const ProblemTypeInfo& nest_mm_problem_type();

namespace {

using problem_internal::check_nest_tensor;
using problem_internal::halve_largest;
using problem_internal::nest_size;
using problem_internal::nest_switch;

constexpr std::size_t position(NestMmField field) { return static_cast<std::size_t>(field); }
std::int64_t value_of(const Problem& problem, NestMmField field) {
  return problem.field(position(field));
}

std::span<const ProblemField> nest_mm_fields() {
  constexpr FieldGroups kRows{.problem = true, .sizes = true};
  constexpr FieldGroups kWeights{.problem = true, .sizes = true, .weights = true};
  static const std::array fields{nest_size("m", kRows, "rows of A and C"),
                                 nest_size("n", kWeights, "columns of B and C"),
                                 nest_size("k", kWeights, "columns of A, rows of B"),
                                 nest_size("batch", {.problem = true}, "independent products", 1),
                                 nest_switch("ta", "whether A is stored as [k][m]"),
                                 nest_switch("tb", "whether B is stored as [n][k]"),
                                 nest_switch("bias", "whether a vector along n is added"),
                                 nest_switch("relu", "whether the result is cut off at 0")};
  return fields;
}

// The limits of tensors keep the points far below kMaxNestPoints: m n k is at most 2^42.
Status check_nest_mm(std::span<const std::int64_t> fields) {
  const auto field = [&](NestMmField index) { return fields[position(index)]; };
  const std::int64_t batch = field(NestMmField::kBatch);
  FORETUNE_TRY_STATUS(
      check_nest_tensor("nest_mm", "a", {batch, field(NestMmField::kM), field(NestMmField::kK)}));
  FORETUNE_TRY_STATUS(
      check_nest_tensor("nest_mm", "b", {batch, field(NestMmField::kK), field(NestMmField::kN)}));
  return check_nest_tensor("nest_mm", "c", {batch, field(NestMmField::kM), field(NestMmField::kN)});
}

std::optional<ProblemWork> nest_mm_work(const Problem& problem) {
  const auto number = [&](NestMmField field) {
    return static_cast<double>(value_of(problem, field));
  };
  const double m = number(NestMmField::kM);
  const double n = number(NestMmField::kN);
  const double k = number(NestMmField::kK);
  const double batch = number(NestMmField::kBatch);
  const double bias = number(NestMmField::kBias);
  const double relu = number(NestMmField::kRelu);
  return ProblemWork{batch * m * n * (2 * k + bias + relu),
                     4 * (batch * (m * k + k * n + m * n) + bias * n)};
}

// Chosen by hand around LoopTune's products, whose sizes are 64 to 256.
constexpr std::array<DrawnSize, 3> kDrawnSizes{{{position(NestMmField::kM), 5.0, 0.9, 8},
                                                {position(NestMmField::kN), 5.0, 0.9, 8},
                                                {position(NestMmField::kK), 5.0, 0.9, 8}}};

// Gives one product in eight a batch, log-uniformly from 2 to 16. Halves sizes that exceed the
// limit of a tensor.
void complete_nest_mm(std::span<std::int64_t> fields, Rng& rng) {
  const bool has_batch = rng.below(8) == 0;
  const double batch = std::exp(std::log(2.0) + rng.uniform() * std::log(8.0));
  fields[position(NestMmField::kBatch)] =
      has_batch ? std::clamp<std::int64_t>(std::llround(batch), 2, 16) : 1;
  while (!check_nest_mm(fields)) {
    halve_largest({&fields[position(NestMmField::kM)], &fields[position(NestMmField::kN)],
                   &fields[position(NestMmField::kK)]});
  }
}

constexpr std::array<std::int64_t, 4> kLimits{16, 64, 256, 1024};

template <NestMmField kField>
SliceValue size_of(const Problem& problem) {
  return slice_by_size(value_of(problem, kField), kLimits);
}

SliceValue transposes_of(const Problem& problem) {
  constexpr std::array<std::string_view, 4> kTexts{"neither", "B", "A", "A and B"};
  const std::int64_t order =
      2 * value_of(problem, NestMmField::kTransposeA) + value_of(problem, NestMmField::kTransposeB);
  return {order, std::string(kTexts[static_cast<std::size_t>(order)])};
}

SliceValue epilogue_of(const Problem& problem) {
  constexpr std::array<std::string_view, 4> kTexts{"none", "bias", "ReLU", "bias and ReLU"};
  const std::int64_t order =
      value_of(problem, NestMmField::kBias) + 2 * value_of(problem, NestMmField::kRelu);
  return {order, std::string(kTexts[static_cast<std::size_t>(order)])};
}

SliceValue batch_of(const Problem& problem) {
  return value_of(problem, NestMmField::kBatch) == 1 ? SliceValue{0, "one product"}
                                                     : SliceValue{1, "a batch"};
}

constexpr std::array<ProblemSlice, 6> kSlices{{{"m", &size_of<NestMmField::kM>},
                                               {"n", &size_of<NestMmField::kN>},
                                               {"k", &size_of<NestMmField::kK>},
                                               {"batch", &batch_of},
                                               {"transposed", &transposes_of},
                                               {"epilogue", &epilogue_of}}};

std::span<const NamedShapeSet> nest_mm_shape_sets() {
  static const std::vector<NamedShapeSet> sets = nest_shape_sets(kNestMmProblem);
  return sets;
}

}  // namespace

const ProblemTypeInfo& nest_mm_problem_type() {
  static const ProblemTypeInfo info{
      .schema = {.type = kNestMmProblem,
                 .name = "nest_mm",
                 .version = 1,
                 .fields = nest_mm_fields(),
                 .check = check_nest_mm},
      .summary = "loop nests of matrix products, alone or in a batch",
      .work = &nest_mm_work,
      .drawn_sizes = kDrawnSizes,
      .complete = &complete_nest_mm,
      .slices = kSlices,
      .map_fields = {position(NestMmField::kM), position(NestMmField::kN)},
      .result_grid = ResultGrid{.rows = position(NestMmField::kM),
                                .columns = position(NestMmField::kN),
                                .repeat = position(NestMmField::kBatch)},
      .shape_sets = &nest_mm_shape_sets};
  return info;
}

}  // namespace foretune
