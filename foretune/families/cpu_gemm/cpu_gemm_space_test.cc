#include "foretune/families/cpu_gemm/cpu_gemm_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/families/cpu_gemm/blocked_gemm.h"
#include "foretune/kernels/micro_kernel.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/schemas/cpu_gemm.h"

namespace foretune {
namespace {

constexpr std::uint64_t kSeed = 4711;

// Sanitizers make a bound space seven times slower.
#ifdef FORETUNE_SANITIZED
constexpr int kFewer = 10;
#else
constexpr int kFewer = 1;
#endif

Hardware hardware_of(int vector_bytes, int cores, bool has_caches = true) {
  Hardware hardware;
  hardware.set(HardwareValue::kVectorBytes, vector_bytes);
  hardware.set(HardwareValue::kCores, cores);
  if (has_caches) {
    hardware.set(HardwareValue::kL1Bytes, 32 * 1024);
    hardware.set(HardwareValue::kL2Bytes, 1024 * 1024);
    hardware.set(HardwareValue::kL3Bytes, 16 * 1024 * 1024);
  }
  return hardware;
}

std::vector<Hardware> machines() {
  return {hardware_of(64, 2), hardware_of(64, 1),        hardware_of(32, 2), hardware_of(64, 16),
          hardware_of(16, 2), hardware_of(64, 2, false), Hardware()};
}

std::shared_ptr<const CompiledSpace> compiled() {
  auto space = cpu_gemm_space();
  EXPECT_TRUE(space) << space.error().message;
  return *space;
}

Problem gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1,
             GemmLayout layout = GemmLayout::kRrr, DataType dtype = DataType::kF32) {
  const auto problem =
      GemmProblem::create({.m = m,
                           .n = n,
                           .k = k,
                           .batch = batch,
                           .operation = batch > 1 ? GemmOperation::kBmm : GemmOperation::kMm,
                           .dtype = dtype,
                           .layout = layout});
  EXPECT_TRUE(problem);
  return problem->to_problem();
}

std::unique_ptr<ParametricSpace> bound(const Problem& problem, const Hardware& hardware) {
  auto space = ParametricSpace::bind(compiled(), problem, hardware);
  EXPECT_TRUE(space) << space.error().message;
  return std::move(*space);
}

std::int64_t random_extent(Rng& rng) {
  const double exponent = 12 * rng.uniform();
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::exp2(exponent)) + rng.between(-1, 1));
}

CpuGemmConfig typed(const Config& config) {
  const auto out = CpuGemmConfig::from(config);
  EXPECT_TRUE(out);
  return *out;
}

TEST(CpuGemmSpaceTest, DefinitionCompilesAndSurvivesItsTextForm) {
  const SpaceDefinition definition = cpu_gemm_space_definition();
  const auto parsed = SpaceDefinition::parse(definition.text());
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(*parsed == definition);
  for (const Constraint& constraint : definition.constraints) {
    EXPECT_FALSE(constraint.reason.empty());
  }
}

GemmLayout drawn_layout(Rng& rng) { return static_cast<GemmLayout>(rng.below(4)); }

TEST(CpuGemmSpaceTest, OffersHundredsOfConfigsForMidSizesAndSomeForEverything) {
  const Hardware hardware = hardware_of(64, 2);
  for (const std::int64_t size : {96, 128, 256, 500, 512, 1000, 2000}) {
    const std::uint64_t count = bound(gemm(size, size, size), hardware)->count();
    EXPECT_GE(count, 300U) << size;
    EXPECT_LE(count, 6000U) << size;
  }
  EXPECT_GE(bound(gemm(512, 512, 512), hardware)->count(), 2000U);
  EXPECT_GE(bound(gemm(1, 4096, 4096), hardware)->count(), 50U);
  EXPECT_GE(bound(gemm(8, 8, 8), hardware)->count(), 3U);
  EXPECT_GE(bound(gemm(1, 1, 1), hardware)->count(), 1U);
  constexpr std::int64_t kHuge = 2147483647;
  for (const Hardware& machine : machines()) {
    for (const Problem& problem :
         {gemm(1, 1, 1), gemm(kHuge, 1, 1), gemm(1, kHuge, 1), gemm(1, 1, kHuge),
          gemm(kHuge, kHuge, kHuge), gemm(1, 1, 1, kHuge), gemm(17, 1, 1), gemm(5000, 3, 40000)}) {
      const std::uint64_t count = bound(problem, machine)->count();
      EXPECT_GE(count, 1U) << problem.text() << " on " << machine.text();
      EXPECT_LE(count, 8000U) << problem.text() << " on " << machine.text();
    }
  }
}

TEST(CpuGemmSpaceTest, EveryProblemHasConfigsOnEveryMachine) {
  Rng rng(kSeed);
  for (int trial = 0; trial < 60 / kFewer; ++trial) {
    const Problem problem = gemm(random_extent(rng), random_extent(rng), random_extent(rng),
                                 rng.below(4) == 0 ? rng.between(2, 40) : 1, drawn_layout(rng));
    for (const Hardware& hardware : machines()) {
      const auto space = bound(problem, hardware);
      ASSERT_GE(space->count(), 1U) << problem.text() << " on " << hardware.text();
      ASSERT_LE(space->count(), 24000U) << problem.text() << " on " << hardware.text();
    }
  }
}

// Legal configs stay legal, the rules reach a fixed point at once, and what they yield is listed.
TEST(CpuGemmSpaceTest, CanonicalFormsAreLegalListedAndFinal) {
  Rng rng(kSeed);
  const auto& domains = compiled()->definition().domains;
  const auto machine_list = machines();
  int legal = 0;
  for (int trial = 0; trial < 100 / kFewer; ++trial) {
    const Hardware& hardware = machine_list[rng.below(machine_list.size())];
    const Problem problem = gemm(random_extent(rng), random_extent(rng), random_extent(rng),
                                 rng.below(4) == 0 ? rng.between(2, 40) : 1, drawn_layout(rng));
    const auto space = bound(problem, hardware);
    std::set<Config> listed;
    for (std::uint64_t i = 0; i < space->count(); ++i) {
      listed.insert(space->unrank(i));
    }
    ASSERT_EQ(listed.size(), space->count());
    // Most random configs are no kernel; blocks of listed ones make many legal combinations.
    const std::vector<Config> pool(listed.begin(), listed.end());
    for (int draw = 0; draw < 400; ++draw) {
      Config config = pool[rng.below(pool.size())];
      for (std::size_t i = 0; i < domains.size(); ++i) {
        if (rng.below(3) == 0) {
          config.words[i] = domains[i][rng.below(domains[i].size())];
        }
      }
      if (!space->why_not(config)) {
        continue;
      }
      ++legal;
      const Config canonical = space->canonical(config);
      const Support support = space->why_not(canonical);
      ASSERT_TRUE(support) << problem.text() << ": " << to_text(cpu_gemm_schema(), config) << " -> "
                           << to_text(cpu_gemm_schema(), canonical) << ": " << support.reason();
      ASSERT_EQ(space->canonical(canonical), canonical)
          << problem.text() << ": " << to_text(cpu_gemm_schema(), config);
      ASSERT_TRUE(listed.contains(canonical))
          << problem.text() << ": " << to_text(cpu_gemm_schema(), config) << " -> "
          << to_text(cpu_gemm_schema(), canonical);
    }
  }
  EXPECT_GT(legal, 4000 / kFewer);
}

TEST(CpuGemmSpaceTest, ListedConfigsHaveKernelsAndNoTwoMeanTheSame) {
  for (const Hardware& hardware : machines()) {
    for (const Problem& problem :
         {gemm(1, 64, 64), gemm(5, 7, 9), gemm(13, 100, 20), gemm(16, 16, 16), gemm(40, 24, 70),
          gemm(100, 100, 300), gemm(30, 5, 100, 3), gemm(5, 70, 600, 1, GemmLayout::kRcr),
          gemm(100, 90, 80, 1, GemmLayout::kCcr)}) {
      const auto space = bound(problem, hardware);
      for (std::uint64_t i = 0; i < space->count(); ++i) {
        const CpuGemmConfig config = typed(space->unrank(i));
        const int lanes = kernel_limits(config.isa).lanes;
        const bool is_dot = config.kernel == GemmKernel::kDot;
        if (is_dot) {
          ASSERT_LE(config.mr, max_dot_rows(config.isa, config.nr));
        } else {
          ASSERT_EQ(config.nr % lanes, 0);
          ASSERT_LE(config.mr, max_kernel_rows(config.isa, config.nr / lanes))
              << to_text(cpu_gemm_schema(), space->unrank(i));
        }
        ASSERT_EQ(typed(config.to_config()), config);
        // Nothing twice as large as the matrix would need.
        const std::int64_t m = problem.field(static_cast<std::size_t>(GemmField::kM));
        const std::int64_t n = problem.field(static_cast<std::size_t>(GemmField::kN));
        ASSERT_LE(config.mr, m) << problem.text() << ": "
                                << to_text(cpu_gemm_schema(), space->unrank(i)) << " -> "
                                << to_text(cpu_gemm_schema(), space->canonical(space->unrank(i)));
        ASSERT_LT(config.nr, 2 * n + 2 * lanes);
        ASSERT_TRUE(config.threads > 1 || config.split == GemmSplit::kM)
            << problem.text() << ": " << to_text(cpu_gemm_schema(), space->unrank(i));
        const bool by_columns = problem.field(static_cast<std::size_t>(GemmField::kLayout)) !=
                                static_cast<std::int64_t>(GemmLayout::kRrr);
        ASSERT_TRUE(config.mr < m || !config.pack_b || by_columns);
      }
    }
  }
}

// A config whose representative were illegal would count as its own: there must be none.
TEST(CpuGemmSpaceTest, TheRulesLeaveEveryListedConfigAsItIs) {
  const SpaceDefinition& definition = compiled()->definition();
  Rng rng(kSeed + 1);
  for (int trial = 0; trial < 40 / kFewer; ++trial) {
    const Problem problem =
        gemm(random_extent(rng), random_extent(rng), random_extent(rng), 1, drawn_layout(rng),
             std::array{DataType::kF32, DataType::kF32, DataType::kBf16, DataType::kI8}[trial % 4]);
    const auto machine_list = machines();
    const Hardware& hardware = machine_list[rng.below(machine_list.size())];
    const auto space = bound(problem, hardware);
    for (const auto& [parameter, text] : definition.canonical) {
      const auto rule =
          Expression::parse(text, definition.schema, *find_problem_schema(kGemmProblem));
      ASSERT_TRUE(rule) << rule.error().message;
      const std::size_t at = *definition.schema.find(parameter);
      const std::vector<std::int32_t>& domain = definition.domains[at];
      for (std::uint64_t i = 0; i < space->count(); ++i) {
        const Config config = space->unrank(i);
        const std::int64_t value = rule->evaluate(config.words.view(), problem.fields(), hardware);
        const auto next = std::lower_bound(domain.begin(), domain.end(), value);
        ASSERT_NE(next, domain.end());
        ASSERT_EQ(config.words[at], *next)
            << problem.text() << " on " << hardware.text() << ": "
            << to_text(cpu_gemm_schema(), config) << " by the rule for " << parameter;
      }
    }
  }
}

// The blocks named in the definition must be those that exist: a machine that has the instructions
// can build every listed config.
TEST(CpuGemmSpaceTest, EveryListedConfigOfThisMachineCanBeBuilt) {
  ThreadPool pool(16);
  int built = 0;
  for (const Hardware& hardware : machines()) {
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
             {1, 300, 50}, {8, 8, 8}, {15, 33, 20}, {50, 70, 90}, {200, 200, 200}}) {
      const auto space = bound(gemm(m, n, k), hardware);
      for (std::uint64_t i = 0; i < space->count(); ++i) {
        const CpuGemmConfig config = typed(space->unrank(i));
        if (kernel_set(config.isa) == nullptr) {
          continue;
        }
        const auto gemm = BlockedGemm::create({.m = m, .n = n, .k = k}, config, &pool);
        ASSERT_TRUE(gemm) << gemm.error().message;
        ++built;
      }
    }
  }
  EXPECT_GT(built, 200);
}

TEST(CpuGemmSpaceTest, GoodConfigsExistWhereTheUsualOnesAreBad) {
  const Hardware hardware = hardware_of(64, 2);
  const auto has = [&](const Problem& problem, auto condition) {
    const auto space = bound(problem, hardware);
    for (std::uint64_t i = 0; i < space->count(); ++i) {
      if (condition(typed(space->unrank(i)))) {
        return true;
      }
    }
    return false;
  };
  // One row: B is streamed once, in order, by a wide kernel.
  EXPECT_TRUE(has(gemm(1, 4096, 4096), [](const CpuGemmConfig& config) {
    return config.mr == 1 && config.nr >= 64 && !config.pack_b && config.kc <= 64 &&
           config.nc == 4096 && config.threads == 2;
  }));
  // Hardly any depth: C dominates, so nothing is packed and rows are long.
  EXPECT_TRUE(has(gemm(4096, 4096, 4), [](const CpuGemmConfig& config) {
    return !config.pack_a && !config.pack_b && config.nc == 4096;
  }));
  // One row of B by columns, as a linear layer has it: nothing is packed.
  EXPECT_TRUE(has(gemm(1, 4096, 4096, 1, GemmLayout::kRcr), [](const CpuGemmConfig& config) {
    return config.kernel == GemmKernel::kDot && config.kc == 4096 && config.threads == 2;
  }));
  // A small output of a deep product: threads share the depth.
  EXPECT_TRUE(has(gemm(30, 30, 20000), [](const CpuGemmConfig& config) {
    return config.split == GemmSplit::kK && config.threads == 2;
  }));
  EXPECT_TRUE(has(gemm(4096, 8, 512),
                  [](const CpuGemmConfig& config) { return config.nr == 16 && config.mr >= 12; }));
}

TEST(CpuGemmSpaceTest, RefusalsNameTheirReason) {
  const CpuGemmConfig good{.isa = CpuIsa::kAvx512,
                           .mr = 8,
                           .nr = 48,
                           .pack_a = true,
                           .pack_b = true,
                           .mc = 64,
                           .nc = 1024,
                           .kc = 256,
                           .threads = 2,
                           .split = GemmSplit::kN};
  const Hardware hardware = hardware_of(64, 2);
  const auto reason = [&](const Problem& problem, const Hardware& machine, auto change) {
    CpuGemmConfig config = good;
    change(config);
    return compiled()->why_not(config.to_config(), problem, machine).reason();
  };
  const auto unchanged = [](CpuGemmConfig&) {};
  const Problem mid = gemm(500, 500, 500);
  EXPECT_EQ(reason(mid, hardware, unchanged), "");
  const auto expect = [&](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
  };
  expect(reason(mid, hardware_of(32, 2), unchanged), "does not have these instructions");
  expect(reason(mid, hardware, [](CpuGemmConfig& c) { c.mr = 12; }), "vector registers");
  expect(reason(mid, hardware, [](CpuGemmConfig& c) { c.nr = 24; }), "whole vectors");
  expect(reason(mid, hardware, [](CpuGemmConfig& c) { c.mr = 7; }), "only useful on a matrix");
  expect(reason(mid, hardware, [](CpuGemmConfig& c) { c.pack_b = false; }), "packing A without");
  expect(reason(mid, hardware, [](CpuGemmConfig& c) { c.mc = 4096, c.kc = 1024; }), "L2");
  expect(reason(mid, hardware, [](CpuGemmConfig& c) { c.mc = 100; }), "mc=100 is not");
  expect(reason(mid, hardware_of(64, 1), unchanged), "fewer cores");
  expect(reason(mid, hardware, [](CpuGemmConfig& c) { c.threads = 1, c.split = GemmSplit::kM; }),
         "not left to one core");
  expect(reason(gemm(20, 20, 20), hardware, unchanged), "waking a thread");
  expect(reason(mid, hardware, [](CpuGemmConfig& c) { c.split = GemmSplit::kBatch; }),
         "fewer products");
  const Problem by_columns = gemm(500, 500, 500, 1, GemmLayout::kRcr);
  expect(reason(by_columns, hardware, [](CpuGemmConfig& c) { c.pack_a = c.pack_b = false; }),
         "only dot kernels");
  const auto as_dot = [](CpuGemmConfig& c) {
    c.kernel = GemmKernel::kDot;
    c.mr = 4;
    c.nr = 4;
    c.pack_a = c.pack_b = false;
  };
  expect(reason(mid, hardware, as_dot), "B by columns");
  expect(reason(by_columns, hardware, as_dot), "so many rows");
  expect(reason(mid, hardware, [](CpuGemmConfig& c) { c.prefetch = 4; }), "prefetch=4 is not");
  expect(reason(mid, hardware, [](CpuGemmConfig& c) { c.unroll = 4; }), "hide the counting");
  expect(reason(mid, hardware, [](CpuGemmConfig& c) { c.unroll = 4, c.nr = 64, c.mr = 6; }), "");
  expect(reason(mid, hardware,
                [](CpuGemmConfig& c) { c.unroll = 4, c.nr = 64, c.mr = 6, c.prefetch = 8; }),
         "does not prefetch");
  expect(reason(mid, hardware, [](CpuGemmConfig& c) { c.split = GemmSplit::kGrid; }),
         "a grid takes four threads");
  expect(reason(mid, hardware, [](CpuGemmConfig& c) { c.split = GemmSplit::kK; }),
         "sharing the depth");
  expect(reason(gemm(8, 5000, 500), hardware, [](CpuGemmConfig& c) { c.split = GemmSplit::kM; }),
         "one row of register blocks");
}

TEST(CpuGemmConfigTest, RefusesForeignAndImpossibleConfigs) {
  Config config = CpuGemmConfig{}.to_config();
  EXPECT_TRUE(CpuGemmConfig::from(config));
  Config foreign = config;
  foreign.schema ^= 1;
  EXPECT_FALSE(CpuGemmConfig::from(foreign));
  Config shorter = config;
  shorter.words.resize(3);
  EXPECT_FALSE(CpuGemmConfig::from(shorter));
  for (std::size_t i = 0; i < kCpuGemmWords; ++i) {
    for (const std::int32_t bad : {-1, 1 << 30}) {
      Config broken = config;
      broken.words[i] = bad;
      const auto result = CpuGemmConfig::from(broken);
      ASSERT_FALSE(result);
      EXPECT_NE(result.error().message.find(cpu_gemm_schema().parameters[i].name),
                std::string::npos);
    }
  }
}

}  // namespace
}  // namespace foretune
