#include "bench/cudnn_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "bench/cudnn_ranking.h"
#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/space/schemas/cudnn.h"

namespace foretune::bench {
namespace {

Config engine(std::int32_t index) { return CudnnConfig::of_engine(index).to_config(); }
Config rank(CudnnHeuristic heuristic, std::int32_t number) {
  return CudnnConfig::ranked(heuristic, number).to_config();
}

MeasuredConfig ok(double once_ns) { return {.outcome = Outcome::kOk, .once_ns = once_ns}; }

TEST(AnswersIn, FindsTheConfigThatARankIs) {
  MeasuredConfigs measured;
  measured[engine(62)] = ok(1000);
  measured[engine(72)] = ok(800);
  measured[rank(CudnnHeuristic::kA, 1)] = ok(1000);
  measured[rank(CudnnHeuristic::kB, 2)] = ok(800);
  // Nobody measured the config behind this one.
  measured[rank(CudnnHeuristic::kA, 2)] = ok(900);
  measured[rank(CudnnHeuristic::kA, 3)] = {.outcome = Outcome::kUnsupported};
  const Answers answers = answers_in(measured);
  EXPECT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers.at(rank(CudnnHeuristic::kA, 1)), engine(62));
  EXPECT_EQ(answers.at(rank(CudnnHeuristic::kB, 2)), engine(72));
}

TEST(ReadChoices, TakesFirstAnswersAndChoicesOfTheTiming) {
  const testing_support::TemporaryFolder folder;
  const std::string path = (folder / "answers.tsv").string();
  ASSERT_TRUE(write_text_file_atomically(path,
                                         "# convolution, which choice, config\n"
                                         "conv n=1\ta1\tengine=62\n"
                                         "conv n=1\ta2\tengine=63\n"
                                         "conv n=1\tnoise\t1.01\n"
                                         "conv n=1\tbenchmark\tengine=72 kernel_cfg=4\n"));
  const auto choices = read_choices(path);
  ASSERT_TRUE(choices) << choices.error().message;
  EXPECT_EQ(choices->first.at("conv n=1"), engine(62));
  CudnnConfig compiled = CudnnConfig::of_engine(72);
  compiled.set_knob(24, 4);
  EXPECT_EQ(choices->benchmark.at("conv n=1"), compiled.to_config());
  ASSERT_TRUE(write_text_file_atomically(path, "conv n=1\ta1\tengine=\n"));
  EXPECT_FALSE(read_choices(path));
}

TEST(CudnnModels, TakeTheModelOfTheDirection) {
  const auto models = CudnnModels::shipped();
  ASSERT_TRUE(models) << models.error().message;
  for (const char* direction : {"forward", "backward_data", "backward_weight"}) {
    const Problem layer = *Problem::parse(concat(
        "conv op=", direction, " n=32 c=256 k=256 hi=14 wi=14 y=3 x=3 pad_h=1 pad_w=1 dtype=bf16"));
    EXPECT_EQ(models->of(layer).coverage(layer), AbstainReason::kNone) << direction;
  }
}

TEST(RankingWithAnswers, RanksTheConfigsOfThePoolAndTheAnswersOnce) {
  const auto models = CudnnModels::shipped();
  ASSERT_TRUE(models) << models.error().message;
  const Problem layer = *Problem::parse(
      "conv op=forward n=32 c=256 k=256 hi=14 wi=14 y=3 x=3 pad_h=1 pad_w=1 dtype=bf16");
  const Selector& selector = models->of(layer);
  CudnnConfig answer = CudnnConfig::of_engine(62);
  answer.set_knob(2, 7);
  const auto bare = ranking_with_answers(selector, layer, {});
  const auto asked = ranking_with_answers(selector, layer,
                                          {{rank(CudnnHeuristic::kA, 1), answer.to_config()},
                                           {rank(CudnnHeuristic::kB, 1), answer.to_config()},
                                           // The fallback's answers have no weight.
                                           {rank(CudnnHeuristic::kFallback, 1), engine(5)}});
  ASSERT_TRUE(bare && asked);
  EXPECT_EQ(asked->size(), bare->size() + 1);
  const auto has_answer = [&](const std::vector<ScoredConfig>& ranking) {
    return std::count_if(ranking.begin(), ranking.end(), [&](const ScoredConfig& each) {
      return each.config == answer.to_config();
    });
  };
  EXPECT_EQ(has_answer(*bare), 0);
  EXPECT_EQ(has_answer(*asked), 1);
  EXPECT_TRUE(std::is_sorted(asked->begin(), asked->end(),
                             [](const auto& a, const auto& b) { return a.score < b.score; }));
}

}  // namespace
}  // namespace foretune::bench
