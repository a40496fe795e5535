#include "foretune/base/registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace foretune {
namespace {

bool add_name(Registry<std::string>& table, const std::string& name) {
  return table.add(std::make_unique<std::string>(name),
                   [&](const std::string& known) { return known == name; });
}

const std::string kA = "a";
const std::string kB = "b";
const std::string kZero = "0";

TEST(Registry, RowsComeInOrderAndNoneTwice) {
  Registry<std::string> table({&kA, &kB});
  EXPECT_TRUE(add_name(table, "c"));
  EXPECT_FALSE(add_name(table, "a"));
  EXPECT_FALSE(add_name(table, "c"));
  std::vector<std::string> names;
  for (const std::string* const row : table.rows()) {
    names.push_back(*row);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(Registry, RowsStayWhereTheyAre) {
  Registry<std::string> table({&kA});
  const std::span<const std::string* const> before = table.rows();
  const std::string* const first = before.front();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(add_name(table, std::to_string(i)));
  }
  EXPECT_EQ(before.size(), 1U);
  EXPECT_EQ(*before.front(), "a");
  EXPECT_EQ(table.rows().front(), first);
  EXPECT_EQ(table.rows().size(), 1001U);
}

TEST(Registry, ReadersNeedNoLock) {
  Registry<std::string> table({&kZero});
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const auto rows = table.rows();
        for (std::size_t k = 0; k < rows.size(); ++k) {
          ASSERT_EQ(*rows[k], std::to_string(k));
        }
      }
    });
  }
  for (int i = 1; i < 500; ++i) {
    ASSERT_TRUE(add_name(table, std::to_string(i)));
  }
  stop = true;
  for (std::thread& reader : readers) {
    reader.join();
  }
}

}  // namespace
}  // namespace foretune
