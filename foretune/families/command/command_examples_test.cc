// The families of examples/command, from their files to the answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/command/subprocess.h"
#include "foretune/families/families.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/measure/dataset_header.h"
#include "foretune/measure/measure.h"
#include "foretune/space/parametric_space.h"
#include "foretune/tune/tune_problem.h"

namespace foretune {
namespace {

using testing::HasSubstr;

std::filesystem::path example(const std::string& name) {
  return std::filesystem::path(FORETUNE_SOURCE_DIR) / "examples" / "command" / name;
}

// A file is registered once in a process; tests of one example share the family.
std::shared_ptr<const Family> family_of(const std::filesystem::path& path,
                                        const std::string& name) {
  static std::set<std::string> known;
  if (known.insert(name).second) {
    const Status registered = register_command_family(path);
    EXPECT_TRUE(registered) << (registered ? "" : registered.error().message);
  }
  FamilyOptions options;
  options.fingerprint.hardware.set(HardwareValue::kCores, 2);
  auto family = create_family(name, options);
  EXPECT_TRUE(family) << (family ? "" : family.error().message);
  return *std::move(family);
}

Config config(const Family& family, std::string_view text) {
  auto parsed = parse_config(family.info().config_schema, text);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return *std::move(parsed);
}

Protocol brief() {
  Protocol protocol;
  protocol.windows = 2;
  protocol.max_windows = 3;
  return protocol;
}

TEST(CommandExamples, CompilerFlags) {
  const auto family = family_of(example("compiler_flags/flags.toml"), "compiler-flags");
  std::size_t values = 0;
  for (const auto& domain : family->info().space->definition().domains) {
    values += domain.size();
  }
  EXPECT_GE(values, 30U);
  const Problem problem = *Problem::parse("compiler_flags n=300");
  const auto space = *family->space(problem);
  EXPECT_EQ(space->enumerable(), nullptr);  // far too many to list
  const auto measurer = make_local_measurer(family, brief(), {});

  // Nobody's flags: the program is right, but slow.
  const Config by_default = family->default_configs(problem).at(0);
  std::string text = to_text(space->schema(), by_default);
  EXPECT_THAT(text, HasSubstr("opt=O2 march=generic"));
  const Measurement fast = measurer->measure({.problem = problem, .config = by_default});
  ASSERT_EQ(fast.outcome, Outcome::kOk) << fast.reason;
  text.replace(text.find("opt=O2"), 6, "opt=O0");
  const Measurement slow = measurer->measure({.problem = problem, .config = config(*family, text)});
  ASSERT_EQ(slow.outcome, Outcome::kOk) << slow.reason;
  EXPECT_GT(slow.find(kTimeNs)->value, 1.5 * fast.find(kTimeNs)->value);
  EXPECT_GT(fast.find("file_bytes")->value, 1000);

  // Code that is compiled for size is smaller, and that is found out in a stage of its own.
  const auto code_bytes = [&](const std::string& of) {
    const Measurement measured = measurer->measure(
        {.problem = problem, .config = config(*family, of), .evaluate = {"code_bytes"}});
    EXPECT_EQ(measured.outcome, Outcome::kOk) << measured.reason;
    const MetricValue* value = measured.find("code_bytes");
    return value == nullptr ? std::nan("") : value->value;
  };
  text.replace(text.find("opt=O0"), 6, "opt=Os");
  const double small = code_bytes(text);
  text.replace(text.find("opt=Os"), 6, "opt=O3");
  text.replace(text.find("unroll=none"), 11, "unroll=funroll_all_loops");
  EXPECT_GT(code_bytes(text), small);
  EXPECT_GT(small, 500);

  // The flags that the constraint forbids, and those that mean the same.
  text.replace(text.find("opt=O3"), 6, "opt=O0");
  EXPECT_THAT(space->why_not(config(*family, text)).reason(), HasSubstr("no loop is unrolled"));

  // Random flags compile and compute the same, or are refused for what they print.
  Rng rng(3);
  for (int i = 0; i < 6; ++i) {
    const Measurement measured =
        measurer->measure({.problem = problem, .config = *space->sample(rng)});
    EXPECT_TRUE(measured.outcome == Outcome::kOk || measured.outcome == Outcome::kWrongResult)
        << to_string(measured.outcome) << ": " << measured.reason << " of "
        << to_text(space->schema(), measured.config);
  }
}

TEST(CommandExamples, TuningCompilerFlagsIsNoSlowerThanTheDefault) {
  const auto family = family_of(example("compiler_flags/flags.toml"), "compiler-flags");
  const Problem problem = *Problem::parse("compiler_flags n=300");
  const auto measurer = make_local_measurer(family, brief(), {});
  TuneOptions options{.strategy = "local", .budget = {.measurements = 20}};
  options.finalists = 3;
  options.rounds = 3;
  const auto tuned = tune_problem(*family, *measurer, nullptr, problem, options, {});
  ASSERT_TRUE(tuned) << tuned.error().message;
  ASSERT_TRUE(tuned->by_default);
  EXPECT_LE(tuned->finalists.front().time_ns, tuned->by_default->time_ns);
}

TEST(CommandExamples, TheFastestThatIsGoodEnough) {
  const auto family = family_of(example("two_metrics/heat.toml"), "heat");
  const Problem problem = *Problem::parse("heat size=40");
  const auto measurer = make_local_measurer(family, brief(), {});
  const testing_support::TemporaryFolder folder;
  auto journal = JournalWriter::open(folder / "heat.ftd", header_of(family->info()));
  ASSERT_TRUE(journal) << journal.error().message;
  const auto tune = [&](std::string_view objective) {
    TuneOptions options{.strategy = "exhaustive"};
    options.objective = *Objective::parse(objective);
    options.finalists = 4;
    options.rounds = 4;
    auto tuned = tune_problem(*family, *measurer, journal->get(), problem, options, {});
    EXPECT_TRUE(tuned) << (tuned ? "" : tuned.error().message);
    return *std::move(tuned);
  };
  const auto error_of = [](const TunedConfig& tuned) {
    return find_metric(tuned.values, "error")->value;
  };
  const TuneResult bounded = tune("minimise time_ns subject to error <= 0.01");
  EXPECT_LE(error_of(bounded.finalists.front()), 0.01);
  EXPECT_EQ(bounded.measured.size(), 48U);  // all ran well: none is stopped where error counts
  // Whoever is less exact is faster: without the bound another config wins.
  const TuneResult unbounded = tune("minimise time_ns");
  EXPECT_GT(error_of(unbounded.finalists.front()), 0.01);
  EXPECT_LT(unbounded.finalists.front().time_ns, bounded.finalists.front().time_ns);
  // The default is exact and slow.
  ASSERT_TRUE(bounded.by_default);
  EXPECT_LT(error_of(*bounded.by_default), 1e-6);
  EXPECT_LT(bounded.finalists.front().time_ns, 0.7 * bounded.by_default->time_ns);
  // Both metrics are in the data set.
  journal->reset();
  const auto data = read_dataset(folder / "heat.ftd");
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_GE(data->size(), 48U);
}

// A stand-in for the tile engine's build folder: targets of the same names, programs with the same
// command line and report.
class CkExampleTest : public testing::Test {
 protected:
  static constexpr std::string_view kGood =
      "gemm_universal_fp16_rcr_compv3_cshuffle_intrawave_False_False_False_False_128x128x64_2x2x1_"
      "32x32x16";
  static constexpr std::string_view kSmall =
      "gemm_universal_fp16_rcr_compv3_cshuffle_intrawave_False_False_False_False_64x64x64_2x2x1_"
      "32x32x16";

  CkExampleTest() {
    std::filesystem::copy_file(example("ck_benchmark.toml"), folder / "ck_benchmark.toml");
    const std::string standin =
        concat(FORETUNE_SOURCE_DIR, "/foretune/families/command/testdata/ck_standin");
    const auto configured = command_internal::run_process(
        {"cmake", "-S", standin, "-B", (folder / "build").string(), "-G", "Unix Makefiles",
         concat("-DKERNELS=", kGood, ";", kSmall)},
        folder.path(), {.time_s = 60});
    EXPECT_TRUE(configured && configured->is_good())
        << (configured ? configured->text() : configured.error().message);
  }
  static Config tile(const Family& family, int size) {
    return config(family, concat("pipeline=compv3 epilogue=cshuffle scheduler=intrawave "
                                 "pad_m=False pad_n=False pad_k=False persistent=False tile_m=",
                                 size, " tile_n=", size,
                                 " tile_k=64 warp_m=2 warp_n=2 warp_k=1 warp_tile_m=32 "
                                 "warp_tile_n=32 warp_tile_k=16"));
  }
  testing_support::TemporaryFolder folder;
};

TEST_F(CkExampleTest, BuildsTargetsAndReadsTheirReports) {
  const auto family = family_of(folder / "ck_benchmark.toml", "ck-benchmark");
  const Problem problem = *Problem::parse("ck_benchmark m=1024 n=1024 k=512");
  const auto space = *family->space(problem);
  EXPECT_EQ(family->default_configs(problem).at(0), tile(*family, 128));
  const auto measurer = make_local_measurer(family, brief(), {});
  const Measurement good = measurer->measure({.problem = problem, .config = tile(*family, 128)});
  ASSERT_EQ(good.outcome, Outcome::kOk) << good.reason;
  const double time_ns = good.find(kTimeNs)->value;
  EXPECT_NEAR(time_ns, 7e4, 1e4);
  const Measurement small = measurer->measure({.problem = problem, .config = tile(*family, 64)});
  ASSERT_EQ(small.outcome, Outcome::kOk) << small.reason;
  EXPECT_GT(small.find(kTimeNs)->value, time_ns);
  EXPECT_GT(good.find("tflops")->value, small.find("tflops")->value);
  EXPECT_GT(good.find("bandwidth")->value, 10);
  // Each target is built once, whatever the problem.
  measurer->measure({.problem = *Problem::parse("ck_benchmark m=2048 n=1024 k=512"),
                     .config = tile(*family, 128)});
  EXPECT_EQ(read_text_file(folder / "build/built.txt").value_or(""),
            concat("built ", kGood, "\nbuilt ", kSmall, "\n"));
  // A kernel that the configured project does not have is an outcome.
  const Measurement absent = measurer->measure({.problem = problem, .config = tile(*family, 256)});
  EXPECT_EQ(absent.outcome, Outcome::kPrepareFailed);
  EXPECT_THAT(absent.reason, HasSubstr("the build ended with exit code"));
  // The rules say what the kernel would refuse.
  const auto odd = *family->space(*Problem::parse("ck_benchmark m=100 n=1024 k=512"));
  EXPECT_THAT(odd->why_not(tile(*family, 128)).reason(), HasSubstr("m is no multiple of the tile"));
}

// The import of CK's results takes what the stand-in prints, and finds the same kernel and time.
TEST_F(CkExampleTest, TheReportIsThatOfTheTileEngine) {
  const auto built = command_internal::run_process(
      {"cmake", "--build", (folder / "build").string(), "--target", concat("benchmark_", kGood)},
      folder.path(), {});
  ASSERT_TRUE(built && built->is_good()) << (built ? built->text() : built.error().message);
  const auto run = command_internal::run_process(
      {(folder / "build/bin" / concat("benchmark_", kGood)).string(), "-m=1024", "-n=1024",
       "-k=512", "-warmup=10", "-repeat=50", "-json_output=true"},
      folder.path(), {});
  ASSERT_TRUE(run && run->is_good());
  const auto imported = import_ck_text(run->output, ExchangeFormat::kCkJson, {});
  ASSERT_TRUE(imported) << imported.error().message << run->output;
  ASSERT_EQ(imported->size(), 1U);
  EXPECT_TRUE(parse_ck_gemm_name(kGood));
  const auto failed = command_internal::run_process(
      {(folder / "build/bin" / concat("benchmark_", kGood)).string(), "-m=100"}, folder.path(), {});
  ASSERT_TRUE(failed && failed->is_good());
  EXPECT_EQ(failed->output, "");
}

}  // namespace
}  // namespace foretune
