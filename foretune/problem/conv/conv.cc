#include "foretune/problem/conv/conv.h"

#include <array>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/problem/internal/labels.h"

namespace foretune {
namespace {

constexpr std::array<std::string_view, 3> kDirections{"forward", "backward_data",
                                                      "backward_weight"};
constexpr std::array<std::string_view, 2> kConvLayouts{"channels_last", "channels_first"};
constexpr std::array<std::string_view, 2> kConvWeights{"varying", "constant"};
constexpr std::array<std::string_view, 4> kConvEpilogues{"none", "bias", "bias_relu",
                                                         "bias_add_relu"};
constexpr std::array<std::string_view, 2> kConvOutputs{"same", "sums"};
constexpr double kSumBytes = 4;

// Up to this number, doubles count exactly.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 53;

// All sizes fit 31 bits, so nothing here overflows.
std::int64_t output_size(std::int64_t input, std::int64_t filter, std::int64_t stride,
                         std::int64_t pad, std::int64_t dilation) {
  const std::int64_t room = input + 2 * pad - (dilation * (filter - 1) + 1);
  return room < 0 ? 0 : room / stride + 1;
}

std::int64_t field_of(std::span<const std::int64_t> fields, ConvField index) {
  return fields[static_cast<std::size_t>(index)];
}

ConvSizes sizes_of(std::span<const std::int64_t> fields) {
  const auto field = [&](ConvField index) { return field_of(fields, index); };
  return {.operation = static_cast<ConvOperation>(field(ConvField::kOperation)),
          .n = field(ConvField::kN),
          .c = field(ConvField::kC),
          .k = field(ConvField::kK),
          .g = field(ConvField::kG),
          .di = field(ConvField::kDi),
          .hi = field(ConvField::kHi),
          .wi = field(ConvField::kWi),
          .z = field(ConvField::kZ),
          .y = field(ConvField::kY),
          .x = field(ConvField::kX),
          .stride_d = field(ConvField::kStrideD),
          .stride_h = field(ConvField::kStrideH),
          .stride_w = field(ConvField::kStrideW),
          .pad_d = field(ConvField::kPadD),
          .pad_h = field(ConvField::kPadH),
          .pad_w = field(ConvField::kPadW),
          .dilation_d = field(ConvField::kDilationD),
          .dilation_h = field(ConvField::kDilationH),
          .dilation_w = field(ConvField::kDilationW),
          .dtype = static_cast<DataType>(field(ConvField::kDtype)),
          .layout = static_cast<ConvLayout>(field(ConvField::kLayout)),
          .weights = static_cast<ConvWeights>(field(ConvField::kWeights)),
          .epilogue = static_cast<ConvEpilogue>(field(ConvField::kEpilogue)),
          .out = static_cast<ConvOutput>(field(ConvField::kOut)),
          .skip_rows = field(ConvField::kSkipRows),
          .skip_rows_at = field(ConvField::kSkipRowsAt),
          .skip_columns = field(ConvField::kSkipColumns),
          .skip_columns_at = field(ConvField::kSkipColumnsAt),
          .skip_taps = field(ConvField::kSkipTaps),
          .skip_taps_at = field(ConvField::kSkipTapsAt)};
}

Problem::Fields fields_of(const ConvSizes& sizes) {
  return {static_cast<std::int64_t>(sizes.operation),
          sizes.n,
          sizes.c,
          sizes.k,
          sizes.g,
          sizes.di,
          sizes.hi,
          sizes.wi,
          sizes.z,
          sizes.y,
          sizes.x,
          sizes.stride_d,
          sizes.stride_h,
          sizes.stride_w,
          sizes.pad_d,
          sizes.pad_h,
          sizes.pad_w,
          sizes.dilation_d,
          sizes.dilation_h,
          sizes.dilation_w,
          static_cast<std::int64_t>(sizes.dtype),
          static_cast<std::int64_t>(sizes.layout),
          static_cast<std::int64_t>(sizes.weights),
          static_cast<std::int64_t>(sizes.epilogue),
          static_cast<std::int64_t>(sizes.out),
          sizes.skip_rows,
          sizes.skip_rows_at,
          sizes.skip_columns,
          sizes.skip_columns_at,
          sizes.skip_taps,
          sizes.skip_taps_at};
}

Status check_output(const ConvSizes& sizes) {
  struct Axis {
    std::string_view input_name;
    std::string_view filter_name;
    std::int64_t input, filter, stride, pad, dilation;
  };
  for (const Axis& axis : {
           Axis{"di", "z", sizes.di, sizes.z, sizes.stride_d, sizes.pad_d, sizes.dilation_d},
           Axis{"hi", "y", sizes.hi, sizes.y, sizes.stride_h, sizes.pad_h, sizes.dilation_h},
           Axis{"wi", "x", sizes.wi, sizes.x, sizes.stride_w, sizes.pad_w, sizes.dilation_w},
       }) {
    if (output_size(axis.input, axis.filter, axis.stride, axis.pad, axis.dilation) < 1) {
      return fail(ErrorCode::kInvalidArgument, "conv: ", axis.filter_name, "=", axis.filter,
                  " with dilation ", axis.dilation, " does not fit ", axis.input_name, "=",
                  axis.input, " with pad ", axis.pad, " on either side");
    }
  }
  return {};
}

// Returns how many of `length` indices are not left out.
std::int64_t kept(std::int64_t length, std::int64_t period, std::int64_t at) {
  return period == 0 || length <= at ? length : length - ((length - at - 1) / period + 1);
}

Status check_skips(const ConvSizes& sizes) {
  struct Skip {
    std::string_view name;
    std::int64_t period, at, length;
  };
  const std::int64_t height =
      output_size(sizes.hi, sizes.y, sizes.stride_h, sizes.pad_h, sizes.dilation_h);
  const std::int64_t width =
      output_size(sizes.wi, sizes.x, sizes.stride_w, sizes.pad_w, sizes.dilation_w);
  if (sizes.skip_taps > 0 && sizes.z > 1) {
    return fail(ErrorCode::kInvalidArgument, "conv: skip_taps is for filters of two dimensions");
  }
  for (const Skip& skip :
       {Skip{"skip_rows", sizes.skip_rows, sizes.skip_rows_at, height},
        Skip{"skip_columns", sizes.skip_columns, sizes.skip_columns_at, width},
        Skip{"skip_taps", sizes.skip_taps, sizes.skip_taps_at, sizes.z * sizes.y * sizes.x}}) {
    if (skip.period == 0 && skip.at == 0) {
      continue;
    }
    if (sizes.operation != ConvOperation::kForward || sizes.layout != ConvLayout::kChannelsLast) {
      return fail(ErrorCode::kInvalidArgument, "conv: ", skip.name,
                  " is for forward passes with channels last");
    }
    if (skip.period < 2 || skip.at >= skip.period) {
      return fail(ErrorCode::kInvalidArgument, "conv: ", skip.name, "=", skip.period,
                  " leaves out one of at least 2, and ", skip.name, "_at=", skip.at,
                  " is a position among them");
    }
    if (kept(skip.length, skip.period, skip.at) == 0) {
      return fail(ErrorCode::kInvalidArgument, "conv: ", skip.name, " leaves nothing of ",
                  skip.length);
    }
  }
  return {};
}

// Returns the product of positive factors, or nothing when it exceeds the limit.
template <std::size_t kCount>
bool fits_limit(const std::array<std::int64_t, kCount>& factors) {
  std::int64_t room = kMaxElements;
  for (const std::int64_t factor : factors) {
    room /= factor;
  }
  return room >= 1;
}

}  // namespace

std::span<const std::string_view> conv_operation_labels() { return kDirections; }
std::span<const std::string_view> conv_layout_labels() { return kConvLayouts; }
std::span<const std::string_view> conv_weights_labels() { return kConvWeights; }
std::span<const std::string_view> conv_epilogue_labels() { return kConvEpilogues; }
std::span<const std::string_view> conv_output_labels() { return kConvOutputs; }

std::string_view to_string(ConvOperation operation) {
  return kDirections[static_cast<std::size_t>(operation)];
}
std::string_view to_string(ConvLayout layout) {
  return kConvLayouts[static_cast<std::size_t>(layout)];
}

Result<ConvOperation> parse_conv_operation(std::string_view text) {
  return problem_internal::parse_label<ConvOperation>("a convolution's operation", kDirections,
                                                      text);
}
Status check_conv(std::span<const std::int64_t> fields) {
  const ConvSizes sizes = sizes_of(fields);
  if (sizes.c % sizes.g != 0 || sizes.k % sizes.g != 0) {
    return fail(ErrorCode::kInvalidArgument, "conv: g=", sizes.g, " does not divide c=", sizes.c,
                " and k=", sizes.k);
  }
  if (sizes.epilogue != ConvEpilogue::kNone && sizes.operation != ConvOperation::kForward) {
    return fail(ErrorCode::kInvalidArgument, "conv: only a forward pass has an epilogue");
  }
  if (sizes.weights != ConvWeights::kVarying && sizes.operation == ConvOperation::kBackwardWeight) {
    return fail(ErrorCode::kInvalidArgument,
                "conv: a gradient of weights reads no weights that could be constant");
  }
  if (sizes.out == ConvOutput::kSums && bytes_per_element(sizes.dtype) >= kSumBytes) {
    return fail(ErrorCode::kInvalidArgument, "conv: the sums of ", to_string(sizes.dtype),
                " are of that type; out=sums is for narrower ones");
  }
  FORETUNE_TRY_STATUS(check_output(sizes));
  const std::int64_t depth =
      output_size(sizes.di, sizes.z, sizes.stride_d, sizes.pad_d, sizes.dilation_d);
  const std::int64_t height =
      output_size(sizes.hi, sizes.y, sizes.stride_h, sizes.pad_h, sizes.dilation_h);
  const std::int64_t width =
      output_size(sizes.wi, sizes.x, sizes.stride_w, sizes.pad_w, sizes.dilation_w);
  if (!fits_limit(std::array{sizes.n, sizes.c, sizes.di, sizes.hi, sizes.wi}) ||
      !fits_limit(std::array{sizes.k, sizes.c / sizes.g, sizes.z, sizes.y, sizes.x}) ||
      !fits_limit(std::array{sizes.n, sizes.k, depth, height, width})) {
    return fail(ErrorCode::kInvalidArgument, "conv: a tensor has more than 2^53 elements");
  }
  // Only now no product of sizes overflows.
  return check_skips(sizes);
}

Result<ConvProblem> ConvProblem::create(const ConvSizes& sizes) {
  FORETUNE_TRY(const Problem checked, Problem::create(kConvProblem, fields_of(sizes)));
  static_cast<void>(checked);
  return ConvProblem(sizes);
}

Result<ConvProblem> ConvProblem::from(const Problem& problem) {
  if (problem.type() != kConvProblem) {
    return fail(ErrorCode::kInvalidArgument, "'", problem.text(), "' is not a conv problem");
  }
  return ConvProblem(sizes_of(problem.fields()));
}

Problem ConvProblem::to_problem() const {
  auto problem = Problem::create(kConvProblem, fields_of(sizes_));
  FORETUNE_CHECK(problem.has_value());
  return *std::move(problem);
}

std::int64_t ConvProblem::depth_out() const {
  return output_size(sizes_.di, sizes_.z, sizes_.stride_d, sizes_.pad_d, sizes_.dilation_d);
}
std::int64_t ConvProblem::ho() const {
  return output_size(sizes_.hi, sizes_.y, sizes_.stride_h, sizes_.pad_h, sizes_.dilation_h);
}
std::int64_t ConvProblem::wo() const {
  return output_size(sizes_.wi, sizes_.x, sizes_.stride_w, sizes_.pad_w, sizes_.dilation_w);
}

std::int64_t ConvProblem::input_elements() const {
  return sizes_.n * sizes_.c * sizes_.di * sizes_.hi * sizes_.wi;
}
std::int64_t ConvProblem::weight_elements() const {
  return sizes_.k * (sizes_.c / sizes_.g) * sizes_.z * sizes_.y * sizes_.x;
}
std::int64_t ConvProblem::output_elements() const {
  return sizes_.n * sizes_.k * depth_out() * ho() * wo();
}

ImplicitGemm ConvProblem::implicit_gemm() const {
  const std::int64_t channels = sizes_.c / sizes_.g;
  const std::int64_t filters = sizes_.k / sizes_.g;
  const std::int64_t points = sizes_.z * sizes_.y * sizes_.x;
  const std::int64_t outputs = sizes_.n * depth_out() * ho() * wo();
  switch (sizes_.operation) {
    case ConvOperation::kBackwardData:
      return {.m = sizes_.n * sizes_.di * sizes_.hi * sizes_.wi,
              .n = channels,
              .k = filters * points,
              .groups = sizes_.g};
    case ConvOperation::kBackwardWeight:
      return {.m = filters, .n = channels * points, .k = outputs, .groups = sizes_.g};
    case ConvOperation::kForward:
      break;
  }
  return {.m = outputs, .n = filters, .k = channels * points, .groups = sizes_.g};
}

double ConvProblem::flops() const {
  const std::int64_t taps =
      kept(sizes_.z * sizes_.y * sizes_.x, sizes_.skip_taps, sizes_.skip_taps_at);
  const std::int64_t points = depth_out() * kept(ho(), sizes_.skip_rows, sizes_.skip_rows_at) *
                              kept(wo(), sizes_.skip_columns, sizes_.skip_columns_at);
  const std::int64_t terms = sizes_.c / sizes_.g * taps;  // of each output
  return 2.0 * static_cast<double>(sizes_.n * sizes_.k * points) * static_cast<double>(terms);
}

double ConvProblem::bytes() const {
  const double outputs = sizes_.epilogue == ConvEpilogue::kBiasAddRelu ? 2 : 1;
  const double element = bytes_per_element(sizes_.dtype);
  const double result = has_sums() ? kSumBytes : element;
  const auto bytes_of = [&](std::int64_t elements, ConvOperation computing) {
    return static_cast<double>(elements) * (sizes_.operation == computing ? result : element);
  };
  return bytes_of(input_elements(), ConvOperation::kBackwardData) +
         bytes_of(weight_elements(), ConvOperation::kBackwardWeight) +
         outputs * bytes_of(output_elements(), ConvOperation::kForward);
}

}  // namespace foretune
