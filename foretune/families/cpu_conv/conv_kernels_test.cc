// Compares kernels on random convolutions and configs with the definition, element by element.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/base/thread_pool.h"
#include "foretune/families/cpu_conv/conv_reference.h"
#include "foretune/families/cpu_conv/group_conv.h"
#include "foretune/families/cpu_conv/group_gradient.h"
#include "foretune/families/cpu_conv/planar_conv.h"
#include "foretune/families/cpu_conv/planar_gradient.h"
#include "foretune/families/cpu_conv/tap_conv.h"
#include "foretune/families/cpu_conv/testing/draw_conv.h"
#include "foretune/families/cpu_conv/weight_gradient.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/kernels/testing/guarded_buffer.h"

namespace foretune::cpu_conv {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Random values beside a page that faults.
class Tensor {
 public:
  Tensor(std::int64_t count, Rng& rng)
      : values_(static_cast<std::size_t>(count),
                rng.below(2) == 0 ? GuardSide::kEnd : GuardSide::kStart) {
    for (float& value : values_.view()) {
      value = static_cast<float>(rng.uniform() * 2 - 1);
    }
  }
  [[nodiscard]] const float* data() const { return values_.data(); }
  [[nodiscard]] std::span<const float> view() const { return values_.view(); }
  [[nodiscard]] std::span<float> view() { return values_.view(); }

 private:
  GuardedBuffer values_;
};

CpuConvConfig draw_config(Rng& rng, CpuIsa isa) {
  const int lanes = kernel_limits(isa).lanes;
  while (true) {
    const auto vectors = static_cast<int>(rng.between(1, 4));
    const auto rows = static_cast<int>(rng.between(1, kMaxKernelRows));
    if (rows > max_kernel_rows(isa, vectors)) {
      continue;
    }
    return {.isa = isa,
            .mr = rows,
            .nr = vectors * lanes,
            .rows = static_cast<int>(rng.between(1, 12) * (rng.below(4) == 0 ? 20 : 1)),
            .kc = static_cast<int>(rng.between(1, 24)),
            .order = static_cast<ConvOrder>(rng.below(3)),
            .taps = static_cast<ConvTaps>(rng.below(3)),
            .copy = static_cast<ConvCopy>(rng.below(2)),
            .threads = static_cast<int>(rng.between(1, 3)),
            .split = static_cast<ConvSplit>(rng.below(2))};
  }
}

struct Case {
  ConvProblem problem;
  CpuConvConfig config;
  bool has_bias = false;
  bool has_residual = false;
  bool has_relu = false;
  [[nodiscard]] std::string text() const {
    return concat(problem.to_problem().text(), "\n", to_text(cpu_conv_schema(), config.to_config()),
                  has_bias ? " bias" : "", has_residual ? " residual" : "",
                  has_relu ? " relu" : "");
  }
};

// Runs a case on random operands. Returns the first wrong element, or an empty text.
std::string wrong_element(const Case& each, ThreadPool& pool, Rng& rng) {
  const ConvProblem& problem = each.problem;
  const ConvOperation operation = problem.operation();
  const Tensor input(problem.input_elements(), rng);
  const Tensor weights(problem.weight_elements(), rng);
  const Tensor output(problem.output_elements(), rng);
  const std::int64_t elements = operation == ConvOperation::kForward ? problem.output_elements()
                                : operation == ConvOperation::kBackwardData
                                    ? problem.input_elements()
                                    : problem.weight_elements();
  const std::int64_t channels =
      operation == ConvOperation::kForward ? problem.sizes().k : problem.sizes().c;
  const Tensor bias(each.has_bias ? channels : 0, rng);
  const Tensor residual(each.has_residual ? elements : 0, rng);
  Tensor computed(elements, rng);
  const std::span<float> result = computed.view();
  std::ranges::fill(result, kNan);
  const auto run_gradient = [&](const auto& made) -> std::string {
    if (!made) {
      return made.error().message;
    }
    auto workspace = AlignedBuffer::create(made->workspace_size());
    std::ranges::fill(workspace->view(), kNan);
    made->run({.input = input.data(), .output_gradient = output.data(), .gradient = result.data()},
              workspace->view());
    return {};
  };
  const auto run_gathering = [&](const auto& made) -> std::string {
    if (!made) {
      return made.error().message;
    }
    auto workspace = AlignedBuffer::create(made->workspace_size());
    auto packed = AlignedBuffer::create(made->packed_size());
    std::ranges::fill(workspace->view(), kNan);
    std::ranges::fill(packed->view(), kNan);
    made->pack_weights(weights.data(), packed->view());
    made->run({.input = operation == ConvOperation::kForward ? input.data() : output.data(),
               .bias = each.has_bias ? bias.data() : nullptr,
               .residual = each.has_residual ? residual.data() : nullptr,
               .output = result.data(),
               .relu = each.has_relu},
              packed->view(), workspace->view());
    return {};
  };
  const bool is_planar = each.config.algorithm == ConvAlgorithm::kPlanar;
  const bool of_groups = each.config.algorithm == ConvAlgorithm::kGroups;
  std::string refused;
  if (operation == ConvOperation::kBackwardWeight) {
    refused = is_planar   ? run_gradient(PlanarGradient::create(problem, each.config, &pool))
              : of_groups ? run_gradient(GroupGradient::create(problem, each.config, &pool))
                          : run_gradient(WeightGradient::create(problem, each.config, &pool));
  } else {
    refused = is_planar   ? run_gathering(PlanarConv::create(problem, each.config, &pool))
              : of_groups ? run_gathering(GroupConv::create(problem, each.config, &pool))
                          : run_gathering(TapConv::create(problem, each.config, &pool));
  }
  if (!refused.empty()) {
    return refused;
  }
  std::vector<double> exact(result.size());
  std::vector<double> magnitude(result.size());
  const auto in_doubles = [](const Tensor& values, bool magnitudes) {
    std::vector<double> out(values.view().begin(), values.view().end());
    for (double& value : out) {
      value = magnitudes ? std::fabs(value) : value;
    }
    return out;
  };
  for (const bool magnitudes : {false, true}) {
    const std::vector<double> x = in_doubles(input, magnitudes);
    const std::vector<double> w = in_doubles(weights, magnitudes);
    const std::vector<double> y = in_doubles(output, magnitudes);
    reference_conv(problem, {x, w, y}, magnitudes ? magnitude : exact);
  }
  const double terms = static_cast<double>(problem.implicit_gemm().k) + 4;
  // Channels are neighbours, or as far apart as they have points. Weights have no bias.
  const std::size_t apart = is_planar && operation != ConvOperation::kBackwardWeight
                                ? static_cast<std::size_t>(elements / channels / problem.sizes().n)
                                : 1;
  for (std::size_t i = 0; i < result.size(); ++i) {
    double wanted = exact[i];
    double size = magnitude[i];
    const std::size_t channel = i / apart % static_cast<std::size_t>(channels);
    for (const double addend :
         {each.has_bias ? static_cast<double>(bias.data()[channel]) : 0.0,
          each.has_residual ? static_cast<double>(residual.data()[i]) : 0.0}) {
      wanted += addend;
      size += std::fabs(addend);
    }
    if (problem.skips()) {
      const auto point = static_cast<std::int64_t>(i) / channels;
      if (problem.skips_point(point / problem.wo() % problem.ho(), point % problem.wo())) {
        if (!std::isnan(result[i])) {
          return concat("element ", i, " is written, but left out");
        }
        continue;
      }
    }
    wanted = each.has_relu ? std::max(wanted, 0.0) : wanted;
    if (!(std::fabs(static_cast<double>(result[i]) - wanted) <= 0x1p-24 * terms * size)) {
      return concat("element ", i, " is ", static_cast<double>(result[i]), ", not ", wanted);
    }
  }
  return {};
}

TEST(ConvKernelsTest, RandomConvolutionsAreRight) {
  ThreadPool pool(3);
  const char* const many = std::getenv("FORETUNE_CONV_CASES");  // NOLINT(concurrency-mt-unsafe)
  const auto cases = static_cast<int>(parse_int(many == nullptr ? "" : many).value_or(1500));
  std::array<int, 3> run{};
  std::array<int, 3> planar{};
  int of_groups = 0;
  for (int i = 0; i < cases; ++i) {
    Rng rng(static_cast<std::uint64_t>(i));
    const auto isa = static_cast<CpuIsa>(i % 3);
    if (tap_kernel_set(isa) == nullptr) {
      continue;
    }
    Case each{.problem = draw_problem(rng), .config = draw_config(rng, isa)};
    if (each.problem.operation() != ConvOperation::kBackwardWeight) {
      each.has_bias = rng.below(2) == 0;
      each.has_residual = rng.below(3) == 0;
      each.has_relu = rng.below(2) == 0;
    }
    const ConvSizes& sizes = each.problem.sizes();
    if (sizes.layout == ConvLayout::kChannelsFirst) {
      each.config.algorithm = ConvAlgorithm::kPlanar;
      ++planar[static_cast<std::size_t>(sizes.operation)];
    } else if (std::max(sizes.c, sizes.k) / sizes.g <= kernel_limits(isa).lanes &&
               sizes.skip_taps == 0 && rng.below(3) > 0) {
      each.config.algorithm = ConvAlgorithm::kGroups;
      each.config.mr = static_cast<int>(rng.between(1, 14));
      ++of_groups;
    }
    if (sizes.operation == ConvOperation::kBackwardWeight &&
        each.config.algorithm == ConvAlgorithm::kTaps && rng.below(2) == 0) {
      each.config.algorithm = ConvAlgorithm::kTurned;
    }
    const std::string wrong = wrong_element(each, pool, rng);
    ASSERT_EQ(wrong, "") << "case " << i << "\n" << each.text();
    ++run[static_cast<std::size_t>(each.problem.operation())];
  }
  EXPECT_GT(*std::ranges::min_element(run), cases / 10);
  EXPECT_GT(*std::ranges::min_element(planar), cases / 30);
  EXPECT_GT(of_groups, cases / 20);
}

}  // namespace
}  // namespace foretune::cpu_conv
