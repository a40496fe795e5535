#include "foretune/families/command/command_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace foretune::command_internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<TemplateName>& names() {
  static const std::vector<TemplateName> all = {
      {"opt", Placeholder::kParameter, 0, false},    {"flags", Placeholder::kParameter, 1, true},
      {"unused", Placeholder::kParameter, 2, false}, {"n", Placeholder::kField, 0, false},
      {"source", Placeholder::kSource, 0, false},    {"threads", Placeholder::kThreads, 0, false},
      {"jobs", Placeholder::kJobs, 0, false},        {"build", Placeholder::kBuild, 0, false},
      {"folder", Placeholder::kFolder, 0, false},    {"output", Placeholder::kOutput, 0, false}};
  return all;
}

CommandTemplate template_of(const std::vector<std::string>& words) {
  CommandTemplate out;
  for (const std::string& word : words) {
    auto parsed = parse_word(word, names());
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
    out.words.push_back(*std::move(parsed));
  }
  return out;
}

Expansion values(std::string opt, std::string flags) {
  return {.parameters = {std::move(opt), std::move(flags), "x"},
          .fields = {"42"},
          .source = "/src",
          .build = "/build",
          .folder = "/run",
          .output = "/run/out",
          .threads = 3,
          .jobs = 5};
}

TEST(CommandTemplate, PlaceholdersBecomeTextWithinTheirWord) {
  const CommandTemplate command =
      template_of({"cc", "{opt}", "-DN={n}{n}", "{source}/a.c", "-j{jobs}", "{threads}",
                   "{build}/p", "{folder}", "{output}", "{{{n}}}"});
  EXPECT_THAT(expand(command, values("-O2", "")),
              ElementsAre("cc", "-O2", "-DN=4242", "/src/a.c", "-j5", "3", "/build/p", "/run",
                          "/run/out", "{42}"));
}

TEST(CommandTemplate, AnEmptyValueThatIsAWordDisappearsAndAnEmptyTextDoesNot) {
  EXPECT_THAT(expand(template_of({"cc", "{opt}", "a.c"}), values("", "")),
              ElementsAre("cc", "a.c"));
  EXPECT_THAT(expand(template_of({"cc", "-x{opt}", ""}), values("", "")),
              ElementsAre("cc", "-x", ""));
}

// Texts that a shell would take apart, expand or run stay as they are.
TEST(CommandTemplate, ValuesAreNeverTakenApartUnlessTheirParameterIsSplit) {
  const std::string hostile = "a b; rm -rf / $(id) `id` \"'|>{n}";
  EXPECT_THAT(expand(template_of({"cc", "{opt}", "-D{opt}"}), values(hostile, "")),
              ElementsAre("cc", hostile, "-D" + hostile));
  EXPECT_THAT(expand(template_of({"cc", "{flags}", "end"}), values("", "  -a  -b ")),
              ElementsAre("cc", "-a", "-b", "end"));
  EXPECT_THAT(expand(template_of({"cc", "{flags}", "end"}), values("", " ")),
              ElementsAre("cc", "end"));
}

TEST(CommandTemplate, KnowsWhatItMentions) {
  const CommandTemplate command = template_of({"cc", "{flags}", "{opt}{opt}", "{n}", "{jobs}"});
  EXPECT_TRUE(command.mentions(Placeholder::kJobs));
  EXPECT_FALSE(command.mentions(Placeholder::kThreads));
}

TEST(CommandTemplate, RefusesWhatItDoesNotKnow) {
  const auto reason = [](std::string_view word) {
    const auto parsed = parse_word(word, names());
    return parsed ? std::string("accepted") : parsed.error().message;
  };
  EXPECT_EQ(reason("{thread}"),
            "mentions '{thread}', which nothing is called here; did you mean {threads}?");
  EXPECT_THAT(reason("{zzzzzzz}"), HasSubstr("there are opt, flags"));
  EXPECT_EQ(reason("a{opt"), "has a { without its } in 'a{opt'; a brace itself is {{");
  EXPECT_EQ(reason("a}b"), "has a } without its { in 'a}b'; a brace itself is }}");
  EXPECT_THAT(reason("-x{flags}"),
              HasSubstr("a parameter that is split must be a word of its own"));
  EXPECT_THAT(reason("{}"), HasSubstr("mentions '{}'"));
}

}  // namespace
}  // namespace foretune::command_internal
