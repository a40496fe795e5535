#include "tools/foretune/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/version.h"

namespace foretune::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(Options, NoOptionIsNearAWordOfTwoLetters) {
  EXPECT_THAT(message_of({"train", "--op", "mm"}), Not(HasSubstr("did you mean")));
  EXPECT_THAT(message_of({"train", "--model-typ", "gbdt"}), HasSubstr("'--model-type'"));
}

TEST(Options, ThoseWithoutAnEffectAreNamedWithWhatGivesThemOne) {
  EXPECT_EQ(message_of({"train", "--loss", "listmle", "--dropout", ".3", "--weights", "int8",
                        "--networks", "3"}),
            "--loss, --dropout, --networks and --weights have an effect only with --model-type "
            "standard, deep, two-tower or ensemble (see foretune train --help)");
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<Case> cases{
      {{"--format", "csv", "predict", "--model", "x"}, "--format has an effect only with collect"},
      {{"tune", "--m", "4", "--format", "csv"}, "--format has an effect only with collect"},
      {{"train", "--trees", "5", "--leaves", "7", "--model-type", "deep"},
       "--trees and --leaves have an effect only with --model-type gbdt or ensemble"},
      {{"train", "--mining-rounds", "1", "--model-type", "ensemble"},
       "only with --model-type gbdt"},
      {{"train", "--hidden-dims", "4", "--model-type", "deep"}, "only for the network standard"},
      {{"train", "--weights", "int8", "--model-type", "two-tower"}, "networks standard and deep"},
      {{"train", "--group-size", "8", "--model-type", "deep", "--loss", "mse:1"}, "ranking --loss"},
      {{"train", "--regret-decay", "2", "--objective", "lambdarank"}, "trees minimise regret"},
      {{"train", "--no-log-transform"}, "only with one of these --targets"},
      {{"train", "--weight-decay", "1", "--row-weight-decay", "2"}, "without --weight-decay"},
      {{"train", "--warm-start-n-estimators", "5"}, "only with --warm-start"},
      {{"train", "--write-lightgbm"}, "only with --out-dir"},
      {{"train", "--resume", "--model-type", "deep"}, "only with the --work-dir"},
      {{"collect", "--policy", "best", "--rounds", "2"},
       "--rounds and --policy have an effect only"},
      {{"collect", "--log-normal-m-mean", "3", "--random"}, "only with --log-normal"},
      {{"collect", "--max-size", "64", "--log-normal"}, "only without --log-normal, --shapeset"},
      {{"collect", "--power-of-two", "--shapeset", "s.csv"}, "only without --log-normal, --shape"},
      {{"create-validation", "--model-top", "3"}, "--model-top has an effect only with --model"},
      {{"tune", "--shapeset", "s.csv", "--dtype", "f32"},
       "only with sizes such as --m, --n and --k"},
      {{"predict", "--model", "x", "gemm", "m=4", "--batch", "2"},
       "only with sizes such as --m, --n and --k"},
      {{"tune", "--m", "4", "--model", "x", "--strategy", "random"}, "only with --strategy model"},
      {{"search", "--model", "x", "--rounds", "3", "--threads", "1"},
       "--rounds and --threads have an effect only with --measure"},
      {{"validate-model", "--model", "x", "--dataset", "y", "--no-measure", "--cold-cache"},
       "only without --no-measure"},
      {{"compare", "a.json", "b.json", "--folds", "3"}, "only with --retrain"},
      {{"compare", "a.json", "b.json", "--dataset", "d"}, "only with --retrain or a model"},
      {{"inspect", "x", "--top", "3"}, "only with --problem"},
      {{"convert", "x", "--output", "y.ftd", "--input-shape", "i=1x3"}, "an --output of .ftn"},
      {{"import-model", "x", "--output", "y", "--pool", "z", "--family", "f"}, "with --kernels"},
      {{"env-search", "--debug"}, "only with --output"},
      {{"env-generate", "--list", "--out", "x"}, "only without --list"}};
  for (const Case& wrong : cases) {
    EXPECT_THAT(message_of(wrong.arguments), HasSubstr(wrong.message));
  }
}

TEST(Options, TheSameOnesAreWelcomeWhereTheyHaveAnEffect) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"train", "--model-type", "deep", "--batch-size", "64", "--num-layers", "2"},
           {"train", "--model-type", "ensemble", "--trees", "9", "--hidden-dim", "8"},
           {"train", "--loss", "mse:1,lambdarank:0.5", "--group-size", "8", "--model-type", "deep"},
           {"train", "--regret-decay", "2", "--n-splits", "3"},
           {"collect", "--active", "--policy", "best"},
           {"collect", "--power-of-two", "--max-size", "64"},
           {"collect", "--layouts", "rcr", "--shapeset", "s.csv"},
           {"collect", "--dtypes", "f32", "--family", "recorded"},
           {"collect", "--log-normal", "--log-normal-c-mean", "4", "--family", "recorded"},
           {"predict", "--model", "x", "--c", "4", "--k", "4", "--hi", "7", "--wi", "7", "--y",
            "1"},
           {"collect", "--log-normal", "--log-normal-k-std", "1", "--layouts", "rcr"},
           {"search", "--model", "x", "--measure", "--rounds", "3", "--cold-cache"},
           {"tune", "--m", "4", "--n", "4", "--k", "4", "--dtype", "bf16", "--model", "x"},
           {"--format", "csv", "create-validation", "--chunk-size", "3"}}) {
    EXPECT_EQ(message_of(arguments), "parsed");
  }
}

// The command lines of torch-diode's guide, without the Python program in front of them.
TEST(Options, ThoseOfTorchDiodesGuideAreUnderstood) {
  for (const char* line :
       {"--format msgpack --seed 50 collect --output train.msgpack --num-shapes 1000 --log-normal "
        "--search-space EXHAUSTIVE --search-mode max-autotune --chunk-size 5",
        "--seed 50 train --data-dir ./data --model model.pt --model-type deep --batch-size 64 "
        "--num-epochs 1000 --learning-rate 0.001 --log-dir ./logs",
        "--format msgpack --seed 50 create-validation --output v.msgpack --shapeset shapes.json "
        "--operations mm addmm bmm --search-space EXHAUSTIVE --search-mode max-autotune",
        "--seed 50 validate-model --model model.pt --dataset v.msgpack --batch-size 64 "
        "--top-n-worst 10"}) {
    std::vector<std::string> arguments;
    for (const std::string_view word : split_words(line)) {
      arguments.emplace_back(word);
    }
    EXPECT_EQ(message_of(arguments), "parsed") << line;
  }
}

TEST(Options, WhatHasNoEffectAnywhereIsAcceptedWithAWarning) {
  const auto parsed =
      parse({"validate-model", "--model", "x", "--dataset", "y", "--batch-size", "64"});
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->warnings.size(), 1U);
  EXPECT_THAT(parsed->warnings[0], HasSubstr("--batch-size has no effect: "));
  EXPECT_TRUE(parse({"train", "--model-type", "deep", "--batch-size", "64"})->warnings.empty());
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
  EXPECT_THAT(help->print, HasSubstr("--dtypes, --dtype LABEL"));
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
  EXPECT_THAT(message_of({"predict", "--m", "4"}), HasSubstr("--model is required"));
  EXPECT_THAT(message_of({"convert", "a.json"}), HasSubstr("--output is required"));
  EXPECT_THAT(message_of({"convert", "--output", "a.ftd"}), HasSubstr("input is required"));
}

TEST(Options, AliasesMayHaveUnderscoresAndOneLetter) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"predict", "--model_dir", "/", "--m", "4", "--top_k", "3", "--rank_by", "time"},
           {"search", "--model-dir", "m", "--m", "4", "--top_k", "3"},
           {"evaluate", "--model_dir", "m", "--data_dir", "d", "--op", "x", "-o", "f.json"},
           {"evaluate", "--model_dir", "m", "--data_dir", "d", "--operation", "x", "--output", "f"},
           {"convert", "-i", "a.json", "-o", "a.ftd", "--capture_hw", "--merge_with", "b.json"},
           {"convert", "--input", "a.json", "--output", "a.ftd"},
           {"convert", "a.json", "--output", "a.ftd", "--op_type", "x"},
           {"predict", "--model", "m", "--operation", "grouped_conv", "--direction", "bwd_data",
            "--hi", "4"},
           {"validate-model", "--variant", "bwd_data", "--oracle-csv", "o.csv"},
           {"compare", "--old-predictions", "a.csv", "--new-predictions", "b.csv"}}) {
    EXPECT_EQ(message_of(arguments), "parsed") << arguments[0] << " " << arguments[1];
  }
  EXPECT_THAT(message_of({"convert", "a.json", "--input", "b.json", "-o", "c"}),
              Not(HasSubstr("parsed")));
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
  EXPECT_THAT(parse({"collect", "--help"})->print, HasSubstr("Log-normal sizes, only with --log"));
  EXPECT_THAT(parse({"inspect", "--help"})->print, HasSubstr("(only with --problem)"));
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
