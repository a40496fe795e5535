// The row of reductions as loop nests in the table of problem types.
#include <array>

#include "foretune/problem/nest_problems.h"
#include "foretune/problem/nest_reduce/nest_reduce.h"
#include "foretune/problem/problem_type.h"

namespace foretune {

const ProblemTypeInfo& nest_reduce_problem_type();

namespace {

using problem_internal::check_nest_tensor;
using problem_internal::halve_largest;
using problem_internal::nest_size;
using problem_internal::nest_switch;

constexpr std::size_t position(NestReduceField field) { return static_cast<std::size_t>(field); }
std::int64_t value_of(const Problem& problem, NestReduceField field) {
  return problem.field(position(field));
}

// The order is that of NestReduction.
constexpr std::array<std::string_view, 3> kOperations{"add", "max", "min"};

// There are no weights, so the key of the weights equals the other keys.
std::span<const ProblemField> nest_reduce_fields() {
  static const std::array fields = [] {
    constexpr FieldGroups kAll{.problem = true, .sizes = true, .weights = true};
    std::array list{nest_size("r", kAll, "rows"), nest_size("c", kAll, "columns"),
                    label_field("op", kOperations, 0, kOperations.size()),
                    nest_switch("of_columns", "whether a column becomes one value, not a row")};
    list[position(NestReduceField::kOperation)].help = "the operation";
    return list;
  }();
  return fields;
}

Status check_nest_reduce(std::span<const std::int64_t> fields) {
  return check_nest_tensor(
      "nest_reduce", "in",
      {fields[position(NestReduceField::kRows)], fields[position(NestReduceField::kColumns)]});
}

std::optional<ProblemWork> nest_reduce_work(const Problem& problem) {
  const auto rows = static_cast<double>(value_of(problem, NestReduceField::kRows));
  const auto columns = static_cast<double>(value_of(problem, NestReduceField::kColumns));
  const bool of_columns = value_of(problem, NestReduceField::kOfColumns) != 0;
  return ProblemWork{rows * columns, 4 * (rows * columns + (of_columns ? columns : rows))};
}

// Chosen by hand: the median is a matrix that fits in a core's L2 cache.
constexpr std::array<DrawnSize, 2> kDrawnSizes{{{position(NestReduceField::kRows), 5.5, 1.4},
                                                {position(NestReduceField::kColumns), 5.5, 1.4}}};

void complete_nest_reduce(std::span<std::int64_t> fields, Rng& /*rng*/) {
  while (!check_nest_reduce(fields)) {
    halve_largest(
        {&fields[position(NestReduceField::kRows)], &fields[position(NestReduceField::kColumns)]});
  }
}

constexpr std::array<std::int64_t, 4> kLimits{16, 128, 1024, 8192};

// Return how many values are reduced to one, and how many results there are.
std::int64_t depth_of(const Problem& problem) {
  return value_of(problem, value_of(problem, NestReduceField::kOfColumns) != 0
                               ? NestReduceField::kRows
                               : NestReduceField::kColumns);
}
std::int64_t results_of(const Problem& problem) {
  return value_of(problem, value_of(problem, NestReduceField::kOfColumns) != 0
                               ? NestReduceField::kColumns
                               : NestReduceField::kRows);
}

constexpr std::array<ProblemSlice, 4> kSlices{
    {{"direction",
      [](const Problem& problem) {
        return value_of(problem, NestReduceField::kOfColumns) != 0 ? SliceValue{1, "of columns"}
                                                                   : SliceValue{0, "of rows"};
      }},
     {"depth", [](const Problem& problem) { return slice_by_size(depth_of(problem), kLimits); }},
     {"results",
      [](const Problem& problem) { return slice_by_size(results_of(problem), kLimits); }},
     {"operation", [](const Problem& problem) {
        return slice_by_field(problem, position(NestReduceField::kOperation));
      }}}};

}  // namespace

const ProblemTypeInfo& nest_reduce_problem_type() {
  static const ProblemTypeInfo info{
      .schema = {.type = kNestReduceProblem,
                 .name = "nest_reduce",
                 .version = 1,
                 .fields = nest_reduce_fields(),
                 .check = check_nest_reduce},
      .summary = "loop nests of reductions of a matrix's rows or columns",
      .work = &nest_reduce_work,
      .drawn_sizes = kDrawnSizes,
      .complete = &complete_nest_reduce,
      .slices = kSlices,
      .map_fields = {position(NestReduceField::kRows), position(NestReduceField::kColumns)}};
  return info;
}

}  // namespace foretune
