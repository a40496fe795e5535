// The row of launches of any kernel in the table of problem types.
#include <array>

#include "foretune/problem/kernel/kernel.h"
#include "foretune/problem/problem_type.h"

namespace foretune {

const ProblemTypeInfo& kernel_problem_type();

namespace {

// A variant must be given: it also distinguishes the columns of these problems from other tables.
std::span<const ProblemField> kernel_fields() {
  static const std::array fields = [] {
    std::array<ProblemField, 1 + kKernelSizes.size()> list;
    list[0] = {.name = "variant",
               .minimum = 0,
               .maximum = kMaxKernelVariant,
               .default_value = {},
               .groups = {},
               .help = "number of the kernel's variant",
               .is_identifier = true};
    for (std::size_t i = 0; i < kKernelSizes.size(); ++i) {
      list[1 + i] = {.name = kKernelSizes[i],
                     .minimum = -kMaxKernelSize,
                     .maximum = kMaxKernelSize,
                     .default_value = 0,
                     .groups = {.problem = true, .sizes = true, .weights = true},
                     .help = "a size of the launch"};
    }
    return list;
  }();
  return fields;
}

}  // namespace

const ProblemTypeInfo& kernel_problem_type() {
  static const ProblemTypeInfo info{.schema = {.type = kKernelProblem,
                                               .name = "kernel",
                                               .version = 1,
                                               .fields = kernel_fields(),
                                               .hides_last_defaults = true},
                                    .summary = "launches of a kernel by its sizes",
                                    .drawn_sizes = {},
                                    .slices = {}};
  return info;
}

}  // namespace foretune
