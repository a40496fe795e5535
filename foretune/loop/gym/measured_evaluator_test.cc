#include "foretune/loop/gym/measured_evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/loop/computation_text.h"
#include "foretune/loop/register_tiles.h"

namespace foretune::loop::gym {
namespace {

using testing::HasSubstr;

class MeasuredEvaluatorTest : public testing::Test {
 protected:
  void SetUp() override {
    if (best_cpu_isa() < CpuIsa::kAvx2) {
      GTEST_SKIP() << "this CPU runs no AVX2";
    }
  }
};

TEST_F(MeasuredEvaluatorTest, GivesSecondsAndWhatTheyMean) {
  const Computation product = parse_computation("mm m=96 n=96 k=96").value();
  const auto evaluator = MeasuredEvaluator::create(product, {}).value();
  const Evaluated plain = evaluator->evaluate(Nest::plain(product));
  ASSERT_TRUE(plain.ok) << plain.reason;
  EXPECT_GT(plain.seconds, 0);
  EXPECT_NEAR(plain.gflops, product.flops() / plain.seconds / 1e9, 1e-6 * plain.gflops);
  const VectorUnit unit = VectorUnit::of(best_cpu_isa());
  const Evaluated textbook = evaluator->evaluate(textbook_nests(product, unit, 1).front());
  ASSERT_TRUE(textbook.ok) << textbook.reason;
  EXPECT_NEAR(textbook.gflops, product.flops() / textbook.seconds / 1e9, 1e-6 * textbook.gflops);
}

TEST_F(MeasuredEvaluatorTest, OneThatIsStoppedEarlyHasASpeed) {
  const Computation product = parse_computation("mm m=96 n=96 k=96").value();
  const auto evaluator = MeasuredEvaluator::create(product, {}).value();
  const VectorUnit unit = VectorUnit::of(best_cpu_isa());
  const Evaluated fast = evaluator->evaluate(textbook_nests(product, unit, 1).front());
  // Turned round, the innermost loop goes down a column; as it stands, it is nearly as fast.
  Nest turned = Nest::plain(product);
  std::reverse(turned.loops.begin(), turned.loops.end());
  const Evaluated slow = evaluator->evaluate(turned);
  ASSERT_TRUE(slow.ok) << slow.reason;
  EXPECT_GT(slow.gflops, 0);
  EXPECT_LT(slow.gflops, fast.gflops);
}

TEST_F(MeasuredEvaluatorTest, RefusesWhatCannotBeCompiled) {
  const Computation product = parse_computation("mm m=16 n=16 k=16").value();
  const auto evaluator = MeasuredEvaluator::create(product, {}).value();
  Nest nest = Nest::plain(product);
  nest.loops[0].mark = Mark::kVector;
  const Evaluated refused = evaluator->evaluate(nest);
  EXPECT_FALSE(refused.ok);
  EXPECT_EQ(refused.gflops, 0);
  EXPECT_THAT(refused.reason, HasSubstr("along m"));
}

// Steps without a name are no problem of any type.
TEST_F(MeasuredEvaluatorTest, MeasuresWhatNoProblemDescribes) {
  const Computation steps = parse_computation("elementwise r=16 c=64 multiply=in1 add=0.5").value();
  const auto evaluator = MeasuredEvaluator::create(steps, {}).value();
  const Evaluated plain = evaluator->evaluate(Nest::plain(steps));
  EXPECT_TRUE(plain.ok) << plain.reason;
}

class KnownSchedulesTest : public MeasuredEvaluatorTest {
 protected:
  void SetUp() override {
    MeasuredEvaluatorTest::SetUp();
    std::filesystem::remove(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) /
      concat(testing::UnitTest::GetInstance()->current_test_info()->name(), ".ftd");
};

TEST_F(KnownSchedulesTest, AFileAnswersTheNextProcess) {
  const Computation product = parse_computation("mm m=48 n=32 k=16").value();
  const VectorUnit unit = VectorUnit::of(best_cpu_isa());
  const std::vector<Nest> nests = textbook_nests(product, unit, 5);
  std::vector<double> seconds;
  for (int round = 0; round < 2; ++round) {
    const auto known = MeasuredEvaluator::open_known(path_, product);
    ASSERT_TRUE(known) << known.error().message;
    const auto evaluator = MeasuredEvaluator::create(product, {}, *known).value();
    for (std::size_t i = 0; i < nests.size(); ++i) {
      // None is stopped early: the slowest is first.
      const Evaluated evaluated = evaluator->evaluate(nests[nests.size() - 1 - i]);
      ASSERT_TRUE(evaluated.ok) << evaluated.reason;
      if (round == 0) {
        seconds.push_back(evaluated.seconds);
      } else if (evaluator->known_answers() == i + 1) {
        EXPECT_NEAR(evaluated.seconds, seconds[i], 1e-6 * seconds[i]);
      }
    }
    EXPECT_EQ((*known)->size(), nests.size());
    if (round == 0) {
      EXPECT_EQ(evaluator->known_answers(), 0U);
    } else {
      // One whose bound says too little is measured again.
      EXPECT_GT(evaluator->known_answers(), 0U);
    }
  }
}

TEST_F(KnownSchedulesTest, OtherInstructionsAreAnotherMachine) {
  const Computation product = parse_computation("mm m=48 n=32 k=16").value();
  ASSERT_TRUE(MeasuredEvaluator::open_known(path_, product));
  if (best_cpu_isa() == CpuIsa::kAvx2) {
    GTEST_SKIP() << "this CPU runs one set of instructions";
  }
  const auto known = MeasuredEvaluator::open_known(path_, product, {.isa = CpuIsa::kAvx2});
  ASSERT_FALSE(known);
  EXPECT_EQ(known.error().code, ErrorCode::kMismatch);
}

TEST_F(KnownSchedulesTest, AFileIsForProblemsOfOneType) {
  const Computation product = parse_computation("mm m=48 n=32 k=16").value();
  const auto known = MeasuredEvaluator::open_known(path_, product);
  ASSERT_TRUE(known) << known.error().message;
  const auto other =
      MeasuredEvaluator::create(parse_computation("reduce r=9 c=64").value(), {}, *known);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kMismatch);
  const Computation steps = parse_computation("elementwise r=16 c=64 multiply=in1 add=0.5").value();
  const auto none = MeasuredEvaluator::open_known(path_, steps);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace foretune::loop::gym
