#include "foretune/graph/quality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"

namespace foretune::graph {
namespace {

using ::testing::HasSubstr;

constexpr std::array<std::int64_t, 2> kSeven{1, 7};

const QualityMetric& metric(std::string_view name) { return **find_quality(name); }

double score(std::string_view name, const std::vector<float>& outputs, std::int32_t label) {
  return metric(name).score(
      {.outputs = outputs, .exact = outputs, .label = label, .shape = kSeven});
}

TEST(Quality, CountsTheLargestAndTheFiveLargest) {
  const std::vector<float> outputs{0.5F, 3, -1, 2, 2, 7, 0};  // in order: 5, 1, 3, 4, 0, 6, 2
  EXPECT_EQ(score("accuracy", outputs, 5), 100);
  EXPECT_EQ(score("accuracy", outputs, 1), 0);
  for (std::int32_t label = 0; label < 7; ++label) {
    EXPECT_EQ(score("top5", outputs, label), label == 6 || label == 2 ? 0 : 100) << label;
  }
  // The first of equal outputs comes first.
  const std::vector<float> equal(7, 1.0F);
  EXPECT_EQ(score("accuracy", equal, 0), 100);
  EXPECT_EQ(score("accuracy", equal, 1), 0);
  EXPECT_EQ(score("top5", equal, 4), 100);
  EXPECT_EQ(score("top5", equal, 5), 0);
  const std::vector<float> none(7, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(score("accuracy", none, 0), 0);
  EXPECT_EQ(score("top5", none, 0), 0);
  const std::array<std::int64_t, 2> five{1, 5};
  EXPECT_FALSE(metric("top5").supports(five));
  EXPECT_TRUE(metric("top5").supports(kSeven));
  EXPECT_EQ(metric("accuracy").ranks(), 1);
  EXPECT_EQ(metric("top5").ranks(), 5);
  EXPECT_EQ(metric("psnr").ranks(), 0);
}

TEST(Quality, OfClassesIsTheMeanOfTheirAccuracies) {
  const std::vector<std::int32_t> labels{2, 0, 2, 2, 2};
  const std::vector<double> weights = metric("class-accuracy").weights(labels);
  EXPECT_THAT(weights, ::testing::ElementsAre(0.625, 2.5, 0.625, 0.625, 0.625));
  EXPECT_THAT(metric("top5").weights(labels), ::testing::Each(1.0));
  EXPECT_EQ(score("class-accuracy", {0, 1, 0, 0, 0, 0, 0}, 1), 100);
}

// An image of `channels` x `rows` x `columns`, and one that differs a little.
struct TwoImages {
  TwoImages(std::int64_t channels, std::int64_t rows, std::int64_t columns, std::uint64_t seed)
      : shape{1, channels, rows, columns} {
    Rng rng(seed);
    for (std::int64_t i = 0; i < channels * rows * columns; ++i) {
      const double wave = std::sin(0.3 * static_cast<double>(i));
      exact.push_back(static_cast<float>(3 + 2 * wave + rng.uniform()));
      outputs.push_back(exact.back() + static_cast<float>(0.8 * rng.uniform() - 0.3));
    }
  }
  [[nodiscard]] double score(std::string_view name) const {
    return metric(name).score({.outputs = outputs, .exact = exact, .shape = shape});
  }
  [[nodiscard]] double range() const {
    return static_cast<double>(*std::max_element(exact.begin(), exact.end())) -
           static_cast<double>(*std::min_element(exact.begin(), exact.end()));
  }

  std::array<std::int64_t, 4> shape;
  std::vector<float> exact;
  std::vector<float> outputs;
};

TEST(Quality, PsnrIsThatOfItsFormula) {
  const TwoImages images(2, 5, 7, 11);
  double squares = 0;
  for (std::size_t i = 0; i < images.exact.size(); ++i) {
    squares += std::pow(static_cast<double>(images.outputs[i] - images.exact[i]), 2);
  }
  const double noise = squares / static_cast<double>(images.exact.size());
  EXPECT_NEAR(images.score("psnr"), 20 * std::log10(images.range() / std::sqrt(noise)), 1e-4);
  // A change of a tenth of the range everywhere: 20 dB.
  const std::vector<float> exact{0, 10, 5, 5};
  const std::vector<float> outputs{1, 9, 6, 4};
  EXPECT_NEAR(metric("psnr").score({.outputs = outputs, .exact = exact, .shape = {}}), 20, 1e-9);
  EXPECT_EQ(metric("psnr").score({.outputs = exact, .exact = exact, .shape = {}}), 100);
  const std::vector<float> none(4, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(metric("psnr").score({.outputs = none, .exact = exact, .shape = {}}), -100);
}

// Every window by itself, with the weights of its 121 points and its moments about its means.
double slow_ssim(const TwoImages& images) {
  const auto rows = static_cast<int>(images.shape[2]);
  const auto columns = static_cast<int>(images.shape[3]);
  const double c1 = std::pow(0.01 * images.range(), 2);
  const double c2 = std::pow(0.03 * images.range(), 2);
  double sum = 0;
  int windows = 0;
  for (int channel = 0; channel < images.shape[1]; ++channel) {
    for (int r = 5; r + 5 < rows; ++r) {
      for (int c = 5; c + 5 < columns; ++c) {
        double total = 0;
        std::array<double, 2> means{};
        std::array<double, 3> moments{};
        const auto each_point = [&](const auto& use) {
          for (int dr = -5; dr <= 5; ++dr) {
            for (int dc = -5; dc <= 5; ++dc) {
              const std::int64_t row = std::int64_t{channel} * rows + r + dr;
              const auto at = static_cast<std::size_t>(row * columns + c + dc);
              use(std::exp(-(dr * dr + dc * dc) / (2 * 1.5 * 1.5)),
                  static_cast<double>(images.outputs[at]), static_cast<double>(images.exact[at]));
            }
          }
        };
        each_point([&](double weight, double x, double y) {
          total += weight;
          means[0] += weight * x;
          means[1] += weight * y;
        });
        means[0] /= total;
        means[1] /= total;
        each_point([&](double weight, double x, double y) {
          moments[0] += weight / total * (x - means[0]) * (x - means[0]);
          moments[1] += weight / total * (y - means[1]) * (y - means[1]);
          moments[2] += weight / total * (x - means[0]) * (y - means[1]);
        });
        sum += (2 * means[0] * means[1] + c1) * (2 * moments[2] + c2) /
               ((means[0] * means[0] + means[1] * means[1] + c1) * (moments[0] + moments[1] + c2));
        ++windows;
      }
    }
  }
  return 100 * sum / windows;
}

TEST(Quality, SsimIsThatOfItsFormula) {
  for (const auto& [rows, columns] : {std::pair{11, 11}, std::pair{12, 17}, std::pair{20, 13}}) {
    const TwoImages images(3, rows, columns, 5);
    const double found = images.score("ssim");
    EXPECT_NEAR(found, slow_ssim(images), 1e-8);
    EXPECT_GT(found, 20);
    EXPECT_LT(found, 99.9);
  }
  TwoImages same(1, 12, 12, 9);
  same.outputs = same.exact;
  EXPECT_NEAR(same.score("ssim"), 100, 1e-9);
  EXPECT_FALSE(metric("ssim").supports(kSeven));
  const std::array<std::int64_t, 4> low{1, 3, 10, 40};
  EXPECT_THAT(metric("ssim").supports(low).reason(), HasSubstr("at least 11x11 points"));
}

class Negative final : public QualityMetric {
 public:
  std::string_view name() const override { return "negative-output"; }
  std::string_view description() const override { return "the first output, negated"; }
  double score(const JudgedImage& image) const override {
    return -static_cast<double>(image.outputs[0]);
  }
};

TEST(Quality, TakesOneOfAProgramsOwn) {
  EXPECT_FALSE(find_quality("negative-output"));
  ASSERT_TRUE(register_quality(std::make_unique<Negative>()));
  EXPECT_EQ(score("negative-output", {2, 0, 0, 0, 0, 0, 0}, 1), -2);
  EXPECT_EQ(metric("negative-output").unit(), "points");
  EXPECT_EQ(quality_metrics().back()->name(), "negative-output");
  const Status again = register_quality(std::make_unique<Negative>());
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("there is a quality 'negative-output' already"));
  EXPECT_THAT(find_quality("best").error().message,
              HasSubstr("there are accuracy, top5, class-accuracy, psnr, ssim"));
}

}  // namespace
}  // namespace foretune::graph
