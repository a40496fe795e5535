// The four types of loop nests (nest_mm/, nest_conv/, nest_map/, nest_reduce/) share limits, ways
// to make fields, and the data sets that LoopTune is compared on. A problem of these types says
// what foretune/loop computes; loop/problem_computation.h goes from one to the other.
//
//   nest_mm m=64 n=80 k=96 relu=yes      is     mm m=64 n=80 k=96 relu
//
// Tensors are f32. Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/embedded_text.h"
#include "foretune/base/result.h"
#include "foretune/problem/problem_type.h"

namespace foretune {

// The limits of loop nests: elements of one tensor, points of a nest.
inline constexpr std::int64_t kMaxNestElements = 1LL << 28;
inline constexpr double kMaxNestPoints = 1e15;

// Returns the files of nest_benchmarks/: loop nests for search and learning, one per line (in the
// format of foretune/loop/gym/benchmarks.h).
std::span<const EmbeddedText> nest_benchmark_texts();

// Returns the problem of a computation whose sizes are all written out: "mm m=64 n=80 k=96 relu" is
// `nest_mm m=64 n=80 k=96 relu=yes`. loop::problem_of() accepts every form of a computation.
// Errors: those of Problem::parse().
Result<Problem> parse_nest_problem(std::string_view computation);

// Returns the files whose computations have this type, as shape sets under the files' names.
std::vector<NamedShapeSet> nest_shape_sets(ProblemType type);

namespace problem_internal {

// Returns a field for a size or a step, with its help; `groups` are the keys that it is part of.
ProblemField nest_size(std::string_view name, FieldGroups groups, std::string_view help,
                       std::optional<std::int64_t> default_value = {});
// Returns a field for a switch: no (default) or yes.
ProblemField nest_switch(std::string_view name, std::string_view help);

// Refuses a tensor of more than kMaxNestElements elements. The error, kUnsupported, names `type`
// and `tensor`.
Status check_nest_tensor(std::string_view type, std::string_view tensor,
                         std::initializer_list<std::int64_t> sizes);
// Halves the largest of some sizes, rounded up. Not all of them are 1.
void halve_largest(std::initializer_list<std::int64_t*> sizes);

}  // namespace problem_internal
}  // namespace foretune
