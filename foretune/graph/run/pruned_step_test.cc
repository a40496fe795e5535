#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/graph/run/internal/steps.h"
#include "foretune/kernels/pruned_kernel.h"
#include "foretune/kernels/testing/guarded_buffer.h"

namespace foretune::graph {
namespace {

constexpr std::uint64_t kPrunedSeed = 11;

struct PrunedLayer {
  ConvSizes sizes;
  std::vector<float> weights;
  std::vector<float> bias;
  std::vector<float> input;
};

std::vector<float> draw(Rng& rng, std::int64_t count, double zeros) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = rng.uniform() < zeros ? 0.0F : static_cast<float>(rng.normal());
  }
  return values;
}

PrunedLayer random_layer(Rng& rng, const ConvSizes& sizes) {
  const ConvProblem problem = *ConvProblem::create(sizes);
  constexpr double kShares[] = {0, 0.3, 0.5, 0.8, 0.95, 1};  // NOLINT(*-avoid-c-arrays)
  PrunedLayer layer{.sizes = sizes,
                    .weights = draw(rng, problem.weight_elements(), kShares[rng.below(6)]),
                    .bias = draw(rng, sizes.epilogue == ConvEpilogue::kNone ? 0 : sizes.k, 0.1),
                    .input = draw(rng, problem.input_elements(), 0)};
  return layer;
}

ConvSizes random_sizes(Rng& rng) {
  constexpr ConvEpilogue kEpilogues[] = {
      // NOLINT(*-avoid-c-arrays)
      ConvEpilogue::kNone, ConvEpilogue::kBias, ConvEpilogue::kBiasRelu};
  while (true) {
    const ConvSizes sizes{.n = rng.between(1, 3),
                          .c = rng.between(1, 40),
                          .k = rng.between(1, 70),
                          .hi = rng.between(1, 20),
                          .wi = rng.between(1, 20),
                          .y = rng.between(1, 5),
                          .x = rng.between(1, 5),
                          .stride_h = rng.between(1, 3),
                          .stride_w = rng.between(1, 3),
                          .pad_h = rng.between(0, 3),
                          .pad_w = rng.between(0, 3),
                          .dilation_h = rng.between(1, 2),
                          .dilation_w = rng.between(1, 2),
                          .weights = ConvWeights::kConstant,
                          .epilogue = kEpilogues[rng.below(3)]};
    if (ConvProblem::create(sizes)) {
      return sizes;
    }
  }
}

// Compares each element with sums in double precision. The bound is relative to the sum of the
// magnitudes.
void expect_right(const PrunedLayer& layer, const float* output) {
  const ConvSizes& s = layer.sizes;
  const ConvProblem problem = *ConvProblem::create(s);
  const auto at = [](const std::vector<float>& values, std::int64_t index) {
    return static_cast<double>(values[static_cast<std::size_t>(index)]);
  };
  const double units = 1e-6 * std::sqrt(static_cast<double>(s.y * s.x * s.c + 1));
  std::int64_t place = 0;
  for (std::int64_t n = 0; n < s.n; ++n) {
    for (std::int64_t row = 0; row < problem.ho(); ++row) {
      for (std::int64_t column = 0; column < problem.wo(); ++column) {
        for (std::int64_t filter = 0; filter < s.k; ++filter, ++place) {
          double sum = layer.bias.empty() ? 0 : at(layer.bias, filter);
          double size = std::abs(sum);
          for (std::int64_t y = 0; y < s.y; ++y) {
            const std::int64_t in_row = row * s.stride_h - s.pad_h + y * s.dilation_h;
            for (std::int64_t x = 0; x < s.x && in_row >= 0 && in_row < s.hi; ++x) {
              const std::int64_t in_column = column * s.stride_w - s.pad_w + x * s.dilation_w;
              if (in_column < 0 || in_column >= s.wi) {
                continue;
              }
              for (std::int64_t c = 0; c < s.c; ++c) {
                const double product =
                    at(layer.input, ((n * s.hi + in_row) * s.wi + in_column) * s.c + c) *
                    at(layer.weights, ((filter * s.y + y) * s.x + x) * s.c + c);
                sum += product;
                size += std::abs(product);
              }
            }
          }
          const double wanted = s.epilogue == ConvEpilogue::kBiasRelu ? std::max(0.0, sum) : sum;
          ASSERT_NEAR(static_cast<double>(output[place]), wanted, units * size)
              << problem.to_problem().text() << " image " << n << " row " << row << " column "
              << column << " filter " << filter;
        }
      }
    }
  }
}

// Runs the layer twice, with and without memory that was used before, between pages that nobody may
// touch.
void check_pruned(const PrunedLayer& layer, CpuIsa isa, GuardSide side) {
  const ConvProblem problem = *ConvProblem::create(layer.sizes);
  const auto step = make_pruned_step(isa, problem, 0, 1, layer.weights, layer.bias);
  ASSERT_TRUE(step) << step.error().message;
  GuardedBuffer input(layer.input.size(), side);
  std::copy(layer.input.begin(), layer.input.end(), input.data());
  GuardedBuffer output(static_cast<std::size_t>(problem.output_elements()), side);
  float* const places[] = {input.data(), output.data()};  // NOLINT(*-avoid-c-arrays)
  for (int repeat = 0; repeat < 2; ++repeat) {
    std::fill_n(output.data(), output.view().size(), std::nanf(""));
    const Status status = (*step)->run(Frame(places));
    ASSERT_TRUE(status) << status.error().message;
    expect_right(layer, output.data());
    if (::testing::Test::HasFatalFailure()) {
      return;
    }
  }
  EXPECT_TRUE(std::equal(layer.input.begin(), layer.input.end(), input.data()));
}

std::vector<CpuIsa> isas_here() {
  std::vector<CpuIsa> isas;
  for (const CpuIsa isa : {CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (pruned_kernels(isa) != nullptr) {
      isas.push_back(isa);
    }
  }
  return isas;
}

TEST(PrunedStep, AgreesWithSumsInDoublePrecision) {
  for (const CpuIsa isa : isas_here()) {
    Rng rng(kPrunedSeed);
    for (int trial = 0; trial < 250; ++trial) {
      SCOPED_TRACE(::testing::Message() << to_string(isa) << " trial " << trial);
      check_pruned(random_layer(rng, random_sizes(rng)), isa,
                   trial % 2 == 0 ? GuardSide::kEnd : GuardSide::kStart);
      if (HasFatalFailure()) {
        return;
      }
    }
  }
}

TEST(PrunedStep, AgreesInLayersOfManyStripsAndBlocks) {
  Rng rng(kPrunedSeed);
  for (const CpuIsa isa : isas_here()) {
    for (const ConvSizes& sizes :
         {ConvSizes{.c = 300, .k = 19, .hi = 9, .wi = 7, .y = 3, .x = 3, .pad_h = 1, .pad_w = 1},
          ConvSizes{.n = 5, .c = 130, .k = 33, .hi = 7, .wi = 7, .y = 3, .x = 3},
          ConvSizes{.n = 2,
                    .c = 3,
                    .k = 8,
                    .hi = 90,
                    .wi = 70,
                    .y = 7,
                    .x = 7,
                    .stride_h = 2,
                    .stride_w = 2,
                    .pad_h = 3,
                    .pad_w = 3},
          ConvSizes{.c = 700, .k = 65, .wi = 203}, ConvSizes{.c = 1, .k = 1},
          ConvSizes{.n = 3, .c = 17, .k = 5, .hi = 11, .wi = 13, .x = 4, .stride_h = 2}}) {
      SCOPED_TRACE(to_string(isa));
      check_pruned(random_layer(rng, sizes), isa, GuardSide::kEnd);
    }
  }
}

TEST(PrunedStep, ThreadsShareAStep) {
  Rng rng(kPrunedSeed);
  const ConvSizes sizes{.n = 2, .c = 24, .k = 16, .hi = 9, .wi = 9, .y = 3, .x = 3, .pad_h = 1};
  const PrunedLayer layer = random_layer(rng, sizes);
  const ConvProblem problem = *ConvProblem::create(sizes);
  const auto step = make_pruned_step(best_cpu_isa(), problem, 0, 1, layer.weights, layer.bias);
  ASSERT_TRUE(step) << step.error().message;
  std::vector<float> input = layer.input;
  std::vector<std::vector<float>> outputs(
      4, std::vector<float>(static_cast<std::size_t>(problem.output_elements())));
  std::vector<std::thread> threads;
  for (std::vector<float>& output : outputs) {
    threads.emplace_back([&] {
      float* const places[] = {input.data(), output.data()};  // NOLINT(*-avoid-c-arrays)
      for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE((*step)->run(Frame(places)));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::vector<float>& output : outputs) {
    expect_right(layer, output.data());
  }
}

// A weight of 0 is not multiplied at all.
TEST(PrunedStep, WeightsOfZeroAreLeftOut) {
  const ConvSizes sizes{.c = 2, .k = 2, .wi = 5};
  const ConvProblem problem = *ConvProblem::create(sizes);
  std::vector<float> input{std::nanf(""), 1, std::nanf(""), 2, std::nanf(""), 3,
                           std::nanf(""), 4, std::nanf(""), 5};
  for (const CpuIsa isa : isas_here()) {
    const auto step = make_pruned_step(isa, problem, 0, 1, std::vector<float>{0, 2, -0.0F, 0}, {});
    ASSERT_TRUE(step) << step.error().message;
    std::vector<float> output(10, -1);
    float* const places[] = {input.data(), output.data()};  // NOLINT(*-avoid-c-arrays)
    ASSERT_TRUE((*step)->run(Frame(places)));
    EXPECT_EQ(output, (std::vector<float>{2, 0, 4, 0, 6, 0, 8, 0, 10, 0}));
    EXPECT_EQ((*step)->describe(), problem.to_problem().text() + " with 25 % of its weights");
    EXPECT_EQ((*step)->reads, std::vector<ValueId>{0});
    EXPECT_EQ((*step)->write, 1);
  }
}

TEST(PrunedStep, RefusesWhatItCannotCompute) {
  const ConvSizes good{.n = 2, .c = 4, .k = 4, .hi = 6, .wi = 6, .y = 3, .x = 3};
  const auto code_of = [](const ConvSizes& sizes, std::size_t bias, int more_weights = 0) {
    const auto problem = ConvProblem::create(sizes);
    EXPECT_TRUE(problem) << problem.error().message;
    const std::vector<float> weights(
        static_cast<std::size_t>(problem->weight_elements() + more_weights), 1.0F);
    const auto step =
        make_pruned_step(CpuIsa::kGeneric, *problem, 0, 1, weights, std::vector<float>(bias, 1.0F));
    return step ? std::string("none") : std::string(to_string(step.error().code));
  };
  EXPECT_EQ(code_of(good, 0), "none");
  const std::string unsupported(to_string(ErrorCode::kUnsupported));
  const auto with = [&](auto change) {
    ConvSizes sizes = good;
    change(sizes);
    return sizes;
  };
  EXPECT_EQ(code_of(with([](ConvSizes& s) { s.g = 2; }), 0), unsupported);
  EXPECT_EQ(code_of(with([](ConvSizes& s) { s.dtype = DataType::kBf16; }), 0), unsupported);
  EXPECT_EQ(code_of(with([](ConvSizes& s) { s.layout = ConvLayout::kChannelsFirst; }), 0),
            unsupported);
  EXPECT_EQ(code_of(with([](ConvSizes& s) { s.operation = ConvOperation::kBackwardData; }), 0),
            unsupported);
  EXPECT_EQ(code_of(with([](ConvSizes& s) { s.di = 2; }), 0), unsupported);
  EXPECT_EQ(code_of(with([](ConvSizes& s) { s.skip_rows = 2; }), 0), unsupported);
  EXPECT_EQ(code_of(with([](ConvSizes& s) { s.skip_taps = 2; }), 0), unsupported);
  EXPECT_EQ(code_of(with([](ConvSizes& s) { s.epilogue = ConvEpilogue::kBiasAddRelu; }), 4),
            unsupported);

  const std::string invalid(to_string(ErrorCode::kInvalidArgument));
  EXPECT_EQ(code_of(good, 0, 1), invalid);
  EXPECT_EQ(code_of(good, 0, -1), invalid);
  EXPECT_EQ(code_of(good, 4), invalid);
  EXPECT_EQ(code_of(with([](ConvSizes& s) { s.epilogue = ConvEpilogue::kBias; }), 0), invalid);
  EXPECT_EQ(code_of(with([](ConvSizes& s) { s.epilogue = ConvEpilogue::kBiasRelu; }), 3), invalid);

  if (pruned_kernels(CpuIsa::kAvx512) == nullptr) {
    const ConvProblem problem = *ConvProblem::create(good);
    const std::vector<float> weights(static_cast<std::size_t>(problem.weight_elements()), 1.0F);
    const auto step = make_pruned_step(CpuIsa::kAvx512, problem, 0, 1, weights, {});
    ASSERT_FALSE(step);
    EXPECT_EQ(step.error().code, ErrorCode::kUnsupported);
  }
}

}  // namespace
}  // namespace foretune::graph
