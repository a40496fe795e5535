#include "foretune/families/cpu_gemm/cpu_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/families/cpu_gemm/gemm_data.h"
#include "foretune/hardware/cpu.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/schemas/cpu_gemm.h"

namespace foretune {
namespace {

// Peaks are not needed for legality, and two cores make every config legal somewhere.
FamilyOptions options_for(int cores = 2) {
  FamilyOptions options;
  options.fingerprint = cpu_fingerprint(read_cpu_facts(), CpuPeaks());
  options.fingerprint.hardware.set(HardwareValue::kCores, cores);
  return options;
}

std::unique_ptr<Family> make_family(int cores = 2) {
  auto family = make_cpu_gemm(options_for(cores));
  EXPECT_TRUE(family) << family.error().message;
  return std::move(*family);
}

Problem problem_of(const GemmSizes& sizes) {
  const auto problem = GemmProblem::create(sizes);
  EXPECT_TRUE(problem) << problem.error().message;
  return problem->to_problem();
}

std::string describe(const Family& family, const Problem& problem, const Config& config) {
  return concat(problem.text(), " with ", to_text(family.info().config_schema, config));
}

void run_and_verify(const Family& family, const Problem& problem, const Config& config,
                    ProblemData& data) {
  const auto artifact = family.prepare(problem, config);
  ASSERT_TRUE(artifact) << describe(family, problem, config) << ": " << artifact.error().message;
  const auto run = (*artifact)->bind(problem, data);
  ASSERT_TRUE(run) << describe(family, problem, config) << ": " << run.error().message;
  EXPECT_LT((*run)->simulated_ns(), 0);
  for (int again = 0; again < 2; ++again) {
    data.poison();
    (*run)->run();
    const Support right = data.verify();
    ASSERT_TRUE(right) << describe(family, problem, config) << ": " << right.reason();
  }
}

GemmLayout random_layout(Rng& rng) { return static_cast<GemmLayout>(rng.below(4)); }

void verify_sampled_configs(const Family& family, const Problem& problem, std::size_t count,
                            Rng& rng, int& verified) {
  const auto space = family.space(problem);
  ASSERT_TRUE(space) << space.error().message;
  const EnumerableSpace& listed = *(*space)->enumerable();
  const auto data = family.make_data(problem, rng.next());
  ASSERT_TRUE(data) << data.error().message;
  const bool all = listed.count() <= count;
  const std::uint64_t draws = all ? listed.count() : count;
  for (std::uint64_t i = 0; i < draws; ++i) {
    run_and_verify(family, problem, listed.unrank(all ? i : rng.below(listed.count())), **data);
    if (testing::Test::HasFatalFailure()) {
      return;
    }
    ++verified;
  }
}

TEST(CpuGemmTest, LegalConfigsOfAGridOfShapesAreRight) {
  constexpr std::uint64_t kSeed = 31;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  const auto family = make_family();
  const std::vector<std::int64_t> small{1, 2, 7, 16, 17, 33};
  int verified = 0;
  for (const std::int64_t m : small) {
    for (const std::int64_t n : small) {
      for (const std::int64_t k : {1, 5, 31}) {
        verify_sampled_configs(*family,
                               problem_of({.m = m, .n = n, .k = k, .layout = random_layout(rng)}),
                               10, rng, verified);
        ASSERT_FALSE(HasFatalFailure());
      }
    }
  }
  EXPECT_GT(verified, 500);
}

TEST(CpuGemmTest, OtherTypesAndOperationsAreRight) {
  Rng rng(36);
  const auto family = make_family();
  int verified = 0;
  for (const DataType dtype : {DataType::kF32, DataType::kBf16, DataType::kI8}) {
    for (const GemmOperation operation :
         {GemmOperation::kMm, GemmOperation::kAddmm, GemmOperation::kAddmmRelu}) {
      if (dtype == DataType::kI8 && operation == GemmOperation::kAddmmRelu) {
        continue;
      }
      for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
               {1, 40, 33}, {13, 70, 101}, {90, 50, 30}, {150, 200, 90}}) {
        verify_sampled_configs(*family,
                               problem_of({.m = m,
                                           .n = n,
                                           .k = k,
                                           .operation = operation,
                                           .dtype = dtype,
                                           .layout = random_layout(rng)}),
                               12, rng, verified);
        ASSERT_FALSE(HasFatalFailure());
      }
    }
  }
  EXPECT_GT(verified, 300);
}

TEST(CpuGemmTest, ConstantWeightsArePackedOnceOrNotAtAll) {
  Rng rng(37);
  const auto family = make_family();
  int verified = 0;
  int packing = 0;
  int plain = 0;
  for (const auto& [m, n, k] :
       std::vector<std::array<std::int64_t, 3>>{{1, 40, 33}, {13, 70, 101}, {150, 200, 90}}) {
    const Problem problem = problem_of({.m = m,
                                        .n = n,
                                        .k = k,
                                        .layout = m == 1 ? GemmLayout::kRcr : GemmLayout::kRrr,
                                        .weights = GemmWeights::kConstant});
    verify_sampled_configs(*family, problem, 20, rng, verified);
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_FALSE(dynamic_cast<const CpuGemm&>(*family).kernel(problem, {}));
    const auto space = family->space(problem).value();
    const auto data = family->make_data(problem, 1).value();
    for (std::uint64_t i = 0; i < space->enumerable()->count(); i += 3) {
      const Config config = space->enumerable()->unrank(i);
      const auto run = family->prepare(problem, config).value()->bind(problem, *data).value();
      const std::vector<MetricValue> metrics = run->metrics();
      EXPECT_EQ(run->packs_operands(), CpuGemmConfig::from(config)->pack_b);
      // One of the two says how long packing takes.
      const MetricValue* const pack = find_metric(metrics, kPackNs);
      ASSERT_EQ(pack == nullptr, run->packs_operands());
      EXPECT_EQ(pack == nullptr ? 0 : pack->value, 0);
      const double bytes = find_metric(metrics, kWorkspaceBytes)->value;
      EXPECT_GE(bytes, run->packs_operands() ? 4.0 * static_cast<double>(n * k) : 0);
      ++(run->packs_operands() ? packing : plain);
    }
  }
  EXPECT_GT(packing, 20);
  EXPECT_GT(plain, 5);
}

TEST(CpuGemmTest, KernelsRunACallersOperandsOfTheirTypeOnly) {
  FamilyOptions options = options_for();
  const auto family = create_cpu_gemm(options);
  ASSERT_TRUE(family);
  const Problem problem = problem_of({.m = 30, .n = 40, .k = 50, .dtype = DataType::kI8});
  const auto kernel = (*family)->kernel(problem, (*family)->default_configs(problem).at(0));
  ASSERT_TRUE(kernel) << kernel.error().message;
  const auto data = (*family)->make_data(problem, 1);
  ASSERT_TRUE(data);
  auto& gemm_data = dynamic_cast<GemmData&>(**data);
  EXPECT_TRUE((*kernel)->run(gemm_data.i8_operands()));
  EXPECT_TRUE((*data)->verify()) << (*data)->verify().reason();
  const Status refused = (*kernel)->run(GemmOperands{});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "the kernel multiplies i8, the operands are f32");
}

TEST(CpuGemmTest, EveryProblemHasALegalCanonicalDefault) {
  Rng rng(37);
  for (const int cores : {1, 2, 8}) {
    const auto family = make_family(cores);
    for (const std::int64_t m : {1, 64, 5000}) {
      for (const std::int64_t n : {1, 100, 5000}) {
        for (const std::int64_t k : {1, 5000}) {
          for (const std::int64_t batch : {1, 3}) {
            GemmSizes sizes{.m = m, .n = n, .k = k, .batch = batch, .layout = random_layout(rng)};
            sizes.operation = batch > 1 ? GemmOperation::kBmm : GemmOperation::kMm;
            const Problem problem = GemmProblem::create(sizes).value().to_problem();
            const std::vector<Config> configs = family->default_configs(problem);
            ASSERT_EQ(configs.size(), 1U) << problem.text();
            const auto space = family->space(problem).value();
            EXPECT_TRUE(space->why_not(configs[0])) << describe(*family, problem, configs[0]);
            EXPECT_EQ(space->canonical(configs[0]), configs[0]);
          }
        }
      }
    }
  }
}

TEST(CpuGemmTest, OddPrimeSkinnyAndBatchedShapesAreRight) {
  constexpr std::uint64_t kSeed = 32;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  const auto family = make_family();
  const std::vector<GemmSizes> shapes{
      {.m = 1, .n = 1000, .k = 600},
      {.m = 1000, .n = 1, .k = 600},
      {.m = 1, .n = 1, .k = 9001},
      {.m = 3, .n = 1031, .k = 257},
      {.m = 1031, .n = 5, .k = 257},
      {.m = 521, .n = 523, .k = 3},
      {.m = 127, .n = 131, .k = 137},
      {.m = 64, .n = 64, .k = 2048},
      {.m = 600, .n = 300, .k = 40},
      {.m = 128, .n = 128, .k = 128},
      {.m = 97, .n = 101, .k = 103, .operation = GemmOperation::kAddmm},
      {.m = 1, .n = 513, .k = 1100, .operation = GemmOperation::kAddmm},
      {.m = 70, .n = 9, .k = 300, .operation = GemmOperation::kAddmm},
      {.m = 33, .n = 47, .k = 51, .batch = 7, .operation = GemmOperation::kBmm},
      {.m = 8, .n = 100, .k = 300, .batch = 40, .operation = GemmOperation::kBmm},
      {.m = 1, .n = 64, .k = 64, .batch = 33, .operation = GemmOperation::kBmm},
      {.m = 64, .n = 64, .k = 64, .batch = 2, .operation = GemmOperation::kBmm},
      {.m = 1, .n = 700, .k = 900, .layout = GemmLayout::kRcr},
      {.m = 5, .n = 203, .k = 1025, .layout = GemmLayout::kRcr},
      {.m = 40, .n = 300, .k = 77, .operation = GemmOperation::kAddmm, .layout = GemmLayout::kRcr},
      {.m = 150, .n = 140, .k = 130, .layout = GemmLayout::kCrr},
      {.m = 15,
       .n = 33,
       .k = 700,
       .batch = 3,
       .operation = GemmOperation::kBmm,
       .layout = GemmLayout::kCcr},
      {.m = 150, .n = 140, .k = 600, .layout = GemmLayout::kCcr}};
  int verified = 0;
  for (const GemmSizes& sizes : shapes) {
    verify_sampled_configs(*family, problem_of(sizes), 40, rng, verified);
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(verified, 400);
}

TEST(CpuGemmTest, RandomProblemsWithRandomConfigsAreRight) {
  constexpr std::uint64_t kSeed = 33;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  const auto family = make_family();
  int verified = 0;
  while (verified < 2000) {
    GemmSizes sizes{.m = rng.between(1, 150), .n = rng.between(1, 150), .k = rng.between(1, 150)};
    sizes.operation = static_cast<GemmOperation>(rng.below(3));
    if (sizes.operation == GemmOperation::kBmm) {
      sizes.batch = rng.between(1, 4);
    }
    sizes.layout = random_layout(rng);
    verify_sampled_configs(*family, problem_of(sizes), 20, rng, verified);
    ASSERT_FALSE(HasFatalFailure());
  }
}

// A config that is not in canonical form runs as its canonical form.
TEST(CpuGemmTest, ConfigsLargerThanTheProblemAreRight) {
  const auto family = make_family(1);
  const Problem large = problem_of({.m = 300, .n = 300, .k = 300});
  const Problem small = problem_of({.m = 5, .n = 9, .k = 11});
  const auto space = family->space(large);
  ASSERT_TRUE(space);
  const auto data = family->make_data(small, 1);
  ASSERT_TRUE(data);
  const EnumerableSpace& listed = *(*space)->enumerable();
  for (std::uint64_t i = 0; i < listed.count(); i += 7) {
    run_and_verify(*family, small, listed.unrank(i), **data);
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST(CpuGemmTest, PortableKernelsAreRightOnEveryMachine) {
  FamilyOptions options = options_for();
  for (const double vector_bytes : {16.0, 32.0}) {
    if (vector_bytes > options_for().fingerprint.hardware.get(HardwareValue::kVectorBytes)) {
      continue;
    }
    options.fingerprint.hardware.set(HardwareValue::kVectorBytes, vector_bytes);
    const auto family = make_cpu_gemm(options);
    ASSERT_TRUE(family);
    Rng rng(34);
    int verified = 0;
    for (const GemmSizes& sizes : std::vector<GemmSizes>{{.m = 1, .n = 100, .k = 50},
                                                         {.m = 61, .n = 67, .k = 71},
                                                         {.m = 100, .n = 6, .k = 30}}) {
      verify_sampled_configs(**family, problem_of(sizes), 60, rng, verified);
      ASSERT_FALSE(HasFatalFailure());
    }
    EXPECT_GT(verified, 60);
  }
}

TEST(CpuGemmTest, LargeProblemsAreCheckedBySamplesAndSigns) {
  const auto family = make_family();
  const Problem problem = problem_of({.m = 803, .n = 907, .k = 701});
  ASSERT_GT(GemmProblem::from(problem)->flops(), 1e9);
  const auto space = family->space(problem);
  ASSERT_TRUE(space);
  const auto data = family->make_data(problem, 3);
  ASSERT_TRUE(data);
  Rng rng(35);
  for (int i = 0; i < 3; ++i) {
    run_and_verify(*family, problem, *(*space)->sample(rng), **data);
    ASSERT_FALSE(HasFatalFailure());
  }
  auto& gemm_data = dynamic_cast<GemmData&>(**data);
  gemm_data.output()[123456] += 0.5F;
  EXPECT_FALSE(gemm_data.verify());
}

TEST(CpuGemmTest, SaysWhatItIsAndWhatItDoesNotDo) {
  const auto family = make_family();
  EXPECT_EQ(family->info().name, "cpu-gemm");
  EXPECT_EQ(family->info().config_schema, cpu_gemm_schema());
  ASSERT_NE(family->info().space, nullptr);
  EXPECT_EQ(family->info().feature_table, "gemm-cpu");
  EXPECT_EQ(family->info().max_threads, 2);
  EXPECT_EQ(make_family(1)->info().max_threads, 1);
  EXPECT_TRUE(cpu_gemm_available(options_for()));

  EXPECT_TRUE(family->supports(problem_of({.m = 4, .n = 4, .k = 4})));
  const auto refusal = [&](const GemmSizes& sizes) {
    const Problem problem = problem_of(sizes);
    EXPECT_FALSE(family->space(problem));
    EXPECT_FALSE(family->make_data(problem, 1));
    return family->supports(problem).reason();
  };
  EXPECT_EQ(refusal({.m = 4, .n = 4, .k = 4, .dtype = DataType::kF64}),
            "cpu-gemm multiplies f32, bf16 and i8, not f64");
  EXPECT_EQ(
      refusal(
          {.m = 4, .n = 4, .k = 4, .operation = GemmOperation::kAddmmRelu, .dtype = DataType::kI8}),
      "cpu-gemm has no ReLU for sums of integers");
  EXPECT_EQ(refusal({.m = 4, .n = 4, .k = 4, .operation = GemmOperation::kAddmmGelu}),
            "cpu-gemm has no GELU");

  FamilyOptions options = options_for();
  options.parameters = {{"speed", "max"}};
  const auto refused = make_cpu_gemm(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "cpu-gemm has no option 'speed'");
  options.parameters = {{"threads", "1"}};
  const auto single = make_cpu_gemm(options);
  ASSERT_TRUE(single);
  EXPECT_EQ((*single)->info().max_threads, 1);
  EXPECT_EQ((*single)->info().fingerprint.hardware.get(HardwareValue::kCores), 1);
  options.parameters = {{"isa", "generic"}};
  const auto narrow = make_cpu_gemm(options);
  ASSERT_TRUE(narrow);
  EXPECT_EQ((*narrow)->info().fingerprint.hardware.get(HardwareValue::kVectorBytes), 16);
  options.parameters = {{"isa", "sse9"}};
  EXPECT_FALSE(make_cpu_gemm(options));
  for (const char* wrong : {"0", "x", "1000"}) {
    options.parameters = {{"threads", wrong}};
    EXPECT_FALSE(make_cpu_gemm(options)) << wrong;
  }
}

TEST(CpuGemmTest, ALimitOfThreadsHoldsForInfoSpaceDefaultsAndSamples) {
  FamilyOptions options = options_for(8);
  options.threads = 2;
  const auto family = make_cpu_gemm(options);
  ASSERT_TRUE(family);
  EXPECT_EQ((*family)->info().max_threads, 2);
  const Problem problem = problem_of({.m = 512, .n = 512, .k = 512});
  const auto space = (*family)->space(problem);
  ASSERT_TRUE(space);
  Rng rng(36);
  int most = 0;
  for (int i = 0; i < 300; ++i) {
    most = std::max<int>(most, CpuGemmConfig::from(*(*space)->sample(rng))->threads);
  }
  EXPECT_EQ(most, 2);
  ASSERT_FALSE((*family)->default_configs(problem).empty());
  EXPECT_EQ(CpuGemmConfig::from((*family)->default_configs(problem)[0])->threads, 2);
  // The older way to say it may say the same, and nothing else.
  options.parameters = {{"threads", "2"}};
  EXPECT_TRUE(make_cpu_gemm(options));
  options.parameters = {{"threads", "1"}};
  const auto twofold = make_cpu_gemm(options);
  ASSERT_FALSE(twofold);
  EXPECT_EQ(twofold.error().message,
            "a limit of 2 threads and the family option threads=1 contradict each other");
  options.parameters.clear();
  options.threads = 9;
  const auto more = make_cpu_gemm(options);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message, "threads is a number from 1 to 8, not '9'");
}

TEST(CpuGemmTest, RefusesProblemsBeyondTheMemory) {
  FamilyOptions options = options_for();
  options.fingerprint.hardware.set(HardwareValue::kMemoryBytes, 1e6);
  const auto family = make_cpu_gemm(options);
  ASSERT_TRUE(family);
  const Problem problem = problem_of({.m = 1000, .n = 1000, .k = 1000});
  EXPECT_FALSE((*family)->supports(problem));
  EXPECT_FALSE((*family)->make_data(problem, 1));
}

TEST(CpuGemmTest, IllegalConfigsAndForeignDataAreRefused) {
  const auto family = make_family();
  const Problem problem = problem_of({.m = 64, .n = 64, .k = 64});
  const auto space = family->space(problem);
  ASSERT_TRUE(space);
  const Config config = (*space)->enumerable()->unrank(0);
  Config broken = config;
  broken.words[1] = 99;
  EXPECT_FALSE(family->prepare(problem, broken));
  broken.schema = 1;
  EXPECT_FALSE(family->prepare(problem, broken));

  const auto artifact = family->prepare(problem, config);
  ASSERT_TRUE(artifact);
  const Problem other = problem_of({.m = 65, .n = 64, .k = 64});
  const auto data = family->make_data(other, 1);
  ASSERT_TRUE(data);
  EXPECT_FALSE((*artifact)->bind(problem, **data));
  // Artifacts carry their config, so each has its own key.
  EXPECT_NE(family->artifact_key(problem, config),
            family->artifact_key(problem, (*space)->enumerable()->unrank(1)));
}

TEST(CpuGemmTest, RunsOfTwoCallersTakeTurnsOnThePool) {
  const auto family = make_family();
  const Problem problem = problem_of({.m = 100, .n = 100, .k = 100});
  const auto space = family->space(problem);
  ASSERT_TRUE(space);
  const EnumerableSpace& listed = *(*space)->enumerable();
  Config parallel = listed.unrank(0);
  for (std::uint64_t i = 0; i < listed.count(); ++i) {
    parallel = listed.unrank(i);
    if (CpuGemmConfig::from(parallel)->threads == 2) {
      break;
    }
  }
  ASSERT_EQ(CpuGemmConfig::from(parallel)->threads, 2);
  std::atomic<int> right = 0;
  const auto caller = [&] {
    const auto data = family->make_data(problem, 1);
    const auto artifact = family->prepare(problem, parallel);
    const auto run = (*artifact)->bind(problem, **data);
    for (int i = 0; i < 50; ++i) {
      (*data)->poison();
      (*run)->run();
      right += (*data)->verify() ? 1 : 0;
    }
  };
  std::thread first(caller);
  std::thread second(caller);
  first.join();
  second.join();
  EXPECT_EQ(right, 100);
}

}  // namespace
}  // namespace foretune
