// For tests: compares folded rules with the space that they come from, on random configs and
// problems. Thread safety: free functions without state.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/problem/problem.h"
#include "foretune/space/folded_rules.h"
#include "foretune/space/parametric_space.h"

namespace foretune {

// The configs that a check found to be legal and illegal, and what was left of the rules.
struct FoldedFacts {
  std::size_t legal = 0;
  std::size_t illegal = 0;
  std::size_t rules = 0;
};

// Draws a value of every field: mostly small, as sizes of real problems, sometimes at the limits.
inline std::vector<std::int64_t> draw_fields(const ProblemSchema& schema, Rng& rng) {
  std::vector<std::int64_t> out;
  for (const ProblemField& field : schema.fields) {
    const std::int64_t range = std::min<std::int64_t>(field.maximum - field.minimum, 300);
    out.push_back(rng.below(16) == 0  ? field.maximum
                  : rng.below(2) == 0 ? field.minimum
                                      : field.minimum + rng.between(0, range));
  }
  return out;
}

// Draws configs of the definition's values, or of small numbers where it lists none, and problems;
// a third of the fields is known beforehand.
inline FoldedFacts expect_folded_is_unfolded(const SpaceDefinition& definition,
                                             const Hardware& hardware, Rng& rng) {
  constexpr std::size_t kConfigs = 40;
  constexpr std::size_t kProblems = 40;
  const auto compiled = CompiledSpace::create(definition);
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.error().message);
  if (!compiled) {
    return {};
  }
  const std::shared_ptr<const CompiledSpace>& space = *compiled;
  const ProblemSchema& problem = *find_problem_schema(definition.problem_type);
  std::vector<std::optional<std::int64_t>> known(problem.fields.size());
  const std::vector<std::int64_t> fixed = draw_fields(problem, rng);
  for (std::size_t i = 0; i < known.size(); ++i) {
    known[i] = rng.below(3) == 0 ? std::optional(fixed[i]) : std::nullopt;
  }
  FoldedRules rules(space, hardware, known);
  std::vector<std::vector<std::int32_t>> configs;
  for (std::size_t i = 0; i < kConfigs; ++i) {
    std::vector<std::int32_t> words;
    for (std::size_t p = 0; p < definition.schema.parameters.size(); ++p) {
      const std::size_t labels = definition.schema.parameters[p].labels.size();
      words.push_back(
          !definition.domains.empty()
              ? definition.domains[p][rng.below(definition.domains[p].size())]
              : static_cast<std::int32_t>(rng.below(labels > 0 ? labels : std::size_t{64})));
    }
    rules.add(words);
    configs.push_back(std::move(words));
  }
  FoldedFacts out{.rules = rules.rules()};
  for (std::size_t p = 0; p < kProblems; ++p) {
    std::vector<std::int64_t> fields = draw_fields(problem, rng);
    for (std::size_t i = 0; i < known.size(); ++i) {
      fields[i] = known[i].value_or(fields[i]);
    }
    FoldedRules::Outcomes outcomes;
    for (std::size_t i = 0; i < kConfigs; ++i) {
      const bool is_legal = space->is_legal_for_problem(configs[i], fields, hardware);
      EXPECT_EQ(rules.is_legal(i, fields, outcomes), is_legal) << "config " << i;
      ++(is_legal ? out.legal : out.illegal);
    }
  }
  return out;
}

}  // namespace foretune
