// The family on the device that tests/fake_gpu plays: in this process, and in workers where a
// device that fails ends the process.
#include "foretune/families/cudnn/cudnn.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/families/testing/faulty_worker.h"
#include "foretune/features/feature_table.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/conv/conv.h"

namespace foretune {
namespace {

using testing_support::quick;

FamilyOptions fake_options() {
  return {.parameters = {{"driver", FORETUNE_FAKE_GPU},
                         {"nvml", FORETUNE_FAKE_GPU},
                         {"cudnn", FORETUNE_FAKE_GPU}}};
}

std::shared_ptr<const CudnnFamily> fake_family(FamilyOptions options = fake_options()) {
  options.fingerprint = *(*create_cudnn(options))->read_device();
  return *create_cudnn(options);
}

Problem problem() {
  return *Problem::parse(
      "conv op=forward n=2 c=16 k=16 hi=6 wi=6 y=3 x=3 pad_h=1 pad_w=1 dtype=bf16");
}

Config engine(std::int32_t index) { return CudnnConfig::of_engine(index).to_config(); }

std::unique_ptr<Measurer> worker(const std::string& faults, const Protocol& protocol = quick()) {
  return testing_support::faulty_worker(faults, "cudnn", fake_options(), protocol);
}

TEST(CudnnSpace, SaysWhatIsNoConfig) {
  const auto space = *CompiledSpace::create(cudnn_space());
  const auto why_not = [&](const CudnnConfig& config) {
    return space->why_not(config.to_config(), problem(), Hardware());
  };
  EXPECT_TRUE(why_not(CudnnConfig::ranked(CudnnHeuristic::kA, 1)));
  EXPECT_TRUE(why_not(CudnnConfig::of_engine(0)));
  CudnnConfig config = CudnnConfig::of_engine(62);
  config.set_knob(60, 1);
  EXPECT_TRUE(why_not(config));
  EXPECT_FALSE(why_not(CudnnConfig()));
  EXPECT_FALSE(why_not(CudnnConfig::ranked(CudnnHeuristic::kA, 0)));
  EXPECT_FALSE(why_not(CudnnConfig::ranked(CudnnHeuristic::kNone, 1)));
  config = CudnnConfig::ranked(CudnnHeuristic::kB, 1);
  config.engine = 3;
  EXPECT_FALSE(why_not(config));
  config = CudnnConfig::ranked(CudnnHeuristic::kB, 1);
  config.set_knob(2, 3);
  const Support refused = why_not(config);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.reason().find("leaves the knobs to the library"), std::string::npos);
}

TEST(Cudnn, NeedsADriverUnlessLibrariesAreNamed) {
  if (std::filesystem::exists("/dev/nvidiactl")) {
    GTEST_SKIP() << "this machine has an NVIDIA GPU";
  }
  const Support here = cudnn_available({});
  ASSERT_FALSE(here);
  EXPECT_NE(here.reason().find("no NVIDIA GPU"), std::string::npos);
  EXPECT_TRUE(cudnn_available(fake_options()));
}

TEST(Cudnn, ChecksItsOptions) {
  const auto error_of = [](const char* name, const char* value) {
    FamilyOptions options;
    options.parameters = {{name, value}};
    const auto family = create_cudnn(options);
    return family ? std::string() : family.error().message;
  };
  EXPECT_NE(error_of("tile", "3").find("no option 'tile'"), std::string::npos);
  EXPECT_NE(error_of("deterministic", "yes").find("'yes'"), std::string::npos);
  EXPECT_NE(error_of("workspace_mb", "many").find("'many'"), std::string::npos);
  EXPECT_NE(error_of("configs", "/no/such/file").find("/no/such/file"), std::string::npos);
  EXPECT_EQ(error_of("deterministic", "1"), "");
}

TEST(Cudnn, TheSpaceHasTheRanksAndTheConfigsOfAFile) {
  const auto plain = *create_cudnn({});
  const std::uint64_t ranks = (*plain->space(problem()))->enumerable()->count();
  EXPECT_EQ(ranks, 36U);
  const testing_support::TemporaryFolder folder;
  const std::string path = (folder / "configs.txt").string();
  ASSERT_TRUE(write_text_file_atomically(path, "engine=1 tile_size=2\nheuristic=a rank=1\n"));
  FamilyOptions options;
  options.parameters = {{"configs", path}};
  const auto family = *create_cudnn(options);
  const auto space = *family->space(problem());
  EXPECT_EQ(space->enumerable()->count(), ranks + 1);
  // Configs that are not listed may be measured, too.
  EXPECT_TRUE(space->why_not(engine(3)));
  ASSERT_TRUE(write_text_file_atomically(path, "engine=1 tile=2\n"));
  const auto refused = create_cudnn(options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("line 1"), std::string::npos);
}

TEST(Cudnn, KnowsItsProblemsWithoutADevice) {
  const auto family = *create_cudnn({});
  const auto supports = [&](std::string_view text) {
    const auto parsed = Problem::parse(text);
    EXPECT_TRUE(parsed) << parsed.error().message;
    return family->supports(*parsed);
  };
  EXPECT_TRUE(supports("conv op=forward n=1 c=4 k=4 hi=8 wi=8 y=3 x=3 dtype=f16"));
  EXPECT_TRUE(supports("conv op=backward_weight n=1 c=4 k=4 hi=8 wi=8 y=3 x=3 dtype=tf32"));
  EXPECT_FALSE(supports("conv op=forward n=1 c=4 k=4 hi=8 wi=8 y=3 x=3 dtype=i8"));
  EXPECT_FALSE(supports("conv op=forward n=1 c=4 k=4 hi=8 wi=8 y=3 x=3 weights=constant"));
  EXPECT_FALSE(supports("conv op=forward n=1 c=4 k=4 hi=8 wi=8 y=3 x=3 skip_rows=2"));
  EXPECT_FALSE(supports("gemm m=8 n=8 k=8"));
  const std::vector<Config> defaults = family->default_configs(problem());
  ASSERT_EQ(defaults.size(), 1U);
  EXPECT_EQ(defaults[0], CudnnConfig::ranked(CudnnHeuristic::kA, 1).to_config());
  const auto table = find_feature_table(family->info().feature_table);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_TRUE((*table)->supports(kConvProblem, family->info().config_schema));
}

TEST(Cudnn, TheDeviceIsPartOfTheFingerprint) {
  EXPECT_EQ(fake_family()->info().fingerprint.isa, "sm_90 cudnn-9.19");
  FamilyOptions options = fake_options();
  options.parameters.emplace_back("deterministic", "1");
  EXPECT_EQ(fake_family(options)->info().fingerprint.isa, "sm_90 cudnn-9.19 deterministic");
}

TEST(Cudnn, MeasuresByTheDevicesClock) {
  const auto family = fake_family();
  const auto measurer = make_local_measurer(family, quick(), Context{});
  const auto measured = [&](const Config& config) {
    Measurement measurement = measurer->measure({.problem = problem(), .config = config});
    EXPECT_EQ(measurement.outcome, Outcome::kOk) << measurement.reason;
    return measurement;
  };
  const Measurement first = measured(engine(0));
  const double first_ns = first.find(kTimeNs)->value;
  // The fake's clock is exact but for half a percent.
  EXPECT_NEAR(measured(engine(0)).find(kTimeNs)->value / first_ns, 1, 0.01);
  EXPECT_GT(measured(engine(5)).find(kTimeNs)->value, 1.1 * first_ns);
  EXPECT_EQ(first.find(kWorkspaceBytes)->value, 0);
  EXPECT_EQ(first.find(kDeterministic)->value, 1);
  const Measurement split = measured(engine(2));
  EXPECT_EQ(split.find(kWorkspaceBytes)->value, 4 * 2 * 16 * 36);
  EXPECT_EQ(split.find(kDeterministic)->value, 0);
  const Measurement refused = measurer->measure({.problem = problem(), .config = engine(6)});
  EXPECT_EQ(refused.outcome, Outcome::kUnsupported);
  EXPECT_EQ(refused.stage, Stage::kBind);
}

TEST(Cudnn, ColdRunsFindNothingInTheCache) {
  Protocol protocol = quick();
  const auto family = fake_family();
  const auto warm = make_local_measurer(family, protocol, Context{});
  protocol.cache = CacheState::kCold;
  const auto cold = make_local_measurer(family, protocol, Context{});
  const Request request{.problem = problem(), .config = engine(0)};
  const Measurement cold_run = cold->measure(request);
  ASSERT_EQ(cold_run.outcome, Outcome::kOk) << cold_run.reason;
  EXPECT_GT(cold_run.find(kTimeNs)->value, 300 + warm->measure(request).find(kTimeNs)->value);
}

TEST(Cudnn, AConfigThatCannotBeCapturedIsUnsupported) {
  const auto measurer = make_local_measurer(fake_family(), quick(), Context{});
  CudnnConfig config = CudnnConfig::of_engine(4);
  config.set_knob(60, 1);
  const Request request{.problem = problem(), .config = config.to_config()};
  const Measurement refused = measurer->measure(request);
  EXPECT_EQ(refused.outcome, Outcome::kUnsupported);
  EXPECT_EQ(refused.stage, Stage::kRun);
  EXPECT_NE(refused.reason.find("captured in a CUDA graph"), std::string::npos) << refused.reason;
  // The device goes on.
  EXPECT_EQ(measurer->measure({.problem = problem(), .config = engine(4)}).outcome, Outcome::kOk);
}

TEST(Cudnn, ComparesInTurns) {
  const auto measurer = make_local_measurer(fake_family(), quick(), Context{});
  const std::vector<Config> configs{
      engine(1), CudnnConfig::ranked(CudnnHeuristic::kB, 1).to_config(), engine(6)};
  const std::vector<Measurement> measurements = measurer->compare(problem(), configs, 7);
  ASSERT_EQ(measurements.size(), 3U);
  EXPECT_EQ(measurements[0].find(kMedianNs)->samples, 7U);
  EXPECT_EQ(measurements[1].outcome, Outcome::kOk);
  EXPECT_EQ(measurements[2].outcome, Outcome::kUnsupported);
}

TEST(Cudnn, ListsBuildsAndAsks) {
  const auto family = fake_family();
  const auto listed = family->enumerate(problem(), {.splits = {2}, .seconds = 60}, 2);
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_GT(listed->configs.size(), 20U);
  const auto built = family->build(problem(), listed->configs, 2, 60);
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_EQ(built->size(), listed->configs.size());
  const auto answers = family->answers(problem(), CudnnHeuristic::kB);
  ASSERT_TRUE(answers) << answers.error().message;
  EXPECT_EQ(answers->front().engine, 2);
}

TEST(CudnnFaults, WrongResultsAreFound) {
  for (const char* fault : {"wrong:5001", "nan:5001"}) {
    const auto measurer = worker(fault);
    const Measurement wrong = measurer->measure({.problem = problem(), .config = engine(1)});
    EXPECT_EQ(wrong.outcome, Outcome::kWrongResult) << fault;
    EXPECT_NE(wrong.reason.find("1 of 1152 elements are wrong"), std::string::npos) << wrong.reason;
    EXPECT_EQ(measurer->measure({.problem = problem(), .config = engine(0)}).outcome, Outcome::kOk);
  }
}

TEST(CudnnFaults, ALostDeviceIsOneMeasurementAndTheRunGoesOn) {
  const auto measurer = worker("crash:5001");
  const Measurement lost = measurer->measure({.problem = problem(), .config = engine(1)});
  EXPECT_EQ(lost.outcome, Outcome::kCrashed);
  EXPECT_NE(lost.reason.find("cudnnBackendExecute"), std::string::npos) << lost.reason;
  EXPECT_EQ(measurer->measure({.problem = problem(), .config = engine(0)}).outcome, Outcome::kOk);
}

TEST(CudnnFaults, AHangIsTimedOut) {
  Protocol protocol = quick();
  protocol.time_limit_s = 4;  // a worker must start in this time, under sanitizers too
  const auto measurer = worker("hang:5001", protocol);
  EXPECT_EQ(measurer->measure({.problem = problem(), .config = engine(1)}).outcome,
            Outcome::kTimedOut);
  EXPECT_EQ(measurer->measure({.problem = problem(), .config = engine(0)}).outcome, Outcome::kOk);
}

TEST(CudnnFaults, APlanThatIsRefusedIsUnsupported) {
  const Measurement refused =
      worker("refuse:5001")->measure({.problem = problem(), .config = engine(1)});
  EXPECT_EQ(refused.outcome, Outcome::kUnsupported);
  EXPECT_EQ(refused.stage, Stage::kBind);
  EXPECT_NE(refused.reason.find("plan"), std::string::npos) << refused.reason;
}

TEST(CudnnFaults, TooLargeAWorkspaceIsUnsupported) {
  FamilyOptions options = fake_options();
  options.parameters.emplace_back("workspace_mb", "0");
  const auto measurer = make_local_measurer(fake_family(options), quick(), Context{});
  const Measurement refused = measurer->measure({.problem = problem(), .config = engine(2)});
  EXPECT_EQ(refused.outcome, Outcome::kUnsupported);
  EXPECT_NE(refused.reason.find("bytes of workspace"), std::string::npos) << refused.reason;
  EXPECT_EQ(measurer->measure({.problem = problem(), .config = engine(0)}).outcome, Outcome::kOk);
}

TEST(Cudnn, AWorkerDescribesTheDevice) {
  const auto described = describe_device({.worker_command = {FORETUNE_CLI, "worker"},
                                          .family = "cudnn",
                                          .family_options = fake_options()});
  ASSERT_TRUE(described) << described.error().message;
  EXPECT_EQ(*described, fake_family()->info().fingerprint);
}

}  // namespace
}  // namespace foretune
