#include "bench/shape_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"

namespace foretune::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Problem problem_of(const std::string& text) { return *Problem::parse(text); }

std::vector<std::string> names_of(const RegimeShape& shape, const TrainedShapes* trained) {
  std::vector<std::string> names;
  for (const ShapeClass& shape_class : classes_of(shape, trained)) {
    names.push_back(shape_class.name);
  }
  return names;
}

TEST(ShapeClasses, ReadsTheRegimeWhereverItsColumnIs) {
  const testing_support::TemporaryFolder folder;
  const std::string path = (folder.path() / "shapes.csv").string();
  ASSERT_TRUE(write_text_file_atomically(
      path, "# a comment\nm,regime,n,k,dtype,layout\n8,llm,16,32,bf16,rcr\n7,odd,5,3,f16,rrr\n"));
  const auto shapes = read_regimes(path + "," + path);
  ASSERT_TRUE(shapes) << shapes.error().message;
  ASSERT_EQ(shapes->size(), 4U);
  EXPECT_EQ((*shapes)[2].regime, "llm");
  EXPECT_EQ((*shapes)[3].regime, "odd");
  EXPECT_EQ((*shapes)[3].problem, problem_of("gemm m=7 n=5 k=3 dtype=f16 layout=rrr"));
}

TEST(ShapeClasses, RefusesAShapeSetWithoutRegimes) {
  const testing_support::TemporaryFolder folder;
  const std::string path = (folder.path() / "shapes.csv").string();
  ASSERT_TRUE(write_text_file_atomically(path, "m,n,k\n8,16,32\n"));
  const auto shapes = read_regimes(path);
  ASSERT_FALSE(shapes);
  EXPECT_THAT(shapes.error().message, HasSubstr("no column 'regime'"));
}

TEST(ShapeClasses, TellWhatOfAProductIsNew) {
  const std::vector<Problem> training{problem_of("gemm m=8 n=7168 k=5120 dtype=bf16 layout=rcr"),
                                      problem_of("gemm m=100 n=200 k=300 dtype=bf16 layout=rrr")};
  const TrainedShapes trained(training);
  const auto novelty = [&](const std::string& regime, const std::string& text) {
    return trained.novelty({regime, problem_of(text)});
  };
  EXPECT_EQ(novelty("llm", "gemm m=4 n=7168 k=5120 dtype=bf16 layout=rcr"),
            Novelty::kTrainedWeights);
  EXPECT_EQ(novelty("llm", "gemm m=4 n=5120 k=7168 dtype=bf16 layout=rcr"), Novelty::kNewLayer);
  EXPECT_EQ(novelty("models", "gemm m=8 n=7168 k=64 dtype=bf16 layout=rcr"), Novelty::kNewLayer);
  EXPECT_EQ(novelty("llm", "gemm m=8 n=7168 k=5120 dtype=f16 layout=rrr"), Novelty::kTrainedSizes);
  EXPECT_EQ(novelty("log-normal", "gemm m=101 n=201 k=301"), Novelty::kNoLayer);
  // Drawn sizes are no weights, even when they equal some.
  EXPECT_EQ(novelty("log-uniform", "gemm m=9 n=7168 k=5120"), Novelty::kNoLayer);
  EXPECT_EQ(novelty("log-normal", "gemm m=100 n=200 k=300"), Novelty::kTrainedSizes);
}

TEST(ShapeClasses, AProductIsInEveryClassThatHoldsIt) {
  const std::vector<Problem> training{problem_of("gemm m=8 n=16 k=32")};
  const TrainedShapes trained(training);
  const RegimeShape layer{"llm", problem_of("gemm m=4 n=16 k=32")};
  EXPECT_THAT(names_of(layer, nullptr), ElementsAre("all", "layers of networks", "llm"));
  EXPECT_THAT(names_of(layer, &trained),
              ElementsAre("all", "layers of networks", "llm", "weights trained on, another m",
                          "llm: weights trained on, another m"));
  EXPECT_THAT(names_of({"log-normal", problem_of("gemm m=5 n=6 k=7")}, &trained),
              ElementsAre("all", "log-normal"));
}

// Checks the counts in docs/benchmarks.md of the products that judge the model of cuBLASLt.
TEST(ShapeClasses, TheTestProductsOfCublasltShareLayersWithTheTrainingProducts) {
  const std::string folder = concat(FORETUNE_SOURCE_DIR, "/bench/shapes/");
  const auto shapes = read_regimes(folder + "cublaslt_test.csv");
  const auto trained =
      TrainedShapes::read(folder + "cublaslt_train.csv," + folder + "cublaslt_more.csv");
  ASSERT_TRUE(shapes);
  ASSERT_TRUE(trained);
  std::map<Novelty, int> count;
  for (const RegimeShape& shape : *shapes) {
    ++count[trained->novelty(shape)];
  }
  EXPECT_EQ(count[Novelty::kTrainedSizes], 0);
  EXPECT_EQ(count[Novelty::kTrainedWeights], 40);
  EXPECT_EQ(count[Novelty::kNewLayer], 60);
  EXPECT_EQ(count[Novelty::kNoLayer], 70);
}

}  // namespace
}  // namespace foretune::bench
