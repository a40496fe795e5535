#include "foretune/base/figures.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace foretune {
namespace {

TEST(JsonQuoted, EscapesWhatJsonForbids) {
  EXPECT_EQ(json_quoted(""), "\"\"");
  EXPECT_EQ(json_quoted("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(json_quoted("\n\t\r"), R"("\n\t\r")");
  EXPECT_EQ(json_quoted(std::string("\0\x1f", 2)), R"("\u0000\u001f")");
  EXPECT_EQ(json_quoted("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

TEST(JsonQuoted, ReplacesInvalidUtf8ByteByByte) {
  const std::string replacement = "\xef\xbf\xbd";
  EXPECT_EQ(json_quoted("\xff"), "\"" + replacement + "\"");
  EXPECT_EQ(json_quoted("a\xc3"), "\"a" + replacement + "\"");
  EXPECT_EQ(json_quoted("\xc0\x80"), "\"" + replacement + replacement + "\"");
  // A surrogate, and a code point beyond the last.
  EXPECT_EQ(json_quoted("\xed\xa0\x80"), "\"" + replacement + replacement + replacement + "\"");
  EXPECT_EQ(json_quoted("\xf4\x90\x80\x80"),
            "\"" + replacement + replacement + replacement + replacement + "\"");
}

TEST(DotQuoted, LeavesNoControlCharacters) {
  EXPECT_EQ(dot_quoted("a \"b\"\\\nc\td\x7f\xff"), "\"a \\\"b\\\"\\\\ c d \xef\xbf\xbd\"");
}

TEST(Figures, PrintOneObjectInOrder) {
  Figures figures;
  figures.name = "select";
  figures.add("b_ms", 1.5);
  figures.add("a_ns", std::numeric_limits<double>::quiet_NaN());
  figures.machine = {{"cpu", "x"}};
  figures.command = "select --json f";
  EXPECT_EQ(
      figures.json(),
      "{\n  \"name\": \"select\",\n  \"metrics\": {\n    \"b_ms\": 1.5,\n    \"a_ns\": null\n"
      "  },\n  \"machine\": {\n    \"cpu\": \"x\"\n  },\n  \"command\": \"select --json f\"\n}\n");
  EXPECT_EQ(
      Figures{}.json(),
      "{\n  \"name\": \"\",\n  \"metrics\": {},\n  \"machine\": {},\n  \"command\": \"\"\n}\n");
}

TEST(Figures, WriteReportsWhereItCannot) {
  const Status written = Figures{}.write("/nonexistent-folder/figures.json");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("/nonexistent-folder/figures.json"), std::string::npos);
}

}  // namespace
}  // namespace foretune
