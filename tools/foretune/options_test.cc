#include "tools/foretune/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/version.h"

namespace foretune::cli {
namespace {

using ::testing::HasSubstr;

Result<ParsedCommand> parse(const std::vector<std::string>& arguments) {
  static GlobalOptions global;
  global = GlobalOptions{};
  return parse_command_line(arguments, global);
}

std::string message_of(const std::vector<std::string>& arguments) {
  const auto parsed = parse(arguments);
  return parsed ? std::string("parsed") : parsed.error().message;
}

TEST(Options, GlobalOptionsWorkBeforeAndAfterTheSubcommand) {
  GlobalOptions global;
  ASSERT_TRUE(parse_command_line({"--seed", "50", "--format", "msgpack", "collect"}, global));
  EXPECT_EQ(global.seed, 50);
  EXPECT_EQ(global.format, "msgpack");
  ASSERT_TRUE(parse_command_line({"collect", "--num-shapes", "3", "--seed", "51"}, global));
  EXPECT_EQ(global.seed, 51);
}

TEST(Options, UnknownOptionNamesTheNearest) {
  EXPECT_THAT(message_of({"collect", "--num-shape", "3"}), HasSubstr("--num-shapes"));
  EXPECT_THAT(message_of({"--sead", "1", "collect"}), HasSubstr("--sead"));
}

TEST(Options, APositionalWithDashesIsExplained) {
  const std::string message = message_of({"predict", "--problem", "gemm m=8 n=8 k=8"});
  EXPECT_THAT(message, HasSubstr("given without this name"));
  EXPECT_EQ(message.find("did you mean"), std::string::npos) << message;
}

TEST(Options, UnknownSubcommandNamesTheNearest) {
  EXPECT_THAT(message_of({"colect"}), HasSubstr("did you mean 'collect'"));
}

TEST(Options, NegativeAndMalformedNumbersAreRefusedInOneSentence) {
  EXPECT_THAT(message_of({"predict", "--model", "x", "--m", "-4"}), HasSubstr("at least 1"));
  EXPECT_THAT(message_of({"collect", "--num-shapes", "many"}), HasSubstr("not a whole number"));
  EXPECT_THAT(message_of({"collect", "--max-flops", "1e99999"}), HasSubstr("not a number"));
  EXPECT_THAT(message_of({"collect", "--max-flops", "nan"}), HasSubstr("not a number"));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"collect", "--num-shapes", "-1"}, {"collect", "--seed"}}) {
    EXPECT_EQ(message_of(arguments).find('\n'), std::string::npos) << message_of(arguments);
  }
}

TEST(Options, SomeHaveTwoNames) {
  EXPECT_TRUE(parse({"collect", "--dtype", "f32", "bf16", "--layout", "rcr"}));
  EXPECT_TRUE(parse({"collect", "--dtypes", "f32", "--layouts", "rcr", "rrr"}));
  const auto help = parse({"collect", "--help"});
  ASSERT_TRUE(help);
  EXPECT_THAT(help->print, HasSubstr("--dtypes, --dtype TYPE"));
}

TEST(Options, NumbersThatAreTooLargeAreRefused) {
  EXPECT_THAT(message_of({"collect", "--repeat", "1e12"}), HasSubstr("at most 1000000"));
  EXPECT_THAT(message_of({"collect", "--warmup", "-1"}), HasSubstr("at least 0"));
  EXPECT_THAT(message_of({"collect", "--build-jobs", "5000"}), HasSubstr("at most 1024"));
}

TEST(Options, WholeNumbersMayBeWrittenWithAnExponent) {
  EXPECT_TRUE(parse({"collect", "--num-shapes", "1e3"}));
  EXPECT_FALSE(parse({"collect", "--num-shapes", "1.5"}));
  EXPECT_FALSE(parse({"collect", "--num-shapes", "1e40"}));
}

TEST(Options, ChoicesAreChecked) {
  EXPECT_THAT(message_of({"collect", "--family", "gpu"}), HasSubstr("cpu-gemm"));
  EXPECT_THAT(message_of({"--format", "xml", "collect"}), HasSubstr("msgpack"));
}

TEST(Options, RequiredOptionsAreNamed) {
  EXPECT_THAT(message_of({"validate-model", "--model", "m.ftm"}),
              HasSubstr("--dataset is required"));
}

TEST(Options, RepeatedSingleValueIsRefused) {
  EXPECT_FALSE(parse({"collect", "--num-shapes", "3", "--num-shapes", "4"}));
}

TEST(Options, ListsTakeSeveralValues) {
  EXPECT_TRUE(parse({"collect", "--operations", "mm", "addmm", "bmm", "--num-shapes", "2"}));
}

TEST(Options, VersionAndHelpArePrinted) {
  EXPECT_EQ(parse({"--version"})->print, concat("foretune ", kVersion, "\n"));
  EXPECT_THAT(parse({"--help"})->print, HasSubstr("validate-model"));
  EXPECT_THAT(parse({"collect", "--help"})->print, HasSubstr("--log-normal-m-mean"));
  EXPECT_THAT(parse({})->print, HasSubstr("Exit codes"));
}

TEST(Options, EveryVisibleSubcommandHasHelpWithAllItsOptions) {
  for (const Subcommand& subcommand : subcommands()) {
    OptionList list;
    static_cast<void>(subcommand.prepare(list));
    const std::string help = help_text(&subcommand, false);
    for (const Option& option : list.options()) {
      EXPECT_FALSE(option.help.empty()) << subcommand.name << " " << option.name;
      if (!option.hidden) {
        EXPECT_THAT(help, HasSubstr(option.name)) << subcommand.name;
      }
    }
    for (const std::string_view line : split(help, '\n')) {
      EXPECT_LE(line.size(), 100U) << line;
    }
  }
}

TEST(Options, CompletionKnowsSubcommandsOptionsAndChoices) {
  for (const std::string_view shell : {"bash", "zsh", "fish"}) {
    const auto script = completion_script(shell);
    ASSERT_TRUE(script);
    EXPECT_THAT(*script, HasSubstr("create-validation"));
    EXPECT_THAT(*script, HasSubstr("log-normal-k-std"));
    EXPECT_THAT(*script, HasSubstr("msgpack"));
  }
  EXPECT_FALSE(completion_script("tcsh"));
}

TEST(Options, ExitCodesFollowTheErrorCode) {
  EXPECT_EQ(exit_code({ErrorCode::kInvalidArgument, ""}), kExitUsage);
  EXPECT_EQ(exit_code({ErrorCode::kCorrupt, ""}), kExitBadInput);
  EXPECT_EQ(exit_code({ErrorCode::kUnsupported, ""}), kExitUnsupported);
  EXPECT_EQ(exit_code({ErrorCode::kCancelled, ""}), kExitInterrupted);
  EXPECT_EQ(exit_code({ErrorCode::kIo, ""}), kExitFailure);
}

}  // namespace
}  // namespace foretune::cli
