// Describes one type of problem completely, as one row of a table. A type is a folder beside this
// header (gemm/, conv/, nest_mm/): its fields, typed view, work, sampling, slices and shape sets.
// The rest of the project reads the row and never names a certain type.
//
//   const ProblemTypeInfo* info = find_problem_type("conv");
//   std::optional<ProblemWork> work = problem_work(problem);
//
// A new type: a folder with a function `const ProblemTypeInfo& NAME_problem_type()`, and one row in
// types.inc; or register_problem_type() in a plug-in. Thread safety: rows are constant, and may be
// added at any time. Cost: look-ups walk a short table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/problem/payload.h"
#include "foretune/problem/problem.h"

namespace foretune {

struct ProblemWork {
  double flops = 0;  // floating-point (or integer) operations, a multiply-add as two
  double bytes = 0;  // every operand read or written once, however often a kernel touches it
};

// A size that samplers draw. Other fields get their values from ProblemTypeInfo::complete.
struct DrawnSize {
  std::size_t field = 0;  // its position among the fields
  // Mean and standard deviation of the size's natural logarithm, for log-normal draws.
  double log_mean = 0;
  double log_deviation = 0;
  std::int64_t multiple =
      1;  // log-normal draws are rounded to a multiple of this, and at least this
  // Uniform draws stay within these bounds, where given, instead of the caller's bounds.
  std::int64_t uniform_low = 0;
  std::int64_t uniform_high = 0;
  // Uniform draws within these bounds are uniform in the logarithm, and log-normal draws are moved
  // into them: for sizes whose bounds alone are known.
  bool is_log_uniform = false;
};

// The place of a problem in one dimension of a report; slices are listed by `order`.
struct SliceValue {
  std::int64_t order = 0;
  std::string text;
};

// One dimension by which reports split problems.
struct ProblemSlice {
  std::string_view name;
  SliceValue (*value)(const Problem& problem) = nullptr;
};

// A built-in list of shapes.
struct NamedShapeSet {
  std::string name;
  std::string summary;  // one line
  // Makes distinct problems, always in the same order.
  std::function<std::vector<Problem>()> make;
  bool in_help = true;  // help lists only these sets; an error names all
};

// Fields that say how many tiles cover a result: a matrix of `rows` by `columns`, `repeat` times.
struct ResultGrid {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t repeat = 0;
};

struct ProblemTypeInfo {
  ProblemSchema schema;
  std::string_view summary;  // one line, for help
  // Returns the work; nothing for a type whose fields do not determine it.
  std::optional<ProblemWork> (*work)(const Problem& problem) = nullptr;
  // The sizes that samplers draw, in the order of the draws; none for a type that cannot be drawn.
  std::span<const DrawnSize> drawn_sizes;
  // Makes a legal problem of drawn sizes and labels: sets the other fields, and rounds the drawn
  // ones.
  void (*complete)(std::span<std::int64_t> fields, Rng& rng) = nullptr;
  // Dimensions of reports; without any, every field is one.
  std::span<const ProblemSlice> slices;
  // The axes of a map of problems; where both are 0, the two fields with the most values.
  std::array<std::size_t, 2> map_fields{};
  std::optional<ResultGrid> result_grid;
  std::span<const NamedShapeSet> (*shape_sets)() = nullptr;
  // Describes the payloads of the type's problems; nullptr for a type without payloads.
  const PayloadInfo* payload = nullptr;
};

// Returns all types: those of this build, then those that were added.
std::span<const ProblemTypeInfo* const> problem_types();
// Returns the number of a type from outside of this build.
ProblemType added_problem_type(std::string_view name);
// Adds a type for the rest of the process. Everything that the row points to has to live that long.
// Errors: kInvalidArgument for a name or a number that is taken, a number other than
// added_problem_type(), and fields that make no sense.
Status register_problem_type(ProblemTypeInfo info);
const ProblemTypeInfo* find_problem_type(ProblemType type);
const ProblemTypeInfo* find_problem_type(std::string_view name);

// Returns nothing for a type whose fields do not determine the work.
std::optional<ProblemWork> problem_work(const Problem& problem);

// Returns a bucket "up to 64", "65 to 512", ..., "above 4096" for limits 64, 512, ..., 4096.
SliceValue slice_by_size(std::int64_t size, std::span<const std::int64_t> limits);
// Returns one bucket per label of an enumerated field, or per value of another field.
SliceValue slice_by_field(const Problem& problem, std::size_t field);

// Return fields as the folders of types list them.
ProblemField label_field(std::string_view name, std::span<const std::string_view> labels,
                         std::int64_t default_value, std::size_t labels_in_id);
// Returns a size field, from 1, that belongs to the group. With a default it may be left out.
ProblemField size_field(std::string_view name, std::optional<std::int64_t> default_value = {});

}  // namespace foretune
