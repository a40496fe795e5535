#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/model/testing/model_samples.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/select/foretune.h"
#include "foretune/select/foretune_conv.h"
#include "foretune/select/select.h"
#include "foretune/version.h"

namespace foretune {
namespace {

class CApiTest : public testing::Test {
 protected:
  void SetUp() override {
    Rng rng(41);
    model_ = sample_model({.candidates = 200}, rng);
    ASSERT_TRUE(write_model(model_, path_));
    char message[200] = "unchanged";
    ASSERT_EQ(foretune_selector_open(path_.c_str(), &selector_, message, sizeof(message)),
              FORETUNE_OK)
        << message;
    EXPECT_STREQ(message, "");
  }
  void TearDown() override { foretune_selector_close(selector_); }

  static foretune_gemm gemm() {
    return {.m = 100, .n = 256, .k = 512, .batch = 1, .op = FORETUNE_MM, .dtype = 2, .layout = 1};
  }

  Model model_;
  testing_support::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "model.ftm";
  foretune_selector* selector_ = nullptr;
};

TEST_F(CApiTest, SaysTheSameAsTheSelector) {
  const auto selector = Selector::create(model_);
  ASSERT_TRUE(selector.has_value());
  const foretune_gemm problem = gemm();
  foretune_choice choice;
  ASSERT_EQ(foretune_select_gemm(selector_, &problem, &choice), FORETUNE_OK);
  const Choice expected =
      (*selector)->select(*Problem::parse("gemm m=100 n=256 k=512 dtype=bf16 layout=rrr"));
  ASSERT_TRUE(expected.picked());
  EXPECT_EQ(choice.status, FORETUNE_PICKED);
  EXPECT_EQ(choice.reason, FORETUNE_REASON_NONE);
  EXPECT_EQ(choice.candidate, expected.candidate);
  EXPECT_EQ(choice.score, expected.score);
  EXPECT_EQ(choice.margin, expected.margin);
  const Config config = (*selector)->config(expected.candidate);
  ASSERT_EQ(choice.word_count, config.words.size());
  EXPECT_TRUE(std::equal(choice.words, choice.words + choice.word_count, config.words.begin()));
}

TEST_F(CApiTest, AbstainsFromInvalidProblems) {
  const auto expect_invalid = [&](const foretune_gemm& problem) {
    foretune_choice choice;
    ASSERT_EQ(foretune_select_gemm(selector_, &problem, &choice), FORETUNE_OK);
    EXPECT_EQ(choice.status, FORETUNE_ABSTAINED);
    EXPECT_EQ(choice.reason, FORETUNE_REASON_INVALID_PROBLEM);
    EXPECT_EQ(choice.words, nullptr);
  };
  for (const std::int64_t size :
       {std::int64_t{0}, std::int64_t{-5}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    for (std::int64_t foretune_gemm::* const field : {&foretune_gemm::m, &foretune_gemm::k}) {
      foretune_gemm problem = gemm();
      problem.*field = size;
      expect_invalid(problem);
    }
  }
  for (const std::int32_t number : {-1, 99}) {
    for (std::int32_t foretune_gemm::* const field :
         {&foretune_gemm::op, &foretune_gemm::dtype, &foretune_gemm::layout}) {
      foretune_gemm problem = gemm();
      problem.*field = number;
      expect_invalid(problem);
    }
  }
  foretune_gemm problem = gemm();
  problem.batch = 2;
  expect_invalid(problem);
}

TEST_F(CApiTest, AbstainsOutsideOfTrainingWithAFallback) {
  foretune_gemm problem = gemm();
  problem.m = 2000000000;
  problem.n = 2000000000;
  foretune_choice choice;
  ASSERT_EQ(foretune_select_gemm(selector_, &problem, &choice), FORETUNE_OK);
  EXPECT_EQ(choice.status, FORETUNE_ABSTAINED);
  EXPECT_EQ(choice.reason, FORETUNE_REASON_OUTSIDE_TRAINING);
  ASSERT_NE(choice.words, nullptr);
  EXPECT_EQ(choice.word_count, 6U);
}

TEST_F(CApiTest, DescribesProblemsInTheOrderOfTheirSchema) {
  const std::span<const ProblemField> fields = find_problem_schema(kGemmProblem)->fields;
  const std::array<std::string_view, 8> names{"op",    "m",     "n",      "k",
                                              "batch", "dtype", "layout", "weights"};
  ASSERT_EQ(fields.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(fields[i].name, names[i]);
  }
}

TEST_F(CApiTest, TextAndFieldsSayTheSameAsTheStruct) {
  const foretune_gemm problem = gemm();
  foretune_choice by_struct;
  ASSERT_EQ(foretune_select_gemm(selector_, &problem, &by_struct), FORETUNE_OK);
  foretune_choice by_text;
  char message[200];
  ASSERT_EQ(foretune_select_problem(selector_, "gemm m=100 n=256 k=512 dtype=bf16 layout=rrr",
                                    &by_text, message, sizeof message),
            FORETUNE_OK)
      << message;
  EXPECT_STREQ(foretune_problem_type(selector_), "gemm");
  ASSERT_EQ(foretune_field_count(selector_), 8U);
  // A program that was compiled before the last field was added knows seven.
  std::array<int64_t, 7> fields{};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string name = foretune_field_name(selector_, i);
    fields[i] = name == "m"       ? 100
                : name == "n"     ? 256
                : name == "k"     ? 512
                : name == "batch" ? 1
                : name == "dtype" ? 2
                : name == "op"    ? 0
                                  : 1;
  }
  foretune_choice by_fields;
  ASSERT_EQ(foretune_select_fields(selector_, fields.data(), fields.size(), &by_fields),
            FORETUNE_OK);
  foretune_choice by_fields_fast;
  int exact = -1;
  double bound = -1;
  ASSERT_EQ(foretune_select_fields_fast(selector_, fields.data(), fields.size(), -1,
                                        &by_fields_fast, &exact, &bound),
            FORETUNE_OK);
  EXPECT_EQ(exact, 1);  // the model has no fast one
  for (const foretune_choice& choice : {by_text, by_fields, by_fields_fast}) {
    EXPECT_EQ(choice.status, by_struct.status);
    EXPECT_EQ(choice.candidate, by_struct.candidate);
    EXPECT_EQ(choice.score, by_struct.score);
    EXPECT_EQ(choice.margin, by_struct.margin);
  }
  EXPECT_EQ(foretune_select_fields(selector_, fields.data(), 6, &by_fields),
            FORETUNE_INVALID_ARGUMENT);
  EXPECT_EQ(foretune_select_fields(selector_, nullptr, 7, &by_fields), FORETUNE_INVALID_ARGUMENT);
  EXPECT_STREQ(foretune_field_name(selector_, 8), "");
  EXPECT_EQ(foretune_select_problem(selector_, "gemm m=1", &by_text, message, sizeof message),
            FORETUNE_INVALID_ARGUMENT);
  EXPECT_STREQ(message, "gemm: n is missing");
  // A problem of another type is an abstention, as ever.
  EXPECT_EQ(foretune_select_problem(selector_, "conv n=1 c=8 k=8 hi=9 wi=9 y=3 x=3", &by_text,
                                    nullptr, 0),
            FORETUNE_OK);
  EXPECT_EQ(by_text.status, FORETUNE_ABSTAINED);
}

TEST(CApi, ConvolutionsHaveAStructToo) {
  const std::filesystem::path path =
      std::filesystem::path(FORETUNE_SOURCE_DIR) / "tests/golden/conv.ftm";
  foretune_selector* selector = nullptr;
  char message[200];
  ASSERT_EQ(foretune_selector_open(path.c_str(), &selector, message, sizeof message), FORETUNE_OK)
      << message;
  EXPECT_STREQ(foretune_problem_type(selector), "conv");
  ASSERT_EQ(foretune_field_count(selector), sizeof(foretune_conv) / sizeof(int64_t));
  foretune_conv conv = FORETUNE_CONV_DEFAULTS;
  conv.n = 16;
  conv.c = 64;
  conv.k = 128;
  conv.hi = conv.wi = 56;
  conv.y = conv.x = 3;
  conv.stride_h = conv.stride_w = 2;
  conv.pad_h = conv.pad_w = 1;
  conv.dtype = FORETUNE_BF16;
  foretune_choice by_struct;
  ASSERT_EQ(foretune_select_conv(selector, &conv, &by_struct), FORETUNE_OK);
  foretune_choice by_text;
  ASSERT_EQ(foretune_select_problem(selector,
                                    "conv n=16 c=64 k=128 hi=56 wi=56 y=3 x=3 stride_h=2 "
                                    "stride_w=2 pad_h=1 pad_w=1 dtype=bf16",
                                    &by_text, message, sizeof message),
            FORETUNE_OK)
      << message;
  EXPECT_EQ(by_struct.status, FORETUNE_PICKED);
  EXPECT_EQ(by_struct.candidate, by_text.candidate);
  EXPECT_EQ(by_struct.score, by_text.score);
  EXPECT_EQ(foretune_select_conv(selector, nullptr, &by_struct), FORETUNE_INVALID_ARGUMENT);
  foretune_selector_close(selector);
}

TEST_F(CApiTest, NullPointersAreErrors) {
  const foretune_gemm problem = gemm();
  foretune_choice choice;
  EXPECT_EQ(foretune_select_gemm(nullptr, &problem, &choice), FORETUNE_INVALID_ARGUMENT);
  EXPECT_EQ(foretune_select_gemm(selector_, nullptr, &choice), FORETUNE_INVALID_ARGUMENT);
  EXPECT_EQ(foretune_select_gemm(selector_, &problem, nullptr), FORETUNE_INVALID_ARGUMENT);
  foretune_selector* other = nullptr;
  EXPECT_EQ(foretune_selector_open(nullptr, &other, nullptr, 0), FORETUNE_INVALID_ARGUMENT);
  EXPECT_EQ(foretune_selector_open(path_.c_str(), nullptr, nullptr, 0), FORETUNE_INVALID_ARGUMENT);
  foretune_selector_close(nullptr);
}

TEST_F(CApiTest, FilesThatAreNoModelsAreErrorsWithAMessage) {
  foretune_selector* other = selector_;
  char message[400];
  EXPECT_EQ(foretune_selector_open("no/such/file.ftm", &other, message, sizeof(message)),
            FORETUNE_NOT_FOUND);
  EXPECT_EQ(other, nullptr);
  EXPECT_NE(std::strstr(message, "no/such/file.ftm"), nullptr);
  const std::string text = (folder_ / "text.ftm").string();
  std::ofstream(text) << "not a model";
  EXPECT_EQ(foretune_selector_open(text.c_str(), &other, message, sizeof(message)),
            FORETUNE_CORRUPT);
  char short_message[8];
  EXPECT_EQ(foretune_selector_open(text.c_str(), &other, short_message, sizeof(short_message)),
            FORETUNE_CORRUPT);
  EXPECT_EQ(std::strlen(short_message), 7U);
}

TEST_F(CApiTest, ConfigTextBehavesAsSnprintf) {
  const std::string expected = to_text(model_.config_schema, model_.pool[5]);
  char text[200];
  EXPECT_EQ(foretune_config_text(selector_, 5, text, sizeof(text)), expected.size());
  EXPECT_EQ(text, expected);
  char few[6];
  EXPECT_EQ(foretune_config_text(selector_, 5, few, sizeof(few)), expected.size());
  EXPECT_EQ(few, expected.substr(0, 5));
  EXPECT_EQ(foretune_config_text(selector_, 5, nullptr, 0), expected.size());
  EXPECT_EQ(foretune_config_text(selector_, 200, text, sizeof(text)), 0U);
  EXPECT_EQ(foretune_config_text(nullptr, 5, text, sizeof(text)), 0U);
  EXPECT_STREQ(text, "");
}

TEST_F(CApiTest, HasATextForEveryReasonAndAVersion) {
  for (int reason = FORETUNE_REASON_NONE; reason <= FORETUNE_REASON_UNUSABLE_MODEL; ++reason) {
    EXPECT_EQ(foretune_reason_text(reason), to_string(static_cast<AbstainReason>(reason)));
  }
  EXPECT_STREQ(foretune_reason_text(77), "This reason is unknown.");
  EXPECT_STREQ(foretune_reason_text(-1), "This reason is unknown.");
  EXPECT_EQ(foretune_version(), kVersion);
}

}  // namespace
}  // namespace foretune
