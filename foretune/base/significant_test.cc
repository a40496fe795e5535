#include "foretune/base/significant.h"

#include <gtest/gtest.h>

namespace foretune {
namespace {

TEST(Significant, KeepsSoManyDigitsAndNoZerosBehindThem) {
  EXPECT_EQ(significant(0.012345, 3), "0.0123");
  EXPECT_EQ(significant(0.5, 4), "0.5");
  EXPECT_EQ(significant(2 * 1e-3, 3), "0.002");
  EXPECT_EQ(significant(-1234.56, 5), "-1234.6");
  EXPECT_EQ(significant(9.9996, 4), "10");
  EXPECT_EQ(significant(1e-5, 3), "1e-05");
  EXPECT_EQ(significant(0, 3), "0");
}

}  // namespace
}  // namespace foretune
