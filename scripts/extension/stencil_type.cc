// A problem type as an author adds one: extension_cost.py puts this file into
// foretune/problem/stencil and adds a row to types.inc.
#include <array>

#include "foretune/problem/problem_type.h"

namespace foretune {

const ProblemTypeInfo& stencil_problem_type();

namespace {

constexpr std::array<std::string_view, 2> kBorders{"zero", "wrap"};

std::span<const ProblemField> stencil_fields() {
  static const std::array fields{size_field("cells"), size_field("radius"),
                                 label_field("border", kBorders, 0, kBorders.size())};
  return fields;
}

std::optional<ProblemWork> stencil_work(const Problem& problem) {
  const auto cells = static_cast<double>(problem.field(0));
  const auto points = static_cast<double>(2 * problem.field(1) + 1);
  return ProblemWork{2 * cells * points, 8 * cells};
}

constexpr std::array<DrawnSize, 2> kDrawnSizes{{{0, 10, 2, 8}, {1, 1, 0.7, 1, 1, 16}}};

}  // namespace

const ProblemTypeInfo& stencil_problem_type() {
  static const ProblemTypeInfo info{.schema = {.type = ProblemType{900},
                                               .name = "stencil",
                                               .version = 1,
                                               .fields = stencil_fields()},
                                    .summary = "stencils in one dimension",
                                    .work = &stencil_work,
                                    .drawn_sizes = kDrawnSizes};
  return info;
}

}  // namespace foretune
