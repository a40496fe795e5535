// The row of elementwise chains as loop nests in the table of problem types.
#include <array>

#include "foretune/base/text.h"
#include "foretune/problem/nest_map/nest_map.h"
#include "foretune/problem/nest_problems.h"
#include "foretune/problem/problem_type.h"

namespace foretune {

const ProblemTypeInfo& nest_map_problem_type();

namespace {

using problem_internal::check_nest_tensor;
using problem_internal::halve_largest;
using problem_internal::nest_size;

constexpr std::size_t position(NestMapField field) { return static_cast<std::size_t>(field); }
std::int64_t value_of(const Problem& problem, NestMapField field) {
  return problem.field(position(field));
}
const NestChainInfo& chain_of(const Problem& problem) {
  return kNestChains[static_cast<std::size_t>(value_of(problem, NestMapField::kChain))];
}

constexpr std::array kLabels = [] {
  std::array<std::string_view, kNestChains.size()> labels;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = kNestChains[i].label;
  }
  return labels;
}();
// The number of labels in the first version.
constexpr std::size_t kFirstLabels = 8;

// There are no weights, so the key of the weights equals the other keys. A chain must be given: it
// also distinguishes the columns of these problems from those of reductions.
std::span<const ProblemField> nest_map_fields() {
  static const std::array fields = [] {
    constexpr FieldGroups kAll{.problem = true, .sizes = true, .weights = true};
    std::array list{nest_size("r", kAll, "rows"), nest_size("c", kAll, "columns"),
                    label_field("chain", kLabels, 0, kFirstLabels)};
    ProblemField& chain = list[position(NestMapField::kChain)];
    chain.default_value.reset();
    chain.help = "the steps";
    return list;
  }();
  return fields;
}

Status check_nest_map(std::span<const std::int64_t> fields) {
  return check_nest_tensor(
      "nest_map", "in",
      {fields[position(NestMapField::kRows)], fields[position(NestMapField::kColumns)]});
}

std::optional<ProblemWork> nest_map_work(const Problem& problem) {
  const double elements = static_cast<double>(value_of(problem, NestMapField::kRows)) *
                          static_cast<double>(value_of(problem, NestMapField::kColumns));
  const NestChainInfo& chain = chain_of(problem);
  return ProblemWork{elements * chain.steps, 4 * elements * (chain.inputs + 1)};
}

// Chosen by hand, like those of reductions.
constexpr std::array<DrawnSize, 2> kDrawnSizes{
    {{position(NestMapField::kRows), 5.5, 1.4}, {position(NestMapField::kColumns), 5.5, 1.4}}};

void complete_nest_map(std::span<std::int64_t> fields, Rng& /*rng*/) {
  while (!check_nest_map(fields)) {
    halve_largest(
        {&fields[position(NestMapField::kRows)], &fields[position(NestMapField::kColumns)]});
  }
}

constexpr std::array<std::int64_t, 4> kColumnLimits{16, 128, 1024, 8192};
constexpr std::array<std::int64_t, 4> kElementLimits{1 << 10, 1 << 14, 1 << 18, 1 << 22};

constexpr std::array<ProblemSlice, 4> kSlices{
    {{"chain",
      [](const Problem& problem) {
        return slice_by_field(problem, position(NestMapField::kChain));
      }},
     {"inputs",
      [](const Problem& problem) {
        const int inputs = chain_of(problem).inputs;
        return SliceValue{inputs, concat(inputs)};
      }},
     {"elements",
      [](const Problem& problem) {
        return slice_by_size(
            value_of(problem, NestMapField::kRows) * value_of(problem, NestMapField::kColumns),
            kElementLimits);
      }},
     {"columns", [](const Problem& problem) {
        return slice_by_size(value_of(problem, NestMapField::kColumns), kColumnLimits);
      }}}};

}  // namespace

const ProblemTypeInfo& nest_map_problem_type() {
  static const ProblemTypeInfo info{
      .schema = {.type = kNestMapProblem,
                 .name = "nest_map",
                 .version = 1,
                 .fields = nest_map_fields(),
                 .check = check_nest_map},
      .summary = "loop nests of elementwise steps, such as a bias with ReLU",
      .work = &nest_map_work,
      .drawn_sizes = kDrawnSizes,
      .complete = &complete_nest_map,
      .slices = kSlices,
      .map_fields = {position(NestMapField::kRows), position(NestMapField::kColumns)}};
  return info;
}

}  // namespace foretune
