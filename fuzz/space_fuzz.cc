// Any text: it is refused, or it is a space whose text form reads back to the same definition, and
// whose configs can be checked, made canonical and (when there are few) listed.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "foretune/base/check.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/parametric_space.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace foretune;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<SpaceDefinition> definition = SpaceDefinition::parse(text);
  if (!definition) {
    return 0;
  }
  const auto compiled = CompiledSpace::create(*definition);
  if (!compiled) {
    return 0;
  }
  const Result<SpaceDefinition> back = SpaceDefinition::parse(definition->text());
  FORETUNE_CHECK(back && *back == *definition);
  const Problem problem = GemmProblem::create({.m = 50, .n = 32, .k = 300}).value().to_problem();
  double combinations = 1;
  for (const auto& domain : definition->domains) {
    combinations *= static_cast<double>(domain.size());
  }
  if (combinations > 1e4) {
    return 0;
  }
  const auto space = ParametricSpace::bind(*compiled, problem, {});
  if (!space) {
    return 0;
  }
  for (std::uint64_t i = 0; i < (*space)->count(); ++i) {
    const Config config = (*space)->unrank(i);
    FORETUNE_CHECK(static_cast<bool>((*space)->why_not(config)));
    FORETUNE_CHECK((*space)->canonical(config) == config);
    if (i % 64 == 0) {
      for (const Config& neighbour : (*space)->neighbours(config)) {
        FORETUNE_CHECK(static_cast<bool>((*space)->why_not(neighbour)));
      }
    }
  }
  return 0;
}
