// Problems on the command line: which ones to draw, or one by its text or its sizes. The options
// come from the table of problem types, so a new type brings its own. Thread safety: used by one
// thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/problem/problem.h"
#include "foretune/problem/sampler.h"
#include "tools/foretune/options.h"
#include "tools/foretune/payload_arguments.h"

namespace foretune::cli {

// Which problems.
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

  // `has_own`: whether the family brings its problems.
  void visit(OptionList& list, const std::function<bool()>& has_own);
};

// A file, whose problems may name payloads, or the name of a set that is built in. The help of
// options that take one ends with the names.
Result<std::vector<Problem>> read_shapes(const std::string& set, PayloadStore& payloads);
std::string shape_set_names();

// `excluded_groups`: Problem::group() of problems that must not be drawn. A family that knows its
// problems gets those. All are resolved.
Result<SampledProblems> make_problems(const ProblemArguments& arguments, const Family& family,
                                      std::uint64_t seed, PayloadStore& payloads,
                                      std::unordered_set<std::uint64_t> excluded_groups = {});

// One problem, as text or by its sizes.
struct OneProblemArguments {
  std::vector<std::string> text;
  // By the name of the field.
  std::map<std::string, std::optional<std::int64_t>> sizes;
  std::map<std::string, std::string> labels;
  std::string payload;

  void visit(OptionList& list);
  [[nodiscard]] bool given() const { return !text.empty() || has_sizes(); }
  // Sizes are those of a problem of the type, which a text need not be. Errors: kInvalidArgument
  // for both at once, for a size that the type does not have, and as parse_problem().
  [[nodiscard]] Result<Problem> parse(ProblemType type, PayloadStore& payloads) const;

 private:
  [[nodiscard]] bool has_sizes() const;
};

}  // namespace foretune::cli
