#include "foretune/families/loop_nest/loop_nest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/measure/measure.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Family> family_of(const std::string& type) {
  auto family =
      make_loop_nest({.fingerprint = {}, .data_path = {}, .parameters = {{"type", type}}});
  EXPECT_TRUE(family.has_value()) << family.error().message;
  return *std::move(family);
}

Problem problem_of(const std::string& text) { return Problem::parse(text).value(); }

class LoopNestFamily : public testing::Test {
 protected:
  void SetUp() override {
    if (const Support support = loop_nest_available({}); !support) {
      GTEST_SKIP() << support.reason();
    }
  }
};

// Prepares, binds, runs and verifies one config; the error of the first step that fails.
Status run_once(const Family& family, const Problem& problem, const Config& config,
                ProblemData& data) {
  FORETUNE_TRY(const std::unique_ptr<Artifact> artifact, family.prepare(problem, config));
  FORETUNE_TRY(const std::unique_ptr<Run> run, artifact->bind(problem, data));
  data.poison();
  EXPECT_FALSE(data.verify());
  run->run();
  const Support right = data.verify();
  EXPECT_TRUE(right) << right.reason() << ": " << problem.text();
  const std::vector<MetricValue> metrics = run->metrics();
  EXPECT_EQ(metrics.size(), family.info().metrics.size());
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    EXPECT_EQ(metrics[i].metric, family.info().metrics[i].name);
  }
  return {};
}

TEST_F(LoopNestFamily, EveryDefaultAndMostRandomSchedulesOfEveryTypeAreRight) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {"nest_mm", {"nest_mm m=33 n=48 k=17", "nest_mm m=8 n=20 k=16 batch=3 ta=yes relu=yes"}},
      {"nest_conv", {"nest_conv c=8 h=9 w=9 o=16 r=3 s=3 pad=1 layout=nhwc"}},
      {"nest_reduce", {"nest_reduce r=40 c=33 op=max", "nest_reduce r=40 c=64 of_columns=yes"}},
      {"nest_map", {"nest_map r=31 c=48 chain=bias_relu"}}};
  Rng rng(5);
  for (const auto& [type, texts] : cases) {
    const auto family = family_of(type);
    for (const std::string& text : texts) {
      SCOPED_TRACE(text);
      const Problem problem = problem_of(text);
      ASSERT_TRUE(family->supports(problem));
      const auto data = family->make_data(problem, 3);
      ASSERT_TRUE(data.has_value());
      EXPECT_GT((*data)->bytes(), 0);
      const std::vector<Config> defaults = family->default_configs(problem);
      ASSERT_FALSE(defaults.empty());
      for (const Config& config : defaults) {
        const Status done = run_once(*family, problem, config, **data);
        EXPECT_TRUE(done) << done.error().message;
      }
      const auto space = *family->space(problem);
      int ran = 0;
      for (int i = 0; i < 30; ++i) {
        const Config config = *space->sample(rng);
        const Status done = run_once(*family, problem, config, **data);
        ran += done ? 1 : 0;
        if (!done) {
          EXPECT_EQ(done.error().code, ErrorCode::kUnsupported) << done.error().message;
        }
      }
      EXPECT_GE(ran, 15);
    }
  }
}

TEST_F(LoopNestFamily, IsMeasuredLikeEveryOther) {
  const std::shared_ptr<Family> family = family_of("nest_mm");
  const Problem problem = problem_of("nest_mm m=32 n=32 k=32");
  const auto measurer = make_local_measurer(family, {.windows = 2, .max_windows = 2}, Context{});
  for (const Config& config : family->default_configs(problem)) {
    const Measurement measured = measurer->measure({.problem = problem, .config = config});
    EXPECT_EQ(measured.outcome, Outcome::kOk) << measured.reason;
    EXPECT_GT(measured.find("code_bytes")->value, 0);
    EXPECT_GE(measured.find(kWorkspaceBytes)->value, 0);
  }
}

TEST_F(LoopNestFamily, RefusesWithTheReason) {
  const auto wrong_type =
      make_loop_nest({.fingerprint = {}, .data_path = {}, .parameters = {{"type", "gemm"}}});
  ASSERT_FALSE(wrong_type);
  EXPECT_THAT(wrong_type.error().message, HasSubstr("type is one of nest_mm, nest_conv"));
  const auto wrong_option =
      make_loop_nest({.fingerprint = {}, .data_path = {}, .parameters = {{"tiles", "2"}}});
  ASSERT_FALSE(wrong_option);
  EXPECT_THAT(wrong_option.error().message, HasSubstr("no option 'tiles'"));
  const auto family = family_of("nest_mm");
  EXPECT_THAT(family->supports(problem_of("nest_reduce r=8 c=8")).reason(),
              HasSubstr("type=nest_reduce"));
  const Problem problem = problem_of("nest_mm m=32 n=32 k=32");
  const Config no_schedule{.schema = loop::schedule_schema().id(), .words = {1, 2}};
  EXPECT_EQ(family->prepare(problem, no_schedule).error().code, ErrorCode::kUnsupported);
  // Code of another problem, and data of another family's kind.
  const auto artifact = *family->prepare(problem, family->default_configs(problem).front());
  const Problem other = problem_of("nest_mm m=16 n=32 k=32");
  const auto data = *family->make_data(other, 1);
  EXPECT_EQ(artifact->bind(other, *data).error().code, ErrorCode::kMismatch);
}

}  // namespace
}  // namespace foretune
