#include "foretune/graph/run/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/reference.h"
#include "foretune/graph/run/vector_ops.h"
#include "foretune/graph/testing/random_network.h"

namespace foretune::graph {
namespace {

TEST(VectorOps, AgreeWithTheSlowFunctions) {
  Rng rng(3);
  for (const CpuIsa isa : {CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (isa > best_cpu_isa()) {
      continue;
    }
    const VectorOps& ops = vector_ops(isa);
    for (const OpInfo* const op : all_ops()) {
      const auto kernel = unary_kernel(op->name);
      if (!kernel) {
        EXPECT_EQ(op->unary, nullptr) << op->name;
        continue;
      }
      const Attributes attributes{.numbers = {0.125, 0.75}};
      for (const float width : {0.01F, 1.0F, 8.0F, 100.0F}) {
        const std::vector<float> x = testing::random_values(77, rng, -width, width);
        std::vector<float> y(x.size() + 1, 7.0F);
        ops.unary_of (*kernel)(x.data(), y.data(), x.size(), 0.125F, 0.75F);
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
