// Picks for problems with payloads: by what is known of them, and as something missing where
// nothing is.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/testing/model_samples.h"
#include "foretune/problem/payload_store.h"
#include "foretune/select/select.h"

namespace foretune {
namespace {

// Two configs of cpu-gemm that differ in their rows.
SpaceDefinition two_configs() {
  SpaceDefinition space;
  space.problem_type = kGemmProblem;
  space.schema.name = "cpu";
  for (const char* name : {"isa", "kernel", "mr", "nr", "pack_a", "pack_b", "mc", "nc", "kc",
                           "order", "unroll", "prefetch", "threads", "split"}) {
    space.schema.parameters.push_back({name, {}});
    space.domains.push_back({1});
  }
  space.domains[2] = {4, 6};
  return space;
}

// Where up to half of the weights are zero, the config of 4 rows is the best, elsewhere that of 6;
// so it is where nothing is known.
Model model_of_weights() {
  const FeatureTable& table = **find_feature_table("gemm-cpu");
  const SpaceDefinition space = two_configs();
  Model model = bare_model(space, table);
  for (const std::int32_t mr : {4, 6}) {
    model.pool.push_back(
        {.schema = space.schema.id(), .words = {1, 1, mr, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}});
  }
  model.portfolio = {0};
  const std::vector<std::string_view> names{"weights_zeros", "mr"};
  const std::vector<std::uint16_t> columns = find_columns(table, names).value();
  Forest forest;
  forest.feature_count = static_cast<std::uint32_t>(table.columns().size());
  forest.trees = {{.first_node = 0, .node_count = 3, .first_leaf = 0, .leaf_count = 4}};
  forest.feature = {columns[0], columns[1], columns[1]};
  forest.threshold = {0.5, 5, 5};
  forest.left = {1, ~0, ~2};
  forest.right = {2, ~1, ~3};
  forest.default_left = {0, 0, 0};
  forest.missing = {Forest::Missing::kNan, Forest::Missing::kNone, Forest::Missing::kNone};
  forest.leaf_value = {0.1, 0.2, 0.4, 0.3};
  set_forests(model, {std::move(forest)});
  model.problem_range.assign(
      feature_count(table, FeatureKind::kProblem),
      {std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max()});
  return model;
}

class SelectPayloadTest : public ::testing::Test {
 protected:
  // A problem of 1 x n x 1 with these weights.
  Problem problem_of(const std::vector<float>& weights) {
    EXPECT_TRUE(write_file_atomically(folder_ / "w", std::as_bytes(std::span(weights))));
    return Problem::parse(concat("gemm m=1 k=1 n=", weights.size(),
                                 " payload=", Digest::of(std::as_bytes(std::span(weights))).hex()))
        .value();
  }
  Problem described(const Problem& problem) {
    return PayloadStore::open(std::vector{folder_.path().string()})
        .value()
        ->resolve(problem)
        .value();
  }

  testing_support::TemporaryFolder folder_;
};

TEST_F(SelectPayloadTest, PicksByTheDescriptor) {
  const auto selector = Selector::create(model_of_weights()).value();
  const Choice dense = selector->select(described(problem_of({1, 2, 3, 0})));
  EXPECT_TRUE(dense.picked());
  EXPECT_EQ(dense.candidate, 0U);
  EXPECT_EQ(dense.score, 0.1);
  const Choice sparse = selector->select(described(problem_of({1, 0, 0, 0})));
  EXPECT_EQ(sparse.candidate, 1U);
  EXPECT_EQ(sparse.score, 0.3);
}

TEST_F(SelectPayloadTest, AProblemThatIsNotDescribedLacksIt) {
  const auto selector = Selector::create(model_of_weights()).value();
  for (const Problem& unknown :
       {problem_of({1, 2, 3, 4}), Problem::parse("gemm m=1 k=1 n=4").value()}) {
    const Choice choice = selector->select(unknown);
    EXPECT_TRUE(choice.picked()) << selector->explain(unknown, choice);
    EXPECT_EQ(choice.candidate, 1U);
  }
  // By its fields alone a problem has no payload.
  const Problem plain = Problem::parse("gemm m=1 k=1 n=4").value();
  EXPECT_EQ(selector->select(plain.type(), plain.fields()).candidate, 1U);
}

// They are equal as problems, so answers must not be taken from one for the other.
TEST_F(SelectPayloadTest, AnswersAreRememberedByWhetherThePayloadIsDescribed) {
  const auto selector = Selector::create(model_of_weights()).value();
  const Problem plain = problem_of({5, 6, 7, 8});
  const Problem known = described(plain);
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(selector->select(plain).candidate, 1U);
    EXPECT_EQ(selector->select(known).candidate, 0U);
  }
}

TEST_F(SelectPayloadTest, WhatIsMissingIsOutsideOfARange) {
  Model model = model_of_weights();
  const FeatureTable& table = **find_feature_table("gemm-cpu");
  const std::vector<std::string_view> names{"weights_zeros"};
  model.problem_range[find_columns(table, names).value()[0]] = {0, 0.5};
  const auto selector = Selector::create(model).value();
  const Problem plain = problem_of({5, 6, 7, 9});
  EXPECT_EQ(selector->select(plain).reason, AbstainReason::kOutsideTraining);
  EXPECT_TRUE(selector->select(described(plain)).picked());
}

}  // namespace
}  // namespace foretune
