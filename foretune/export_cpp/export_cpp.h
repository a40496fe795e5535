// Writes a model's fast mode as one C++17 header without any dependency: the portfolio as a
// constexpr table, the network that ranks it, the space's rules as C++ expressions, and
// `select(problem)`, which can be evaluated at compile time and answers as the library does.
//
//   FORETUNE_TRY(const std::string header, cpp_header(model, {.name_space = "gemm_heuristics"}));
//
// Thread safety: free functions without state.
#pragma once

#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/model/model_file.h"
#include "foretune/space/config.h"

namespace foretune {

struct CppExportOptions {
  std::string name_space = "foretune_model";
  double max_regret = 0.1;  // above this loss (ln time) a pick does not count as trusted
};

// Errors: kInvalidArgument for a namespace or names of the model that C++ cannot have, kNotFound
// for a model without a fast one, and those of check_model().
Result<std::string> cpp_header(const Model& model, const CppExportOptions& options);

// Returns an expression of a space as C++: parameters are members of `c`, fields are members of
// `p`, hardware facts are numbers. Every value is a std::int64_t. Errors: those of
// Expression::parse().
Result<std::string> cpp_expression(std::string_view text, const ConfigSchema& config,
                                   const ProblemSchema& problem, const Hardware& hardware);

}  // namespace foretune
