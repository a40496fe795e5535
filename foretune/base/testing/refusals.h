// Tests of texts that a parser refuses. Thread safety: a free function.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace foretune::testing_support {

// A text that is refused, and a part of the message that says why.
struct RefusedText {
  std::string text;
  std::string reason;
};

// Expects that `parse`, which returns a Result, refuses every text for its reason.
template <class Parse>
void expect_refusals(const Parse& parse, const std::vector<RefusedText>& refused) {
  for (const auto& [text, reason] : refused) {
    const auto parsed = parse(text);
    EXPECT_FALSE(parsed) << text;
    if (!parsed) {
      EXPECT_THAT(parsed.error().message, testing::HasSubstr(reason)) << text;
    }
  }
}

}  // namespace foretune::testing_support
