#include "foretune/dispatch/internal/trial_budget.h"

#include <gtest/gtest.h>

namespace foretune::dispatch_internal {
namespace {

TEST(TrialBudgetTest, TakesItsShareOfTheTimeThatPasses) {
  double now = 100;
  TrialBudget budget(0.05, [&now] { return now; });
  double spent = 0;
  // 20,000 calls of 10 ms, each followed by a trial of 4 ms where one is allowed.
  for (int call = 0; call < 20000; ++call) {
    now += 0.010;
    if (budget.allows()) {
      spent += budget.spend_on([&now] {
        now += 0.004;
        return 0.004;
      });
    }
  }
  EXPECT_NEAR(spent / (now - 100), 0.05, 0.001);
}

TEST(TrialBudgetTest, ALongTrialIsPaidBack) {
  double now = 0;
  TrialBudget budget(0.1, [&now] { return now; });
  EXPECT_FALSE(budget.allows());
  now = 0.5;
  EXPECT_TRUE(budget.allows());
  budget.spend(2);  // 1.95 more than was saved
  now = 19.9;
  EXPECT_FALSE(budget.allows());
  now = 20.1;
  EXPECT_TRUE(budget.allows());
}

TEST(TrialBudgetTest, IdleTimeDoesNotAddUp) {
  double now = 0;
  TrialBudget budget(0.1, [&now] { return now; });
  now = 3600;
  EXPECT_TRUE(budget.allows());
  budget.spend(0.2);
  EXPECT_FALSE(budget.allows());
  now += 1.1;
  EXPECT_TRUE(budget.allows());
}

TEST(TrialBudgetTest, IdleTimeIsThatOfAllowedTrialsThatDidNotCome) {
  double now = 0;
  TrialBudget budget(0.1, [&now] { return now; });
  EXPECT_EQ(budget.idle_s(), 0);
  now = 0.5;
  EXPECT_EQ(budget.idle_s(), 0) << "nobody could know before";
  now = 1.5;
  EXPECT_EQ(budget.idle_s(), 1);
  budget.spend(0.6);  // 0.5 more than was saved
  now = 6;
  EXPECT_EQ(budget.idle_s(), 0) << "it is paid back";
  now = 7;
  EXPECT_EQ(budget.idle_s(), 0);
  now = 9;
  EXPECT_EQ(budget.idle_s(), 2);
}

TEST(TrialBudgetTest, AShareOfAllIsNoLimit) {
  TrialBudget budget(1);
  EXPECT_FALSE(budget.is_limited());
  budget.spend(1e9);
  EXPECT_TRUE(budget.allows());
}

}  // namespace
}  // namespace foretune::dispatch_internal
