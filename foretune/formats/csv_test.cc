#include "foretune/formats/csv.h"

#include <gtest/gtest.h>

namespace foretune::formats {
namespace {

TEST(CsvQuoted, QuotesOnlyWhatACellCannotHold) {
  EXPECT_EQ(csv_quoted("mm m=64"), "mm m=64");
  EXPECT_EQ(csv_quoted(""), "");
  EXPECT_EQ(csv_quoted("split m0 4, swap m1"), "\"split m0 4, swap m1\"");
  EXPECT_EQ(csv_quoted("a \"b\""), "\"a \"\"b\"\"\"");
  EXPECT_EQ(csv_quoted("a\nb"), "\"a\nb\"");
}

}  // namespace
}  // namespace foretune::formats
