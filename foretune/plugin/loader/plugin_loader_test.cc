#include "foretune/plugin/loader/plugin_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/families/families.h"
#include "foretune/features/feature_table.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/sampler.h"
#include "foretune/search/strategy.h"

namespace foretune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::filesystem::path plugin(const std::string& kind) {
  return std::filesystem::path(FORETUNE_TEST_PLUGINS) / ("test_plugin_" + kind + ".so");
}

bool has_family(std::string_view name) {
  const auto rows = families();
  return std::any_of(rows.begin(), rows.end(),
                     [&](const FamilyEntry* entry) { return entry->name == name; });
}

// A plug-in that is refused leaves no trace in the tables.
void expect_refused(const std::string& kind, ErrorCode code, const std::string& words) {
  const std::size_t families_before = families().size();
  const std::size_t types_before = problem_types().size();
  const std::size_t loaded_before = loaded_plugins().size();
  const Status status = load_plugin(plugin(kind), {.time_limit = std::chrono::seconds(2)});
  ASSERT_FALSE(status) << kind;
  EXPECT_EQ(status.error().code, code) << status.error().message;
  EXPECT_THAT(status.error().message, HasSubstr(words));
  EXPECT_THAT(status.error().message, HasSubstr(plugin(kind).string()));
  EXPECT_EQ(status.error().message.find('\n'), std::string::npos);
  EXPECT_EQ(families().size(), families_before);
  EXPECT_EQ(problem_types().size(), types_before);
  EXPECT_EQ(loaded_plugins().size(), loaded_before);
}

TEST(PluginLoader, RefusesAnotherVersionWithoutCallingIt) {
  expect_refused("VERSION", ErrorCode::kMismatch, "it was built for 'foretune 0.0.1, g++ 4'");
}

TEST(PluginLoader, RefusesWhatIsNoPlugIn) {
  expect_refused("NO_ENTRY", ErrorCode::kCorrupt, "it has no function foretune_plugin_1");
  expect_refused("EMPTY", ErrorCode::kCorrupt, "foretune_plugin_1 has no answer");
}

TEST(PluginLoader, OutlivesThoseThatCrashHangExitOrThrow) {
  expect_refused("ABORT", ErrorCode::kCorrupt, "it crashes (SIGABRT)");
#ifndef FORETUNE_SANITIZED  // whose handler ends the child with an exit code
  expect_refused("SEGFAULT", ErrorCode::kCorrupt, "it crashes (SIGSEGV)");
  expect_refused("EARLY", ErrorCode::kCorrupt, "it crashes (SIGSEGV)");
#endif
  expect_refused("HANG", ErrorCode::kCorrupt, "it takes longer than 2.0 s");
  expect_refused("EXIT", ErrorCode::kCorrupt, "it ends the process (exit code 7)");
  expect_refused("THROW", ErrorCode::kMismatch, "it throws: no beads");
}

TEST(PluginLoader, AddsNothingOfOneWhoseSecondRowIsTaken) {
  expect_refused("TAKEN", ErrorCode::kMismatch, "there is a family 'cpu-gemm' already");
}

TEST(PluginLoader, RefusesOtherFiles) {
  const testing_support::TemporaryFolder folder;
  const std::filesystem::path text = folder.path() / "text.so";
  ASSERT_TRUE(write_text_file_atomically(text, "not a library"));
  const Status no_library = load_plugin(text);
  ASSERT_FALSE(no_library);
  EXPECT_EQ(no_library.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(no_library.error().message, HasSubstr("it is no plug-in"));
  const Status absent = load_plugin(folder.path() / "absent.so");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
  const Status toml = load_plugin(folder.path() / "families.toml");
  ASSERT_FALSE(toml);
  EXPECT_EQ(toml.error().code, ErrorCode::kNotFound);
}

TEST(PluginLoader, LoadsOnceHoweverOftenItIsAsked) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] { EXPECT_TRUE(load_plugin(plugin("GOOD"))); });
  }
  threads.clear();
  const testing_support::TemporaryFolder folder;
  std::filesystem::create_symlink(plugin("GOOD"), folder.path() / "link.so");
  EXPECT_TRUE(load_plugin(folder.path() / "link.so"));
  const std::vector<LoadedPlugin> all = loaded_plugins();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].path, std::filesystem::canonical(plugin("GOOD")));
  EXPECT_THAT(all[0].added, ElementsAre("problem type ring", "feature table ring-plain",
                                        "strategy backwards", "family ring"));
}

TEST(PluginLoader, RowsOfAPlugInWorkAsThoseThatAreBuiltIn) {
  ASSERT_TRUE(load_plugin(plugin("GOOD")));
  EXPECT_TRUE(has_family("ring"));
  const Result<Problem> problem = Problem::parse("ring beads=100");
  ASSERT_TRUE(problem) << problem.error().message;
  EXPECT_EQ(problem_work(*problem)->flops, 100);
  Rng rng(1);
  const auto drawn = sample_log_normal(*find_problem_type("ring"), 20, {}, {}, rng);
  ASSERT_TRUE(drawn) << drawn.error().message;
  EXPECT_EQ(drawn->problems.size(), 20U);

  auto created = create_family("ring", {});
  ASSERT_TRUE(created) << created.error().message;
  const std::shared_ptr<const Family> family = *std::move(created);
  const auto table = find_feature_table(family->info().feature_table);
  ASSERT_TRUE(table);
  EXPECT_TRUE((*table)->supports(problem->type(), family->info().config_schema));
  const auto space = family->space(*problem);
  ASSERT_TRUE(space);
  auto strategy = create_strategy("backwards", *problem, **space, {});
  ASSERT_TRUE(strategy) << strategy.error().message;
  const std::vector<Config> configs = (*strategy)->ask(10, rng);
  ASSERT_EQ(configs.size(), 4U);
  EXPECT_EQ(to_text((*space)->schema(), configs[0]), "step=8");
  // Data, kernel and check are the plug-in's, the stopwatch is ours.
  const auto measurer = make_local_measurer(family, Protocol{}, Context{});
  for (const Config& config : configs) {
    const Measurement measurement = measurer->measure({*problem, config, -1});
    EXPECT_EQ(measurement.outcome, Outcome::kOk) << measurement.reason;
    EXPECT_GT(measurement.find(kTimeNs)->value, 0);
  }
  EXPECT_EQ(family->default_configs(*problem).size(), 1U);
}

}  // namespace
}  // namespace foretune
