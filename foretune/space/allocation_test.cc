// The selector's hot path must not allocate.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "foretune/base/testing/allocation_count.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

TEST(CompiledSpace, LegalityAndCanonicalFormsDoNotAllocate) {
  SpaceDefinition definition{
      .schema = {.name = "x", .parameters = {{"mr", {}}, {"kc", {}}, {"pack", {"no", "yes"}}}},
      .problem_type = kGemmProblem,
      .domains = {{4, 8}, {64, 128, 256}, {0, 1}},
      .constraints = {{"mr * kc * 4 <= hw.l1_bytes", "too large"},
                      {"pack == pack.no || m > mr && k >= round_up(min(kc, k), 8)", "useless"},
                      {"select(n > 100, kc >= 128, kc <= 128)", "odd"}},
      .canonical = {{"kc", "min(kc, round_up(k, 64))"}}};
  const auto compiled = CompiledSpace::create(definition).value();
  const Problem problem = GemmProblem::create({.m = 64, .n = 200, .k = 100}).value().to_problem();
  Hardware hardware;
  hardware.set(HardwareValue::kL1Bytes, 4096);
  std::size_t legal = 0;
  const std::uint64_t before = allocation_count();
  for (const std::int32_t mr : {4, 8}) {
    for (const std::int32_t kc : {64, 128, 256}) {
      for (const std::int32_t pack : {0, 1}) {
        const Config config{compiled->schema_id(), {mr, kc, pack}};
        const auto words = config.words.view();
        legal += compiled->is_legal(words, problem.fields(), hardware) ? 1 : 0;
        legal += compiled->is_legal_config(words, hardware) ? 1 : 0;
        legal += compiled->is_legal_for_problem(words, problem.fields(), hardware) ? 1 : 0;
        const bool canonical = compiled->is_canonical(words, problem.fields(), hardware);
        EXPECT_EQ(canonical, compiled->canonical(config, problem, hardware) == config);
        legal += canonical ? 1 : 0;
      }
    }
  }
  const std::uint64_t after = allocation_count();
  EXPECT_EQ(after, before);
  EXPECT_GT(legal, 0U);
  // Checks that the counter works.
  const std::vector<int> values(1000);
  EXPECT_GT(allocation_count(), after);
  EXPECT_EQ(values.size(), 1000U);
}

}  // namespace
}  // namespace foretune
