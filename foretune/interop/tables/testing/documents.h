// JSON documents with one mistake, for tests. Thread safety: free functions without state.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "foretune/base/hash.h"
#include "foretune/interop/tables/exchange.h"

namespace foretune::testing_support {

// Replaces `from` in a good document by `to`; the reader's sentence has `message`.
struct DocumentChange {
  std::string_view from;
  std::string_view to;
  std::string_view message;
};

// Expects that the document is read, and each changed one refused with one sentence.
inline void expect_refused(const std::string& good, std::span<const DocumentChange> changes) {
  ASSERT_TRUE(import_json_bytes(bytes_of(good), ExchangeFormat::kJson));
  for (const DocumentChange& change : changes) {
    std::string bad = good;
    const std::size_t at = bad.find(change.from);
    ASSERT_NE(at, std::string::npos) << change.from << "\n" << good;
    bad.replace(at, change.from.size(), change.to);
    const auto read = import_json_bytes(bytes_of(bad), ExchangeFormat::kJson);
    ASSERT_FALSE(read) << change.from << " -> " << change.to;
    EXPECT_THAT(read.error().message, testing::HasSubstr(std::string(change.message))) << change.to;
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  }
}

}  // namespace foretune::testing_support
