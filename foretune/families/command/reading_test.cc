#include "foretune/families/command/reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"

namespace foretune::command_internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Kind = NumberSource::Kind;

std::string text_of(const Result<double>& value) {
  return value ? concat(*value) : value.error().message;
}

std::string read(const NumberSource& source, const std::string& output,
                 const std::string& folder = "/nowhere") {
  Expansion values;
  values.folder = folder;
  return text_of(read_number(source, output, values));
}

NumberSource json(const std::string& path) {
  return {.kind = Kind::kJson, .path = *parse_json_path(path), .text = path};
}

NumberSource regex(const std::string& pattern) {
  return {.kind = Kind::kRegex, .text = pattern, .pattern = *GroupPattern::compile(pattern)};
}

TemplateWord file(const std::string& name) { return {.pieces = {{Placeholder::kText, name, 0}}}; }

TEST(Reading, TheWholeOutputIsANumber) {
  const NumberSource whole{.kind = Kind::kWhole};
  EXPECT_EQ(read(whole, " 2.5\n"), "2.5");
  EXPECT_EQ(read(whole, "2.5 ms"), "the output holds '2.5 ms', which is no number");
  EXPECT_EQ(read(whole, ""), "the output holds '', which is no number");
  EXPECT_EQ(read(whole, "inf"), "the output holds 'inf', which is no number");
}

TEST(Reading, JsonAlsoBetweenOtherOutput) {
  const std::string document = R"({"a": {"b/c": [1, {"ms": 7.5}]}, "t": "x", "n": null})";
  EXPECT_EQ(read(json("/a/b~1c/1/ms"), document), "7.5");
  EXPECT_EQ(read(json("/a/b~1c/0"), "warming up\n" + document + "\ndone\n"), "1");
  EXPECT_EQ(read(json("/a/b~1c/2"), document), "the output has nothing at /a/b~1c/2");
  EXPECT_EQ(read(json("/a/x"), document), "the output has nothing at /a/x");
  EXPECT_EQ(read(json("/t"), document), "the output has no number at /t");
  EXPECT_EQ(read(json("/n"), document), "the output has no number at /n");
  EXPECT_EQ(read(json("/t/x"), document), "the output has nothing at /t/x");
  EXPECT_EQ(read(json("/a"), "nothing here"), "the output is no JSON document");
  EXPECT_EQ(read(json("/a"), "{"), "the output is no JSON document");
  EXPECT_EQ(read(json("/a"), "} {"), "the output is no JSON document");
}

TEST(Reading, PathsIntoJson) {
  EXPECT_THAT(*parse_json_path("/a~1b/~0/"), ElementsAre("a/b", "~", ""));
  EXPECT_THAT(parse_json_path("a").error().message, HasSubstr("begins with /"));
  EXPECT_THAT(parse_json_path("").error().message, HasSubstr("begins with /"));
  EXPECT_THAT(parse_json_path("/~2").error().message, HasSubstr("~0 is ~ and ~1 is /"));
  EXPECT_THAT(parse_json_path("/a~").error().message, HasSubstr("~0 is ~ and ~1 is /"));
}

TEST(Reading, RegularExpressionsMatchLineByLine) {
  EXPECT_EQ(read(regex("^time: ([0-9.]+) ms$"), "warm\ntime: 12.25 ms\nend\n"), "12.25");
  EXPECT_EQ(read(regex("error ([0-9.e-]+)"), "error 1e-3"), "0.001");
  EXPECT_EQ(read(regex("a(.*)b"), "a1\n2b"), "the output has nothing like 'a(.*)b'");
  EXPECT_EQ(read(regex("is (.*)"), "is fast"),
            "'is (.*)' in the output holds 'fast', which is no number");
}

TEST(Reading, RefusesPatternsWithoutOneGroup) {
  const auto reason = [](const std::string& text) {
    const auto pattern = GroupPattern::compile(text);
    return pattern ? std::string("compiled") : pattern.error().message;
  };
  EXPECT_EQ(reason("([0-9]+)"), "compiled");
  EXPECT_THAT(reason("[0-9]+"), HasSubstr("has 0 groups"));
  EXPECT_THAT(reason("(a)(b)"), HasSubstr("has 2 groups"));
  EXPECT_THAT(reason("(a"), HasSubstr("is no regular expression"));
  EXPECT_THAT(reason("(a{9})"), HasSubstr("write out what is repeated"));
  EXPECT_THAT(reason(std::string(401, 'a')), HasSubstr("write out what is repeated"));
}

TEST(Reading, FilesStandInTheFolderOfTheRun) {
  const testing_support::TemporaryFolder folder;
  ASSERT_TRUE(write_text_file_atomically(folder / "score.txt", "17\n"));
  ASSERT_TRUE(write_text_file_atomically(folder / "r.json", R"({"q": 3})"));
  const std::string path = folder.path().string();
  EXPECT_EQ(read({.kind = Kind::kWhole, .file = file("score.txt")}, "5", path), "17");
  NumberSource in_file = json("/q");
  in_file.file = file("r.json");
  EXPECT_EQ(read(in_file, "{}", path), "3");
  EXPECT_EQ(read({.kind = Kind::kBytes, .file = file("r.json")}, "", path), "8");
  EXPECT_EQ(read({.kind = Kind::kBytes, .file = file(path + "/score.txt")}, "", path), "3");
  EXPECT_EQ(read({.kind = Kind::kWhole, .file = file("absent.txt")}, "5", path),
            "the file absent.txt is not there");
}

}  // namespace
}  // namespace foretune::command_internal
