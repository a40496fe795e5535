#include "foretune/model/network/network_int8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "foretune/model/network/internal/network_kernels.h"
#include "foretune/model/network/internal/prepared_network.h"
#include "foretune/model/network/testing/network_samples.h"

namespace foretune {
namespace {

std::vector<const NetworkKernels*> all_kernels() {
  std::vector<const NetworkKernels*> out{network_kernels_generic()};
  if (best_cpu_isa() >= CpuIsa::kAvx2) {
    out.push_back(network_kernels_avx2());
  }
  if (best_cpu_isa() >= CpuIsa::kAvx512) {
    out.push_back(network_kernels_avx512());
    out.push_back(network_kernels(CpuIsa::kAvx512));
  }
  return out;
}

// The layout that the kernels need of a layer, made in the simplest way.
struct Packed {
  explicit Packed(const DenseLayer& layer)
      : quads(network_padded(layer.outputs) * network_quads(layer.inputs) * kNetworkQuad, 0),
        sums(network_padded(layer.outputs)),
        steps(network_padded(layer.outputs)),
        bias(network_padded(layer.outputs)) {
    for (std::size_t o = 0; o < layer.outputs; ++o) {
      for (std::size_t k = 0; k < layer.inputs; ++k) {
        const std::int8_t weight = layer.int8_weights[k * layer.outputs + o];
        const std::size_t tile = o / kNetworkTile * network_quads(layer.inputs);
        quads[((tile + k / 4) * kNetworkTile + o % kNetworkTile) * 4 + k % 4] = weight;
        sums.data()[o] += weight;
      }
      steps.data()[o] = layer.steps[o];
      bias.data()[o] = layer.bias[o];
    }
  }
  std::vector<std::int8_t> quads;
  AlignedFloats sums;
  AlignedFloats steps;
  AlignedFloats bias;
};

void expect_reference(const DenseLayer& layer, const AlignedFloats& input, std::size_t lanes,
                      bool are_positive = false) {
  const Packed packed(layer);
  for (const NetworkKernels* kernels : all_kernels()) {
    AlignedFloats output(network_padded(layer.outputs) * kNetworkLanes);
    AlignedFloats values(network_quads(layer.inputs) * kNetworkLanes);
    AlignedFloats ranges(2 * kNetworkLanes);
    const NetworkDense task{.input = input.data(),
                            .bias = packed.bias.data(),
                            .output = output.data(),
                            .inputs = layer.inputs,
                            .outputs = layer.outputs,
                            .lanes = lanes};
    kernels->dense_int8(task,
                        {.quads = packed.quads.data(),
                         .input_scales = layer.input_scales.data(),
                         .sums = packed.sums.data(),
                         .steps = packed.steps.data()},
                        {.are_positive = are_positive,
                         .quads = reinterpret_cast<std::uint8_t*>(values.data()),
                         .low = ranges.data(),
                         .step = ranges.data() + kNetworkLanes});
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      std::vector<float> column;
      for (std::size_t k = 0; k < layer.inputs; ++k) {
        column.push_back(input.data()[k * kNetworkLanes + lane]);
      }
      const std::vector<float> expected = int8_sums(layer, column);
      for (std::size_t o = 0; o < layer.outputs; ++o) {
        const float value = output.data()[o * kNetworkLanes + lane];
        ASSERT_TRUE(value == expected[o] || (std::isnan(value) && std::isnan(expected[o])))
            << kernels->name << ": " << value << " instead of " << expected[o] << ", lane " << lane
            << " of " << lanes << ", output " << o << " of " << layer.outputs << ", "
            << layer.inputs << " inputs";
      }
    }
  }
}

TEST(NetworkInt8, AllInstructionSetsGiveTheBitsOfTheReference) {
  Rng rng(21);
  for (const std::size_t inputs : {1U, 3U, 4U, 37U, 128U, 515U}) {
    for (const std::size_t outputs : {1U, 8U, 29U}) {
      const DenseLayer layer = random_int8_layer(inputs, outputs, rng);
      AlignedFloats input(inputs * kNetworkLanes);
      for (std::size_t i = 0; i < input.size(); ++i) {
        // Some columns are as after a ReLU, others have both signs, and all magnitudes occur.
        const double scale = std::pow(10, static_cast<double>(i % kNetworkLanes % 9) - 4);
        const double value = scale * rng.normal();
        input.data()[i] = static_cast<float>(i % 2 == 0 ? std::max(value, 0.0) : value);
      }
      for (const std::size_t lanes : {1U, 7U, 16U, 17U, 32U, 48U}) {
        expect_reference(layer, input, lanes);
      }
      std::transform(input.data(), input.data() + input.size(), input.data(),
                     [](float x) { return std::fabs(x); });
      expect_reference(layer, input, kNetworkLanes, true);
    }
  }
}

TEST(NetworkInt8, SaturatesNowhere) {
  // All values are the largest possible: sums of two such products overflow 16 bits.
  DenseLayer layer{.inputs = 64, .outputs = 8};
  layer.int8_weights.assign(64 * 8, 127);
  layer.input_scales.assign(64, 1);
  layer.steps.assign(8, 1);
  layer.bias.assign(8, 0);
  AlignedFloats input(64 * kNetworkLanes);
  std::fill_n(input.data(), input.size(), 255.0F);
  expect_reference(layer, input, kNetworkLanes);
  EXPECT_EQ(int8_sums(layer, std::vector<float>(64, 255.0F)).front(), 64 * 127 * 255.0F);
}

TEST(NetworkInt8, ValuesThatAreNoNumbersAreTheSameEverywhere) {
  Rng rng(22);
  const DenseLayer layer = random_int8_layer(9, 5, rng);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float odd :
       {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity,
        std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::max(), 0.0F, -0.0F}) {
    for (const float rest : {0.0F, 1.0F, -std::numeric_limits<float>::max()}) {
      AlignedFloats input(9 * kNetworkLanes);
      std::fill_n(input.data(), input.size(), rest);
      for (std::size_t lane = 0; lane < kNetworkLanes; ++lane) {
        input.data()[lane % 9 * kNetworkLanes + lane] = odd;
      }
      expect_reference(layer, input, kNetworkLanes);
    }
  }
}

// A value and its 8 bits differ by half a step at most, and so do a weight and its 8 bits.
TEST(NetworkInt8, StaysWithinWhatRoundingCanCost) {
  Rng rng(23);
  Network chain;
  chain.layers = random_layers({6, 40, 30, 1}, rng);
  // Batch normalisation leaves such weights for an input that hardly varies and for one that does
  // not vary at all.
  for (std::size_t o = 0; o < 30; ++o) {
    chain.layers[1].weights[7 * 30 + o] *= 500;
    chain.layers[1].weights[8 * 30 + o] = 0;
  }
  const auto small = with_int8_weights(chain);
  ASSERT_TRUE(small);
  EXPECT_TRUE(has_int8_weights(*small));
  EXPECT_FALSE(has_int8_weights(chain));
  EXPECT_EQ(small->layers.front(), chain.layers.front());
  EXPECT_EQ(small->layers.back(), chain.layers.back());
  const DenseLayer& wide = chain.layers[1];
  const DenseLayer& narrow = small->layers[1];
  ASSERT_TRUE(narrow.is_int8());
  EXPECT_TRUE(narrow.weights.empty());
  std::vector<float> values;
  double sum_of_values = 0;
  double highest = 0;
  for (std::size_t k = 0; k < wide.inputs; ++k) {
    values.push_back(static_cast<float>(std::fabs(rng.normal())) * (k == 7 ? 0.002F : 1.0F));
    const double scaled =
        static_cast<double>(values.back()) * static_cast<double>(narrow.input_scales[k]);
    sum_of_values += scaled;
    highest = std::max(highest, scaled);
  }
  const std::vector<float> got = int8_sums(narrow, values);
  for (std::size_t o = 0; o < wide.outputs; ++o) {
    double exact = static_cast<double>(wide.bias[o]);
    double sum_of_weights = 0;
    for (std::size_t k = 0; k < wide.inputs; ++k) {
      const auto weight = static_cast<double>(wide.weights[k * wide.outputs + o]);
      const auto scale = static_cast<double>(narrow.input_scales[k]);
      exact += weight * static_cast<double>(values[k]);
      sum_of_weights += scale > 0 ? std::fabs(weight) / scale : 0;
    }
    const double weight_step = static_cast<double>(narrow.steps[o]);
    const double value_step = highest / 255;
    const double bound = 0.5 * weight_step * (sum_of_values + 0.5 * value_step * wide.inputs) +
                         0.5 * value_step * sum_of_weights + 1e-5;
    EXPECT_NEAR(static_cast<double>(got[o]), exact, bound);
    EXPECT_NEAR(static_cast<double>(got[o]), exact, 0.1) << "lost beside large weights";
    EXPECT_NE(static_cast<double>(got[o]), exact);
  }
  EXPECT_EQ(*with_int8_weights(*small), *small);
}

TEST(NetworkInt8, WhatHasNothingToGainIsRefused) {
  Rng rng(24);
  Network chain;
  chain.layers = random_layers({6, 4, 1}, rng);
  const auto without = with_int8_weights(chain);
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().message.find("none"), std::string::npos);
  Network towers;
  towers.layers = random_layers({6, 8, 8, 4}, rng);
  towers.config_layers = random_layers({6, 8, 8, 5}, rng);
  EXPECT_FALSE(with_int8_weights(towers));
}

}  // namespace
}  // namespace foretune
