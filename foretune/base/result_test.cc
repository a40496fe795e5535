#include "foretune/base/result.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <set>
#include <string>

#include "foretune/base/check.h"

namespace foretune {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) {
    return fail(ErrorCode::kInvalidArgument, value, " is odd");
  }
  return value / 2;
}

Result<int> quarter(int value) {
  FORETUNE_TRY(const int once, half(value));
  int twice = 0;
  FORETUNE_TRY(twice, half(once));
  return twice;
}

Status check_divisible_by_four(int value) {
  const Result<int> result = quarter(value);
  if (!result) {
    return fail_because(result.error(), "checking ", value);
  }
  return {};
}

Status check_both(int a, int b) {
  FORETUNE_TRY_STATUS(check_divisible_by_four(a));
  FORETUNE_TRY_STATUS(check_divisible_by_four(b));
  return {};
}

TEST(Result, PassesValuesAndErrorsOn) {
  EXPECT_EQ(quarter(12).value(), 3);
  ASSERT_FALSE(quarter(6));
  EXPECT_EQ(quarter(6).error(), (Error{ErrorCode::kInvalidArgument, "3 is odd"}));
  ASSERT_FALSE(quarter(5));
  EXPECT_EQ(quarter(5).error().message, "5 is odd");
}

TEST(Result, StatusStopsAtTheFirstErrorAndTellsWhatWasDone) {
  EXPECT_TRUE(check_both(4, 8));
  ASSERT_FALSE(check_both(4, 7));
  EXPECT_EQ(check_both(4, 7).error().message, "checking 7: 7 is odd");
  EXPECT_EQ(check_both(6, 7).error().message, "checking 6: 3 is odd");
  EXPECT_EQ(check_both(6, 7).error().code, ErrorCode::kInvalidArgument);
}

Result<std::unique_ptr<int>> make(bool works) {
  if (!works) {
    return fail(ErrorCode::kIo, "no");
  }
  return std::make_unique<int>(7);
}

Result<int> unwrap(bool works) {
  FORETUNE_TRY(const std::unique_ptr<int> value, make(works));
  return *value;
}

TEST(Result, MovesValuesThatCannotBeCopied) {
  EXPECT_EQ(unwrap(true).value(), 7);
  EXPECT_EQ(unwrap(false).error().code, ErrorCode::kIo);
}

TEST(Result, EveryCodeHasItsOwnText) {
  std::set<std::string_view> texts;
  for (int code = 1; code <= 8; ++code) {
    texts.insert(to_string(static_cast<ErrorCode>(code)));
  }
  EXPECT_EQ(texts.size(), 8U);
  EXPECT_EQ(texts.count("unknown error"), 0U);
  EXPECT_EQ(to_string(static_cast<ErrorCode>(99)), "unknown error");
}

TEST(Support, ARefusalCarriesItsReason) {
  EXPECT_TRUE(Support::yes());
  EXPECT_EQ(Support::yes().reason(), "");
  const Support no = Support::no("needs ", 2, " cores");
  EXPECT_FALSE(no);
  EXPECT_EQ(no.reason(), "needs 2 cores");
}

TEST(CheckDeathTest, EndsTheProgramAndNamesTheCondition) {
  EXPECT_DEATH(FORETUNE_CHECK(1 + 1 == 3), "check failed: 1 \\+ 1 == 3");
  FORETUNE_CHECK(1 + 1 == 2);
}

}  // namespace
}  // namespace foretune
