// Compares Winograd's algorithm on random convolutions and configs with the definition, and
// measures its errors.
#include "foretune/families/cpu_conv/winograd_conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/base/thread_pool.h"
#include "foretune/families/cpu_conv/conv_reference.h"
#include "foretune/families/cpu_conv/cpu_conv.h"
#include "foretune/hardware/cpu.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/kernels/testing/guarded_buffer.h"

namespace foretune::cpu_conv {
namespace {

constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

ConvProblem draw_problem_of_winograd(Rng& rng) {
  while (true) {
    ConvSizes sizes{.operation = static_cast<ConvOperation>(rng.below(2)),
                    .n = rng.between(1, 3),
                    .c = rng.between(1, 40),
                    .k = rng.between(1, 40),
                    .hi = rng.between(1, 17),
                    .wi = rng.between(1, 17),
                    .y = 3,
                    .x = 3,
                    .pad_h = rng.between(0, 3),
                    .pad_w = rng.between(0, 3)};
    if (const auto problem = ConvProblem::create(sizes)) {
      return *problem;
    }
  }
}

CpuConvConfig draw_config_of_winograd(Rng& rng, CpuIsa isa) {
  const auto vectors = static_cast<int>(rng.between(1, 4));
  return {.isa = isa,
          .algorithm = rng.below(2) == 0 ? ConvAlgorithm::kWinograd2 : ConvAlgorithm::kWinograd4,
          .mr = static_cast<int>(rng.between(1, max_kernel_rows(isa, vectors))),
          .nr = vectors * kernel_limits(isa).lanes,
          .rows = static_cast<int>(rng.between(1, 30)),
          .kc = static_cast<int>(rng.between(1, 50)),
          .order = static_cast<ConvOrder>(rng.below(2)),
          .threads = static_cast<int>(rng.between(1, 3))};
}

// Draws values in [-1, 1).
void fill(std::span<float> values, Rng& rng) {
  for (float& value : values) {
    value = static_cast<float>(rng.uniform() * 2 - 1);
  }
}

std::vector<double> in_doubles(std::span<const float> values) {
  return {values.begin(), values.end()};
}

struct Outcome {
  std::string wrong;
  double error = 0;  // the largest, over the largest exact element
};

// Runs a case on random operands. An element is wrong when its error is above that of all roundings
// together by far less than a wrong operand would cause.
Outcome run_case(const ConvProblem& problem, const CpuConvConfig& config, ThreadPool& pool,
                 Rng& rng) {
  const bool is_forward = problem.operation() == ConvOperation::kForward;
  const GuardSide side = rng.below(2) == 0 ? GuardSide::kEnd : GuardSide::kStart;
  const auto elements = [](std::int64_t count) { return static_cast<std::size_t>(count); };
  GuardedBuffer input(elements(is_forward ? problem.input_elements() : problem.output_elements()),
                      side);
  GuardedBuffer weights(elements(problem.weight_elements()), side);
  GuardedBuffer result(elements(is_forward ? problem.output_elements() : problem.input_elements()),
                       side);
  GuardedBuffer residual(result.view().size(), side);
  const std::size_t channels = elements(is_forward ? problem.sizes().k : problem.sizes().c);
  GuardedBuffer bias(channels, side);
  for (GuardedBuffer* const tensor : {&input, &weights, &residual, &bias}) {
    fill(tensor->view(), rng);
  }
  std::ranges::fill(result.view(), kPoison);
  const auto made = WinogradConv::create(problem, config, &pool);
  if (!made) {
    return {.wrong = made.error().message};
  }
  auto workspace = AlignedBuffer::create(made->workspace_size());
  auto packed = AlignedBuffer::create(made->packed_size());
  std::ranges::fill(workspace->view(), kPoison);
  std::ranges::fill(packed->view(), kPoison);
  made->pack_weights(weights.data(), packed->view());
  const bool has_bias = rng.below(2) == 0;
  const bool has_residual = rng.below(3) == 0;
  const bool has_relu = rng.below(2) == 0;
  made->run({.input = input.data(),
             .bias = has_bias ? bias.data() : nullptr,
             .residual = has_residual ? residual.data() : nullptr,
             .output = result.data(),
             .relu = has_relu},
            packed->view(), workspace->view());
  const std::vector<double> x = in_doubles(input.view());
  const std::vector<double> w = in_doubles(weights.view());
  std::vector<double> exact(result.view().size());
  reference_conv(problem, is_forward ? ConvTensors{x, w, {}} : ConvTensors{{}, w, x}, exact);
  double largest = 0;
  for (const double value : exact) {
    largest = std::max(largest, std::fabs(value));
  }
  Outcome outcome;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    double wanted = exact[i] + (has_bias ? static_cast<double>(bias.data()[i % channels]) : 0.0) +
                    (has_residual ? static_cast<double>(residual.data()[i]) : 0.0);
    wanted = has_relu ? std::max(wanted, 0.0) : wanted;
    const double error = std::fabs(static_cast<double>(result.data()[i]) - wanted);
    if (!(error <= 2e-5 * (largest + 1))) {
      outcome.wrong =
          concat("element ", i, " is ", static_cast<double>(result.data()[i]), ", not ", wanted);
      return outcome;
    }
    if (!has_bias && !has_residual && largest > 0) {
      outcome.error = std::max(outcome.error, error / largest);
    }
  }
  return outcome;
}

TEST(WinogradConvTest, RandomConvolutionsAreRight) {
  ThreadPool pool(3);
  const char* const many = std::getenv("FORETUNE_CONV_CASES");  // NOLINT(concurrency-mt-unsafe)
  const auto cases = static_cast<int>(parse_int(many == nullptr ? "" : many).value_or(300));
  std::array<double, 2> worst{};
  for (int i = 0; i < cases; ++i) {
    Rng rng(static_cast<std::uint64_t>(i));
    const auto isa = static_cast<CpuIsa>(i % 3);
    if (kernel_set(isa) == nullptr) {
      continue;
    }
    const ConvProblem problem = draw_problem_of_winograd(rng);
    const CpuConvConfig config = draw_config_of_winograd(rng, isa);
    const Outcome outcome = run_case(problem, config, pool, rng);
    ASSERT_EQ(outcome.wrong, "") << "case " << i << "\n"
                                 << problem.to_problem().text() << "\n"
                                 << to_text(cpu_conv_schema(), config.to_config());
    double& of_algorithm = worst[config.algorithm == ConvAlgorithm::kWinograd4 ? 1 : 0];
    of_algorithm = std::max(of_algorithm, outcome.error);
  }
  // docs/guides/convolutions.md states these errors, for more channels.
  EXPECT_LT(worst[0], 1e-6);
  EXPECT_LT(worst[1], 2.4e-5);
  EXPECT_GT(*std::ranges::min_element(worst), 0);
}

Result<std::unique_ptr<CpuConv>> family_with(const std::string& winograd) {
  FamilyOptions options;
  options.fingerprint = cpu_fingerprint(read_cpu_facts(), CpuPeaks{});
  options.parameters = {{"winograd", winograd}};
  options.threads = 1;
  return create_cpu_conv(options);
}

bool is_winograd(const Config& config) {
  const std::int32_t algorithm = config.words[static_cast<std::size_t>(CpuConvField::kAlgorithm)];
  return algorithm == static_cast<std::int32_t>(ConvAlgorithm::kWinograd2) ||
         algorithm == static_cast<std::int32_t>(ConvAlgorithm::kWinograd4);
}

TEST(WinogradConvTest, TheFamilyComputesItWhereItsOptionAllows) {
  const auto on = family_with("on");
  const auto off = family_with("off");
  ASSERT_TRUE(on && off);
  EXPECT_FALSE(family_with("maybe"));
  int found = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    ConvSizes sizes = draw_problem_of_winograd(rng).sizes();
    if (sizes.operation == ConvOperation::kForward) {
      sizes.epilogue = static_cast<ConvEpilogue>(rng.below(4));
    }
    const Problem problem = ConvProblem::create(sizes)->to_problem();
    const auto space = (*on)->space(problem);
    ASSERT_TRUE(space) << space.error().message;
    for (int draw = 0; draw < 6; ++draw) {
      const auto config = (*space)->sample(rng);
      if (!config || !is_winograd(*config)) {
        continue;
      }
      ++found;
      const auto refused = (*off)->prepare(problem, *config);
      ASSERT_FALSE(refused);
      EXPECT_TRUE(refused.error().message.starts_with(
          "Winograd's algorithm rounds differently: give the family the option winograd=on"))
          << refused.error().message;
      const auto data = (*on)->make_data(problem, seed);
      const auto artifact = (*on)->prepare(problem, *config);
      ASSERT_TRUE(artifact) << artifact.error().message;
      const auto run = (*artifact)->bind(problem, **data);
      ASSERT_TRUE(run) << run.error().message;
      (*run)->run();
      const Support right = (*data)->verify();
      ASSERT_TRUE(right) << right.reason() << "\n"
                         << problem.text() << "\n"
                         << to_text(cpu_conv_schema(), *config);
    }
  }
  EXPECT_GT(found, 10);
}

TEST(WinogradConvTest, RefusesOtherProblems) {
  const CpuConvConfig config{.isa = CpuIsa::kGeneric, .algorithm = ConvAlgorithm::kWinograd2};
  const ConvSizes fitting{.c = 4, .k = 4, .hi = 6, .wi = 6, .y = 3, .x = 3};
  EXPECT_TRUE(WinogradConv::create(*ConvProblem::create(fitting), config, nullptr));
  const auto refused = [&](auto&& change) {
    ConvSizes sizes = fitting;
    change(sizes);
    const auto made = WinogradConv::create(*ConvProblem::create(sizes), config, nullptr);
    return !made && made.error().code == ErrorCode::kUnsupported;
  };
  EXPECT_TRUE(refused([](ConvSizes& sizes) { sizes.stride_w = 2; }));
  EXPECT_TRUE(refused([](ConvSizes& sizes) { sizes.dilation_h = 2; }));
  EXPECT_TRUE(refused([](ConvSizes& sizes) { sizes.x = 1; }));
  EXPECT_TRUE(refused([](ConvSizes& sizes) { sizes.g = 2; }));
  EXPECT_TRUE(refused([](ConvSizes& sizes) { sizes.di = 2; }));
  EXPECT_TRUE(refused([](ConvSizes& sizes) { sizes.layout = ConvLayout::kChannelsFirst; }));
  EXPECT_TRUE(refused([](ConvSizes& sizes) { sizes.operation = ConvOperation::kBackwardWeight; }));
}

}  // namespace
}  // namespace foretune::cpu_conv
