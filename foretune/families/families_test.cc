#include "foretune/families/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/load_recorded.h"
#include "foretune/families/recorded/triton_space.h"
#include "foretune/measure/measure.h"
#include "foretune/search/strategy.h"
#include "foretune/space/parametric_space.h"
#include "foretune/space/schemas/triton.h"

namespace foretune {
namespace {

using testing::HasSubstr;

TEST(Families, EveryRowSaysWhatItIsAndWhyItIsAbsent) {
  std::set<std::string_view> names;
  for (const FamilyEntry* const entry : families()) {
    EXPECT_TRUE(names.insert(entry->name).second);
    EXPECT_FALSE(entry->description.empty());
    const Support support = entry->available({});
    const auto family = create_family(entry->name, {});
    EXPECT_EQ(static_cast<bool>(support), static_cast<bool>(family)) << entry->name;
    if (family) {
      EXPECT_EQ((*family)->info().name, entry->name);
      EXPECT_FALSE((*family)->info().feature_table.empty());
      EXPECT_TRUE(known_problems(**family).empty());
    } else {
      EXPECT_THAT(family.error().message, HasSubstr(support.reason()));
      EXPECT_FALSE(support.reason().empty());
    }
  }
  EXPECT_TRUE(names.contains("null"));
  EXPECT_TRUE(names.contains("recorded"));
  EXPECT_TRUE(names.contains("cpu-gemm"));
}

TEST(Families, UnknownNamesGetASuggestion) {
  const auto family = create_family("cpu-gem", {});
  ASSERT_FALSE(family);
  EXPECT_EQ(family.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(family.error().message, HasSubstr("did you mean 'cpu-gemm'?"));
}

TEST(Families, ThatBuildNothingRefuseBuildJobs) {
  for (const FamilyEntry* const entry : families()) {
    if (entry->builds || !entry->available({})) {
      continue;
    }
    const auto family = create_family(entry->name, {.build_jobs = 2});
    ASSERT_FALSE(family) << entry->name;
    EXPECT_EQ(family.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(family.error().message, HasSubstr("builds nothing"));
  }
}

TEST(Families, ThatReplayNothingRefuseData) {
  const auto family = create_family("null", {.data_path = "times.ftd"});
  ASSERT_FALSE(family);
  EXPECT_EQ(family.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(family.error().message, HasSubstr("replays nothing"));
}

TEST(Families, TheLimitOfThreadsIsInForceOrAnError) {
  const auto one = create_family("null", {.threads = 1});
  ASSERT_TRUE(one);
  EXPECT_EQ((*one)->info().max_threads, 1);
  const auto four = create_family("null", {.threads = 4});
  ASSERT_FALSE(four);
  EXPECT_EQ(four.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(four.error().message,
            "kernels of the family null use 1 thread, which cannot be changed to 4");
}

TEST(Families, RecordedNeedsItsFile) {
  const auto missing = create_family("recorded", {.data_path = "/no/such/file.ftd"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(missing.error().message, HasSubstr("/no/such/file.ftd"));
}

// A published table of sparse schedules, read as it is.
TEST(Families, RecordedReplaysSparseSchedules) {
  const testing_support::TemporaryFolder folder;
  const std::string path = (folder / "spmv_epyc7543.csv").string();
  const std::string head =
      "matrix,rows,cols,nnz,schedule,time_ms\nm,8,16,5,2 i 2 i0 8 i1 1 j 2 j0 16 j1 1 ";
  const std::string middle = "1 A 4 i0 i1 j0 j1 A 4 i0 0 i1 0 j0 1 j1 0 0 4 i0 i1 j0 j1 ";
  std::ofstream(path) << head << middle << "None None None 0 128 1,0.25\n"
                      << head.substr(head.find('\n') + 1) << middle
                      << "i0 None None 0 128 4,0.125\n";
  const std::shared_ptr<const Family> family =
      create_family("recorded", {.data_path = path}).value();
  EXPECT_EQ(family->info().feature_table, "sparse-schedule");
  EXPECT_EQ(family->info().max_threads, 128);
  const std::span<const Problem> problems = known_problems(*family);
  ASSERT_EQ(problems.size(), 1U);
  const auto space = family->space(problems[0]).value();
  ASSERT_NE(space->enumerable(), nullptr);
  ASSERT_EQ(space->enumerable()->count(), 2U);
  std::set<double> times_ns;
  for (std::uint64_t i = 0; i < 2; ++i) {
    const Config config = space->enumerable()->unrank(i);
    const auto data = family->make_data(problems[0], 1).value();
    const auto artifact = family->prepare(problems[0], config).value();
    times_ns.insert(artifact->bind(problems[0], *data).value()->simulated_ns());
  }
  EXPECT_EQ(times_ns, (std::set<double>{125000, 250000}));
}

std::string triton_file() {
  const std::string folder = FORETUNE_SHARED_DATA_DIR;
  const std::string path = folder + "/h200/triton_mm_bf16.csv.gz";
  return !folder.empty() && std::filesystem::exists(path) ? path : std::string();
}

class TritonData : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!triton_file().empty()) {
      auto loaded = create_family("recorded", {.data_path = triton_file()});
      ASSERT_TRUE(loaded) << loaded.error().message;
      family = *std::move(loaded);
    }
  }
  static void TearDownTestSuite() { family.reset(); }
  void SetUp() override {
    if (!family) {
      GTEST_SKIP() << "the shared test data is absent";
    }
  }
  static std::shared_ptr<const Family> family;
};
std::shared_ptr<const Family> TritonData::family;

TEST_F(TritonData, IsAFamilyLikeAnyOther) {
  const FamilyInfo& info = family->info();
  EXPECT_EQ(info.name, "recorded");
  EXPECT_EQ(info.config_schema, triton_gemm_schema());
  EXPECT_EQ(info.feature_table, "gemm-triton");
  EXPECT_EQ(info.fingerprint, h200_fingerprint());
  EXPECT_FALSE(info.needs_worker);
  ASSERT_NE(info.space, nullptr);
  EXPECT_EQ(known_problems(*family).size(), 230U);
}

// Every pair of the declared domains on every recorded problem: what the rules say against what was
// measured.
TEST_F(TritonData, DeclaredLegalityMatchesWhatWasMeasured) {
  const CompiledSpace& compiled = *family->info().space;
  const Hardware& hardware = family->info().fingerprint.hardware;
  const auto& domains = compiled.definition().domains;
  std::uint64_t pairs = 0;
  std::uint64_t recorded = 0;
  std::uint64_t falsely_legal = 0;
  std::uint64_t falsely_illegal = 0;
  for (const Problem& problem : known_problems(*family)) {
    const std::unique_ptr<Space> space = *family->space(problem);
    std::unordered_set<Config> measured;
    for (std::uint64_t i = 0; i < space->enumerable()->count(); ++i) {
      measured.insert(space->enumerable()->unrank(i));
    }
    recorded += measured.size();
    std::uint64_t product = 1;
    for (const auto& domain : domains) {
      product *= domain.size();
    }
    std::uint64_t found = 0;
    for (std::uint64_t index = 0; index < product; ++index) {
      Config config;
      config.schema = compiled.schema_id();
      std::uint64_t rest = index;
      for (const auto& domain : domains) {
        config.words.push_back(domain[rest % domain.size()]);
        rest /= domain.size();
      }
      const bool legal = compiled.is_legal(config.words.view(), problem.fields(), hardware);
      const bool was_measured = measured.contains(config);
      ++pairs;
      found += was_measured ? 1 : 0;
      falsely_legal += legal && !was_measured ? 1 : 0;
      falsely_illegal += !legal && was_measured ? 1 : 0;
    }
    EXPECT_EQ(found, measured.size()) << problem.text();  // the domains hold everything
  }
  EXPECT_EQ(recorded, 126821U);
  EXPECT_EQ(pairs, 230U * 900U);
  EXPECT_EQ(falsely_legal, 0U);
  EXPECT_EQ(falsely_illegal, 0U);
}

TEST_F(TritonData, SearchesRepeatExactlyAndFindTheRecordedBest) {
  const Problem& problem = known_problems(*family)[100];
  const std::unique_ptr<Space> space = *family->space(problem);
  const auto measurer = make_local_measurer(family, {.censor_factor = 0}, {});
  const auto search = [&](std::string_view name, std::size_t steps) {
    Rng rng(11);
    auto strategy = *create_strategy(name, problem, *space, {});
    std::vector<double> best_so_far;
    double best = std::numeric_limits<double>::infinity();
    while (best_so_far.size() < steps) {
      const std::vector<Config> batch = strategy->ask(4, rng);
      if (batch.empty()) {
        break;
      }
      std::vector<Trial> trials;
      for (const Config& config : batch) {
        const Measurement measurement = measurer->measure({.problem = problem, .config = config});
        EXPECT_EQ(measurement.outcome, Outcome::kOk) << measurement.reason;
        best = std::min(best, measurement.metrics.at(0).value);
        trials.push_back({.config = config, .value = measurement.metrics.at(0).value});
        best_so_far.push_back(best);
      }
      strategy->tell(trials);
    }
    return best_so_far;
  };
  const std::vector<double> everything = search("exhaustive", 100000);
  EXPECT_EQ(everything.size(), space->enumerable()->count());
  EXPECT_EQ(search("local", 200), search("local", 200));
  EXPECT_LE(search("local", 200).back(), 1.1 * everything.back());
  EXPECT_LE(search("stratified", 64).back(), 2 * everything.back());
}

TEST(LoadRecorded, ReadsOurOwnDataSetsAndPrefersRemeasuredRows) {
  const auto null_family = *create_family("null", {});
  const Problem problem = *Problem::parse("gemm m=64 n=64 k=64");
  const auto space = *null_family->space(problem);
  DatasetHeader header;
  header.family = "null";
  header.problem_type = null_family->info().problem_type;
  header.config_schema = null_family->info().config_schema;
  header.space_text = null_family->info().space->definition().text();
  header.fingerprint = null_family->info().fingerprint;
  Dataset dataset(header);
  const auto add = [&](std::uint64_t rank, double time_ns, std::uint8_t flags, Outcome outcome) {
    Measurement row{.problem = problem, .config = space->enumerable()->unrank(rank)};
    row.flags = flags;
    row.outcome = outcome;
    row.context.fidelity = (flags & kFlagReference) != 0 ? -1 : 0;
    row.context.threads = 3;
    if (time_ns > 0) {
      row.metrics = {{kTimeNs, time_ns, 0.01, 5}};
    } else {
      row.reason = "SIGSEGV";
    }
    dataset.add(row);
  };
  add(0, 100, 0, Outcome::kOk);
  add(0, 80, kFlagReference, Outcome::kOk);
  add(1, 150, 0, Outcome::kOk);
  add(2, 300, 0, Outcome::kCensored);
  add(3, 0, 0, Outcome::kCrashed);
  const testing_support::TemporaryFolder folder;
  const std::filesystem::path path = folder / "measurements.ftd";
  ASSERT_TRUE(write_dataset(dataset, path));
  auto family = create_family("recorded", {.data_path = path.string()});
  ASSERT_TRUE(family) << family.error().message;
  EXPECT_EQ((*family)->info().feature_table, "gemm-null");
  EXPECT_EQ((*family)->info().max_threads, 3);
  EXPECT_TRUE(create_family("recorded", {.data_path = path.string(), .threads = 3}));
  EXPECT_FALSE(create_family("recorded", {.data_path = path.string(), .threads = 1}));
  EXPECT_EQ((*family)->info().fingerprint, header.fingerprint);
  EXPECT_EQ((*family)->info().space->definition(), null_family->info().space->definition());
  const std::shared_ptr<const Family> shared = *std::move(family);
  const auto measurer = make_local_measurer(shared, {}, {});
  const auto measure = [&](std::uint64_t rank) {
    return measurer->measure({.problem = problem, .config = space->enumerable()->unrank(rank)});
  };
  EXPECT_DOUBLE_EQ(measure(0).metrics.at(0).value, 80);
  EXPECT_DOUBLE_EQ(measure(1).metrics.at(0).value, 150);
  EXPECT_EQ(measure(2).outcome, Outcome::kCensored);
  EXPECT_THAT(measure(3).reason, HasSubstr("SIGSEGV"));
  EXPECT_EQ(measure(4).outcome, Outcome::kUnsupported);
}

}  // namespace
}  // namespace foretune
