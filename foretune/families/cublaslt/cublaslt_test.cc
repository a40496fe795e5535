// The family on the device that tests/fake_gpu plays: in this process, and in workers where a
// device that fails ends the process.
#include "foretune/families/cublaslt/cublaslt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/families/cublaslt/portfolio.h"
#include "foretune/families/testing/faulty_worker.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using testing_support::quick;

constexpr std::int32_t kFaultyTile = 20;

FamilyOptions fake_options() {
  return {.parameters = {{"driver", FORETUNE_FAKE_GPU},
                         {"nvml", FORETUNE_FAKE_GPU},
                         {"cublaslt", FORETUNE_FAKE_GPU}}};
}

std::shared_ptr<const CublasltFamily> fake_family() {
  FamilyOptions options = fake_options();
  options.fingerprint = *(*create_cublaslt(options))->read_device();
  return *create_cublaslt(options);
}

Problem problem(std::int64_t m = 256, std::int64_t n = 320, std::int64_t k = 512) {
  return GemmProblem::create(
             {.m = m, .n = n, .k = k, .dtype = DataType::kBf16, .layout = GemmLayout::kRcr})
      ->to_problem();
}

Config with_tile(std::int32_t tile) {
  return CublasltConfig{
      .algorithm = 66, .tile = tile, .stages = 35, .split_k = 1, .custom = 0, .cluster = 2}
      .to_config();
}

std::unique_ptr<Measurer> worker(const std::string& faults, const Protocol& protocol = quick()) {
  return testing_support::faulty_worker(faults, "cublaslt", fake_options(), protocol);
}

TEST(CublasltSpace, SaysWhatIsNotLegalForAnyDevice) {
  const auto space = *CompiledSpace::create(cublaslt_space());
  const auto why_not = [&](const CublasltConfig& config) {
    return space->why_not(config.to_config(), problem(64, 64, 64), Hardware());
  };
  EXPECT_TRUE(why_not(CublasltConfig::rank(1)));
  const CublasltConfig split{
      .algorithm = 66, .tile = 20, .stages = 35, .split_k = 4, .reduction = 2};
  EXPECT_TRUE(why_not(split));
  const auto why_not_on = [&](std::string_view text, const CublasltConfig& config) {
    return space->why_not(config.to_config(), *Problem::parse(text), Hardware());
  };
  // By type, by the alignment of rows, which depends on the layout, and by batch.
  EXPECT_FALSE(why_not_on("gemm m=64 n=64 k=64 dtype=f32", split));
  EXPECT_FALSE(why_not_on("gemm m=64 n=64 k=64 dtype=f8e4m3 layout=rcr", split));
  EXPECT_FALSE(why_not_on("gemm m=64 n=60 k=64 dtype=bf16", split));
  EXPECT_FALSE(why_not_on("gemm m=60 n=64 k=64 dtype=bf16 layout=crr", split));
  EXPECT_TRUE(why_not_on("gemm m=60 n=64 k=64 dtype=bf16 layout=rcr", split));
  EXPECT_TRUE(why_not_on("gemm m=64 n=64 k=100 dtype=bf16 layout=crr", split));
  EXPECT_FALSE(why_not_on("gemm op=bmm m=64 n=64 k=64 batch=2 dtype=bf16", split));
  // A rank with words of its own, no algorithm, a split without reduction and the reverse, parts
  // that are too short, and a reduction in place.
  for (const CublasltConfig& config :
       std::vector<CublasltConfig>{{.heuristic = 1, .tile = 20},
                                   {.tile = 20, .split_k = 1},
                                   {.algorithm = 66, .split_k = 2},
                                   {.algorithm = 66, .split_k = 1, .reduction = 2},
                                   {.algorithm = 66, .split_k = 8, .reduction = 2},
                                   {.algorithm = 66, .split_k = 2, .reduction = 1}}) {
    EXPECT_FALSE(why_not(config)) << to_text(cublaslt_schema(), config.to_config());
  }
}

TEST(CublasltPortfolio, BeginsWithTheRanks) {
  const std::vector<Config> unknown = cublaslt_portfolio("sm_999");
  ASSERT_EQ(unknown.size(), 8U);
  EXPECT_EQ(unknown.front(), CublasltConfig::rank(1).to_config());
  const std::vector<Config> known = cublaslt_portfolio("sm_90");
  EXPECT_GT(known.size(), 8U);
  EXPECT_LE(known.size(), 2000U);
  const auto space = *CompiledSpace::create(cublaslt_space());
  std::vector<Config> sorted = known;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());
  // Every config serves a type, and some only vectors.
  const std::vector<Problem> problems{*Problem::parse("gemm m=512 n=512 k=8192 dtype=f16"),
                                      *Problem::parse("gemm m=512 n=512 k=8192 dtype=tf32"),
                                      *Problem::parse("gemm m=512 n=512 k=8192 dtype=f8e4m3"),
                                      *Problem::parse("gemm m=1 n=512 k=8192 dtype=f16")};
  for (const Config& config : known) {
    ASSERT_TRUE(std::any_of(problems.begin(), problems.end(), [&](const Problem& each) {
      return space->why_not(config, each, Hardware());
    })) << to_text(cublaslt_schema(), config);
  }
}

TEST(CublasltPortfolio, SaysWhichLineIsWrong) {
  const std::string good = to_text(cublaslt_schema(), with_tile(20));
  EXPECT_EQ(parse_cublaslt_configs("# a remark\n\n" + good + "\n")->size(), 1U);
  const auto bad = parse_cublaslt_configs(good + "\ntile=3\n");
  ASSERT_FALSE(bad);
  EXPECT_TRUE(bad.error().message.starts_with("line 2: ")) << bad.error().message;
}

TEST(Cublaslt, NeedsADriverUnlessLibrariesAreNamed) {
  if (std::filesystem::exists("/dev/nvidiactl")) {
    GTEST_SKIP() << "this machine has an NVIDIA GPU";
  }
  const Support here = cublaslt_available({});
  ASSERT_FALSE(here);
  EXPECT_NE(here.reason().find("no NVIDIA GPU"), std::string::npos);
  EXPECT_TRUE(cublaslt_available(fake_options()));
}

TEST(Cublaslt, ChecksItsOptions) {
  const auto error_of = [](const char* name, const char* value) {
    FamilyOptions options;
    options.parameters = {{name, value}};
    const auto family = create_cublaslt(options);
    return family ? std::string() : family.error().message;
  };
  EXPECT_NE(error_of("tile", "3").find("no option 'tile'"), std::string::npos);
  EXPECT_NE(error_of("device", "-1").find("device is a number"), std::string::npos);
  EXPECT_NE(error_of("workspace_mb", "many").find("'many'"), std::string::npos);
  EXPECT_NE(error_of("configs", "/no/such/file").find("/no/such/file"), std::string::npos);
  EXPECT_EQ(error_of("workspace_mb", "32"), "");
}

TEST(Cublaslt, TakesConfigsFromAFile) {
  const testing_support::TemporaryFolder folder;
  const std::string path = (folder / "configs.txt").string();
  const std::string line = to_text(cublaslt_schema(), with_tile(20)) + "\n";
  ASSERT_TRUE(write_text_file_atomically(path, line + line));
  FamilyOptions options;
  options.parameters = {{"configs", path}};
  const auto family = *create_cublaslt(options);
  const auto space = *family->space(problem());
  ASSERT_EQ(space->enumerable()->count(), 1U);
  EXPECT_EQ(space->enumerable()->unrank(0), with_tile(20));
  // Explicit configs that are not listed may be measured, too.
  EXPECT_TRUE(space->why_not(with_tile(23)));
}

TEST(Cublaslt, KnowsItsProblemsWithoutADevice) {
  const auto family = *create_cublaslt({});
  const auto supports = [&](const GemmSizes& sizes) {
    return family->supports(GemmProblem::create(sizes)->to_problem());
  };
  EXPECT_TRUE(supports({.m = 8, .n = 8, .k = 8, .dtype = DataType::kF16}));
  EXPECT_FALSE(supports({.m = 8, .n = 8, .k = 8, .dtype = DataType::kI8}));
  EXPECT_TRUE(supports(
      {.m = 16, .n = 32, .k = 64, .dtype = DataType::kF8e4m3, .layout = GemmLayout::kRcr}));
  EXPECT_FALSE(supports(
      {.m = 16, .n = 32, .k = 64, .dtype = DataType::kF8e4m3, .layout = GemmLayout::kRrr}));
  EXPECT_FALSE(supports(
      {.m = 16, .n = 33, .k = 64, .dtype = DataType::kF8e4m3, .layout = GemmLayout::kRcr}));
  const std::vector<Config> defaults = family->default_configs(problem());
  ASSERT_EQ(defaults.size(), 1U);
  EXPECT_EQ(defaults[0], CublasltConfig::rank(1).to_config());
}

TEST(Cublaslt, TheDeviceIsPartOfTheFingerprint) {
  const Fingerprint fingerprint = fake_family()->info().fingerprint;
  EXPECT_EQ(fingerprint.device, "Foretune Fake GPU");
  EXPECT_EQ(fingerprint.isa, "sm_90 cublaslt-13.0");
}

TEST(Cublaslt, MeasuresByTheDevicesClock) {
  const auto family = fake_family();
  const auto measurer = make_local_measurer(family, quick(), Context{});
  const auto time_of = [&](const Config& config) {
    const Measurement measurement = measurer->measure({.problem = problem(), .config = config});
    EXPECT_EQ(measurement.outcome, Outcome::kOk) << measurement.reason;
    return measurement.find(kTimeNs)->value;
  };
  const double first_ns = time_of(with_tile(18));
  // The fake's clock is exact but for half a percent.
  EXPECT_NEAR(time_of(with_tile(18)) / first_ns, 1, 0.01);
  EXPECT_GT(first_ns, 2000);
  EXPECT_LT(first_ns, 1e6);
  EXPECT_NE(time_of(with_tile(23)), first_ns);
}

TEST(Cublaslt, StopsSlowConfigsEarly) {
  const auto measurer = make_local_measurer(fake_family(), quick(), Context{});
  Request request{.problem = problem(), .config = with_tile(18)};
  const double time_ns = measurer->measure(request).find(kTimeNs)->value;
  // A launch may look 20 us longer than it is, and the host is given three quarters of the time of
  // the fake, whose clock stands still meanwhile; all of k in one tile takes longer than that.
  request.problem = problem(64, 64, 1 << 18);
  request.incumbent_ns = time_ns;
  const Measurement slow = measurer->measure(request);
  EXPECT_EQ(slow.outcome, Outcome::kCensored);
  EXPECT_GE(slow.find(kTimeNs)->value, 2 * time_ns);
}

TEST(Cublaslt, ColdRunsFindNothingInTheCache) {
  Protocol protocol = quick();
  const auto family = fake_family();
  const auto warm = make_local_measurer(family, protocol, Context{});
  protocol.cache = CacheState::kCold;
  const auto cold = make_local_measurer(family, protocol, Context{});
  const Request request{.problem = problem(), .config = with_tile(18)};
  const Measurement cold_run = cold->measure(request);
  ASSERT_EQ(cold_run.outcome, Outcome::kOk) << cold_run.reason;
  EXPECT_GT(cold_run.find(kTimeNs)->value, 300 + warm->measure(request).find(kTimeNs)->value);
}

TEST(Cublaslt, ComparesInTurns) {
  const auto measurer = make_local_measurer(fake_family(), quick(), Context{});
  const std::vector<Config> configs{with_tile(18), CublasltConfig::rank(1).to_config(),
                                    with_tile(19)};
  const std::vector<Measurement> measurements = measurer->compare(problem(), configs, 7);
  ASSERT_EQ(measurements.size(), 3U);
  EXPECT_EQ(measurements[0].find(kMedianNs)->samples, 7U);
  EXPECT_EQ(measurements[1].outcome, Outcome::kOk);
  EXPECT_EQ(measurements[2].outcome, Outcome::kUnsupported);
}

TEST(Cublaslt, HeuristicAndEnumerationAreExplicitConfigs) {
  const auto family = fake_family();
  const auto ranks = family->heuristic(problem());
  ASSERT_TRUE(ranks) << ranks.error().message;
  ASSERT_FALSE(ranks->empty());
  EXPECT_EQ(ranks->front().heuristic, 0);
  EXPECT_GT(ranks->front().algorithm, 0);
  const auto all = family->enumerate(problem(), {2});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_NE(std::find(all->begin(), all->end(), *CublasltConfig::from(with_tile(18))), all->end());
}

TEST(CublasltFaults, WrongResultsAreFound) {
  for (const char* fault : {"wrong:20", "nan:20"}) {
    const auto measurer = worker(fault);
    const Measurement wrong =
        measurer->measure({.problem = problem(), .config = with_tile(kFaultyTile)});
    EXPECT_EQ(wrong.outcome, Outcome::kWrongResult) << fault;
    EXPECT_NE(wrong.reason.find("1 of 81920 elements are wrong"), std::string::npos)
        << wrong.reason;
    EXPECT_EQ(measurer->measure({.problem = problem(), .config = with_tile(18)}).outcome,
              Outcome::kOk);
  }
}

TEST(CublasltFaults, ALostDeviceIsOneMeasurementAndTheRunGoesOn) {
  const auto measurer = worker("crash:20");
  const Measurement lost =
      measurer->measure({.problem = problem(), .config = with_tile(kFaultyTile)});
  EXPECT_EQ(lost.outcome, Outcome::kCrashed);
  EXPECT_NE(lost.reason.find("cublasLtMatmul"), std::string::npos) << lost.reason;
  EXPECT_EQ(measurer->measure({.problem = problem(), .config = with_tile(18)}).outcome,
            Outcome::kOk);
}

TEST(CublasltFaults, AHangIsTimedOut) {
  Protocol protocol = quick();
  protocol.time_limit_s = 4;  // a worker must start in this time, under sanitizers too
  const auto measurer = worker("hang:20", protocol);
  EXPECT_EQ(measurer->measure({.problem = problem(), .config = with_tile(kFaultyTile)}).outcome,
            Outcome::kTimedOut);
  EXPECT_EQ(measurer->measure({.problem = problem(), .config = with_tile(18)}).outcome,
            Outcome::kOk);
}

TEST(CublasltFaults, ALaunchThatIsRefusedIsUnsupported) {
  const Measurement refused =
      worker("refuse:20")->measure({.problem = problem(), .config = with_tile(kFaultyTile)});
  EXPECT_EQ(refused.outcome, Outcome::kUnsupported);
  EXPECT_EQ(refused.stage, Stage::kRun);
  EXPECT_NE(refused.reason.find("cublasLtMatmul"), std::string::npos) << refused.reason;
}

TEST(CublasltFaults, AThrottledDeviceMarksItsTimes) {
  const auto measurer = worker("throttle");
  std::uint8_t flags = 0;
  for (int i = 0; i < 50 && flags == 0; ++i) {
    flags = measurer->measure({.problem = problem(), .config = with_tile(18)}).flags;
  }
  EXPECT_EQ(flags, kFlagThrottled);
  EXPECT_EQ(worker("nonvml")->measure({.problem = problem(), .config = with_tile(18)}).flags, 0);
}

TEST(CublasltFaults, ADeviceThatDoesNotStartSaysWhy) {
  const auto described =
      describe_device({.worker_command = {"/usr/bin/env", "FORETUNE_FAKE_GPU_FAULTS=nodevice",
                                          FORETUNE_CLI, "worker"},
                       .family = "cublaslt",
                       .family_options = fake_options()});
  ASSERT_FALSE(described);
  EXPECT_EQ(described.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(described.error().message.find("cuInit"), std::string::npos);
}

TEST(Cublaslt, AWorkerDescribesTheDevice) {
  const auto described = describe_device({.worker_command = {FORETUNE_CLI, "worker"},
                                          .family = "cublaslt",
                                          .family_options = fake_options()});
  ASSERT_TRUE(described) << described.error().message;
  EXPECT_EQ(*described, fake_family()->info().fingerprint);
}

}  // namespace
}  // namespace foretune
