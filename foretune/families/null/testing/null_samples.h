// The family "null" and its problems, for tests. Thread safety: free functions.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "foretune/families/null/null.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::testing_support {

inline Problem null_problem(std::int64_t m) {
  return GemmProblem::create({.m = m, .n = 256, .k = 512})->to_problem();
}

// The parameters must make sense.
inline std::unique_ptr<Family> null_with(
    std::vector<std::pair<std::string, std::string>> parameters) {
  FamilyOptions options;
  options.parameters = std::move(parameters);
  auto family = make_null(options);
  EXPECT_TRUE(family) << (family ? "" : family.error().message);
  return family ? *std::move(family) : nullptr;
}

}  // namespace foretune::testing_support
