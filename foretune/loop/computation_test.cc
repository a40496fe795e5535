#include "foretune/loop/computation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/loop/machine/testing/loop_samples.h"

namespace foretune::loop {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Values = std::vector<float>;

// Small whole numbers: their sums are exact in any order.
Values random_values(std::int64_t count, Rng& rng) {
  Values out(static_cast<std::size_t>(count));
  for (float& value : out) {
    value = static_cast<float>(rng.between(-4, 4));
  }
  return out;
}

std::vector<Values> random_inputs(const Computation& computation, Rng& rng) {
  std::vector<Values> out;
  for (const Tensor& tensor : computation.inputs) {
    out.push_back(random_values(tensor.elements(), rng));
  }
  return out;
}

void for_each_point(const std::vector<Var>& vars, bool reductions,
                    const std::function<void(std::vector<std::int64_t>&)>& visit,
                    std::vector<std::int64_t>& point, std::size_t var = 0) {
  if (var == vars.size()) {
    visit(point);
  } else if (vars[var].is_reduction != reductions) {
    for_each_point(vars, reductions, visit, point, var + 1);
  } else {
    for (std::int64_t value = 0; value < vars[var].extent; ++value) {
      point[var] = value;
      for_each_point(vars, reductions, visit, point, var + 1);
    }
  }
}

float read(const Tensor& tensor, const Values& values, const std::vector<std::int64_t>& point) {
  std::int64_t place = 0;
  return inside(tensor, point, &place) ? values.at(static_cast<std::size_t>(place)) : 0;
}

// The definition at the head of the header, word by word.
Values evaluate(const Computation& computation, const std::vector<Values>& inputs) {
  Values out(static_cast<std::size_t>(computation.output.elements()), kNan);
  std::vector<std::int64_t> point(computation.vars.size(), 0);
  const auto combined = [&](const std::vector<std::int64_t>& at) {
    const float first = read(computation.inputs[0], inputs[0], at);
    return computation.combined == 1
               ? first
               : apply(computation.combine, first, read(computation.inputs[1], inputs[1], at));
  };
  const auto compute = [&](std::vector<std::int64_t>& at) {
    float value = computation.has_reduction() ? computation.neutral() : combined(at);
    if (computation.has_reduction()) {
      for_each_point(
          computation.vars, true,
          [&](const auto& inner) { value = apply(computation.reduce, value, combined(inner)); },
          at);
    }
    for (const Step& step : computation.steps) {
      const auto input = static_cast<std::size_t>(step.input);
      value = apply(
          step.op, value,
          step.input < 0 ? step.constant : read(computation.inputs[input], inputs[input], at));
    }
    std::int64_t place = 0;
    ASSERT_TRUE(inside(computation.output, at, &place));
    float& written = out.at(static_cast<std::size_t>(place));
    EXPECT_TRUE(std::isnan(written)) << "place " << place << " is written twice";
    written = value;
  };
  for_each_point(computation.vars, false, compute, point);
  return out;
}

Values expected_matmul(const MatmulSizes& sizes, const std::vector<Values>& inputs) {
  Values out;
  for (std::int64_t b = 0; b < sizes.batch; ++b) {
    for (std::int64_t m = 0; m < sizes.m; ++m) {
      for (std::int64_t n = 0; n < sizes.n; ++n) {
        float sum = 0;
        for (std::int64_t k = 0; k < sizes.k; ++k) {
          const std::int64_t left = sizes.transpose_a ? k * sizes.m + m : m * sizes.k + k;
          const std::int64_t right = sizes.transpose_b ? n * sizes.k + k : k * sizes.n + n;
          sum += inputs[0].at(static_cast<std::size_t>(b * sizes.m * sizes.k + left)) *
                 inputs[1].at(static_cast<std::size_t>(b * sizes.k * sizes.n + right));
        }
        sum += sizes.epilogue.bias ? inputs[2].at(static_cast<std::size_t>(n)) : 0;
        out.push_back(sizes.epilogue.relu ? std::max(sum, 0.0F) : sum);
      }
    }
  }
  return out;
}

struct Position {
  std::int64_t b = 0;
  std::int64_t o = 0;
  std::int64_t y = 0;
  std::int64_t x = 0;
};

float expected_conv_at(const ConvSizes& z, const std::vector<Values>& inputs, const Position& at) {
  const std::int64_t group_in = z.channels / z.groups;
  const std::int64_t group = at.o / (z.out_channels / z.groups);
  float sum = 0;
  for (std::int64_t c = 0; c < group_in; ++c) {
    for (std::int64_t r = 0; r < z.kernel_height; ++r) {
      for (std::int64_t s = 0; s < z.kernel_width; ++s) {
        const std::int64_t row = at.y * z.stride + r * z.dilation - z.pad;
        const std::int64_t column = at.x * z.stride + s * z.dilation - z.pad;
        if (row < 0 || row >= z.height || column < 0 || column >= z.width) {
          continue;
        }
        const std::int64_t channel = group * group_in + c;
        const std::int64_t in =
            z.channels_last ? ((at.b * z.height + row) * z.width + column) * z.channels + channel
                            : ((at.b * z.channels + channel) * z.height + row) * z.width + column;
        const std::int64_t weight =
            z.channels_last ? ((r * z.kernel_width + s) * group_in + c) * z.out_channels + at.o
                            : ((at.o * group_in + c) * z.kernel_height + r) * z.kernel_width + s;
        sum += inputs[0].at(static_cast<std::size_t>(in)) *
               inputs[1].at(static_cast<std::size_t>(weight));
      }
    }
  }
  sum += z.epilogue.bias ? inputs[2].at(static_cast<std::size_t>(at.o)) : 0;
  return z.epilogue.relu ? std::max(sum, 0.0F) : sum;
}

Values expected_conv(const ConvSizes& z, const std::vector<Values>& inputs) {
  const auto size_of = [&](std::int64_t size, std::int64_t kernel) {
    return (size + 2 * z.pad - z.dilation * (kernel - 1) - 1) / z.stride + 1;
  };
  const std::int64_t height = size_of(z.height, z.kernel_height);
  const std::int64_t width = size_of(z.width, z.kernel_width);
  Values out(static_cast<std::size_t>(z.batch * z.out_channels * height * width), kNan);
  for (std::int64_t b = 0; b < z.batch; ++b) {
    for (std::int64_t o = 0; o < z.out_channels; ++o) {
      for (std::int64_t y = 0; y < height; ++y) {
        for (std::int64_t x = 0; x < width; ++x) {
          const std::int64_t place = z.channels_last
                                         ? ((b * height + y) * width + x) * z.out_channels + o
                                         : ((b * z.out_channels + o) * height + y) * width + x;
          out.at(static_cast<std::size_t>(place)) = expected_conv_at(z, inputs, {b, o, y, x});
        }
      }
    }
  }
  return out;
}

void expect_conv(const ConvSizes& sizes, Rng& rng) {
  const Result<Computation> conv = conv2d(sizes);
  ASSERT_TRUE(conv) << conv.error().message;
  SCOPED_TRACE(conv->name);
  const std::vector<Values> inputs = random_inputs(*conv, rng);
  EXPECT_EQ(evaluate(*conv, inputs), expected_conv(sizes, inputs));
}

std::vector<std::string> var_texts(const Computation& computation) {
  std::vector<std::string> out;
  for (const Var& var : computation.vars) {
    out.push_back(concat(var.name, "=", var.extent, var.is_reduction ? "+" : ""));
  }
  return out;
}

Computation small_product() {
  return reduction_last(matmul({.m = 4, .n = 6, .k = 8, .epilogue = {.bias = true}}).value());
}

std::string refusal(const Computation& computation) {
  const Status status = computation.check();
  EXPECT_FALSE(status);
  return status ? "" : status.error().message;
}

template <class T>
std::string refusal(const Result<T>& result) {
  EXPECT_FALSE(result);
  return result ? "" : result.error().message;
}

TEST(Matmul, HasItsVariablesTensorsAndName) {
  const Computation product = matmul({.m = 192, .n = 96, .k = 64}).value();
  EXPECT_EQ(product.name, "mm m=192 n=96 k=64");
  EXPECT_THAT(var_texts(product), ElementsAre("m=192", "k=64+", "n=96"));
  EXPECT_EQ(product.output.name, "c");
  ASSERT_EQ(product.inputs.size(), 2U);
  EXPECT_EQ(product.inputs[0].name, "a");
  EXPECT_EQ(product.inputs[1].name, "b");
  EXPECT_EQ(product.inputs[0].stride_of(0), 64);
  EXPECT_EQ(product.inputs[0].stride_of(1), 1);
  EXPECT_EQ(product.inputs[0].stride_of(2), 0);
  EXPECT_EQ(product.inputs[1].elements(), 64 * 96);
}

TEST(Matmul, NamesWhatIsSet) {
  const Computation product = matmul({.m = 2,
                                      .n = 3,
                                      .k = 4,
                                      .batch = 5,
                                      .transpose_a = true,
                                      .transpose_b = true,
                                      .epilogue = {.bias = true, .relu = true}})
                                  .value();
  EXPECT_EQ(product.name, "mm m=2 n=3 k=4 batch=5 ta tb bias relu");
  EXPECT_THAT(var_texts(product), ElementsAre("b=5", "m=2", "k=4+", "n=3"));
  EXPECT_EQ(product.inputs[2].name, "bias");
  EXPECT_EQ(product.inputs[2].elements(), 3);
  EXPECT_EQ(product.steps, (std::vector<Step>{{Op::kAdd, 2, 0}, {Op::kMax, -1, 0}}));
}

TEST(Matmul, CountsOperations) {
  EXPECT_EQ(matmul({.m = 10, .n = 20, .k = 30}).value().flops(), 2.0 * 10 * 20 * 30);
  EXPECT_EQ(
      matmul({.m = 10, .n = 20, .k = 30, .epilogue = {.bias = true, .relu = true}}).value().flops(),
      2.0 * 10 * 20 * 30 + 2 * 10 * 20);
  EXPECT_EQ(matmul({.m = 10, .n = 20, .k = 30}).value().points(), 6000);
}

TEST(Matmul, IsTheProductInAllStorageOrders) {
  Rng rng(1);
  for (const std::int64_t batch : {1, 3}) {
    for (int bits = 0; bits < 16; ++bits) {
      const MatmulSizes sizes{.m = 3,
                              .n = 5,
                              .k = 4,
                              .batch = batch,
                              .transpose_a = (bits & 1) != 0,
                              .transpose_b = (bits & 2) != 0,
                              .epilogue = {.bias = (bits & 4) != 0, .relu = (bits & 8) != 0}};
      const Computation product = matmul(sizes).value();
      SCOPED_TRACE(product.name);
      const std::vector<Values> inputs = random_inputs(product, rng);
      EXPECT_EQ(evaluate(product, inputs), expected_matmul(sizes, inputs));
    }
  }
}

TEST(Matmul, RefusesSizesBelowOneAndTensorsTooLarge) {
  EXPECT_THAT(refusal(matmul({.m = 0})), HasSubstr("m is 0"));
  EXPECT_THAT(refusal(matmul({.k = -3})), HasSubstr("k is -3"));
  EXPECT_THAT(refusal(matmul({.batch = kMaxExtent + 1})), HasSubstr("the batch is 2147483649"));
  EXPECT_THAT(refusal(matmul({.m = 1 << 15, .n = (1 << 13) + 1})),
              HasSubstr("tensor c has more than 268435456 elements"));
  EXPECT_TRUE(matmul({.m = 1 << 15, .n = 1 << 13}));
  EXPECT_THAT(refusal(matmul({.m = kMaxExtent, .n = kMaxExtent, .k = kMaxExtent})),
              HasSubstr("more than 1e+15 points"));
  EXPECT_THAT(refusal(matmul({.k = kMaxExtent})), HasSubstr("tensor a has more than"));
}

TEST(Conv, HasItsVariablesAndName) {
  const Computation conv = conv2d({.batch = 2,
                                   .channels = 64,
                                   .out_channels = 32,
                                   .height = 56,
                                   .width = 57,
                                   .kernel_height = 3,
                                   .kernel_width = 5,
                                   .stride = 2,
                                   .dilation = 3,
                                   .pad = 4,
                                   .groups = 8,
                                   .channels_last = true,
                                   .epilogue = {.bias = true, .relu = true}})
                               .value();
  EXPECT_EQ(conv.name,
            "conv b=2 c=64 h=56 w=57 o=32 r=3 s=5 stride=2 dilation=3 pad=4 groups=8 nhwc bias "
            "relu");
  EXPECT_THAT(var_texts(conv),
              ElementsAre("b=2", "g=8", "o=4", "c=8+", "y=29", "x=27", "r=3+", "s=5+"));
  EXPECT_EQ(conv.inputs[0].name, "in");
  EXPECT_EQ(conv.inputs[1].name, "weight");
  EXPECT_EQ(conv.output.name, "out");
  EXPECT_EQ(conv.inputs[0].origin(), -(4 * 57 + 4) * 64);
}

TEST(Conv, LeavesOutVariablesOfExtentOne) {
  const Computation pointwise =
      conv2d({.channels = 8, .out_channels = 16, .height = 7, .width = 9}).value();
  EXPECT_EQ(pointwise.name, "conv b=1 c=8 h=7 w=9 o=16 r=1 s=1");
  EXPECT_THAT(var_texts(pointwise), ElementsAre("o=16", "c=8+", "y=7", "x=9"));
  EXPECT_TRUE(pointwise.has_reduction());
  const Computation scaling =
      conv2d({.channels = 8, .out_channels = 8, .height = 7, .groups = 8}).value();
  EXPECT_THAT(var_texts(scaling), ElementsAre("g=8", "y=7"));
  EXPECT_FALSE(scaling.has_reduction());
  EXPECT_EQ(scaling.flops(), 8 * 7);
  EXPECT_THAT(var_texts(conv2d({}).value()), ElementsAre("b=1"));
}

TEST(Conv, IsTheDirectLoop) {
  Rng rng(2);
  const ConvSizes plain{.batch = 2,
                        .channels = 4,
                        .out_channels = 6,
                        .height = 7,
                        .width = 8,
                        .kernel_height = 3,
                        .kernel_width = 2};
  for (const bool channels_last : {false, true}) {
    const auto expect = [&](auto... changes) {
      ConvSizes sizes = plain;
      sizes.channels_last = channels_last;
      (changes(sizes), ...);
      expect_conv(sizes, rng);
    };
    const auto strided = [](ConvSizes& sizes) { sizes.stride = 2; };
    const auto dilated = [](ConvSizes& sizes) { sizes.dilation = 2; };
    const auto padded = [](ConvSizes& sizes) { sizes.pad = 2; };
    const auto grouped = [](ConvSizes& sizes) { sizes.groups = 2; };
    const auto depthwise = [](ConvSizes& sizes) { sizes.groups = sizes.out_channels = 4; };
    const auto multiplied = [](ConvSizes& sizes) { sizes.out_channels = 12; };
    const auto finished = [](ConvSizes& sizes) { sizes.epilogue = {.bias = true, .relu = true}; };
    expect();
    expect(strided);
    expect(dilated);
    expect(padded);
    expect(grouped);
    expect(depthwise);
    expect(depthwise, multiplied);
    expect(finished);
    expect(strided, dilated, padded, grouped, finished);
    expect(strided, padded, depthwise, finished);
  }
}

TEST(Conv, IsTheDirectLoopForRandomSizes) {
  constexpr std::uint64_t kSeed = 3;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Rng rng(kSeed);
  int done = 0;
  while (done < 300) {
    const std::int64_t groups = rng.between(1, 3);
    const ConvSizes sizes{.batch = rng.between(1, 2),
                          .channels = groups * rng.between(1, 3),
                          .out_channels = groups * rng.between(1, 3),
                          .height = rng.between(1, 6),
                          .width = rng.between(1, 6),
                          .kernel_height = rng.between(1, 3),
                          .kernel_width = rng.between(1, 3),
                          .stride = rng.between(1, 3),
                          .dilation = rng.between(1, 2),
                          .pad = rng.between(0, 3),
                          .groups = groups,
                          .channels_last = rng.below(2) == 0,
                          .epilogue = {.bias = rng.below(2) == 0, .relu = rng.below(2) == 0}};
    if (conv2d(sizes)) {
      expect_conv(sizes, rng);
      ++done;
    }
  }
}

TEST(Conv, RefusesWhatMakesNoSense) {
  EXPECT_THAT(refusal(conv2d({.channels = 0})), HasSubstr("the number of channels is 0"));
  EXPECT_THAT(refusal(conv2d({.stride = 0})), HasSubstr("the stride is 0"));
  EXPECT_THAT(refusal(conv2d({.pad = -1})), HasSubstr("the padding is -1, and goes from 0"));
  EXPECT_THAT(refusal(conv2d({.channels = 6, .out_channels = 4, .groups = 4})),
              HasSubstr("4 groups do not divide 6 channels and 4 output channels"));
  EXPECT_THAT(refusal(conv2d({.channels = 4, .out_channels = 6, .groups = 4})),
              HasSubstr("4 groups do not divide"));
  EXPECT_THAT(refusal(conv2d({.height = 4, .width = 9, .kernel_height = 3, .dilation = 2})),
              HasSubstr("the kernel does not fit into the padded input"));
}

TEST(Conv, RefusesMoreThanCanBeAddressed) {
  EXPECT_THAT(refusal(conv2d({.channels = 1 << 15, .height = 1 << 14})),
              HasSubstr("tensor in has more than 268435456 elements"));
  EXPECT_THAT(refusal(conv2d({.stride = kMaxExtent, .pad = kMaxExtent})), HasSubstr("tensor "));
  EXPECT_THAT(refusal(conv2d({.height = 1 << 12,
                              .width = 1 << 14,
                              .kernel_height = 1 << 14,
                              .stride = 1 << 14,
                              .pad = 1 << 14})),
              HasSubstr("tensor in reaches further than 268435456 elements with its padding"));
  EXPECT_THAT(refusal(conv2d({.height = kMaxExtent,
                              .width = kMaxExtent,
                              .kernel_height = kMaxExtent,
                              .kernel_width = kMaxExtent,
                              .stride = kMaxExtent,
                              .dilation = kMaxExtent,
                              .pad = kMaxExtent})),
              HasSubstr("the kernel does not fit"));
}

TEST(Reduction, ReducesRowsAndColumns) {
  const std::vector<Values> inputs = {{1, 5, -2, 4, 3, 9}};
  const auto reduced = [&](Op op, bool of_columns) {
    return evaluate(reduction(2, 3, op, of_columns).value(), inputs);
  };
  EXPECT_THAT(reduced(Op::kAdd, false), ElementsAre(4, 16));
  EXPECT_THAT(reduced(Op::kMax, false), ElementsAre(5, 9));
  EXPECT_THAT(reduced(Op::kMin, false), ElementsAre(-2, 3));
  EXPECT_THAT(reduced(Op::kAdd, true), ElementsAre(5, 8, 7));
  EXPECT_THAT(reduced(Op::kMin, true), ElementsAre(1, 3, -2));
  EXPECT_EQ(reduction(2, 3, Op::kMax, true).value().name, "reduce r=2 c=3 op=max of_columns");
  EXPECT_EQ(reduction(2, 3, Op::kMax, true).value().flops(), 6);
  EXPECT_THAT(refusal(reduction(2, 3, Op::kMultiply, false)),
              HasSubstr("a reduction adds or takes the max or min, not multiply"));
  EXPECT_THAT(refusal(reduction(0, 3, Op::kAdd, false)), HasSubstr("the number of rows is 0"));
}

TEST(Reduction, StartsAtTheNeutralElement) {
  EXPECT_EQ(reduction(2, 3, Op::kAdd, false).value().neutral(), 0);
  EXPECT_EQ(reduction(2, 3, Op::kMax, false).value().neutral(), -kInfinity);
  EXPECT_EQ(reduction(2, 3, Op::kMin, false).value().neutral(), kInfinity);
}

TEST(Elementwise, AppliesItsStepsInOrder) {
  const Computation chain =
      elementwise(1, 2,
                  {{Op::kSubtract, 1}, {Op::kMultiply, -1, 2}, {Op::kAdd, 2}, {Op::kMin, -1, 6.5F}})
          .value();
  EXPECT_EQ(chain.name, "elementwise r=1 c=2 subtract=in1 multiply=2 add=in2 min=6.5");
  EXPECT_THAT(evaluate(chain, {{5, 7}, {1, 2}, {-3, 4}}), ElementsAre(5, 6.5F));
  EXPECT_EQ(chain.flops(), 8);
  EXPECT_FALSE(chain.has_reduction());
}

TEST(Elementwise, RefusesStepsWithoutATensor) {
  EXPECT_TRUE(elementwise(2, 2, {{Op::kAdd, 4}}));
  EXPECT_THAT(refusal(elementwise(2, 2, {{Op::kAdd, 5}})), HasSubstr("a step reads input 5"));
  EXPECT_THAT(refusal(elementwise(2, 2, {{Op::kAdd, 1000000000}})), HasSubstr("a step reads"));
  EXPECT_THAT(refusal(elementwise(2, 2, {{Op::kAdd, 0}})), HasSubstr("a step reads input 0"));
  EXPECT_THAT(refusal(elementwise(2, 2, {{Op::kAdd, -2}})), HasSubstr("a step reads input -2"));
  EXPECT_THAT(refusal(elementwise(2, 2, {{static_cast<Op>(77)}})),
              HasSubstr("a step is no known operation"));
}

TEST(Op, TakesTheSecondOperandWhereOneIsNoNumber) {
  EXPECT_EQ(apply(Op::kMax, kNan, 1.0F), 1);
  EXPECT_TRUE(std::isnan(apply(Op::kMax, 1.0F, kNan)));
  EXPECT_EQ(apply(Op::kMin, kNan, 1.0F), 1);
  EXPECT_TRUE(std::isnan(apply(Op::kMin, 1.0F, kNan)));
  EXPECT_TRUE(std::signbit(apply(Op::kMax, 0.0F, -0.0F)));
  EXPECT_EQ(apply(Op::kDivide, 1.0, 8.0), 0.125);
}

TEST(Computation, RefusesBadVariables) {
  Computation product = small_product();
  product.vars.clear();
  EXPECT_THAT(refusal(product), HasSubstr("1 to 12 variables, not 0"));
  product.vars.resize(13, {.name = "v"});
  EXPECT_THAT(refusal(product), HasSubstr("1 to 12 variables, not 13"));
  for (const std::string name : {"", "m0", "m n", "m_"}) {
    product = small_product();
    product.vars[0].name = name;
    EXPECT_THAT(refusal(product), HasSubstr(concat("letters only, not '", name, "'")));
  }
  product = small_product();
  product.vars[0].name = "n";
  EXPECT_THAT(refusal(product), HasSubstr("two variables are named n"));
  for (const std::int64_t extent : {std::int64_t{0}, std::int64_t{-1}, kMaxExtent + 1}) {
    product = small_product();
    product.vars[1].extent = extent;
    EXPECT_THAT(refusal(product), HasSubstr(concat("variable n has the extent ", extent)));
  }
}

TEST(Computation, RefusesBadTensors) {
  Computation product = small_product();
  product.inputs[0].dimensions[1].coefficients.pop_back();
  EXPECT_THAT(refusal(product), HasSubstr("tensor a has a dimension with 2 coefficients for 3"));
  product = small_product();
  product.inputs[1].dimensions[0].size = 0;
  EXPECT_THAT(refusal(product), HasSubstr("tensor b has a dimension of size 0 and stride 6"));
  product = small_product();
  product.inputs[1].dimensions[0].stride = kMaxElements;
  EXPECT_THAT(refusal(product), HasSubstr("tensor b has more than"));
  product = small_product();
  product.inputs[1].dimensions[0].offset = std::numeric_limits<std::int64_t>::min();
  EXPECT_THAT(refusal(product), HasSubstr("tensor b has an offset or a coefficient beyond"));
  product = small_product();
  product.inputs[1].dimensions[0].coefficients[0] = kMaxElements + 1;
  EXPECT_THAT(refusal(product), HasSubstr("tensor b has an offset or a coefficient beyond"));
  product = small_product();
  product.inputs[1].dimensions[0].coefficients[0] = kMaxElements;
  EXPECT_THAT(refusal(product), HasSubstr("tensor b reaches further than"));
  product = small_product();
  product.inputs[1].dimensions.resize(13, product.inputs[1].dimensions[0]);
  EXPECT_THAT(refusal(product), HasSubstr("tensor b has 13 dimensions, and there may be 12"));
  product = small_product();
  product.inputs[1].name = "b c";
  EXPECT_THAT(refusal(product), HasSubstr("not 'b c'"));
  product.inputs[1].name = "a";
  EXPECT_THAT(refusal(product), HasSubstr("two tensors are named a"));
  product.inputs[1].name = "c";
  EXPECT_THAT(refusal(product), HasSubstr("two tensors are named c"));
}

TEST(Computation, RefusesOutputsOutOfRangeOrWrittenTwice) {
  Computation product = small_product();
  product.output.dimensions[0].offset = 1;
  EXPECT_THAT(refusal(product), HasSubstr("tensor c has an index from 1 to 4 in a dimension of "
                                          "size 4"));
  product = small_product();
  product.output.dimensions[1] = {.size = 13, .stride = 1, .coefficients = {0, 1, 1}};
  EXPECT_THAT(refusal(product), HasSubstr("tensor c is indexed by the reduction variable k"));
  product = small_product();
  product.output.dimensions[0].coefficients[0] = 0;
  EXPECT_THAT(refusal(product), HasSubstr("variable m is no reduction variable and moves by 0 "
                                          "elements in the output c where it takes 1"));
  product = small_product();
  product.output.dimensions[0].stride = 5;
  EXPECT_THAT(refusal(product), HasSubstr("variable m is no reduction variable and moves by 5 "
                                          "elements in the output c where it takes 6"));
}

TEST(Computation, AcceptsOutputsThatRunBackwards) {
  Computation product = small_product();
  product.output.dimensions[1].coefficients[1] = -1;
  product.output.dimensions[1].offset = 5;
  EXPECT_TRUE(product.check());
  product.output.dimensions[1].offset = 4;
  EXPECT_THAT(refusal(product), HasSubstr("tensor c has an index from -1 to 4"));
}

TEST(Computation, RefusesBadInputs) {
  Computation product = small_product();
  product.combined = 0;
  EXPECT_THAT(refusal(product), HasSubstr("1 or 2 inputs are combined, not 0"));
  product.combined = 3;
  EXPECT_THAT(refusal(product), HasSubstr("1 or 2 inputs are combined, not 3"));
  product = small_product();
  product.inputs.resize(1);
  EXPECT_THAT(refusal(product), HasSubstr("there are 2 to 5 inputs where 2 are combined, not 1"));
  product = small_product();
  product.inputs.resize(6, product.inputs[2]);
  EXPECT_THAT(refusal(product), HasSubstr("not 6"));
  product = small_product();
  product.inputs[2].dimensions[0].coefficients[2] = 1;
  EXPECT_THAT(refusal(product), HasSubstr("tensor bias is indexed by the reduction variable k"));
  product = small_product();
  product.inputs[2].dimensions[0].size = 5;
  EXPECT_THAT(refusal(product), HasSubstr("tensor bias has an index from 0 to 5"));
}

TEST(Computation, RefusesBadOperations) {
  Computation product = small_product();
  product.combine = static_cast<Op>(6);
  EXPECT_THAT(refusal(product), HasSubstr("combined by no known operation"));
  product = small_product();
  product.reduce = static_cast<Op>(200);
  EXPECT_THAT(refusal(product), HasSubstr("not no operation"));
  product = small_product();
  product.steps[0].input = 3;
  EXPECT_THAT(refusal(product), HasSubstr("a step reads input 3, and of the 3 inputs the first 2 "
                                          "are not for steps"));
  product.steps[0].input = 1;
  EXPECT_THAT(refusal(product), HasSubstr("a step reads input 1"));
}

TEST(Tensor, IsZeroInThePaddingOnly) {
  const Tensor row{.name = "in",
                   .dimensions = {{.size = 4, .stride = 3, .offset = -2, .coefficients = {1}}}};
  std::int64_t place = -1;
  EXPECT_FALSE(inside(row, {1}, &place));
  EXPECT_TRUE(inside(row, {2}, &place));
  EXPECT_EQ(place, 0);
  EXPECT_TRUE(inside(row, {5}, &place));
  EXPECT_EQ(place, 9);
  EXPECT_FALSE(inside(row, {6}, &place));
  EXPECT_EQ(row.elements(), 10);
  EXPECT_EQ(row.origin(), -6);
}

}  // namespace
}  // namespace foretune::loop
