#include "foretune/graph/run/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/reference.h"
#include "foretune/graph/run/internal/fusion.h"
#include "foretune/graph/run/vector_ops.h"
#include "foretune/graph/simplify.h"
#include "foretune/graph/testing/random_network.h"

namespace foretune::graph {
namespace {

TEST(VectorOps, RoundToF16) {
  const VectorOps& ops = vector_ops(best_cpu_isa());
  const std::vector<float> x{1.0F,     1.00048828125F, 1.00146484375F, -65519.0F,
                             65520.0F, 0x1p-25F,       0x1.8p-24F,     -3e-5F};
  const std::vector<float> wanted{
      1.0F, 1.0F,     1.001953125F,   -65504.0F, std::numeric_limits<float>::infinity(),
      0.0F, 0x1p-23F, -503 * 0x1p-24F};
  std::vector<float> y(x.size());
  ops.round_f16(x.data(), y.data(), x.size(), 0, 0);
  EXPECT_EQ(y, wanted);
}

TEST(VectorOps, AgreeWithTheSlowFunctions) {
  Rng rng(3);
  for (const CpuIsa isa : {CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (isa > best_cpu_isa()) {
      continue;
    }
    const VectorOps& ops = vector_ops(isa);
    for (const OpInfo* const op : all_ops()) {
      const UnaryFunction loop = ops.unary_of(op->name);
      if (loop == nullptr) {
        EXPECT_EQ(op->unary, nullptr) << op->name;
        continue;
      }
      const Attributes attributes{.numbers = {0.125, 0.75}};
      for (const float width : {0.01F, 1.0F, 8.0F, 100.0F}) {
        const std::vector<float> x = testing::random_values(77, rng, -width, width);
        std::vector<float> y(x.size() + 1, 7.0F);
        loop(x.data(), y.data(), x.size(), 0.125F, 0.75F);
        EXPECT_EQ(y.back(), 7.0F);
        for (std::size_t i = 0; i < x.size(); ++i) {
          const double wanted = op->unary(static_cast<double>(x[i]), attributes);
          if (std::isnan(wanted)) {
            EXPECT_TRUE(std::isnan(y[i])) << op->name << " of " << x[i];
          } else if (wanted < 3e38) {
            // Products with the operand are as accurate as that.
            const double size = std::max(std::abs(wanted), std::abs(static_cast<double>(x[i])) / 2);
            const double bound = 1e-6 * std::max(size, 0.1);
            EXPECT_NEAR(static_cast<double>(y[i]), wanted, bound) << op->name << " of " << x[i];
          }
        }
      }
    }
  }
}

// Computes random networks in all ways and compares with the slow functions.
void check_random_networks(int threads, int count, std::uint64_t seed) {
  const auto executor = Executor::create({.threads = threads});
  ASSERT_TRUE(executor) << executor.error().message;
  Rng rng(seed);
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE(i);
    const Result<Network> network = testing::random_network(rng, 3 + i % 16);
    ASSERT_TRUE(network) << network.error().message;
    const auto images = static_cast<std::int64_t>(1 + rng.below(5));
    const Shape& shape = network->tensor(network->inputs()[0]).shape;
    const std::vector<float> image =
        testing::random_values(static_cast<std::size_t>(images * element_count(shape)), rng);
    const auto wanted = run_reference(*network, {&image, 1}, images);
    ASSERT_TRUE(wanted) << wanted.error().message;
    for (const std::int64_t pass_images : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}}) {
      const auto plan =
          NetworkPlan::create(*network, *executor, {.images = images, .pass_images = pass_images});
      ASSERT_TRUE(plan) << plan.error().message;
      const float* const input = image.data();
      std::vector<std::vector<float>> found;
      std::vector<float*> outputs;
      for (const std::int64_t elements : (*plan)->output_elements()) {
        found.emplace_back(static_cast<std::size_t>(elements), 12345.0F);
      }
      for (std::vector<float>& output : found) {
        outputs.push_back(output.data());
      }
      for (int repeat = 0; repeat < 2; ++repeat) {
        const Status status = (*plan)->run({&input, 1}, outputs);
        ASSERT_TRUE(status) << status.error().message;
        for (std::size_t output = 0; output < found.size(); ++output) {
          testing::expect_close(found[output], (*wanted)[output], 1e-4);
          if (::testing::Test::HasFatalFailure()) {
            const auto steps = (*plan)->profile({&input, 1}, outputs);
            for (const StepProfile& step : *steps) {
              std::printf("%s: %s\n", step.name.c_str(), step.describe.c_str());
            }
            return;
          }
        }
      }
    }
  }
}

TEST(NetworkPlan, AgreesWithTheSlowFunctions) { check_random_networks(1, 150, 1); }

TEST(NetworkPlan, SharesImagesAmongThreads) { check_random_networks(2, 25, 2); }

// Fills what is left out of an image with its channels first.
void interpolate(std::vector<double>& values, const Shape& shape, const LayerVariant& variant) {
  const auto fill = [&](std::int64_t period, std::int64_t at, std::int64_t extent,
                        std::int64_t apart, std::int64_t first) {
    for (std::int64_t i = at; period > 0 && i < extent; i += period) {
      const auto value = [&](std::int64_t line) {
        return values[static_cast<std::size_t>(first + line * apart)];
      };
      values[static_cast<std::size_t>(first + i * apart)] = i == 0 ? value(1)
                                                            : i + 1 == extent
                                                                ? value(i - 1)
                                                                : (value(i - 1) + value(i + 1)) / 2;
    }
  };
  const std::int64_t rows = shape[2];
  const std::int64_t columns = shape[3];
  for (std::int64_t plane = 0; plane < element_count(shape) / (rows * columns); ++plane) {
    for (std::int64_t row = 0; row < rows; ++row) {
      fill(variant.skip_columns, variant.skip_columns_at, columns, 1,
           (plane * rows + row) * columns);
    }
    for (std::int64_t column = 0; column < columns; ++column) {
      fill(variant.skip_rows, variant.skip_rows_at, rows, columns, plane * rows * columns + column);
    }
  }
}

// Sets the weights to 0 that a variant leaves out, and lets the others grow.
void leave_out(std::vector<double>& weights, const Shape& shape, const LayerVariant& v) {
  const auto grow = [](double& weight, std::int64_t period, bool is_zero) {
    weight *= is_zero ? 0 : static_cast<double>(period) / static_cast<double>(period - 1);
  };
  for (std::size_t place = 0; place < weights.size() && shape.size() == 4; ++place) {
    const std::int64_t points = shape[2] * shape[3];
    const std::int64_t of_filter = static_cast<std::int64_t>(place) % (shape[1] * points);
    if (v.skip_taps > 0) {
      grow(weights[place], v.skip_taps, of_filter % points % v.skip_taps == v.skip_taps_at);
    }
    if (v.zero_weights > 0) {
      const bool moves = v.zero_weights == 3 && shape[2] == 3 && shape[3] == 3;
      const std::int64_t at =
          moves ? (of_filter / points + v.zero_weights_at) % 3 : v.zero_weights_at;
      grow(weights[place], v.zero_weights,
           (moves ? of_filter % points : of_filter) % v.zero_weights == at);
    }
  }
}

// Computes a simplified network with variants slowly. An interpolation comes after the ReLU of its
// layer, unless that is told or there is an addition.
std::vector<std::vector<double>> run_variants(const Network& network, const Variants& variants,
                                              const std::vector<float>& image,
                                              std::int64_t images) {
  const std::vector<NodeFusion> fusions = find_fusions(network);
  std::vector<std::vector<double>> values(network.tensors().size());
  std::map<TensorId, LayerVariant> interpolated;
  for (std::size_t i = 0; i < network.nodes().size(); ++i) {
    const auto found = variants.find(network.nodes()[i].name);
    if (found != variants.end() && found->second.skips_points()) {
      const bool is_early = fusions[i].addend != kNoTensor || found->second.before_activation;
      interpolated[is_early ? network.nodes()[i].output : fusions[i].output] = found->second;
    }
  }
  values[static_cast<std::size_t>(network.inputs()[0])].assign(image.begin(), image.end());
  for (const Node& node : network.nodes()) {
    const auto found = variants.find(node.name);
    std::vector<Shape> shapes(node.inputs.size());
    std::vector<OperandValues> operands;
    std::vector<std::vector<double>> constants(node.inputs.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Tensor& tensor = network.tensor(node.inputs[i]);
      shapes[i] = batch_shape(tensor, images);
      if (tensor.is_constant()) {
        constants[i].assign(tensor.values->begin(), tensor.values->end());
        if (i == 1 && found != variants.end()) {
          leave_out(constants[i], shapes[i], found->second);
        }
      }
      operands.push_back({shapes[i], tensor.is_constant()
                                         ? constants[i]
                                         : values[static_cast<std::size_t>(node.inputs[i])]});
    }
    const Shape shape = batch_shape(network.tensor(node.output), images);
    std::vector<double>& result = values[static_cast<std::size_t>(node.output)];
    result.resize(static_cast<std::size_t>(element_count(shape)));
    node.op->compute(operands, node.attributes, shape, result);
    if (const auto skipped = interpolated.find(node.output); skipped != interpolated.end()) {
      interpolate(result, shape, skipped->second);
    }
  }
  std::vector<std::vector<double>> outputs;
  for (const TensorId id : network.outputs()) {
    outputs.push_back(values[static_cast<std::size_t>(id)]);
  }
  return outputs;
}

LayerVariant draw_variant(const Network& network, const Node& node, DataType type, Rng& rng) {
  while (true) {
    LayerVariant variant{.type = type};
    const auto draw = [&](std::int64_t& period, std::int64_t& at) {
      period = rng.between(2, 4);
      at = rng.between(0, period - 1);
    };
    if (rng.below(2) == 0) {
      draw(variant.skip_rows, variant.skip_rows_at);
    }
    if (rng.below(3) == 0) {
      draw(variant.skip_columns, variant.skip_columns_at);
    }
    // Without weights, values leave the ranges that integers have.
    if (type == DataType::kI8) {
    } else if (rng.below(3) == 0) {
      draw(variant.skip_taps, variant.skip_taps_at);
    } else if (rng.below(3) == 0) {
      draw(variant.zero_weights, variant.zero_weights_at);
    }
    variant.before_activation = type == DataType::kF32 && rng.below(3) == 0;
    if (can_run(network, node, variant) || rng.below(30) == 0) {
      return can_run(network, node, variant) ? variant : LayerVariant{.type = type};
    }
  }
}

// Computes random networks whose layers compute less, and compares with the slow functions.
void check_variants(DataType type, int count, double tolerance) {
  const auto executor = Executor::create({});
  ASSERT_TRUE(executor) << executor.error().message;
  Rng rng(static_cast<std::uint64_t>(type) + 11);
  int layers = 0;
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE(i);
    const Result<Network> drawn = testing::random_network(rng, type == DataType::kF32 ? 12 : 4);
    ASSERT_TRUE(drawn) << drawn.error().message;
    const Network network = *simplify(*drawn);
    constexpr std::int64_t kImages = 2;
    const Shape& shape = network.tensor(network.inputs()[0]).shape;
    const std::vector<float> image =
        testing::random_values(static_cast<std::size_t>(kImages * element_count(shape)), rng);
    Variants variants;
    for (const Node& node : network.nodes()) {
      if (node.op->multiply_adds != nullptr && node.op->name != "matmul" && rng.below(4) > 0) {
        variants[node.name] = draw_variant(network, node, type, rng);
        ++layers;
      }
    }
    const auto exact = NetworkPlan::create(network, *executor, {.images = kImages});
    ASSERT_TRUE(exact) << exact.error().message;
    std::vector<std::vector<float>> found;
    std::vector<float*> outputs;
    for (const std::int64_t elements : (*exact)->output_elements()) {
      found.emplace_back(static_cast<std::size_t>(elements));
    }
    for (std::vector<float>& output : found) {
      outputs.push_back(output.data());
    }
    const float* const input = image.data();
    Calibration calibration;
    ASSERT_TRUE((*exact)->observe({&input, 1}, outputs, calibration));
    const auto plan = NetworkPlan::create(
        network, *executor, {.images = kImages, .variants = variants, .calibration = calibration});
    ASSERT_TRUE(plan) << plan.error().message;
    ASSERT_TRUE((*plan)->run({&input, 1}, outputs));
    const auto wanted = run_variants(network, variants, image, kImages);
    for (std::size_t output = 0; output < found.size(); ++output) {
      testing::expect_close(found[output], wanted[output], tolerance);
      if (::testing::Test::HasFatalFailure()) {
        const auto steps = (*plan)->profile({&input, 1}, outputs);
        for (const StepProfile& step : *steps) {
          std::printf("%s: %s\n", step.name.c_str(), step.describe.c_str());
        }
        return;
      }
    }
  }
  EXPECT_GT(layers, count / 3);
}

TEST(NetworkPlan, ComputesLessAsTheSlowFunctionsDo) { check_variants(DataType::kF32, 150, 1e-4); }

TEST(NetworkPlan, ComputesWithWeightsOfF16) { check_variants(DataType::kF16, 60, 4e-3); }

TEST(NetworkPlan, ComputesInBf16) { check_variants(DataType::kBf16, 150, 0.04); }

TEST(NetworkPlan, ComputesInIntegers) { check_variants(DataType::kI8, 150, 0.12); }

TEST(NetworkPlan, RefusesArraysThatAreMissing) {
  NetworkBuilder builder("n");
  const TensorId x = builder.input("x", {1, 2, 5, 5});
  const Result<Network> network = builder.finish({builder.add("relu", "", {x})});
  ASSERT_TRUE(network) << network.error().message;
  const auto executor = Executor::create({});
  ASSERT_TRUE(executor) << executor.error().message;
  EXPECT_FALSE(NetworkPlan::create(*network, *executor, {.images = 0}));
  const auto plan = NetworkPlan::create(*network, *executor, {.images = 2});
  ASSERT_TRUE(plan) << plan.error().message;
  std::vector<float> image(100, -1.0F);
  const float* input = nullptr;
  float* output = image.data();
  EXPECT_FALSE((*plan)->run({&input, 1}, {&output, 1}));
  EXPECT_FALSE((*plan)->run({}, {&output, 1}));
  EXPECT_FALSE(Executor::create({.threads = 100000}));
}

}  // namespace
}  // namespace foretune::graph
