// A quality of networks in one file, for `foretune approx` in a program of one's own. The section
// "Other qualities" of docs/guides/networks.md shows it.
#include "foretune/graph/quality.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>

namespace {

using namespace foretune;  // NOLINT(google-build-using-namespace): an example of user code

class Certainty final : public graph::QualityMetric {
 public:
  std::string_view name() const override { return "certainty"; }
  std::string_view description() const override { return "the share that the label gets"; }
  double score(const graph::JudgedImage& image) const override {  // more is better
    return 100.0 * static_cast<double>(image.outputs[static_cast<std::size_t>(image.label)]);
  }
};

}  // namespace

int main() {
  if (const Status status = graph::register_quality(std::make_unique<Certainty>()); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  const std::array<float, 3> outputs{0.125F, 0.75F, 0.125F};
  const std::array<std::int64_t, 2> shape{1, 3};
  for (const graph::QualityMetric* const metric : graph::quality_metrics()) {
    if (metric->supports(shape)) {
      const double score =
          metric->score({.outputs = outputs, .exact = outputs, .label = 1, .shape = shape});
      std::printf("%.*s: %.1f %.*s\n", static_cast<int>(metric->name().size()),
                  metric->name().data(), score, static_cast<int>(metric->unit().size()),
                  metric->unit().data());
    }
  }
  return 0;
}
