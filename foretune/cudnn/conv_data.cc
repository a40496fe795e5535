#include "foretune/cudnn/conv_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/cudnn/conv_graph.h"

namespace foretune::cudnn {
namespace {

using cuda::bytes_of;
using cuda::kPoison;

// The host computes at least and at most so many elements, and not many more products than this.
constexpr std::int64_t kLeastSamples = 4;
constexpr std::int64_t kMaxSamples = 32;
constexpr double kHostProducts = 2e6;

// Each buffer has its own stream of random numbers.
constexpr std::uint64_t kStreamInput = 0x1a00000000000000U;
constexpr std::uint64_t kStreamWeights = 0x1b00000000000000U;
constexpr std::uint64_t kStreamOutput = 0x1c00000000000000U;
constexpr std::uint64_t kStreamBias = 0x1d00000000000000U;
constexpr std::uint64_t kStreamAdded = 0x1e00000000000000U;

// Tolerances of algorithms in another domain are so many times those of sums of products.
constexpr double kTransformedFactor = 16;

// Indices in the reference's kernel have 32 bits, and a dimension of its grid 16.
constexpr std::int64_t kMaxPoints = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxGroups = 65535;
constexpr std::int64_t kMaxColumns = 65535 * std::int64_t{64};

std::uint64_t count_of(std::int64_t elements) { return static_cast<std::uint64_t>(elements); }

// A point of an image, or of a filter, by its three coordinates.
using Point = std::array<std::int64_t, 3>;

Point point_of(std::int64_t index, const std::int32_t* sizes) {
  return {index / sizes[2] / sizes[1], index / sizes[2] % sizes[1], index % sizes[2]};
}

std::int64_t points_of(const std::int32_t* sizes) {
  return std::int64_t{sizes[0]} * sizes[1] * sizes[2];
}

// The place of an element: image, channel and point, or filter, channel and tap.
struct Element {
  std::int64_t outer = 0;
  std::int64_t channel = 0;
  std::int64_t point = 0;
};

Element element_of(std::uint64_t index, std::int64_t channels, std::int64_t points,
                   bool channels_last) {
  const auto i = static_cast<std::int64_t>(index);
  const std::int64_t outer = i / (channels * points);
  const std::int64_t rest = i % (channels * points);
  return channels_last ? Element{outer, rest % channels, rest / channels}
                       : Element{outer, rest / points, rest % points};
}

std::uint64_t index_of(const Element& element, std::int64_t channels, std::int64_t points,
                       bool channels_last) {
  const std::int64_t base = element.outer * channels * points;
  return count_of(base + (channels_last ? element.point * channels + element.channel
                                        : element.channel * points + element.point));
}

// Computes elements of a convolution on the host, in double precision, from the random numbers.
class HostConvolution {
 public:
  HostConvolution(const ConvProblem& problem, std::uint64_t seed)
      : shape_(conv_shape(problem)),
        type_(problem.dtype()),
        seed_(seed),
        in_points_(points_of(shape_.in)),
        out_points_(points_of(shape_.out)),
        taps_(points_of(shape_.filter)) {}

  [[nodiscard]] double forward(const Element& out) const {
    const std::int64_t group = out.channel / shape_.k;
    double sum = 0;
    for (std::int64_t tap = 0; tap < taps_; ++tap) {
      const std::optional<std::int64_t> in = input_point(out.point, tap);
      for (std::int64_t c = 0; in && c < shape_.c; ++c) {
        sum += input({out.outer, group * shape_.c + c, *in}) * weight({out.channel, c, tap});
      }
    }
    return sum;
  }
  [[nodiscard]] double data_gradient(const Element& in) const {
    const std::int64_t group = in.channel / shape_.c;
    double sum = 0;
    for (std::int64_t tap = 0; tap < taps_; ++tap) {
      const std::optional<std::int64_t> out = output_point(in.point, tap);
      for (std::int64_t k = 0; out && k < shape_.k; ++k) {
        const std::int64_t filter = group * shape_.k + k;
        sum += output({in.outer, filter, *out}) * weight({filter, in.channel % shape_.c, tap});
      }
    }
    return sum;
  }
  [[nodiscard]] double weight_gradient(const Element& at) const {
    const std::int64_t channel = at.outer / shape_.k * shape_.c + at.channel;
    double sum = 0;
    for (std::int64_t image = 0; image < shape_.n; ++image) {
      for (std::int64_t out = 0; out < out_points_; ++out) {
        if (const std::optional<std::int64_t> in = input_point(out, at.point)) {
          sum += output({image, at.outer, out}) * input({image, channel, *in});
        }
      }
    }
    return sum;
  }

 private:
  [[nodiscard]] std::optional<std::int64_t> input_point(std::int64_t out, std::int64_t tap) const {
    const Point from = point_of(out, shape_.out);
    const Point offset = point_of(tap, shape_.filter);
    std::int64_t point = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t at =
          from[i] * shape_.stride[i] - shape_.pad[i] + offset[i] * shape_.dilation[i];
      if (at < 0 || at >= shape_.in[i]) {
        return std::nullopt;
      }
      point = point * shape_.in[i] + at;
    }
    return point;
  }
  [[nodiscard]] std::optional<std::int64_t> output_point(std::int64_t in, std::int64_t tap) const {
    const Point to = point_of(in, shape_.in);
    const Point offset = point_of(tap, shape_.filter);
    std::int64_t point = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t distance = to[i] + shape_.pad[i] - offset[i] * shape_.dilation[i];
      if (distance < 0 || distance % shape_.stride[i] != 0 ||
          distance / shape_.stride[i] >= shape_.out[i]) {
        return std::nullopt;
      }
      point = point * shape_.out[i] + distance / shape_.stride[i];
    }
    return point;
  }
  [[nodiscard]] double random(std::uint64_t stream, std::uint64_t index) const {
    return static_cast<double>(cuda::random_element(type_, seed_ + stream, index));
  }
  [[nodiscard]] bool is_last() const { return shape_.channels_last != 0; }
  [[nodiscard]] double input(const Element& at) const {
    return random(kStreamInput,
                  index_of(at, std::int64_t{shape_.groups} * shape_.c, in_points_, is_last()));
  }
  [[nodiscard]] double weight(const Element& at) const {
    return random(kStreamWeights, index_of(at, shape_.c, taps_, is_last()));
  }
  [[nodiscard]] double output(const Element& at) const {
    return random(kStreamOutput,
                  index_of(at, std::int64_t{shape_.groups} * shape_.k, out_points_, is_last()));
  }

  cuda::ConvShape shape_;
  DataType type_;
  std::uint64_t seed_;
  std::int64_t in_points_;
  std::int64_t out_points_;
  std::int64_t taps_;
};

}  // namespace

cuda::ConvShape conv_shape(const ConvProblem& problem) {
  const ConvSizes& sizes = problem.sizes();
  const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  return {
      .operation = static_cast<std::int32_t>(sizes.operation),
      .channels_last = sizes.layout == ConvLayout::kChannelsLast ? 1 : 0,
      .n = narrow(sizes.n),
      .groups = narrow(sizes.g),
      .c = narrow(sizes.c / sizes.g),
      .k = narrow(sizes.k / sizes.g),
      .in = {narrow(sizes.di), narrow(sizes.hi), narrow(sizes.wi)},
      .out = {narrow(problem.depth_out()), narrow(problem.ho()), narrow(problem.wo())},
      .filter = {narrow(sizes.z), narrow(sizes.y), narrow(sizes.x)},
      .stride = {narrow(sizes.stride_d), narrow(sizes.stride_h), narrow(sizes.stride_w)},
      .pad = {narrow(sizes.pad_d), narrow(sizes.pad_h), narrow(sizes.pad_w)},
      .dilation = {narrow(sizes.dilation_d), narrow(sizes.dilation_h), narrow(sizes.dilation_w)}};
}

Support has_reference(const ConvProblem& problem) {
  const ConvSizes& sizes = problem.sizes();
  const std::int64_t taps = sizes.z * sizes.y * sizes.x;
  const std::int64_t in = sizes.n * sizes.di * sizes.hi * sizes.wi;
  const std::int64_t out = sizes.n * problem.depth_out() * problem.ho() * problem.wo();
  if (std::max({in, out, taps * sizes.c, taps * sizes.k}) > kMaxPoints) {
    return Support::no("images or filters have more than ", kMaxPoints, " points");
  }
  if (sizes.g > kMaxGroups || std::max({sizes.k, sizes.c, taps * sizes.c}) > kMaxColumns) {
    return Support::no("it has too many groups or channels for the reference");
  }
  return Support::yes();
}

const cuda::Buffer& ConvData::result() const {
  switch (problem_.operation()) {
    case ConvOperation::kBackwardData:
      return sets_[0].input;
    case ConvOperation::kBackwardWeight:
      return sets_[0].weights;
    case ConvOperation::kForward:
      break;
  }
  return sets_[0].output;
}

std::uint64_t ConvData::result_elements() const {
  switch (problem_.operation()) {
    case ConvOperation::kBackwardData:
      return count_of(problem_.input_elements());
    case ConvOperation::kBackwardWeight:
      return count_of(problem_.weight_elements());
    case ConvOperation::kForward:
      break;
  }
  return count_of(problem_.output_elements());
}

double ConvData::sum_length() const { return static_cast<double>(problem_.implicit_gemm().k); }

Result<std::unique_ptr<ConvData>> ConvData::create(std::shared_ptr<cuda::Device> device,
                                                   const ConvProblem& problem,
                                                   std::size_t workspace_bytes,
                                                   std::uint64_t seed) {
  if (const Support possible = has_reference(problem); !possible) {
    return fail(ErrorCode::kUnsupported, possible.reason());
  }
  std::unique_ptr<ConvData> data(new ConvData(std::move(device), problem, seed));
  cuda::Device& gpu = data->device();
  if (problem.epilogue() != ConvEpilogue::kNone) {
    const std::uint64_t filters = count_of(problem.sizes().k);
    FORETUNE_TRY(data->bias_, gpu.allocate(bytes_of(problem.dtype(), filters)));
    gpu.fill(data->bias_, problem.dtype(), filters, seed + kStreamBias);
  }
  FORETUNE_TRY_STATUS(data->add_set());
  FORETUNE_TRY_STATUS(data->make_reference());
  FORETUNE_TRY_STATUS(data->check_reference());
  FORETUNE_TRY(data->workspace_, gpu.allocate(workspace_bytes));
  data->poison();
  return data;
}

Result<ConvData*> ConvData::of(const Problem& problem, ProblemData& data) {
  auto* const conv = dynamic_cast<ConvData*>(&data);
  if (conv == nullptr || conv->problem().to_problem() != problem) {
    return fail(ErrorCode::kMismatch, "the data are not those of '", problem.text(), "'");
  }
  return conv;
}

Status ConvData::add_set() {
  const DataType type = problem_.dtype();
  const ConvOperation operation = problem_.operation();
  Set set;
  const auto make = [&](cuda::Buffer& buffer, std::int64_t elements, ConvOperation computed_by,
                        std::uint64_t stream) -> Status {
    const bool is_result = operation == computed_by;
    FORETUNE_TRY(buffer, device().allocate(bytes_of(is_result ? result_type(problem_) : type,
                                                    count_of(elements))));
    if (!is_result) {
      device().fill(buffer, type, count_of(elements), seed_ + stream);
    }
    return {};
  };
  FORETUNE_TRY_STATUS(
      make(set.input, problem_.input_elements(), ConvOperation::kBackwardData, kStreamInput));
  FORETUNE_TRY_STATUS(make(set.weights, problem_.weight_elements(), ConvOperation::kBackwardWeight,
                           kStreamWeights));
  FORETUNE_TRY_STATUS(
      make(set.output, problem_.output_elements(), ConvOperation::kForward, kStreamOutput));
  if (problem_.epilogue() == ConvEpilogue::kBiasAddRelu) {
    const std::uint64_t count = count_of(problem_.output_elements());
    FORETUNE_TRY(set.added, device().allocate(bytes_of(result_type(problem_), count)));
    device().fill(set.added, result_type(problem_), count, seed_ + kStreamAdded);
  }
  sets_.push_back(std::move(set));
  return {};
}

Status ConvData::make_reference() {
  const DataType type = problem_.dtype();
  const auto widened = [&](const cuda::Buffer& from, DataType stored,
                           std::uint64_t count) -> Result<cuda::Buffer> {
    FORETUNE_TRY(cuda::Buffer to, device().allocate(bytes_of(DataType::kF32, count)));
    device().widen(from, stored, count, to);
    return to;
  };
  const ConvOperation operation = problem_.operation();
  cuda::Buffer input;
  cuda::Buffer weights;
  cuda::Buffer output;
  if (operation != ConvOperation::kBackwardData) {
    FORETUNE_TRY(input, widened(sets_[0].input, type, count_of(problem_.input_elements())));
  }
  if (operation != ConvOperation::kBackwardWeight) {
    FORETUNE_TRY(weights, widened(sets_[0].weights, type, count_of(problem_.weight_elements())));
  }
  if (operation != ConvOperation::kForward) {
    FORETUNE_TRY(output, widened(sets_[0].output, type, count_of(problem_.output_elements())));
  }
  FORETUNE_TRY(reference_, device().allocate(bytes_of(DataType::kF32, result_elements())));
  device().set(reference_, kPoison);
  device().convolve(conv_shape(problem_), {.input = &input, .weights = &weights, .output = &output},
                    reference_);
  if (problem_.epilogue() != ConvEpilogue::kNone) {
    const std::uint64_t filters = count_of(problem_.sizes().k);
    FORETUNE_TRY(const cuda::Buffer bias, widened(bias_, type, filters));
    const bool is_last = problem_.layout() == ConvLayout::kChannelsLast;
    const std::uint64_t inner =
        is_last ? 1 : count_of(problem_.depth_out() * problem_.ho() * problem_.wo());
    std::optional<cuda::Buffer> added;
    if (problem_.epilogue() == ConvEpilogue::kBiasAddRelu) {
      FORETUNE_TRY(added, widened(sets_[0].added, result_type(problem_), result_elements()));
    }
    device().finish_convolution(
        reference_, result_elements(), bias, static_cast<std::uint32_t>(filters), inner,
        added ? &*added : nullptr, problem_.epilogue() != ConvEpilogue::kBias);
    device().synchronize();
  }
  device().synchronize();
  return {};
}

double ConvData::host_element(std::uint64_t index) const {
  const HostConvolution host(problem_, seed_);
  const ConvSizes& sizes = problem_.sizes();
  const bool is_last = problem_.layout() == ConvLayout::kChannelsLast;
  switch (problem_.operation()) {
    case ConvOperation::kBackwardData:
      return host.data_gradient(
          element_of(index, sizes.c, sizes.di * sizes.hi * sizes.wi, is_last));
    case ConvOperation::kBackwardWeight:
      return host.weight_gradient(
          element_of(index, sizes.c / sizes.g, sizes.z * sizes.y * sizes.x, is_last));
    case ConvOperation::kForward:
      break;
  }
  const Element at =
      element_of(index, sizes.k, problem_.depth_out() * problem_.ho() * problem_.wo(), is_last);
  double sum = host.forward(at);
  if (problem_.epilogue() == ConvEpilogue::kNone) {
    return sum;
  }
  sum += static_cast<double>(
      cuda::random_element(problem_.dtype(), seed_ + kStreamBias, count_of(at.channel)));
  if (problem_.epilogue() == ConvEpilogue::kBiasAddRelu) {
    sum += static_cast<double>(
        cuda::random_element(result_type(problem_), seed_ + kStreamAdded, index));
  }
  return problem_.epilogue() == ConvEpilogue::kBias ? sum : std::max(sum, 0.0);
}

Status ConvData::check_reference() {
  Rng rng(seed_);
  const double tolerance = 0x1p-17 * cuda::typical_sum(sum_length()) + 0x1p-18;
  const auto samples = std::clamp(static_cast<std::int64_t>(kHostProducts / sum_length()),
                                  kLeastSamples, kMaxSamples);
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::uint64_t index = rng.below(result_elements());
    const double wanted = host_element(index);
    float found = 0;
    device().read(reference_, index, std::span(&found, 1));
    if (!(std::abs(static_cast<double>(found) - wanted) <=
          tolerance + 0x1p-18 * std::abs(wanted))) {
      return fail(ErrorCode::kInternal, "the reference of '", problem_.to_problem().text(),
                  "' is wrong: element ", index, " is ", static_cast<double>(found),
                  ", the host computes ", wanted);
    }
  }
  return {};
}

void ConvData::poison() { device().set(result(), kPoison); }

Support ConvData::verify() {
  const DataType stored = result_type(problem_);
  // The operands are rounded to the problem's type before they are multiplied, if at all.
  const double precision =
      cuda::result_precision(stored == DataType::kF32 && problem_.dtype() == DataType::kTf32
                                 ? DataType::kTf32
                                 : stored) *
      (is_transformed_ ? kTransformedFactor : 1);
  const double absolute = precision * (1 + 2 * cuda::typical_sum(sum_length()));
  const cuda::Difference difference =
      device().compare(result(), stored, reference_, result_elements(),
                       static_cast<float>(absolute), static_cast<float>(2 * precision));
  if (difference.count == 0) {
    return Support::yes();
  }
  return Support::no(difference.count, " of ", result_elements(), " elements are wrong, first ",
                     difference.first, ", which should be ",
                     static_cast<double>(difference.wanted));
}

std::int64_t ConvData::bytes() const {
  const Set& set = sets_[0];
  return static_cast<std::int64_t>(set.input.bytes() + set.weights.bytes() + set.output.bytes() +
                                   set.added.bytes());
}

ConvOperands ConvData::operands(std::size_t set) const {
  const Set& chosen = sets_[set % sets_.size()];
  return {.input = chosen.input.address(),
          .weights = chosen.weights.address(),
          .output = chosen.output.address(),
          .bias = bias_.address(),
          .added = chosen.added.address(),
          .workspace = workspace_.address()};
}

}  // namespace foretune::cudnn
