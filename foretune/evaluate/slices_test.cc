// Slices, the portfolio's curve and CK Tile's metrics as an evaluation reports them.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/testing/evaluation_samples.h"
#include "foretune/report/evaluation_report.h"

namespace foretune {
namespace {

const EvaluateOptions kQuick{.bootstrap_samples = 20};

Problem gemm(const GemmSizes& sizes) { return GemmProblem::create(sizes)->to_problem(); }

// Two configs on every problem, the first twice as fast; the pick is the second where `wrong`.
struct Sample {
  GemmSizes sizes;
  bool wrong = false;
};
Evaluation evaluated(const std::vector<Sample>& samples, const EvaluateOptions& options = kQuick) {
  Dataset dataset(sample_header());
  std::vector<double> scores;
  for (const Sample& sample : samples) {
    for (std::int32_t c = 0; c < 2; ++c) {
      add_sample(dataset, gemm(sample.sizes), sample_config(c), 1000.0 * (c + 1));
      scores.push_back(sample.wrong ? -c : c);
    }
  }
  auto out = evaluate(dataset, rank_with_scores(dataset, scores), nullptr, options);
  EXPECT_TRUE(out.has_value()) << out.error().message;
  return out ? *std::move(out) : Evaluation{};
}

std::map<std::string, double> means_of(const Evaluation& evaluation, const std::string& dimension) {
  std::map<std::string, double> out;
  for (const Slice& slice : evaluation.slices) {
    if (slice.dimension == dimension) {
      out[slice.value] = slice.mean_efficiency;
    }
  }
  return out;
}

TEST(Slices, GemmsBySizeShapeAndLayout) {
  const Evaluation out = evaluated({{{.m = 1, .n = 7, .k = 1}, true},
                                    {{.m = 31, .n = 1, .k = 17}},
                                    {{.m = 32, .n = 37, .k = 8192, .layout = GemmLayout::kRcr}},
                                    {{.m = 4096, .n = 64, .k = 511}, true},
                                    {{.m = 64, .n = 4095, .k = 512}},
                                    {{.m = 127, .n = 131, .k = 137}, true}});
  using Means = std::map<std::string, double>;
  EXPECT_EQ(means_of(out, "shape"), (Means{{"matrix times vector", 0.75},
                                           {"deep: k leads", 1},
                                           {"tall: m leads n", 0.5},
                                           {"wide: n leads m", 1},
                                           {"near square", 0.5}}));
  EXPECT_EQ(means_of(out, "m family (CK)"),
            (Means{{"tiny, below 32", 0.75}, {"small, below 256", 2.5 / 3}, {"large", 0.5}}));
  EXPECT_EQ(means_of(out, "k regime (CK)"),
            (Means{{"shallow, below 512", 0.625}, {"medium, below 4096", 1}, {"deep", 1}}));
  EXPECT_EQ(means_of(out, "layout"), (Means{{"rrr", 0.7}, {"rcr", 1}}));
  EXPECT_EQ(means_of(out, "m regime").at("1"), 0.5);
}

TEST(Slices, WithinAPipelineTheOracleIsItsOwn) {
  DatasetHeader header = sample_header();
  header.config_schema.parameters[0] = {"pipeline", {"mem", "compv3", "compv4"}};
  Dataset dataset(header);
  const auto config = [&](std::int32_t pipeline, std::int32_t d) {
    Config out = sample_config(pipeline, d);
    out.schema = header.config_schema.id();
    return out;
  };
  // mem: 400 and 100, compv3: 200 and 300; compv4 failed where it was tried.
  std::vector<double> scores;
  const auto add = [&](std::int32_t pipeline, std::int32_t d, double time_ns, double score,
                       Outcome outcome = Outcome::kOk) {
    add_sample(dataset, sample_problem(8), config(pipeline, d), time_ns, {.outcome = outcome});
    scores.push_back(score);
  };
  add(0, 0, 400, 1);
  add(0, 1, 100, 3);
  add(1, 0, 200, 2);
  add(1, 1, 300, 4);
  add(2, 0, 0, 0, Outcome::kCrashed);
  const Evaluation out = *evaluate(dataset, rank_with_scores(dataset, scores), nullptr, kQuick);
  EXPECT_EQ(means_of(out, "within pipeline"),
            (std::map<std::string, double>{{"mem", 0.25}, {"compv3", 1}}));
  EXPECT_TRUE(means_of(evaluated({{{.m = 2}}}), "within pipeline").empty());
}

TEST(Slices, AFailedBestRankedConfigCountsZeroWithinItsPipeline) {
  DatasetHeader header = sample_header();
  header.config_schema.parameters[0] = {"num_stages", {}};
  Dataset dataset(header);
  Config first = sample_config(3, 0);
  Config second = sample_config(3, 1);
  first.schema = second.schema = header.config_schema.id();
  add_sample(dataset, sample_problem(8), first, 0, {.outcome = Outcome::kWrongResult});
  add_sample(dataset, sample_problem(8), second, 100);
  const Evaluation out =
      *evaluate(dataset, rank_with_scores(dataset, std::vector<double>{0, 1}), nullptr, kQuick);
  EXPECT_EQ(means_of(out, "within num_stages"), (std::map<std::string, double>{{"3", 0}}));
}

TEST(Portfolio, OfATrainingSetReachesMoreWithMoreConfigsAndMissingOnesCountZero) {
  // Config i is the best of problem i, the others are half as fast.
  Dataset training(sample_header());
  for (std::int32_t p = 0; p < 4; ++p) {
    for (std::int32_t c = 0; c < 4; ++c) {
      add_sample(training, sample_problem(p + 1), sample_config(c), c == p ? 100 : 200);
    }
  }
  Dataset dataset(sample_header());
  for (std::int32_t p = 0; p < 4; ++p) {
    for (std::int32_t c = 0; c < 4; ++c) {
      if (p != 3 || c == 3) {  // on the last problem the others were not measured
        add_sample(dataset, sample_problem(p + 11), sample_config(c), c == p ? 100 : 200);
      }
    }
  }
  EvaluateOptions options = kQuick;
  options.training = &training;
  const std::vector<double> scores(dataset.size(), 0.0);
  const Evaluation out = *evaluate(dataset, rank_with_scores(dataset, scores), nullptr, options);
  ASSERT_EQ(out.portfolio.size(), 7U);
  EXPECT_EQ(out.portfolio.front().configs, 1U);
  EXPECT_EQ(out.portfolio.back().configs, 64U);
  EXPECT_DOUBLE_EQ(out.portfolio[0].mean_efficiency, (1 + 0.5 + 0.5 + 0) / 4);
  EXPECT_DOUBLE_EQ(out.portfolio[0].min_efficiency, 0);
  EXPECT_DOUBLE_EQ(out.portfolio[1].mean_efficiency, (1 + 1 + 0.5 + 0) / 4);
  EXPECT_DOUBLE_EQ(out.portfolio[2].mean_efficiency, 1);
  EXPECT_DOUBLE_EQ(out.portfolio[6].p10_efficiency, 1);
  EXPECT_NE(report_text(out, false).find("A portfolio without a model"), std::string::npos);
  EXPECT_NE(report_html(out, "x", "source").find("Efficiency of a portfolio without a model"),
            std::string::npos);
}

TEST(Portfolio, IsAbsentWithoutAnythingToLearnFrom) {
  const Evaluation out = evaluated({{{.m = 2}}, {{.m = 3}}});
  EXPECT_TRUE(out.portfolio.empty());
  EXPECT_EQ(report_text(out, false).find("portfolio without"), std::string::npos);
}

TEST(CkMetricsOfAnEvaluation, AreThoseOfTheirDefinitions) {
  const Evaluation out = evaluated({{{.m = 8}}, {{.m = 16}, true}, {{.m = 31}}, {{.m = 64}}});
  EXPECT_EQ(out.ck.problems, 4U);
  EXPECT_DOUBLE_EQ(out.ck.mean_efficiency, (1 + 0.5 + 1 + 1) / 4);
  EXPECT_DOUBLE_EQ(out.ck.ndcg_at_1(), 0.75);
  EXPECT_DOUBLE_EQ(out.ck.top_k[1], 1);
  EXPECT_DOUBLE_EQ(out.ck.min_efficiency, 0.5);
  EXPECT_FALSE(std::isnan(out.ck.r2));
  EXPECT_NE(report_text(out, false).find("NDCG@1 75.0"), std::string::npos);
}

TEST(CkMetricsOfAnEvaluation, TiesAreDecidedByTheOrderOfConfigsNotByTheModel) {
  Dataset dataset(sample_header());
  for (std::int32_t c = 0; c < 3; ++c) {
    add_sample(dataset, sample_problem(4), sample_config(c), 100);
  }
  const Evaluation out =
      *evaluate(dataset, rank_with_scores(dataset, std::vector<double>{3, 2, 1}), nullptr, kQuick);
  EXPECT_DOUBLE_EQ(out.model.top1_hit, 1);
  EXPECT_DOUBLE_EQ(out.ck.ndcg_at_1(), 0);
  EXPECT_DOUBLE_EQ(out.ck.mean_efficiency, 1);
  EXPECT_TRUE(std::isnan(out.ck.r2)) << "one time cannot be explained";
}

TEST(StrictEfficiency, CountsUnmeasuredPicksAsZero) {
  Dataset dataset(sample_header());
  for (std::int64_t m = 1; m <= 2; ++m) {
    add_sample(dataset, sample_problem(m), sample_config(0), 100);
    add_sample(dataset, sample_problem(m), sample_config(1), 200);
  }
  std::vector<RankedProblem> ranked(2);
  ranked[0] = {.problem = 0, .configs = {0, 1}, .scores = {1, 2}, .pick_unmeasured = true};
  ranked[1] = {.problem = 1, .configs = {1, 0}, .scores = {1, 2}};
  const Evaluation out = *evaluate(dataset, ranked, nullptr, kQuick);
  EXPECT_DOUBLE_EQ(out.model.mean_efficiency.value, 0.75);
  EXPECT_DOUBLE_EQ(out.strict_mean_efficiency, 0.25);
  EXPECT_DOUBLE_EQ(out.strict_p10_efficiency, 0.05);
  EXPECT_NE(report_text(out, false).find("missing as 0"), std::string::npos);
}

}  // namespace
}  // namespace foretune
