#include "foretune/model/policy/policy_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/loop/problem_computation.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/model/network/testing/network_samples.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

// A policy with random weights: whatever it proposes has to be legal.
Model random_policy(std::uint64_t seed) {
  Rng rng(seed);
  const FeatureTable& table = **find_feature_table("loop-nest");
  const Problem product = Problem::parse("nest_mm m=48 n=64 k=40").value();
  Model model;
  model.family = "loop-nest";
  model.problem_type = product.type();
  model.problem_schema = product.schema().id();
  model.config_schema = loop::schedule_schema();
  model.feature_table = std::string(table.name());
  model.feature_table_id = feature_table_id(table);
  model.fingerprint.hardware = *Hardware::parse("cores=2 vector_bytes=64 l2_bytes=1048576");
  model.target = "relative-log";
  const auto space = table.space(product, model.fingerprint.hardware);
  model.pool = {space->sequential()->start()};
  model.portfolio = {0};
  for (std::size_t f = 0; f < feature_count(table, FeatureKind::kProblem); ++f) {
    model.problem_range.emplace_back(-1e9, 1e9);
  }
  PolicyBody body;
  body.policy = PolicyNetwork::of_width(16);
  for (DenseLayer* const layer : body.policy.layers()) {
    for (float& weight : layer->weights) {
      weight = static_cast<float>(0.5 * rng.normal());
    }
  }
  body.networks = {random_chain(table, {8}, rng)};
  set_policy(model, std::move(body));
  return model;
}

const std::vector<std::string> kProblems = {"mm m=48 n=64 k=40",
                                            "mm m=3 n=1000 k=7 tb relu",
                                            "conv b=1 c=16 h=14 w=14 o=24 r=3 s=3 pad=1 stride=2",
                                            "conv b=1 c=16 h=9 w=9 o=16 r=3 s=3 groups=16 nhwc",
                                            "reduce r=100 c=333 op=max",
                                            "map r=64 c=100 chain=bias_relu"};

TEST(PolicyModel, PassesTheChecksOfAModelAndComesBackFromItsBytes) {
  const Model model = random_policy(1);
  ASSERT_TRUE(check_model(model)) << check_model(model).error().message;
  const auto read = parse_model(model_bytes(model));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, model);
}

TEST(PolicyModel, ProposalsAreLegalDistinctAndTheSameForTheSameSeed) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Model model = random_policy(seed);
    for (const std::string& text : kProblems) {
      const Problem problem = loop::problem_of(text).value();
      const Hardware& hardware = model.fingerprint.hardware;
      const loop::Computation computation = *loop::computation_of(problem);
      const auto space = loop::ScheduleSpace::of_loops(computation, policy_unit(hardware));
      std::vector<std::vector<Config>> runs;
      for (int run = 0; run < 2; ++run) {
        auto proposer = make_policy_proposer(model, problem, hardware);
        ASSERT_TRUE(proposer) << proposer.error().message;
        Rng rng(7);
        runs.push_back((*proposer)->propose(12, rng));
      }
      EXPECT_EQ(runs[0], runs[1]) << text;
      ASSERT_FALSE(runs[0].empty()) << text;
      EXPECT_EQ(std::set<Config>(runs[0].begin(), runs[0].end()).size(), runs[0].size());
      for (const Config& config : runs[0]) {
        const auto nest = space->nest(config);
        ASSERT_TRUE(nest) << text << ": " << nest.error().message;
        EXPECT_TRUE(loop::lower(computation, *nest, policy_unit(hardware))) << text;
      }
    }
  }
}

TEST(PolicyModel, ProblemsThatAreNoNestAreRefused) {
  const Model model = random_policy(1);
  const Problem gemm = GemmProblem::create({.m = 8, .n = 8, .k = 8})->to_problem();
  const auto proposer = make_policy_proposer(model, gemm, model.fingerprint.hardware);
  ASSERT_FALSE(proposer);
  EXPECT_EQ(proposer.error().code, ErrorCode::kInvalidArgument);
}

TEST(PolicyModel, AModelOfAnotherKindIsRefused) {
  Model model = random_policy(1);
  model.body = {};
  const auto proposer = make_policy_proposer(model, loop::problem_of(kProblems[0]).value(),
                                             model.fingerprint.hardware);
  ASSERT_FALSE(proposer);
  EXPECT_THAT(proposer.error().message, HasSubstr("no policy"));
}

TEST(PolicyModel, AWalkWithoutChanceIsAlwaysTheSame) {
  const Model model = random_policy(4);
  const loop::Computation computation = *loop::matmul({.m = 60, .n = 96, .k = 40});
  const loop::VectorUnit unit = loop::VectorUnit::of(CpuIsa::kAvx512);
  std::vector<std::vector<loop::Nest>> walks;
  for (int run = 0; run < 2; ++run) {
    PolicyWalker walker(*policy_of(model), computation, unit, {});
    std::vector<loop::Nest> nests;
    EXPECT_LE(walker.walk(nullptr, nests), policy_of(model)->max_steps);
    EXPECT_FALSE(nests.empty());
    walks.push_back(std::move(nests));
  }
  EXPECT_EQ(walks[0], walks[1]);
}

}  // namespace
}  // namespace foretune
