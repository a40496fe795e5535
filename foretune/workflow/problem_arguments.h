// Problems on the command line: options to draw them, or one problem by its text or its sizes. The
// options come from the table of problem types, so a new type brings its own.
// Thread safety: used by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/problem/problem.h"
#include "foretune/problem/sampler.h"
#include "foretune/workflow/options.h"
#include "foretune/workflow/payload_arguments.h"

namespace foretune::workflow {

// The problems to draw or read.
struct ProblemArguments {
  std::int64_t num_shapes = 100;
  bool log_normal = false;
  bool random = false;
  UniformSizes uniform_sizes;
  bool no_rectangular = false;
  bool no_odd_sizes = false;
  std::string shapeset;
  std::optional<double> max_flops;
  std::optional<double> max_bytes;
  // By the name of the field. std::map keeps the places that options point to.
  std::map<std::string, std::vector<std::string>> labels;
  std::map<std::string, std::optional<double>> log_means;
  std::map<std::string, std::optional<double>> log_deviations;

  // `has_own` returns true when the family brings its own problems.
  void visit(OptionList& list, const std::function<bool()>& has_own);
};

// Reads a shape set: a file, whose problems may name payloads, or a built-in set by its name. The
// help of options that take one ends with the names.
Result<std::vector<Problem>> read_shapes(const std::string& set, PayloadStore& payloads);
std::string shape_set_names();

// Returns the problems of the arguments, or those that the family brings, all resolved.
// `excluded_groups`: Problem::group() of problems that must not be drawn.
Result<SampledProblems> make_problems(const ProblemArguments& arguments, const Family& family,
                                      std::uint64_t seed, PayloadStore& payloads,
                                      std::unordered_set<std::uint64_t> excluded_groups = {});

// The heading of the options that give a problem field by field.
inline constexpr std::string_view kProblemFieldsSection = "Fields of a problem";

// Returns for each type of problem the options that its fields have: {"gemm", "--m --n --k ..."}.
std::vector<std::pair<std::string, std::string>> problem_field_options();

// One problem, as text or by its sizes.
struct OneProblemArguments {
  std::vector<std::string> text;
  // By the name of the field.
  std::map<std::string, std::optional<std::int64_t>> sizes;
  std::map<std::string, std::string> labels;
  std::string direction;
  std::string payload;

  void visit(OptionList& list);
  // Takes a label for a field that no option gave, if the problem has it.
  void assume(const std::string& field, std::string label);
  [[nodiscard]] bool given() const { return !text.empty() || has_sizes(); }
  // Returns true when an option or the text gives this integer field.
  [[nodiscard]] bool gives(std::string_view field) const;
  // Sizes make a problem of `type`; a text may name another type. Labels may be Composable Kernel's
  // words. Errors: kInvalidArgument for both at once, for neither, and for a size that the type
  // does not have; those of parse_problem().
  [[nodiscard]] Result<Problem> parse(ProblemType type, PayloadStore& payloads) const;

 private:
  [[nodiscard]] bool has_sizes() const;
  // Returns the labels of the options in our words. Errors: kMismatch for an operation of another
  // type.
  [[nodiscard]] Result<std::map<std::string, std::string>> own_labels(
      const ProblemSchema& schema) const;

  std::map<std::string, std::string> assumed_;
};

}  // namespace foretune::workflow
