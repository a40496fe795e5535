#include "foretune/problem/conv/ck_conv_shapes.h"

#include <cstdint>
#include <initializer_list>
#include <unordered_set>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/problem/conv/conv.h"

namespace foretune {
namespace {

using Sizes = std::initializer_list<std::int64_t>;

// Collects shapes; skips repeated ones.
class ShapeCollector {
 public:
  explicit ShapeCollector(ConvOperation operation) : operation_(operation) {}

  void conv(ConvSizes sizes) {
    sizes.operation = operation_;
    sizes.dtype = DataType::kBf16;
    auto made = ConvProblem::create(sizes);
    FORETUNE_CHECK(made.has_value());
    Problem problem = made->to_problem();
    if (seen_.insert(problem).second) {
      problems.push_back(std::move(problem));
    }
  }

  std::vector<Problem> problems;

 private:
  ConvOperation operation_;
  std::unordered_set<Problem> seen_;
};

// Returns a layer whose output is as large as its input, or half of it with a stride of 2.
ConvSizes layer(std::int64_t n, std::int64_t c, std::int64_t k, std::int64_t size,
                std::int64_t filter, std::int64_t stride = 1, std::int64_t g = 1) {
  const std::int64_t pad = filter / 2;
  return {.n = n,
          .c = c,
          .k = k,
          .g = g,
          .hi = size,
          .wi = size,
          .y = filter,
          .x = filter,
          .stride_h = stride,
          .stride_w = stride,
          .pad_h = pad,
          .pad_w = pad};
}

void conv_layers(ShapeCollector& out, Sizes sizes, Sizes channels) {
  for (const std::int64_t size : sizes) {
    for (const std::int64_t c : channels) {
      for (const std::int64_t filter : {1, 3}) {
        out.conv(layer(16, c, c, size, filter));
      }
    }
  }
}

std::vector<Problem> network_like(ConvOperation operation) {
  ShapeCollector out(operation);
  conv_layers(out, {7, 14}, {64, 128, 256, 512, 1024});
  conv_layers(out, {28, 32, 56}, {32, 64, 128, 256, 512});
  conv_layers(out, {112}, {16, 32, 64, 128, 256});
  for (const auto& [c, k] : {std::pair{64, 256}, {256, 64}, {128, 512}, {512, 128}, {32, 512}}) {
    for (const std::int64_t size : {14, 28, 56}) {
      out.conv(layer(16, c, k, size, 1));
      out.conv(layer(16, c, k, size, 3));
    }
  }
  for (const std::int64_t n : {1, 2, 4, 8, 32, 64, 128}) {
    for (const std::int64_t size : {14, 28, 56}) {
      out.conv(layer(n, 128, 128, size, 3));
    }
  }
  for (const std::int64_t g : {2, 4, 8}) {
    for (const std::int64_t c : {64, 128, 256}) {
      for (const std::int64_t size : {14, 28, 56}) {
        out.conv(layer(16, c, c, size, 3, 1, g));
      }
    }
  }
  for (const std::int64_t c : {32, 64, 128, 256, 512}) {  // depthwise
    for (const std::int64_t size : {14, 28, 56, 112}) {
      out.conv(layer(16, c, c, size, 3, 1, c));
    }
  }
  for (const std::int64_t c : {64, 128, 256, 512}) {
    for (const std::int64_t size : {14, 28, 56, 112}) {
      out.conv(layer(16, c, 2 * c, size, 1, 2));
      out.conv(layer(16, c, 2 * c, size, 3, 2));
    }
  }
  return out.problems;
}

}  // namespace

std::vector<NamedShapeSet> ck_conv_shape_sets() {
  return {{"ck-conv", "forward convolutions as networks have them, in groups, too",
           [] { return network_like(ConvOperation::kForward); }},
          {"ck-conv-backward-data", "the same, gradients of the input",
           [] { return network_like(ConvOperation::kBackwardData); }},
          {"ck-conv-backward-weight", "the same, gradients of the weights",
           [] { return network_like(ConvOperation::kBackwardWeight); }}};
}

}  // namespace foretune
