#include "foretune/families/cpu_conv/conv_data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"

namespace foretune::cpu_conv {
namespace {

constexpr double kUnitRoundoff = 0x1p-24;
// Bounds of Winograd's algorithm over those of the definition, from the errors that
// docs/guides/convolutions.md lists: the largest one is half of its bound.
constexpr double kGrowthOfTwo = 1;
constexpr double kGrowthOfFour = 8;
// A quiet NaN with a payload of its own.
constexpr std::uint32_t kPoison = 0x7fc0f0e7U;
constexpr double kMaxBytes = 0x1p40;
constexpr std::uint64_t kInputStream = 1;
constexpr std::uint64_t kCheckStream = 2;
constexpr std::uint64_t kSampleStream = 3;

std::vector<double> in_doubles(std::span<const float> values) {
  return {values.begin(), values.end()};
}

std::vector<double> squares(std::vector<double> values) {
  for (double& value : values) {
    value *= value;
  }
  return values;
}

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

ConvData::ConvData(const ConvProblem& problem, const Limits& limits)
    : problem_(problem),
      limits_(limits),
      terms_(std::min<double>(static_cast<double>(problem.implicit_gemm().k), 16) + 4) {
  const ConvSizes& s = problem.sizes();
  const bool is_data = problem.operation() == ConvOperation::kBackwardData;
  shape_.channels = index((is_data ? s.c : s.k) / s.g);
  result_type_ = result_type(problem);
  sum_type_ = problem.dtype() == DataType::kI8 ? OutputType::kI32 : OutputType::kF32;
  if (problem.layout() == ConvLayout::kChannelsFirst) {
    shape_.points =
        index(is_data ? s.di * s.hi * s.wi : problem.depth_out() * problem.ho() * problem.wo());
  }
}

Result<std::unique_ptr<ConvData>> ConvData::create(const ConvProblem& problem, std::uint64_t seed,
                                                   const Limits& limits) {
  const DataType dtype = problem.dtype();
  if (dtype != DataType::kF32 && dtype != DataType::kBf16 && dtype != DataType::kI8) {
    return fail(ErrorCode::kUnsupported, "there are no data of ", to_string(dtype),
                " here, only of f32, bf16 and i8");
  }
  if (problem.bytes() > kMaxBytes) {
    return fail(ErrorCode::kUnsupported, "the tensors take more than 1 TiB");
  }
  std::unique_ptr<ConvData> data(new ConvData(problem, limits));
  data->seed_ = seed;
  Rng rng = Rng(seed).split(kInputStream);
  if (dtype == DataType::kI8) {
    data->draw_quantization(rng);
  }
  const OutputType operand = operand_type(problem);
  const auto type_of = [&](ConvOperation computing) {
    return problem.operation() == computing ? data->result_type_ : operand;
  };
  FORETUNE_TRY_STATUS(data->draw(data->input_, problem.input_elements(),
                                 type_of(ConvOperation::kBackwardData), rng));
  FORETUNE_TRY_STATUS(data->draw(data->weights_, problem.weight_elements(),
                                 type_of(ConvOperation::kBackwardWeight), rng));
  FORETUNE_TRY_STATUS(
      data->draw(data->output_, problem.output_elements(), type_of(ConvOperation::kForward), rng));
  data->shape_.rows = data->computed().size() / data->shape_.channels;
  if (data->has_bias()) {
    FORETUNE_TRY_STATUS(data->draw(data->bias_, problem.sizes().k, data->sum_type_, rng));
  }
  if (data->has_addend()) {
    FORETUNE_TRY_STATUS(
        data->draw(data->addend_, problem.output_elements(), data->result_type_, rng));
  }
  data->poison();
  return data;
}

Status ConvData::draw(Tensor& tensor, std::int64_t count, OutputType type, Rng& rng) {
  FORETUNE_TRY(tensor.values, AlignedBuffer::create(index(count)));
  draw_values(type, tensor.values.view(), rng);
  if (type == OutputType::kF32) {
    return {};
  }
  // The value of an input is its distance from the zero.
  const bool is_input = type == OutputType::kI8 && &tensor == &input_;
  for (float& value : is_input ? tensor.values.view() : std::span<float>()) {
    value = limits_.has_plain_integers ? std::max(value, -value - 1)
                                       : value - static_cast<float>(quantization_.input_zero);
  }
  FORETUNE_TRY(tensor.elements,
               encode_values(type, tensor.view(),
                             is_input ? static_cast<float>(quantization_.input_zero) : 0.0F));
  return {};
}

// Scales bring most outputs into the range of i8, and some out of it.
void ConvData::draw_quantization(Rng& rng) {
  const double products = static_cast<double>(problem_.implicit_gemm().k);
  scales_.resize(index(problem_.sizes().k));
  for (float& scale : scales_) {
    scale = static_cast<float>((rng.uniform() + 0.3) * 0.012 / std::sqrt(products));
  }
  quantization_.scales = scales_.data();
  if (limits_.has_plain_integers) {
    return;
  }
  quantization_.input_zero = static_cast<std::int32_t>(rng.between(-128, 127));
  quantization_.output_zero = static_cast<std::int32_t>(rng.between(-128, 127));
  quantization_.addend_zero = static_cast<std::int32_t>(rng.between(-128, 127));
  quantization_.addend_scale = static_cast<float>(rng.uniform() + 0.25);
}

ConvData::Tensor& ConvData::computed() {
  switch (problem_.operation()) {
    case ConvOperation::kBackwardData:
      return input_;
    case ConvOperation::kBackwardWeight:
      return weights_;
    case ConvOperation::kForward:
      break;
  }
  return output_;
}

std::span<float> ConvData::result() {
  Tensor& tensor = computed();
  return tensor.elements.size() > 0 ? tensor.elements.view() : tensor.values.view();
}

double ConvData::found(std::size_t place) {
  return decode_value(result_type_, result().data(), place);
}

ConvOperands ConvData::operands() {
  const bool is_forward = problem_.operation() == ConvOperation::kForward;
  return {.input = is_forward ? input() : output(),
          .bias = has_bias() ? stored(bias_) : nullptr,
          .residual = has_addend() ? stored(addend_) : nullptr,
          .output = result().data(),
          .relu = has_relu(),
          .quantization = problem_.dtype() == DataType::kI8 ? &quantization_ : nullptr};
}

WeightGradientOperands ConvData::gradient_operands() {
  return {.input = input(), .output_gradient = output(), .gradient = weights()};
}

std::int64_t ConvData::bytes() const {
  std::size_t floats = scales_.size();
  for (const Tensor* const tensor : {&input_, &weights_, &output_, &addend_, &bias_}) {
    floats += tensor->values.size() + tensor->elements.size();
  }
  return static_cast<std::int64_t>(sizeof(float) * floats);
}

bool ConvData::is_poisoned(std::size_t place) {
  // The result may be of elements narrower than a word of the pattern.
  const auto bytes = static_cast<std::size_t>(bytes_of(result_type_));
  const auto* const found = reinterpret_cast<const unsigned char*>(result().data());
  const auto* const pattern = reinterpret_cast<const unsigned char*>(&kPoison);
  for (std::size_t i = place * bytes; i < (place + 1) * bytes; ++i) {
    if (found[i] != pattern[i % sizeof kPoison]) {
      return false;
    }
  }
  return true;
}

void ConvData::poison() { std::ranges::fill(result(), std::bit_cast<float>(kPoison)); }

// Rows of a gradient of weights are the values of a group's filters; rows of the other results are
// points, each with its groups, or with channels first groups, each with its points.
std::size_t ConvData::group_of(std::size_t row) const {
  const std::size_t groups = index(problem_.sizes().g);
  return problem_.operation() == ConvOperation::kBackwardWeight ? row / (shape_.rows / groups)
                                                                : row / shape_.points % groups;
}

std::size_t ConvData::element(std::size_t row, std::size_t channel) const {
  if (problem_.operation() != ConvOperation::kBackwardWeight) {
    return (row / shape_.points * shape_.channels + channel) * shape_.points + row % shape_.points;
  }
  const std::size_t values = shape_.rows / index(problem_.sizes().g);
  return (row / values * shape_.channels + channel) * values + row % values;
}

// Filters of a forward pass follow each other. The channels of filters and of outputs are
// neighbours or, with channels first, lie as far apart as they have points.
std::size_t ConvData::own_distance() const {
  const ConvSizes& s = problem_.sizes();
  if (s.operation == ConvOperation::kForward) {
    return weights_.size() / index(s.k);
  }
  if (s.layout == ConvLayout::kChannelsLast) {
    return 1;
  }
  return s.operation == ConvOperation::kBackwardData ? index(s.z * s.y * s.x) : shape_.points;
}

std::vector<double> ConvData::combined(std::span<const double> shared,
                                       std::span<const double> factors) const {
  ConvSizes sizes = problem_.sizes();
  const bool is_data = sizes.operation == ConvOperation::kBackwardData;
  const bool is_weight = sizes.operation == ConvOperation::kBackwardWeight;
  const auto own = is_weight ? output_.view() : weights_.view();
  (is_data ? sizes.c : sizes.k) = sizes.g;
  sizes.epilogue = ConvEpilogue::kNone;
  // This cannot fail: the sizes are no larger than those of the problem.
  const ConvProblem reduced = *ConvProblem::create(sizes);
  const std::size_t channels = shape_.channels;
  const std::size_t groups = index(sizes.g);
  const std::size_t apart = own_distance();
  std::vector<double> operand(own.size() / channels);
  for (std::size_t i = 0; i < operand.size(); ++i) {
    const std::size_t first = i / apart * apart * channels + i % apart;
    const std::size_t group = is_weight ? i / apart % groups : i / (operand.size() / groups);
    double sum = 0;
    for (std::size_t channel = 0; channel < channels; ++channel) {
      const double factor = factors.empty() ? 1.0 / static_cast<double>(channels)
                                            : factors[group * channels + channel];
      sum += factor * (factors.empty() ? 1.0 : static_cast<double>(own[first + channel * apart]));
    }
    operand[i] = sum;
  }
  std::vector<double> result(shape_.rows);
  ConvTensors tensors;
  (is_data ? tensors.output : tensors.input) = shared;
  (is_weight ? tensors.output : tensors.weights) = operand;
  reference_conv(reduced, tensors, result);
  return result;
}

void ConvData::compute_reference() {
  reference_ = std::make_unique<Reference>();
  const bool is_data = problem_.operation() == ConvOperation::kBackwardData;
  const bool is_weight = problem_.operation() == ConvOperation::kBackwardWeight;
  const std::vector<double> shared = in_doubles(is_data ? output_.view() : input_.view());
  const auto own = is_weight ? output_.view() : weights_.view();
  const std::size_t groups = index(problem_.sizes().g);
  const std::size_t count = groups * shape_.channels;
  reference_->shared = combined(squares(shared), {});
  reference_->own.assign(count, 0);
  const std::size_t of_group = own.size() / groups;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::size_t number = i / own_distance();
    const std::size_t channel =
        is_data ? i / of_group * shape_.channels + number % shape_.channels : number % count;
    const auto value = static_cast<double>(own[i]);
    reference_->own[channel] += value * value;
  }
  if (problem_.flops() <= limits_.full_check_flops) {
    const std::vector<double> input = in_doubles(input_.view());
    const std::vector<double> weights = in_doubles(weights_.view());
    const std::vector<double> output = in_doubles(output_.view());
    reference_->exact.resize(computed().size());
    ConvSizes sizes = problem_.sizes();
    sizes.epilogue = ConvEpilogue::kNone;
    reference_conv(*ConvProblem::create(sizes), {input, weights, output}, reference_->exact);
    return;
  }
  Rng rng = Rng(seed_).split(kCheckStream);
  for (std::size_t vector = 0; vector < kSignVectors; ++vector) {
    std::vector<double>& signs = reference_->signs[vector];
    signs.resize(count);
    for (double& sign : signs) {
      sign = rng.below(2) == 0 ? 1 : -1;
    }
    reference_->sums[vector] = combined(shared, signs);
  }
}

double ConvData::bound(double shared, double own) const {
  const double growth = tile_points_ == 0 ? 1 : tile_points_ == 2 ? kGrowthOfTwo : kGrowthOfFour;
  return growth * kUnitRoundoff * terms_ * std::sqrt(shared * own);
}

void ConvData::expect_tiles(int points) {
  if (tile_points_ != points && reference_ != nullptr) {
    reference_->by_tile.clear();
  }
  tile_points_ = points;
}

// The points that the corners of a tile read are all that it reads, so four times the largest norm
// of its outputs bounds its own.
std::vector<double> ConvData::shared_by_tiles() const {
  const ConvSizes& s = problem_.sizes();
  const bool is_data = problem_.operation() == ConvOperation::kBackwardData;
  const std::size_t height = index(is_data ? s.hi : problem_.ho());
  const std::size_t width = index(is_data ? s.wi : problem_.wo());
  const auto side = static_cast<std::size_t>(tile_points_);
  const std::size_t tiles_of_row = (width + side - 1) / side;
  const std::size_t tiles_of_image = (height + side - 1) / side * tiles_of_row;
  const auto tile_of = [&](std::size_t row) {
    const std::size_t point = row % (height * width);
    return row / (height * width) * tiles_of_image + point / width / side * tiles_of_row +
           point % width / side;
  };
  std::vector<double> largest(index(s.n) * tiles_of_image);
  for (std::size_t row = 0; row < shape_.rows; ++row) {
    double& tile = largest[tile_of(row)];
    tile = std::max(tile, 4 * reference_->shared[row]);
  }
  std::vector<double> norms(shape_.rows);
  for (std::size_t row = 0; row < shape_.rows; ++row) {
    norms[row] = largest[tile_of(row)];
  }
  return norms;
}

bool ConvData::is_skipped(std::size_t row) const {
  if (!problem_.skips()) {
    return false;
  }
  // Channels are last.
  const auto point = static_cast<std::int64_t>(row) / problem_.sizes().g;
  return problem_.skips_point(point / problem_.wo() % problem_.ho(), point % problem_.wo());
}

Support ConvData::compare(std::size_t row, std::size_t channel, double exact) {
  const std::size_t place = element(row, channel);
  if (is_skipped(row)) {
    return is_poisoned(place) ? Support::yes()
                              : Support::no("element ", place, " is written, but left out");
  }
  const std::size_t number = group_of(row) * shape_.channels + channel;
  const bool is_integer = sum_type_ == OutputType::kI32;
  double allowed = is_integer ? 0 : bound(shared_norm(row), reference_->own[number]);
  const double addend = has_addend() ? static_cast<double>(addend_.view()[place]) : 0.0;
  exact += has_bias() ? static_cast<double>(bias_.view()[number]) : 0.0;
  if (result_type_ == OutputType::kI8) {
    exact = quantized(exact, number, addend, has_addend(), has_relu(), quantization_);
  } else {
    exact += addend;
    exact = has_relu() ? std::max(exact, 0.0) : exact;
  }
  if (!is_integer) {
    const double bias = has_bias() ? static_cast<double>(bias_.view()[number]) : 0.0;
    allowed += 4 * kUnitRoundoff * (std::fabs(bias) + std::fabs(addend));
    allowed += result_type_ == OutputType::kBf16 ? 0x1p-8 * std::fabs(exact) : 0.0;
  }
  const double value = found(place);
  const double error = std::fabs(value - exact);
  if (!(error <= allowed)) {
    const bool is_untouched = result_type_ == OutputType::kF32 && is_poisoned(place);
    return Support::no("element ", place, " of the result is ", value, ", not ", exact,
                       is_untouched ? " (it was not written)" : "");
  }
  worst_ = std::max(worst_, allowed > 0 ? error / allowed : 0.0);
  return Support::yes();
}

// Computes one element by a convolution of its channel alone, without the other ones.
double ConvData::exact_element(std::size_t row, std::size_t channel) const {
  const ConvSizes& s = problem_.sizes();
  const std::int64_t channels = s.c / s.g;
  const std::int64_t filters = s.k / s.g;
  const auto group = static_cast<std::int64_t>(group_of(row));
  const auto own = static_cast<std::int64_t>(channel);
  const bool is_planar = s.layout == ConvLayout::kChannelsFirst;
  // Returns an element of images of `count` channels and `size` points each.
  const auto at = [&](const Tensor& images, std::int64_t count, std::int64_t size,
                      std::int64_t image, std::int64_t point, std::int64_t number) {
    const std::int64_t place = is_planar ? (image * count + number) * size + point
                                         : (image * size + point) * count + number;
    return static_cast<double>(images.view()[index(place)]);
  };
  const std::int64_t in_points = s.di * s.hi * s.wi;
  const auto in = [&](std::int64_t n, std::int64_t point, std::int64_t c) {
    return at(input_, s.c, in_points, n, point, group * channels + c);
  };
  const std::int64_t points = problem_.depth_out() * problem_.ho() * problem_.wo();
  const auto out = [&](std::int64_t n, std::int64_t point, std::int64_t k) {
    return at(output_, s.k, points, n, point, group * filters + k);
  };
  const std::int64_t filter_points = s.z * s.y * s.x;
  const auto weight = [&](std::int64_t k, std::int64_t point, std::int64_t c) {
    return at(weights_, channels, filter_points, group * filters + k, point, c);
  };
  double sum = 0;
  if (s.operation == ConvOperation::kBackwardWeight) {
    const auto value = static_cast<std::int64_t>(row % (shape_.rows / index(s.g)));
    for (std::int64_t o = 0; o < points; ++o) {
      const std::int64_t i = input_point(o, is_planar ? value % filter_points : value / channels);
      for (std::int64_t n = 0; n < (i < 0 ? 0 : s.n); ++n) {
        sum += out(n, o, own) * in(n, i, is_planar ? value / filter_points : value % channels);
      }
    }
    return sum;
  }
  const bool is_forward = s.operation == ConvOperation::kForward;
  const std::int64_t of_image = is_forward ? points : in_points;
  const auto number = static_cast<std::int64_t>(row);
  const std::int64_t point =
      is_planar ? number / (s.g * of_image) * of_image + number % of_image : number / s.g;
  for (std::int64_t f = 0; f < filter_points; ++f) {
    const std::int64_t other = problem_.skips_tap(f) ? -1
                               : is_forward          ? input_point(point % of_image, f)
                                                     : output_point(point % of_image, f);
    for (std::int64_t c = 0; is_forward && other >= 0 && c < channels; ++c) {
      sum += in(point / of_image, other, c) * weight(own, f, c);
    }
    for (std::int64_t k = 0; !is_forward && other >= 0 && k < filters; ++k) {
      sum += out(point / of_image, other, k) * weight(k, f, own);
    }
  }
  return sum;
}

// Returns the input point that an output point reads through a point of the filter, or -1.
std::int64_t ConvData::input_point(std::int64_t out, std::int64_t filter) const {
  const ConvSizes& s = problem_.sizes();
  const std::int64_t d = out / (problem_.ho() * problem_.wo()) * s.stride_d +
                         filter / (s.y * s.x) * s.dilation_d - s.pad_d;
  const std::int64_t h = out / problem_.wo() % problem_.ho() * s.stride_h +
                         filter / s.x % s.y * s.dilation_h - s.pad_h;
  const std::int64_t w = out % problem_.wo() * s.stride_w + filter % s.x * s.dilation_w - s.pad_w;
  const bool is_inside = d >= 0 && d < s.di && h >= 0 && h < s.hi && w >= 0 && w < s.wi;
  return is_inside ? (d * s.hi + h) * s.wi + w : -1;
}

// Returns the output point that reads an input point through a point of the filter, or -1.
std::int64_t ConvData::output_point(std::int64_t in, std::int64_t filter) const {
  const ConvSizes& s = problem_.sizes();
  const std::int64_t d = in / (s.hi * s.wi) + s.pad_d - filter / (s.y * s.x) * s.dilation_d;
  const std::int64_t h = in / s.wi % s.hi + s.pad_h - filter / s.x % s.y * s.dilation_h;
  const std::int64_t w = in % s.wi + s.pad_w - filter % s.x * s.dilation_w;
  if (d < 0 || h < 0 || w < 0 || d % s.stride_d != 0 || h % s.stride_h != 0 ||
      w % s.stride_w != 0 || d / s.stride_d >= problem_.depth_out() ||
      h / s.stride_h >= problem_.ho() || w / s.stride_w >= problem_.wo()) {
    return -1;
  }
  return (d / s.stride_d * problem_.ho() + h / s.stride_h) * problem_.wo() + w / s.stride_w;
}

Support ConvData::compare_signs() {
  for (std::size_t vector = 0; vector < kSignVectors; ++vector) {
    const std::vector<double>& signs = reference_->signs[vector];
    for (std::size_t row = 0; row < shape_.rows; ++row) {
      if (is_skipped(row)) {
        continue;
      }
      const std::size_t first = group_of(row) * shape_.channels;
      double total = 0;
      double exact = reference_->sums[vector][row];
      double own = 0;
      double biases = 0;
      for (std::size_t channel = 0; channel < shape_.channels; ++channel) {
        const double sign = signs[first + channel];
        total += sign * found(element(row, channel));
        own += reference_->own[first + channel];
        if (has_bias()) {
          exact += sign * static_cast<double>(bias_.view()[first + channel]);
          biases +=
              4 * kUnitRoundoff * std::fabs(static_cast<double>(bias_.view()[first + channel]));
        }
      }
      const double allowed =
          sum_type_ == OutputType::kI32 ? 0.5 : bound(shared_norm(row), own) + biases;
      if (!(std::fabs(total - exact) <= allowed)) {
        return Support::no("the channels of row ", row, " add up to ", total, " with signs, not ",
                           exact);
      }
    }
  }
  return Support::yes();
}

Support ConvData::verify() {
  if (reference_ == nullptr) {
    compute_reference();
  }
  if (tile_points_ != 0 && reference_->by_tile.empty()) {
    reference_->by_tile = shared_by_tiles();
  }
  worst_ = 0;
  if (!reference_->exact.empty()) {
    for (std::size_t row = 0; row < shape_.rows; ++row) {
      for (std::size_t channel = 0; channel < shape_.channels; ++channel) {
        if (Support same = compare(row, channel, reference_->exact[element(row, channel)]); !same) {
          return same;
        }
      }
    }
    return Support::yes();
  }
  Rng rng = Rng(seed_).split(kSampleStream);
  // Rounding and a ReLU are not linear: their outputs are only sampled, more of them.
  const std::size_t samples = limits_.sampled_outputs * (is_rounded() ? 4 : 1);
  for (std::size_t i = 0; i < samples; ++i) {
    const std::size_t row = i == 0 ? 0 : i == 1 ? shape_.rows - 1 : rng.below(shape_.rows);
    const std::size_t channel = i == 1 ? shape_.channels - 1 : rng.below(shape_.channels);
    if (Support same = compare(row, channel, exact_element(row, channel)); !same) {
      return same;
    }
  }
  return is_rounded() ? Support::yes() : compare_signs();
}

}  // namespace foretune::cpu_conv
