// A knob of layers in one file: weights that are powers of two. The section "Knobs" of
// docs/guides/networks.md shows it.
#include "foretune/graph/run/weight_transform.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/graph/network.h"
#include "foretune/graph/run/knob.h"
#include "foretune/graph/run/plan.h"

namespace {

using namespace foretune;  // NOLINT(google-build-using-namespace): an example of user code

class PowersOfTwo final : public graph::WeightTransform {
 public:
  std::string_view name() const override { return "powers_of_two"; }
  std::int64_t number() const override { return 0; }
  Status apply(std::span<float> weights, const graph::Shape& /*shape*/) const override {
    for (float& weight : weights) {
      if (weight != 0) {
        weight = std::copysign(std::exp2(std::round(std::log2(std::abs(weight)))), weight);
      }
    }
    return {};
  }
};

// Prints what a product with the weights 0.3, -0.6 and 5 makes of 1, 1 and 1.
Status print_sums() {
  FORETUNE_TRY_STATUS(graph::register_weight_transform(std::make_unique<PowersOfTwo>()));
  graph::NetworkBuilder builder("sums");
  const graph::TensorId input = builder.input("x", {1, 3});
  const graph::TensorId weights = builder.constant("w", {1, 3}, {0.3F, -0.6F, 5});
  FORETUNE_TRY(const graph::Network network,
               builder.finish({builder.add("linear", "sum", {input, weights})}));
  FORETUNE_TRY(const auto executor, graph::Executor::create({}));
  for (const std::string_view name : {"f32", "f32+powers_of_two"}) {
    FORETUNE_TRY(const std::int32_t knob, graph::parse_knob(name));
    FORETUNE_TRY(const graph::LayerVariant variant, graph::variant_of_knob(knob));
    FORETUNE_TRY(const auto plan,
                 graph::NetworkPlan::create(network, executor, {.variants = {{"sum", variant}}}));
    const std::array<float, 3> x{1, 1, 1};
    float y = 0;
    const float* const from = x.data();
    float* const to = &y;
    FORETUNE_TRY_STATUS(plan->run({&from, 1}, {&to, 1}));
    std::printf("%.*s: %.2f\n", static_cast<int>(name.size()), name.data(), static_cast<double>(y));
  }
  return {};
}

}  // namespace

int main() {
  const Status status = print_sums();
  if (!status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
  }
  return status ? 0 : 1;
}
