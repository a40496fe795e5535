#include "foretune/graph/run/reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/graph/run/knob.h"
#include "foretune/graph/run/weight_transform.h"
#include "foretune/graph/testing/random_network.h"

namespace foretune::graph {
namespace {

using ::testing::HasSubstr;
using testing::random_values;

// Returns the sum of squared differences to the product of the factors.
double error_of(const std::vector<float>& matrix, const Factors& factors, std::int64_t rows,
                std::int64_t rank) {
  const auto columns = static_cast<std::int64_t>(matrix.size()) / rows;
  double sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      double value = 0;
      for (std::int64_t i = 0; i < rank; ++i) {
        value += static_cast<double>(factors.left[static_cast<std::size_t>(row * rank + i)]) *
                 static_cast<double>(factors.right[static_cast<std::size_t>(i * columns + column)]);
      }
      const auto place = static_cast<std::size_t>(row * columns + column);
      const double difference = static_cast<double>(matrix[place]) - value;
      sum += difference * difference;
    }
  }
  return sum;
}

// Returns the matrix with the singular values 1, 1/2, 1/4, ... and random sides. The sides are
// made orthonormal by Gram and Schmidt's steps.
std::vector<float> with_halving_values(std::int64_t rows, std::int64_t columns, Rng& rng) {
  const auto side = [&](std::int64_t length, std::int64_t count) {
    std::vector<std::vector<double>> vectors;
    while (static_cast<std::int64_t>(vectors.size()) < count) {
      std::vector<double> next(static_cast<std::size_t>(length));
      for (double& value : next) {
        value = rng.uniform() - 0.5;
      }
      for (int repeat = 0; repeat < 2; ++repeat) {
        for (const std::vector<double>& known : vectors) {
          double dot = 0;
          for (std::size_t i = 0; i < next.size(); ++i) {
            dot += known[i] * next[i];
          }
          for (std::size_t i = 0; i < next.size(); ++i) {
            next[i] -= dot * known[i];
          }
        }
      }
      double norm = 0;
      for (const double value : next) {
        norm += value * value;
      }
      for (double& value : next) {
        value /= std::sqrt(norm);
      }
      vectors.push_back(std::move(next));
    }
    return vectors;
  };
  const std::int64_t most = std::min(rows, columns);
  const auto left = side(rows, most);
  const auto right = side(columns, most);
  std::vector<float> matrix;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      double value = 0;
      for (std::int64_t i = 0; i < most; ++i) {
        const auto at = static_cast<std::size_t>(i);
        value += std::exp2(-static_cast<double>(i)) * left[at][static_cast<std::size_t>(row)] *
                 right[at][static_cast<std::size_t>(column)];
      }
      matrix.push_back(static_cast<float>(value));
    }
  }
  return matrix;
}

TEST(Reduction, FactorsLeaveOutTheSmallestSingularValues) {
  Rng rng(4);
  for (const auto& [rows, columns] : {std::pair{7, 19}, {19, 7}, {8, 8}, {1, 5}, {5, 1}}) {
    const std::vector<float> matrix = with_halving_values(rows, columns, rng);
    const std::int64_t most = std::min(rows, columns);
    for (std::int64_t rank = 1; rank <= most; ++rank) {
      double left_out = 0;
      for (std::int64_t i = rank; i < most; ++i) {
        left_out += std::exp2(-2 * static_cast<double>(i));
      }
      const Factors factors = factorise(matrix, rows, rank);
      EXPECT_NEAR(error_of(matrix, factors, rows, rank), left_out, 1e-6 + 1e-4 * left_out)
          << rows << " x " << columns << ", rank " << rank;
    }
  }
}

const Shape kShape{6, 8, 3, 3};
const std::vector<float>& some_weights() {
  static const std::vector<float> weights = [] {
    Rng rng(7);
    return random_values(6 * 8 * 9, rng);
  }();
  return weights;
}

// Checks that weights are kept or 0, and returns which are 0.
std::vector<bool> zeros_of(const std::vector<float>& fewer) {
  std::vector<bool> zeros;
  for (std::size_t i = 0; i < fewer.size(); ++i) {
    EXPECT_TRUE(fewer[i] == 0 || fewer[i] == some_weights()[i]) << i;
    zeros.push_back(fewer[i] == 0);
  }
  return zeros;
}

TEST(Reduction, PruningLeavesOutTheSmallestWeights) {
  const std::vector<bool> zeros = zeros_of(
      reduced_weights(some_weights(), kShape,
                      {.reduction = Reduction::kPruned, .reduction_of = 4, .reduction_by = 3}));
  EXPECT_EQ(std::count(zeros.begin(), zeros.end(), true), 6 * 8 * 9 * 3 / 4);
  float largest_zero = 0;
  float smallest_kept = 1;
  for (std::size_t i = 0; i < zeros.size(); ++i) {
    float& side = zeros[i] ? largest_zero : smallest_kept;
    const float size = std::abs(some_weights()[i]);
    side = zeros[i] ? std::max(side, size) : std::min(side, size);
  }
  EXPECT_LE(largest_zero, smallest_kept);
}

TEST(Reduction, PatternsLeaveOutTwoOfFourChannels) {
  const std::vector<bool> zeros = zeros_of(
      reduced_weights(some_weights(), kShape,
                      {.reduction = Reduction::kPattern, .reduction_of = 4, .reduction_by = 2}));
  for (std::size_t filter = 0; filter < 6; ++filter) {
    for (std::size_t first = 0; first < 8; first += 4) {
      for (std::size_t point = 0; point < 9; ++point) {
        std::vector<std::pair<float, bool>> four;
        for (std::size_t channel = first; channel < first + 4; ++channel) {
          const std::size_t place = (filter * 8 + channel) * 9 + point;
          four.emplace_back(std::abs(some_weights()[place]), zeros[place]);
        }
        std::sort(four.begin(), four.end());
        EXPECT_TRUE(four[0].second && four[1].second && !four[2].second && !four[3].second);
      }
    }
  }
}

TEST(Reduction, ChannelsWithTheSmallestWeightsAreLeftOut) {
  const std::vector<bool> zeros = zeros_of(
      reduced_weights(some_weights(), kShape,
                      {.reduction = Reduction::kChannels, .reduction_of = 4, .reduction_by = 1}));
  std::vector<std::pair<double, int>> channels;  // sum of squares, weights that are 0
  for (std::size_t channel = 0; channel < 8; ++channel) {
    channels.emplace_back();
    for (std::size_t filter = 0; filter < 6; ++filter) {
      for (std::size_t point = 0; point < 9; ++point) {
        const std::size_t place = (filter * 8 + channel) * 9 + point;
        channels.back().first += std::pow(static_cast<double>(some_weights()[place]), 2);
        channels.back().second += zeros[place] ? 1 : 0;
      }
    }
  }
  std::sort(channels.begin(), channels.end());
  for (std::size_t i = 0; i < channels.size(); ++i) {
    EXPECT_EQ(channels[i].second, i < 2 ? 6 * 9 : 0) << i;
  }
}

TEST(Reduction, ALowRankIsTheProductOfItsFactors) {
  const LayerVariant half{.reduction = Reduction::kRank, .reduction_of = 2, .reduction_by = 1};
  EXPECT_EQ(reduced_rank(kShape, half), 3);
  const std::vector<float> made = *reduced_weights(some_weights(), kShape, half);
  const Factors factors = factorise(some_weights(), 6, 3);
  EXPECT_LT(error_of(made, factors, 6, 3), 1e-9);
  EXPECT_GT(error_of(some_weights(), factors, 6, 3), 1);
}

class SomeLayers {
 public:
  // A convolution of 8 channels and 6 filters, one of `groups`, a product of 9 x 8.
  SomeLayers() {
    NetworkBuilder builder("n");
    Rng rng(1);
    const auto weights = [&](Shape shape) {
      const auto count = static_cast<std::size_t>(element_count(shape));
      return builder.constant("w", std::move(shape), random_values(count, rng));
    };
    const Attributes plain{.integers = {1, 1, 1, 1, 1, 1, 1, 1, 1}};
    TensorId x = builder.input("x", {1, 8, 5, 5});
    x = builder.add("conv", "conv", {x, weights(kShape)}, plain);
    Attributes grouped = plain;
    grouped.integers.back() = 3;
    x = builder.add("conv", "grouped", {x, weights({6, 2, 3, 3})}, grouped);
    x = builder.add("conv", "strided", {x, weights({8, 6, 3, 3})},
                    {.integers = {2, 2, 1, 1, 1, 1, 1, 1, 1}});
    x = builder.add("conv", "point", {x, weights({1, 8, 1, 1})},
                    {.integers = {1, 1, 0, 0, 0, 0, 1, 1, 1}});
    const TensorId flat = builder.add("reshape", "flat", {x}, {.integers = {1, 9}});
    const Result<Network> made =
        builder.finish({builder.add("linear", "linear", {flat, weights({8, 9})})});
    EXPECT_TRUE(made) << made.error().message;
    network_ = *made;
  }

  std::string reason(std::string_view layer, std::string_view knob) const {
    for (const Node& node : network_.nodes()) {
      if (node.name == layer) {
        const LayerVariant variant = *variant_of_knob(*parse_knob(knob));
        const Support can = can_run(network_, node, variant);
        return can ? "" : can.reason();
      }
    }
    return "no such layer";
  }

 private:
  Network network_;
};

TEST(Reduction, LayersSayWhyTheyCannotHaveOne) {
  const SomeLayers network;
  for (const char* knob : {"f32+rank2.1", "f32+channels4.1", "i8+channels2.1+rows2.0",
                           "f32+pruned2.1", "f32+pattern4.2", "f32+winograd2", "f32+winograd4"}) {
    EXPECT_EQ(network.reason("conv", knob), "");
    EXPECT_EQ(network.reason("grouped", knob), "layers of several groups keep their weights");
  }
  EXPECT_EQ(network.reason("linear", "f32+pruned2.1"), "");
  EXPECT_EQ(network.reason("linear", "f32+rank4.3"), "");
  EXPECT_EQ(network.reason("linear", "f32+rank4.1"),
            "two layers of rank 6 multiply no fewer weights");
  EXPECT_THAT(network.reason("conv", "f32+rank7.1"), HasSubstr("leave none out"));
  EXPECT_THAT(network.reason("point", "f32+rank2.1"), HasSubstr("leave none out"));
  EXPECT_THAT(network.reason("strided", "f32+winograd4"), HasSubstr("without stride"));
  EXPECT_THAT(network.reason("linear", "f32+winograd4"), HasSubstr("for convolutions"));
  EXPECT_THAT(network.reason("conv", "i8+pruned2.1"), HasSubstr("f32 alone"));
  EXPECT_THAT(network.reason("conv", "f32+rows2.0+winograd4"), HasSubstr("f32 alone"));
  EXPECT_THAT(network.reason("grouped", "f32+own63"), HasSubstr("no transform 63"));
}

class Halved final : public WeightTransform {
 public:
  Halved(std::string name, std::int64_t number) : name_(std::move(name)), number_(number) {}
  std::string_view name() const override { return name_; }
  std::int64_t number() const override { return number_; }
  Support can_apply(const Network& /*network*/, const Node& node) const override {
    return node.name == "linear" ? Support::no("linear stays whole") : Support::yes();
  }
  Status apply(std::span<float> weights, const Shape& /*shape*/) const override {
    for (float& weight : weights) {
      weight /= 2;
    }
    return {};
  }

 private:
  std::string name_;
  std::int64_t number_;
};

TEST(WeightTransform, IsAKnobByItsName) {
  EXPECT_EQ(knob_text(*parse_knob("i8+own5")), "i8+own5");
  ASSERT_TRUE(register_weight_transform(std::make_unique<Halved>("halved", 5)));
  const std::int32_t knob = *parse_knob("i8+rows2.1+halved");
  EXPECT_EQ(knob_text(knob), "i8+rows2.1+halved");
  EXPECT_EQ(knob, *parse_knob("i8+rows2.1+own5"));
  const SomeLayers network;
  EXPECT_EQ(network.reason("grouped", "f32+halved"), "");
  EXPECT_EQ(network.reason("linear", "f32+halved"), "linear stays whole");
  const std::vector<float> half =
      *reduced_weights(some_weights(), kShape, {.reduction = Reduction::kOwn, .reduction_of = 5});
  for (std::size_t i = 0; i < half.size(); ++i) {
    ASSERT_EQ(half[i], some_weights()[i] / 2);
  }
}

TEST(WeightTransform, RefusesNamesAndNumbersThatAreTaken) {
  ASSERT_TRUE(register_weight_transform(std::make_unique<Halved>("first_of_all", 6)));
  for (const auto& [name, number] : {std::pair{"first_of_all", 7},
                                     {"second", 6},
                                     {"third", 64},
                                     {"fourth", -1},
                                     {"", 8},
                                     {"2nd", 8},
                                     {"with space", 8},
                                     {"before", 8},
                                     {"winograd4", 8},
                                     {"a+b", 8}}) {
    const Status status = register_weight_transform(std::make_unique<Halved>(name, number));
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace foretune::graph
