#include "foretune/loop/gym/measured_evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_LT(textbook.seconds, plain.seconds);
}

TEST_F(MeasuredEvaluatorTest, OneThatIsStoppedEarlyHasASpeed) {
  const Computation product = parse_computation("mm m=96 n=96 k=96").value();
  const auto evaluator = MeasuredEvaluator::create(product, {}).value();
  const VectorUnit unit = VectorUnit::of(best_cpu_isa());
  const Evaluated fast = evaluator->evaluate(textbook_nests(product, unit, 1).front());
  const Evaluated slow = evaluator->evaluate(Nest::plain(product));
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

}  // namespace
}  // namespace foretune::loop::gym
