#include "foretune/model/network/torch_layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "foretune/model/train/files/testing/neural_samples.h"

namespace foretune {
namespace {

using testing_support::evaluate_dense;
using testing_support::layer_of;
using testing_support::sample_deep;
using testing_support::sample_linear;
using testing_support::sample_norm;
using testing_support::sample_standard;
using Kind = TorchLayer::Kind;

// Both evaluations are in double precision: what differs is that folded weights are rounded.
void expect_folded_alike(const std::vector<TorchLayer>& layers, Rng& rng) {
  const auto folded = fold_layers(layers);
  ASSERT_TRUE(folded) << folded.error().message;
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<double> input(folded->front().inputs);
    std::generate(input.begin(), input.end(), [&] { return rng.normal(); });
    const std::vector<double> expected = evaluate_layers(layers, input);
    const std::vector<double> actual = evaluate_dense(*folded, input);
    ASSERT_EQ(actual.size(), expected.size());
    double largest = 1;
    for (const double value : expected) {
      largest = std::max(largest, std::abs(value));
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(actual[i], expected[i], 1e-5 * largest);
    }
  }
}

TEST(TorchLayersTest, FoldsChainsOfLinearReluBatchNorm) {
  Rng rng(1);
  const auto layers = sample_standard(9, {16, 33, 5}, 1, rng);
  expect_folded_alike(layers, rng);
  const auto folded = fold_layers(layers);
  ASSERT_EQ(folded->size(), 4U);
  EXPECT_TRUE(std::all_of(folded->begin(), folded->end(),
                          [](const DenseLayer& layer) { return layer.scale.empty(); }));
}

TEST(TorchLayersTest, FoldsResidualBlocksAndKeepsTheNormalisationBeforeThem) {
  Rng rng(2);
  const auto layers = sample_deep(7, 12, 3, rng);
  expect_folded_alike(layers, rng);
  const auto folded = fold_layers(layers);
  ASSERT_EQ(folded->size(), 8U);
  EXPECT_EQ((*folded)[0].scale.size(), 12U);
  for (std::size_t block = 0; block < 3; ++block) {
    EXPECT_FALSE((*folded)[2 * block + 1].adds_skip);
    EXPECT_TRUE((*folded)[2 * block + 2].adds_skip);
    EXPECT_TRUE((*folded)[2 * block + 2].is_rectified);
    EXPECT_TRUE((*folded)[2 * block + 2].scale.empty());
  }
}

TEST(TorchLayersTest, FoldsTowersOfSeveralOutputs) {
  Rng rng(3);
  expect_folded_alike(sample_standard(5, {24, 24}, 19, rng), rng);
}

TEST(TorchLayersTest, FoldsNormalisationWhereverItStands) {
  Rng rng(4);
  // In front of everything, after a linear layer, twice in a row, and at the end.
  expect_folded_alike({sample_norm(6, rng), sample_linear(6, 8, rng), sample_norm(8, rng),
                       layer_of(Kind::kRelu), sample_norm(8, rng), sample_norm(8, rng),
                       sample_linear(8, 8, rng), layer_of(Kind::kRelu), sample_norm(8, rng)},
                      rng);
  // At the start of a block (its input goes around), and after its sum.
  expect_folded_alike({sample_linear(4, 5, rng), layer_of(Kind::kBeginBlock), sample_norm(5, rng),
                       sample_linear(5, 9, rng), layer_of(Kind::kRelu), sample_linear(9, 5, rng),
                       layer_of(Kind::kEndBlock), sample_norm(5, rng), sample_linear(5, 2, rng)},
                      rng);
  // A block right at the inputs.
  expect_folded_alike({layer_of(Kind::kBeginBlock), sample_linear(5, 9, rng),
                       sample_linear(9, 5, rng), layer_of(Kind::kEndBlock), layer_of(Kind::kRelu)},
                      rng);
}

struct Refusal {
  std::string what;
  std::vector<TorchLayer> layers;
  ErrorCode code;
};

std::vector<Refusal> refusals() {
  Rng rng(5);
  const TorchLayer relu = layer_of(Kind::kRelu);
  const TorchLayer begin = layer_of(Kind::kBeginBlock);
  const TorchLayer end = layer_of(Kind::kEndBlock);
  const TorchLayer linear = sample_linear(4, 4, rng);
  const TorchLayer norm = sample_norm(4, rng);
  TorchLayer short_bias = linear;
  short_bias.bias.pop_back();
  TorchLayer endless = linear;
  endless.weight[3] = std::numeric_limits<float>::infinity();
  TorchLayer negative = norm;
  negative.variance[1] = -1;
  TorchLayer huge = norm;
  huge.weight.assign(4, 3e38F);
  huge.variance.assign(4, 0);
  const auto corrupt = ErrorCode::kCorrupt;
  const auto unsupported = ErrorCode::kUnsupported;
  return {
      {"no layers", {}, corrupt},
      {"no linear layer", {norm}, corrupt},
      {"other widths", {linear, sample_linear(5, 1, rng)}, corrupt},
      {"normalisation of other width", {linear, sample_norm(3, rng)}, corrupt},
      {"a short bias", {short_bias}, corrupt},
      {"an infinite weight", {endless}, corrupt},
      {"a negative variance", {linear, relu, negative, linear}, corrupt},
      {"a scale beyond floats", {linear, huge}, corrupt},
      {"a block without end", {linear, begin, linear, linear}, corrupt},
      {"a block without beginning", {linear, linear, end}, corrupt},
      {"a block of another width", {linear, begin, linear, sample_linear(4, 3, rng), end}, corrupt},
      {"a block in a block", {linear, begin, linear, begin, linear, end}, unsupported},
      {"a block of one linear layer", {linear, begin, linear, end}, unsupported},
      {"a block of three", {linear, begin, linear, linear, linear, end}, unsupported},
      {"a block that ends rectified", {begin, linear, linear, relu, end}, unsupported},
      {"a rectifier first", {relu, linear}, unsupported},
      {"a rectifier first in a block", {linear, begin, relu, linear, linear, end}, unsupported},
      {"a rectifier after a kept scale", {linear, relu, norm, relu}, unsupported},
      {"a normalised input of a block", {norm, begin, linear, linear, end}, unsupported}};
}

TEST(TorchLayersTest, RefusesWhatCannotBeFolded) {
  for (const Refusal& refusal : refusals()) {
    const auto folded = fold_layers(refusal.layers);
    ASSERT_FALSE(folded) << refusal.what;
    EXPECT_EQ(folded.error().code, refusal.code) << refusal.what << ": " << folded.error().message;
  }
}

TEST(TorchLayersTest, ReadsBackWhatWasPut) {
  Rng rng(6);
  const auto layers = sample_deep(7, 12, 2, rng);
  ByteWriter writer;
  put_torch_layers(writer, layers);
  ByteReader reader(writer.bytes());
  const auto read = get_torch_layers(reader);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, layers);
  EXPECT_TRUE(reader.at_end());
}

TEST(TorchLayersTest, ReportsLayersThatAreCutOff) {
  Rng rng(7);
  ByteWriter writer;
  put_torch_layers(writer, sample_deep(3, 4, 1, rng));
  for (std::size_t length = 0; length < writer.size(); ++length) {
    ByteReader reader(writer.bytes().first(length));
    EXPECT_FALSE(get_torch_layers(reader)) << length;
  }
}

TEST(TorchLayersTest, SurvivesEveryDamagedByte) {
  Rng rng(8);
  ByteWriter writer;
  put_torch_layers(writer, sample_deep(3, 4, 1, rng));
  std::vector<std::byte> bytes = writer.take();
  for (std::byte& byte : bytes) {
    for (const unsigned flip : {0x01U, 0x80U, 0xffU}) {
      byte ^= static_cast<std::byte>(flip);
      ByteReader reader(bytes);
      if (const auto layers = get_torch_layers(reader)) {
        static_cast<void>(fold_layers(*layers));
      }
      byte ^= static_cast<std::byte>(flip);
    }
  }
}

}  // namespace
}  // namespace foretune
