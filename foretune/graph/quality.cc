#include "foretune/graph/quality.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "foretune/base/registry.h"
#include "foretune/base/text.h"

namespace foretune::graph {

namespace {

constexpr double kAll = 100;  // points

// Returns how many outputs come before that of the label, the first of equal ones first; all of
// them where it is no number.
std::int64_t rank_of_label(const JudgedImage& image) {
  const auto label = static_cast<std::size_t>(image.label);
  const float own = image.outputs[label];
  if (std::isnan(own)) {
    return static_cast<std::int64_t>(image.outputs.size());
  }
  std::int64_t before = 0;
  for (const float output : image.outputs.first(label)) {
    before += output >= own ? 1 : 0;
  }
  for (const float output : image.outputs.subspan(label)) {
    before += output > own ? 1 : 0;
  }
  return before;
}

class Accuracy : public QualityMetric {
 public:
  std::string_view name() const override { return "accuracy"; }
  std::string_view description() const override {
    return "images whose largest output is that of their label";
  }
  bool is_count() const override { return true; }
  std::int64_t ranks() const override { return 1; }
  // The search of approx/ computes this more often than anything else, so there is no rank.
  double score(const JudgedImage& image) const override {
    std::size_t best = 0;
    float most = image.outputs[0];
    for (std::size_t i = 1; i < image.outputs.size(); ++i) {
      const float output = image.outputs[i];
      best = output > most ? i : best;
      most = std::max(most, output);
    }
    return best == static_cast<std::size_t>(image.label) && !std::isnan(most) ? kAll : 0;
  }
};

class TopFive final : public QualityMetric {
 public:
  std::string_view name() const override { return "top5"; }
  std::string_view description() const override {
    return "images whose label has one of the five largest outputs";
  }
  bool is_count() const override { return true; }
  std::int64_t ranks() const override { return kFirst; }
  Support supports(std::span<const std::int64_t> shape) const override {
    std::int64_t classes = 1;
    for (const std::int64_t extent : shape) {
      classes *= extent;
    }
    return classes > kFirst ? Support::yes()
                            : Support::no("the five largest of ", classes,
                                          " outputs are all of them, so top5 says nothing");
  }
  double score(const JudgedImage& image) const override {
    return rank_of_label(image) < kFirst ? kAll : 0;
  }

 private:
  static constexpr int kFirst = 5;
};

// An image counts the more the rarer its class is.
class ClassAccuracy final : public Accuracy {
 public:
  std::string_view name() const override { return "class-accuracy"; }
  std::string_view description() const override {
    return "the mean over classes of each class's accuracy";
  }
  std::vector<double> weights(std::span<const std::int32_t> labels) const override {
    std::map<std::int32_t, std::int64_t> counts;
    for (const std::int32_t label : labels) {
      ++counts[label];
    }
    const double of_a_class =
        static_cast<double>(labels.size()) / static_cast<double>(counts.size());
    std::vector<double> out;
    for (const std::int32_t label : labels) {
      out.push_back(of_a_class / static_cast<double>(counts[label]));
    }
    return out;
  }
};

// The range of the values; 1 where all are equal.
double range_of(std::span<const float> values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double range = static_cast<double>(*high) - static_cast<double>(*low);
  return range > 0 ? range : 1;
}

class Psnr final : public QualityMetric {
 public:
  std::string_view name() const override { return "psnr"; }
  std::string_view description() const override {
    return "peak signal-to-noise ratio to the exact outputs, at most 100 dB";
  }
  std::string_view unit() const override { return "dB"; }
  bool needs_exact() const override { return true; }
  double score(const JudgedImage& image) const override {
    constexpr double kMost = 100;
    double squares = 0;
    for (std::size_t i = 0; i < image.exact.size(); ++i) {
      const double change =
          static_cast<double>(image.outputs[i]) - static_cast<double>(image.exact[i]);
      squares += change * change;
    }
    const double peak = range_of(image.exact);
    const double noise = squares / static_cast<double>(image.exact.size()) / (peak * peak);
    // Also for outputs that are no numbers, which have no likeness at all.
    const double ratio = std::isfinite(noise) ? -10 * std::log10(noise) : -kMost;
    return std::clamp(ratio, -kMost, kMost);
  }
};

// Wang, Bovik, Sheikh and Simoncelli, "Image quality assessment: from error visibility to
// structural similarity" (2004), equation 13, with its windows: Gaussians of 11x11 points and a
// deviation of 1.5, wholly within the image. The mean is over windows and channels.
class Ssim final : public QualityMetric {
 public:
  std::string_view name() const override { return "ssim"; }
  std::string_view description() const override {
    return "structural similarity to the exact outputs, times 100";
  }
  bool needs_exact() const override { return true; }
  Support supports(std::span<const std::int64_t> shape) const override {
    if (shape.size() != 4 || shape[2] < kWindow || shape[3] < kWindow) {
      return Support::no("SSIM compares images of at least ", kWindow, "x", kWindow, " points");
    }
    return Support::yes();
  }
  double score(const JudgedImage& image) const override {
    const auto channels = static_cast<std::size_t>(image.shape[1]);
    const auto rows = static_cast<std::size_t>(image.shape[2]);
    const auto columns = static_cast<std::size_t>(image.shape[3]);
    const double range = range_of(image.exact);
    double sum = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      const std::size_t first = c * rows * columns;
      sum += likeness(image.outputs.subspan(first, rows * columns),
                      image.exact.subspan(first, rows * columns), rows, columns, range);
    }
    const double mean = kAll * sum / static_cast<double>(channels);
    return std::isfinite(mean) ? mean : -kAll;
  }

 private:
  static constexpr int kWindow = 11;
  using Window = std::array<double, kWindow>;

  static const Window& window() {
    static const Window weights = [] {
      constexpr double kDeviation = 1.5;
      Window out{};
      constexpr int kMiddle = kWindow / 2;
      double sum = 0;
      for (int i = 0; i < kWindow; ++i) {
        const double distance = (i - kMiddle) / kDeviation;
        sum += out[static_cast<std::size_t>(i)] = std::exp(-0.5 * distance * distance);
      }
      for (double& weight : out) {
        weight /= sum;
      }
      return out;
    }();
    return weights;
  }

  // Returns the weighted means of the windows: a pass along rows, then one along columns.
  static std::vector<double> means(const std::vector<double>& values, std::size_t rows,
                                   std::size_t columns) {
    const Window& weights = window();
    const std::size_t wide = columns - kWindow + 1;
    std::vector<double> along(rows * wide, 0.0);
    std::vector<double> out((rows - kWindow + 1) * wide, 0.0);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t k = 0; k < kWindow; ++k) {
        add(weights[k], &values[r * columns + k], &along[r * wide], wide);
      }
    }
    for (std::size_t k = 0; k < kWindow; ++k) {
      add(weights[k], &along[k * wide], out.data(), out.size());
    }
    return out;
  }

  static void add(double weight, const double* from, double* to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      to[i] += weight * from[i];
    }
  }

  static double likeness(std::span<const float> outputs, std::span<const float> exact,
                         std::size_t rows, std::size_t columns, double range) {
    const std::size_t count = outputs.size();
    std::vector<double> x(outputs.begin(), outputs.end());
    std::vector<double> y(exact.begin(), exact.end());
    std::vector<double> xx(count);
    std::vector<double> yy(count);
    std::vector<double> xy(count);
    for (std::size_t i = 0; i < count; ++i) {
      xx[i] = x[i] * x[i];
      yy[i] = y[i] * y[i];
      xy[i] = x[i] * y[i];
    }
    x = means(x, rows, columns);
    y = means(y, rows, columns);
    xx = means(xx, rows, columns);
    yy = means(yy, rows, columns);
    xy = means(xy, rows, columns);
    const double c1 = 0.01 * range * 0.01 * range;
    const double c2 = 0.03 * range * 0.03 * range;
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double both = 2 * (xy[i] - x[i] * y[i]);
      const double spread = xx[i] - x[i] * x[i] + yy[i] - y[i] * y[i];
      sum +=
          (2 * x[i] * y[i] + c1) * (both + c2) / ((x[i] * x[i] + y[i] * y[i] + c1) * (spread + c2));
    }
    return sum / static_cast<double>(x.size());
  }
};

Registry<QualityMetric>& table() {
  static const TopFive top_five;
  static const ClassAccuracy class_accuracy;
  static const Psnr psnr;
  static const Ssim ssim;
  static Registry<QualityMetric> all(
      {&accuracy_quality(), &top_five, &class_accuracy, &psnr, &ssim});
  return all;
}

}  // namespace

Support QualityMetric::supports(std::span<const std::int64_t> /*shape*/) const {
  return Support::yes();
}

std::vector<double> QualityMetric::weights(std::span<const std::int32_t> labels) const {
  return std::vector<double>(labels.size(), 1.0);
}

const QualityMetric& accuracy_quality() {
  static const Accuracy accuracy;
  return accuracy;
}

std::span<const QualityMetric* const> quality_metrics() { return table().rows(); }

Result<const QualityMetric*> find_quality(std::string_view name) {
  std::vector<std::string> names;
  for (const QualityMetric* const metric : quality_metrics()) {
    if (metric->name() == name) {
      return metric;
    }
    names.emplace_back(metric->name());
  }
  return fail(ErrorCode::kNotFound, "there is no quality ", quoted(name, 40), "; there are ",
              join(names, ", "));
}

Status register_quality(std::unique_ptr<const QualityMetric> metric) {
  const std::string text(metric->name());
  return table().add(std::move(metric),
                     [&](const QualityMetric& known) { return known.name() == text; })
             ? Status()
             : fail(ErrorCode::kInvalidArgument, "there is a quality ", quoted(text, 40),
                    " already");
}

}  // namespace foretune::graph
