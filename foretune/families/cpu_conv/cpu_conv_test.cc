// Tests the family: its space, its data, and runs of both.
#include "foretune/families/cpu_conv/cpu_conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/families/cpu_conv/conv_data.h"
#include "foretune/families/cpu_conv/conv_reference.h"
#include "foretune/families/cpu_conv/testing/draw_conv.h"
#include "foretune/hardware/cpu.h"
#include "foretune/kernels/micro_kernel.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune {
namespace {

using cpu_conv::ConvData;

std::unique_ptr<CpuConv> family_of(std::vector<std::pair<std::string, std::string>> parameters) {
  FamilyOptions options;
  options.fingerprint = cpu_fingerprint(read_cpu_facts(), CpuPeaks{});
  options.parameters = std::move(parameters);
  auto made = create_cpu_conv(options);
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

ConvProblem middle_layer(ConvOperation operation = ConvOperation::kForward) {
  return *ConvProblem::create({.operation = operation,
                               .n = 1,
                               .c = 128,
                               .k = 128,
                               .hi = 28,
                               .wi = 28,
                               .y = 3,
                               .x = 3,
                               .pad_h = 1,
                               .pad_w = 1});
}

// Runs a config and returns the judgement of its result.
Support judge(const Family& family, const ConvProblem& problem, const Config& config,
              std::uint64_t seed) {
  const Problem asked = problem.to_problem();
  auto data = family.make_data(asked, seed);
  EXPECT_TRUE(data) << data.error().message;
  const auto artifact = family.prepare(asked, config);
  if (!artifact) {
    return Support::no(artifact.error().message);
  }
  const auto run = (*artifact)->bind(asked, **data);
  if (!run) {
    return Support::no(run.error().message);
  }
  for (int repeat = 0; repeat < 2; ++repeat) {
    (*data)->poison();
    (*run)->run();
    if (Support right = (*data)->verify(); !right) {
      return right;
    }
  }
  return Support::yes();
}

TEST(CpuConvTest, RandomConfigsOfTheSpaceAreRight) {
#ifdef FORETUNE_SANITIZED
  constexpr std::uint64_t kSeeds = 10;  // each takes seconds
#else
  constexpr std::uint64_t kSeeds = 50;
#endif
  int configs = 0;
  for (const std::string isa : {"avx512", "avx2", "generic"}) {
    const auto parsed = parse_cpu_isa(isa);
    if (tap_kernel_set(*parsed) == nullptr) {
      continue;
    }
    const auto family = family_of({{"isa", isa}});
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      Rng rng(seed);
      ConvSizes sizes = cpu_conv::draw_problem(rng).sizes();
      if (sizes.operation == ConvOperation::kForward) {
        sizes.epilogue = static_cast<ConvEpilogue>(rng.below(4));
      }
      if (sizes.operation != ConvOperation::kBackwardWeight) {
        sizes.weights = static_cast<ConvWeights>(rng.below(2));
      }
      // Mostly f32, which has the most kernels.
      sizes.dtype = seed % 3 > 0 ? DataType::kF32
                    : sizes.operation == ConvOperation::kForward && rng.below(2) == 0
                        ? DataType::kI8
                        : DataType::kBf16;
      if (sizes.dtype != DataType::kF32) {
        sizes.out = static_cast<ConvOutput>(rng.below(2));
        sizes.layout = ConvLayout::kChannelsLast;
      }
      const ConvProblem problem = *ConvProblem::create(sizes);
      const auto space = family->space(problem.to_problem());
      ASSERT_TRUE(space) << space.error().message;
      std::vector<Config> tried = family->default_configs(problem.to_problem());
      EXPECT_EQ(tried.size(), 1U) << problem.to_problem().text();
      for (int i = 0; i < 3; ++i) {
        if (auto config = (*space)->sample(rng)) {
          tried.push_back(*std::move(config));
        }
      }
      for (const Config& config : tried) {
        const Support right = judge(*family, problem, config, seed);
        ASSERT_TRUE(right) << right.reason() << "\n"
                           << problem.to_problem().text() << "\n"
                           << to_text(cpu_conv_schema(), config);
        ++configs;
      }
    }
  }
  EXPECT_GT(configs, static_cast<int>(2 * kSeeds));
}

TEST(CpuConvTest, AMiddleLayerHasThousandsOfDifferentConfigs) {
  if (tap_kernel_set(CpuIsa::kAvx512) == nullptr) {
    GTEST_SKIP() << "the count is that of AVX-512";
  }
  const auto family = family_of({{"threads", "1"}});
  for (const auto operation :
       {ConvOperation::kForward, ConvOperation::kBackwardData, ConvOperation::kBackwardWeight}) {
    const auto space = family->space(middle_layer(operation).to_problem());
    ASSERT_TRUE(space);
    ASSERT_NE((*space)->enumerable(), nullptr);
    EXPECT_GE((*space)->enumerable()->count(), 2000U) << to_string(operation);
    Rng rng(1);
    std::set<Config> different;
    for (int i = 0; i < 200; ++i) {
      different.insert(*(*space)->sample(rng));
    }
    EXPECT_GE(different.size(), 100U);
  }
}

// A wrong element is found wherever it is, by comparing all elements and by samples with signs.
TEST(CpuConvTest, ASingleWrongElementIsFound) {
  for (const auto operation :
       {ConvOperation::kForward, ConvOperation::kBackwardData, ConvOperation::kBackwardWeight}) {
    for (const auto& [layout, limit] :
         {std::pair{ConvLayout::kChannelsLast, 1e12}, std::pair{ConvLayout::kChannelsLast, 0.0},
          std::pair{ConvLayout::kChannelsFirst, 1e12},
          std::pair{ConvLayout::kChannelsFirst, 0.0}}) {
      const ConvProblem problem = *ConvProblem::create({.operation = operation,
                                                        .n = 2,
                                                        .c = 24,
                                                        .k = 36,
                                                        .g = 2,
                                                        .hi = 9,
                                                        .wi = 8,
                                                        .y = 3,
                                                        .x = 2,
                                                        .stride_h = 2,
                                                        .pad_h = 1,
                                                        .pad_w = 1,
                                                        .layout = layout});
      const auto data =
          ConvData::create(problem, 5, {.full_check_flops = limit, .sampled_outputs = 16});
      ASSERT_TRUE(data);
      EXPECT_FALSE((*data)->verify()) << "nothing was written";
      const auto family = family_of({});
      const Problem asked = problem.to_problem();
      const auto kernel = family->kernel(asked, family->default_configs(asked).front());
      ASSERT_TRUE(kernel) << kernel.error().message;
      const auto artifact = family->prepare(asked, family->default_configs(asked).front());
      const auto run = (*artifact)->bind(asked, **data);
      ASSERT_TRUE(run);
      (*run)->run();
      const Support right = (*data)->verify();
      ASSERT_TRUE(right) << right.reason();
      EXPECT_LE((*data)->worst_relative_error(), 0.5);
      Rng rng(3);
      for (int i = 0; i < 200; ++i) {
        const std::span<float> result = (*data)->result();
        float& element = result[rng.below(result.size())];
        const float kept = std::exchange(element, element + 0.25F);
        EXPECT_FALSE((*data)->verify());
        element = kept;
      }
    }
  }
}

// The convolution is linear: a change of its operand changes its result by the gradient times the
// change, exactly but for rounding.
TEST(CpuConvTest, GradientsAreDifferencesOfTheForwardPass) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    ConvSizes sizes = cpu_conv::without_skips(cpu_conv::draw_problem(rng).sizes());
    const auto values = [&](std::int64_t count) {
      std::vector<double> out(static_cast<std::size_t>(count));
      for (double& value : out) {
        value = rng.uniform() * 2 - 1;
      }
      return out;
    };
    sizes.operation = ConvOperation::kForward;
    const ConvProblem forward = *ConvProblem::create(sizes);
    const std::vector<double> x = values(forward.input_elements());
    const std::vector<double> w = values(forward.weight_elements());
    const std::vector<double> gradient = values(forward.output_elements());
    const auto loss = [&](const std::vector<double>& input, const std::vector<double>& weights) {
      std::vector<double> y(gradient.size());
      cpu_conv::reference_conv(forward, {input, weights, {}}, y);
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) {
        sum += y[i] * gradient[i];
      }
      return sum;
    };
    for (const bool is_data : {true, false}) {
      sizes.operation = is_data ? ConvOperation::kBackwardData : ConvOperation::kBackwardWeight;
      const ConvProblem backward = *ConvProblem::create(sizes);
      std::vector<double> exact(is_data ? x.size() : w.size());
      cpu_conv::reference_conv(backward, {x, w, gradient}, exact);
      std::vector<double> changed = is_data ? x : w;
      const std::size_t place = rng.below(changed.size());
      changed[place] += 1;
      const double difference =
          is_data ? loss(changed, w) - loss(x, w) : loss(x, changed) - loss(x, w);
      EXPECT_NEAR(exact[place], difference, 1e-9) << backward.to_problem().text();
    }
  }
}

// Packed weights serve any number of runs, with kernels of taps and of single channels.
TEST(CpuConvTest, WeightsArePackedOnceForManyRuns) {
  const auto family = family_of({});
  for (const std::int64_t groups : {std::int64_t{1}, std::int64_t{4}, std::int64_t{24}}) {
    for (const auto operation : {ConvOperation::kForward, ConvOperation::kBackwardData}) {
      const ConvProblem problem = *ConvProblem::create({.operation = operation,
                                                        .n = 2,
                                                        .c = 24,
                                                        .k = 24,
                                                        .g = groups,
                                                        .hi = 9,
                                                        .wi = 8,
                                                        .y = 3,
                                                        .x = 2,
                                                        .stride_w = 2,
                                                        .pad_h = 1,
                                                        .weights = ConvWeights::kConstant});
      const Problem asked = problem.to_problem();
      const auto kernel = family->kernel(asked, family->default_configs(asked).front());
      ASSERT_TRUE(kernel) << kernel.error().message;
      const auto data = ConvData::create(problem, 8, {});
      ASSERT_TRUE(data);
      std::vector<std::byte> packed((*kernel)->packed_bytes());
      ASSERT_GE(packed.size(), sizeof(float) * problem.weight_elements());
      ASSERT_TRUE((*kernel)->pack((*data)->weights(), packed));
      for (int repeat = 0; repeat < 2; ++repeat) {
        (*data)->poison();
        const Status ran = (*kernel)->run({.input = (*data)->input(),
                                           .packed_weights = packed.data(),
                                           .output = (*data)->output(),
                                           .result = (*data)->result().data()});
        ASSERT_TRUE(ran) << ran.error().message;
        const Support right = (*data)->verify();
        EXPECT_TRUE(right) << right.reason() << asked.text();
      }
      EXPECT_EQ((*kernel)->pack(nullptr, packed).error().code, ErrorCode::kInvalidArgument);
      EXPECT_EQ((*kernel)->pack((*data)->weights(), std::span(packed).first(4)).error().code,
                ErrorCode::kInvalidArgument);
    }
  }
}

// A result that shares memory with an operand is refused before anything is written.
TEST(CpuConvTest, RefusesAResultThatOverlaps) {
  const auto family = family_of({});
  ConvSizes sizes{
      .n = 1, .c = 16, .k = 16, .hi = 4, .wi = 4, .epilogue = ConvEpilogue::kBiasAddRelu};
  std::vector<float> memory(2000, 0.5F);
  float* const start = memory.data();
  const auto run = [&](const CpuConvOperands& operands) {
    const Problem asked = ConvProblem::create(sizes)->to_problem();
    return (*family->kernel(asked, family->default_configs(asked).front()))->run(operands);
  };
  const CpuConvOperands apart{.input = start,
                              .weights = start + 256,
                              .bias = start + 512,
                              .addend = start + 528,
                              .result = start + 784};
  EXPECT_TRUE(run(apart));
  for (const std::ptrdiff_t place : {0, 255, 256, 511, 520, 528, 783}) {
    CpuConvOperands over = apart;
    over.result = start + place;
    const std::vector<float> before(memory.begin(), memory.end());
    const Status refused = run(over);
    ASSERT_FALSE(refused) << place;
    EXPECT_EQ(refused.error().message, "the tensor to be computed overlaps another one");
    EXPECT_EQ(memory, before);
  }
  sizes.epilogue = ConvEpilogue::kNone;
  sizes.operation = ConvOperation::kBackwardWeight;
  EXPECT_FALSE(run({.input = start, .output = start + 256, .result = start + 1}));
  EXPECT_TRUE(run({.input = start, .output = start + 256, .result = start + 512}));
  sizes.operation = ConvOperation::kBackwardData;
  EXPECT_FALSE(run({.weights = start, .output = start + 256, .result = start + 511}));
  EXPECT_TRUE(run({.weights = start, .output = start + 256, .result = start + 512}));
}

TEST(CpuConvTest, SaysWhatItDoesNotCompute) {
  const auto family = family_of({});
  ConvSizes sizes = middle_layer().sizes();
  sizes.dtype = DataType::kF16;
  EXPECT_EQ(family->supports(ConvProblem::create(sizes)->to_problem()).reason(),
            "cpu-conv computes in f32, bf16 and i8, not f16");
  sizes = middle_layer().sizes();
  sizes.dtype = DataType::kBf16;
  sizes.layout = ConvLayout::kChannelsFirst;
  EXPECT_EQ(family->supports(ConvProblem::create(sizes)->to_problem()).reason(),
            "cpu-conv computes in bf16 with channels last, not channels_first");
  const Problem problem = middle_layer().to_problem();
  Config config = family->default_configs(problem).front();
  config.words[static_cast<std::size_t>(CpuConvField::kMr)] = 16;
  config.words[static_cast<std::size_t>(CpuConvField::kNr)] =
      16 << config.words[static_cast<std::size_t>(CpuConvField::kIsa)];
  sizes = middle_layer().sizes();
  sizes.layout = ConvLayout::kChannelsFirst;
  const auto other = family->prepare(ConvProblem::create(sizes)->to_problem(),
                                     family->default_configs(problem)[0]);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("planar is for channels first"), std::string::npos)
      << other.error().message;
  const auto refused = family->prepare(problem, config);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("more vector registers than there are"), std::string::npos)
      << refused.error().message;
  const auto kernel = family->kernel(problem, family->default_configs(problem).front());
  ASSERT_TRUE(kernel);
  EXPECT_EQ((*kernel)->run({}).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace foretune
