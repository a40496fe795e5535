// The C interface of convolutions.
#include "foretune/dispatch/conv_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/testing/forked_child.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/families/cpu_conv/conv_data.h"

namespace foretune {
namespace {

using cpu_conv::ConvData;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing_support::TemporaryFolder;

foretune_conv layer(int operation = FORETUNE_CONV_FORWARD) {
  foretune_conv conv = FORETUNE_CONV_DEFAULTS;
  conv.op = operation;
  conv.n = 2;
  conv.c = 12;
  conv.k = 20;
  conv.g = 2;
  conv.hi = 9;
  conv.wi = 7;
  conv.y = conv.x = 3;
  conv.stride_h = 2;
  conv.pad_h = conv.pad_w = 1;
  return conv;
}

// Owns a plan, or the message that says why there is none.
struct Plan {
  explicit Plan(const foretune_conv& conv, const foretune_conv_options* options = nullptr) {
    code = foretune_conv_plan_create(&conv, options, &plan, message.data(), message.size());
  }
  ~Plan() { foretune_conv_plan_destroy(plan); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  int run(const foretune_conv_operands& operands) {
    return foretune_conv_plan_run(plan, &operands, message.data(), message.size());
  }
  int pack(const float* weights) {
    return foretune_conv_plan_pack(plan, weights, message.data(), message.size());
  }
  [[nodiscard]] std::string explain() const {
    std::array<char, 512> text{};
    const std::size_t length = foretune_conv_plan_explain(plan, text.data(), text.size());
    EXPECT_EQ(length, std::string(text.data()).size());
    return text.data();
  }
  foretune_conv_plan* plan = nullptr;
  int code = -1;
  std::array<char, 512> message{"old"};
};

// Random operands of the problem that a C struct describes.
std::unique_ptr<ConvData> data_of(const foretune_conv& conv, std::uint64_t seed) {
  const std::span<const std::int64_t> fields(&conv.op, sizeof conv / sizeof conv.op);
  const auto problem = Problem::create(kConvProblem, Problem::Fields(fields));
  EXPECT_TRUE(problem) << problem.error().message;
  auto data = ConvData::create(*ConvProblem::from(*problem), seed, {});
  EXPECT_TRUE(data) << data.error().message;
  return *std::move(data);
}

foretune_conv_operands operands_of(ConvData& data) {
  foretune_conv_operands operands = {};
  const bool has_epilogue = data.problem().operation() == ConvOperation::kForward;
  operands.input = data.input();
  operands.weights = data.weights();
  operands.output = data.output();
  operands.bias = has_epilogue ? data.operands().bias : nullptr;
  operands.addend = has_epilogue ? data.operands().residual : nullptr;
  operands.result = data.result().data();
  return operands;
}

void expect_right(Plan& plan, const foretune_conv_operands& operands, ConvData& data) {
  data.poison();
  ASSERT_EQ(plan.run(operands), FORETUNE_OK) << plan.message.data();
  EXPECT_STREQ(plan.message.data(), "");
  const Support right = data.verify();
  EXPECT_TRUE(right) << right.reason();
}

TEST(ConvPlanTest, ComputesThreeDirectionsAndEpilogues) {
  for (const int operation :
       {FORETUNE_CONV_FORWARD, FORETUNE_CONV_BACKWARD_DATA, FORETUNE_CONV_BACKWARD_WEIGHT}) {
    for (int epilogue = 0; epilogue < (operation == FORETUNE_CONV_FORWARD ? 4 : 1); ++epilogue) {
      foretune_conv conv = layer(operation);
      conv.epilogue = epilogue;
      Plan plan(conv);
      ASSERT_EQ(plan.code, FORETUNE_OK) << plan.message.data();
      const auto data = data_of(conv, 1);
      expect_right(plan, operands_of(*data), *data);
      EXPECT_THAT(plan.explain(), StartsWith("default: isa="));
      if (operation == FORETUNE_CONV_BACKWARD_WEIGHT) {
        continue;
      }
      conv.weights = FORETUNE_CONV_CONSTANT;
      Plan packed(conv);
      ASSERT_EQ(packed.code, FORETUNE_OK) << packed.message.data();
      const auto other = data_of(conv, 2);
      std::vector<float> weights(other->weights(), other->weights() + 20L * 6 * 9);
      ASSERT_EQ(packed.pack(weights.data()), FORETUNE_OK) << packed.message.data();
      std::ranges::fill(weights, std::numeric_limits<float>::quiet_NaN());
      foretune_conv_operands without = operands_of(*other);
      without.weights = nullptr;
      expect_right(packed, without, *other);
    }
  }
}

TEST(ConvPlanTest, CountsTheElementsOfTensors) {
  Plan plan(layer());
  std::int64_t input = 0;
  std::int64_t weights = 0;
  std::int64_t output = 0;
  EXPECT_EQ(foretune_conv_plan_elements(plan.plan, &input, &weights, &output), FORETUNE_OK);
  EXPECT_EQ(input, 2 * 12 * 9 * 7);
  EXPECT_EQ(weights, 20 * 6 * 9);
  EXPECT_EQ(output, 2 * 20 * 5 * 7);
  EXPECT_EQ(foretune_conv_plan_elements(plan.plan, nullptr, nullptr, nullptr), FORETUNE_OK);
  EXPECT_EQ(foretune_conv_plan_elements(nullptr, &input, nullptr, nullptr),
            FORETUNE_INVALID_ARGUMENT);
}

TEST(ConvPlanTest, KeepsTrialsForTheNextProcess) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "trials.ftd";
  const std::string again = folder.path() / "again.ftd";
  foretune_conv conv = layer();
  conv.hi = 11;
  foretune_conv_options options = {};
  options.threads = 1;
  options.measure_top = 3;
  options.choices_path = path.c_str();
  Plan plan(conv, &options);
  ASSERT_EQ(plan.code, FORETUNE_OK) << plan.message.data();
  const auto data = data_of(conv, 1);
  for (int call = 0; call < 10; ++call) {
    expect_right(plan, operands_of(*data), *data);
  }
  // Behind the config stands why no model picked it.
  const std::string text = plan.explain();
  const std::string chosen = text.substr(0, text.find(';'));
  EXPECT_THAT(chosen, StartsWith("measured: isa="));
  ASSERT_EQ(foretune_conv_plan_save(plan.plan, plan.message.data(), plan.message.size()),
            FORETUNE_OK)
      << plan.message.data();
  // Another path stands for another process: its dispatcher reads the file anew.
  std::filesystem::copy_file(path, again);
  options.choices_path = again.c_str();
  Plan next(conv, &options);
  ASSERT_EQ(next.code, FORETUNE_OK) << next.message.data();
  EXPECT_EQ(next.explain(), "remembered" + chosen.substr(chosen.find(':')));
  expect_right(next, operands_of(*data), *data);
}

TEST(ConvPlanTest, ThreadsMayShareAPlan) {
  foretune_conv conv = layer();
  conv.weights = FORETUNE_CONV_CONSTANT;
  Plan plan(conv);
  ASSERT_EQ(plan.code, FORETUNE_OK);
  const auto data = data_of(conv, 1);
  ASSERT_EQ(plan.pack(data->weights()), FORETUNE_OK);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&plan, &conv] {
      const auto mine = data_of(conv, 1);
      foretune_conv_operands operands = operands_of(*mine);
      operands.weights = nullptr;
      for (int call = 0; call < 10; ++call) {
        mine->poison();
        ASSERT_EQ(foretune_conv_plan_run(plan.plan, &operands, nullptr, 0), FORETUNE_OK);
        ASSERT_TRUE(mine->verify());
      }
    });
  }
}

TEST(ConvPlanTest, AForkedChildMayRunThePlansOfItsParent) {
  if (!testing_support::kChildMayMakeThreads) {
    GTEST_SKIP() << "this sanitizer forbids threads in a child";
  }
  foretune_conv conv = layer();
  Plan plan(conv);
  ASSERT_EQ(plan.code, FORETUNE_OK);
  const auto data = data_of(conv, 1);
  expect_right(plan, operands_of(*data), *data);
  conv.hi = 13;
  EXPECT_TRUE(testing_support::is_true_in_child([&] {
    data->poison();
    Plan first_met_here(conv);
    const auto other = data_of(conv, 2);
    return plan.run(operands_of(*data)) == FORETUNE_OK && data->verify() &&
           first_met_here.run(operands_of(*other)) == FORETUNE_OK && other->verify();
  }));
  expect_right(plan, operands_of(*data), *data);
}

TEST(ConvPlanTest, RefusesMissingArguments) {
  std::array<char, 128> message{};
  const foretune_conv conv = layer();
  foretune_conv_plan* out = nullptr;
  EXPECT_EQ(foretune_conv_plan_create(nullptr, nullptr, &out, message.data(), message.size()),
            FORETUNE_INVALID_ARGUMENT);
  EXPECT_STREQ(message.data(), "conv must not be NULL");
  EXPECT_EQ(foretune_conv_plan_create(&conv, nullptr, nullptr, nullptr, 0),
            FORETUNE_INVALID_ARGUMENT);
  EXPECT_EQ(foretune_conv_plan_run(nullptr, nullptr, message.data(), message.size()),
            FORETUNE_INVALID_ARGUMENT);
  EXPECT_EQ(foretune_conv_plan_pack(nullptr, message.data(), nullptr, 0),
            FORETUNE_INVALID_ARGUMENT);
  EXPECT_EQ(foretune_conv_plan_save(nullptr, nullptr, 0), FORETUNE_INVALID_ARGUMENT);
  EXPECT_EQ(foretune_conv_plan_explain(nullptr, message.data(), message.size()), 0U);
  EXPECT_STREQ(message.data(), "");
  foretune_conv_plan_destroy(nullptr);

  Plan plan(conv);
  ASSERT_EQ(plan.code, FORETUNE_OK);
  EXPECT_EQ(foretune_conv_plan_run(plan.plan, nullptr, nullptr, 0), FORETUNE_INVALID_ARGUMENT);
  const auto data = data_of(conv, 1);
  for (const auto missing : {&foretune_conv_operands::input, &foretune_conv_operands::weights}) {
    foretune_conv_operands operands = operands_of(*data);
    operands.*missing = nullptr;
    EXPECT_EQ(plan.run(operands), FORETUNE_INVALID_ARGUMENT);
  }
  foretune_conv_operands operands = operands_of(*data);
  operands.result = data->input();
  EXPECT_EQ(plan.run(operands), FORETUNE_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.message.data(), "the tensor to be computed overlaps another one");
  EXPECT_EQ(plan.pack(data->weights()), FORETUNE_INVALID_ARGUMENT);
  EXPECT_THAT(plan.message.data(), HasSubstr("weights=constant"));
  EXPECT_EQ(foretune_conv_plan_save(plan.plan, plan.message.data(), plan.message.size()),
            FORETUNE_INVALID_ARGUMENT);
  // Text is cut where it does not fit.
  std::array<char, 9> cut{};
  EXPECT_GT(foretune_conv_plan_explain(plan.plan, cut.data(), cut.size()), cut.size());
  EXPECT_STREQ(cut.data(), "default:");
}

TEST(ConvPlanTest, RefusesProblemsInOneSentence) {
  struct Case {
    std::int64_t foretune_conv::* field;
    std::int64_t value;
    int code;
    const char* part;
  };
  for (const Case& wrong : {
           Case{&foretune_conv::op, 3, FORETUNE_INVALID_ARGUMENT, "op"},
           Case{&foretune_conv::n, 0, FORETUNE_INVALID_ARGUMENT, "n"},
           Case{&foretune_conv::n, std::numeric_limits<std::int64_t>::max(),
                FORETUNE_INVALID_ARGUMENT, "n"},
           Case{&foretune_conv::c, 11, FORETUNE_INVALID_ARGUMENT, "does not divide"},
           Case{&foretune_conv::y, 12, FORETUNE_INVALID_ARGUMENT, "does not fit"},
           Case{&foretune_conv::stride_w, -1, FORETUNE_INVALID_ARGUMENT, "stride_w"},
           Case{&foretune_conv::pad_h, std::numeric_limits<std::int64_t>::min(),
                FORETUNE_INVALID_ARGUMENT, "pad_h"},
           Case{&foretune_conv::dtype, 99, FORETUNE_INVALID_ARGUMENT, "dtype"},
           Case{&foretune_conv::epilogue, 4, FORETUNE_INVALID_ARGUMENT, "epilogue"},
           Case{&foretune_conv::dtype, static_cast<int>(DataType::kF64), FORETUNE_UNSUPPORTED,
                "f64"},
           Case{&foretune_conv::n, 2000000000, FORETUNE_UNSUPPORTED, "memory"},
       }) {
    foretune_conv conv = layer();
    conv.*wrong.field = wrong.value;
    Plan plan(conv);
    EXPECT_EQ(plan.code, wrong.code) << wrong.part << ": " << plan.message.data();
    EXPECT_EQ(plan.plan, nullptr);
    EXPECT_THAT(plan.message.data(), HasSubstr(wrong.part));
  }
}

// Any numbers in the struct are a plan that runs, or a sentence.
TEST(ConvPlanTest, RandomStructsAreRunOrRefused) {
  Rng rng(5);
  int ran = 0;
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    foretune_conv conv = layer(static_cast<int>(rng.below(3)));
    const std::span<std::int64_t> fields(&conv.op, sizeof conv / sizeof conv.op);
    for (std::uint64_t change = rng.below(4); change > 0; --change) {
      const std::uint64_t kind = rng.below(8);
      fields[rng.below(fields.size())] =
          kind == 0   ? static_cast<std::int64_t>(rng.below(std::uint64_t{1} << 63U))
          : kind == 1 ? -static_cast<std::int64_t>(rng.below(1U << 20U))
                      : rng.between(-1, 6);
    }
    foretune_conv_options options = {};
    options.threads = 1;
    Plan plan(conv, &options);
    ASSERT_EQ(plan.code == FORETUNE_OK, plan.plan != nullptr);
    if (plan.code != FORETUNE_OK) {
      ++refused;
      EXPECT_STRNE(plan.message.data(), "");
      EXPECT_THAT(plan.message.data(), ::testing::Not(HasSubstr("\n")));
      continue;
    }
    std::int64_t input = 0;
    std::int64_t output = 0;
    ASSERT_EQ(foretune_conv_plan_elements(plan.plan, &input, nullptr, &output), FORETUNE_OK);
    if (std::max(input, output) < 20000) {
      ++ran;
      const auto data = data_of(conv, 1);
      expect_right(plan, operands_of(*data), *data);
    }
  }
  EXPECT_GT(ran, 50);
  EXPECT_GT(refused, 50);
}

TEST(ConvPlanTest, RefusesOptionsInOneSentence) {
  const TemporaryFolder folder;
  const foretune_conv conv = layer();
  const std::string missing = folder.path() / "missing.ftm";
  const std::string damaged = folder.path() / "damaged.ftm";
  ASSERT_TRUE(write_file_atomically(damaged, bytes_of("not a model")));
  const auto code = [&](const foretune_conv_options& options, const char* part) {
    const Plan plan(conv, &options);
    EXPECT_THAT(plan.message.data(), HasSubstr(part));
    return plan.code;
  };
  EXPECT_EQ(code({.threads = -1}, "negative"), FORETUNE_INVALID_ARGUMENT);
  EXPECT_EQ(code({.threads = 100000}, "threads"), FORETUNE_INVALID_ARGUMENT);
  EXPECT_EQ(code({.measure_top = -2}, "negative"), FORETUNE_INVALID_ARGUMENT);
  EXPECT_EQ(code({.model_path = missing.c_str()}, "missing.ftm"), FORETUNE_NOT_FOUND);
  EXPECT_EQ(code({.model_path = damaged.c_str()}, "damaged.ftm"), FORETUNE_CORRUPT);
  EXPECT_EQ(code({.choices_path = damaged.c_str()}, "damaged.ftm"), FORETUNE_CORRUPT);
  const std::string other = std::string(FORETUNE_SOURCE_DIR) + "/tests/golden/conv.ftm";
  EXPECT_EQ(code({.model_path = other.c_str()}, "the model ranks configs of"), FORETUNE_MISMATCH);
}

}  // namespace
}  // namespace foretune
