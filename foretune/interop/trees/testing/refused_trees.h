// A test that all parsers of foreign trees pass: texts without sense. Thread safety: a free
// function.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"

namespace foretune {

// A text that is refused, and a part of the message that says why.
struct RefusedTrees {
  std::string text;
  ErrorCode code;
  std::string_view reason;
};

template <class Parse>
void expect_refused_trees(const std::vector<RefusedTrees>& refused, const Parse& parse) {
  for (const RefusedTrees& test : refused) {
    const auto trees = parse(test.text);
    ASSERT_FALSE(trees.has_value()) << test.reason;
    EXPECT_EQ(trees.error().code, test.code) << trees.error().message;
    EXPECT_THAT(trees.error().message, testing::HasSubstr(std::string(test.reason)));
  }
}

}  // namespace foretune
