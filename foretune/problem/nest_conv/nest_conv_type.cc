// The row of convolutions as loop nests in the table of problem types.
#include <algorithm>
#include <array>
#include <initializer_list>

#include "foretune/problem/nest_conv/nest_conv.h"
#include "foretune/problem/nest_problems.h"
#include "foretune/problem/problem_type.h"

namespace foretune {

const ProblemTypeInfo& nest_conv_problem_type();

namespace {

using problem_internal::check_nest_tensor;
using problem_internal::halve_largest;
using problem_internal::nest_size;
using problem_internal::nest_switch;

constexpr std::string_view kName = "nest_conv";

constexpr std::size_t position(NestConvField field) { return static_cast<std::size_t>(field); }
std::int64_t value_of(const Problem& problem, NestConvField field) {
  return problem.field(position(field));
}

// The order is that of NestConvLayout.
constexpr std::array<std::string_view, 2> kLayouts{"nchw", "nhwc"};

// Returns a field for a stride, dilation or padding; its default is its smallest value unless
// given.
ProblemField nest_step(std::string_view name, std::int64_t minimum, FieldGroups groups,
                       std::string_view help) {
  ProblemField field = nest_size(name, groups, help, minimum);
  field.minimum = minimum;
  field.maximum = kMaxNestElements;
  return field;
}

// Each field is part of the same keys as the corresponding field of `conv`.
std::span<const ProblemField> nest_conv_fields() {
  static const std::array fields = [] {
    constexpr FieldGroups kMap{.problem = true, .sizes = true};
    constexpr FieldGroups kWeights{.problem = true, .sizes = true, .weights = true};
    std::array list{
        nest_size("b", kMap, "images", 1),
        nest_size("c", kWeights, "input channels of all groups"),
        nest_size("h", kMap, "height of the input"),
        nest_size("w", kMap, "width of the input"),
        nest_size("o", kWeights, "output channels of all groups"),
        nest_size("r", kWeights, "height of a kernel"),
        nest_size("s", kWeights, "width of a kernel"),
        nest_step("stride", 1, {.problem = true, .weights = true}, "stride in both directions"),
        nest_step("dilation", 1, kWeights, "dilation in both directions"),
        nest_step("pad", 0, {.problem = true}, "padding on each side"),
        nest_size("groups", kWeights, "groups", 1),
        label_field("layout", kLayouts, 0, kLayouts.size()),
        nest_switch("bias", "whether a vector along the output channels is added"),
        nest_switch("relu", "whether the result is cut off at 0")};
    list[position(NestConvField::kLayout)].help = "how the tensors are stored";
    return list;
  }();
  return fields;
}

// The sizes by name.
struct Sizes {
  std::int64_t batch;
  std::int64_t channels;
  std::int64_t height;
  std::int64_t width;
  std::int64_t out_channels;
  std::int64_t kernel_height;
  std::int64_t kernel_width;
  std::int64_t stride;
  std::int64_t dilation;
  std::int64_t pad;
  std::int64_t groups;
  bool channels_last;

  explicit Sizes(std::span<const std::int64_t> fields)
      : batch(fields[position(NestConvField::kBatch)]),
        channels(fields[position(NestConvField::kChannels)]),
        height(fields[position(NestConvField::kHeight)]),
        width(fields[position(NestConvField::kWidth)]),
        out_channels(fields[position(NestConvField::kOutChannels)]),
        kernel_height(fields[position(NestConvField::kKernelHeight)]),
        kernel_width(fields[position(NestConvField::kKernelWidth)]),
        stride(fields[position(NestConvField::kStride)]),
        dilation(fields[position(NestConvField::kDilation)]),
        pad(fields[position(NestConvField::kPad)]),
        groups(fields[position(NestConvField::kGroups)]),
        channels_last(fields[position(NestConvField::kLayout)] ==
                      static_cast<std::int64_t>(NestConvLayout::kNhwc)) {}

  // Returns 0 where the kernel does not fit.
  [[nodiscard]] std::int64_t out_height() const { return out_size(height, kernel_height); }
  [[nodiscard]] std::int64_t out_width() const { return out_size(width, kernel_width); }
  // Returns the number of products that are added up to one value.
  [[nodiscard]] double depth() const {
    const std::int64_t of_group = channels / groups;
    return static_cast<double>(of_group) * static_cast<double>(kernel_height) *
           static_cast<double>(kernel_width);
  }
  [[nodiscard]] double results() const {
    return static_cast<double>(batch) * static_cast<double>(out_channels) *
           static_cast<double>(out_height()) * static_cast<double>(out_width());
  }

 private:
  [[nodiscard]] std::int64_t out_size(std::int64_t size, std::int64_t kernel) const {
    const std::int64_t free = size + 2 * pad - dilation * (kernel - 1) - 1;
    return free < 0 ? 0 : free / stride + 1;
  }
};

// A place in the padding is not read, but its address is computed and must not overflow either. The
// tensor itself fits, so no product here is larger than 2^60.
Status check_reach(const Sizes& sizes) {
  const std::int64_t column = sizes.channels_last ? sizes.channels : 1;
  const std::int64_t row = column * sizes.width;
  const std::int64_t channel = sizes.channels_last ? 1 : sizes.height * sizes.width;
  const std::int64_t image = sizes.channels * sizes.height * sizes.width;
  const auto last = [&](std::int64_t out, std::int64_t kernel) {
    return (out - 1) * sizes.stride + (kernel - 1) * sizes.dilation - sizes.pad;
  };
  const std::int64_t last_row = last(sizes.out_height(), sizes.kernel_height);
  const std::int64_t last_column = last(sizes.out_width(), sizes.kernel_width);
  if (sizes.pad * (row + column) > kMaxNestElements ||
      std::max(last_row, last_column) > kMaxNestElements ||
      (sizes.batch - 1) * image + (sizes.channels - 1) * channel + last_row * row +
              last_column * column >
          kMaxNestElements) {
    return fail(ErrorCode::kUnsupported, kName, ": the tensor in reaches further than ",
                kMaxNestElements, " elements with its padding");
  }
  return {};
}

Status check_nest_conv(std::span<const std::int64_t> fields) {
  const Sizes sizes(fields);
  if (sizes.channels % sizes.groups != 0 || sizes.out_channels % sizes.groups != 0) {
    return fail(ErrorCode::kInvalidArgument, kName, ": ", sizes.groups, " groups do not divide ",
                sizes.channels, " channels and ", sizes.out_channels, " output channels");
  }
  if (sizes.out_height() < 1 || sizes.out_width() < 1) {
    return fail(ErrorCode::kInvalidArgument, kName,
                ": the kernel does not fit into the padded input");
  }
  FORETUNE_TRY_STATUS(
      check_nest_tensor(kName, "in", {sizes.batch, sizes.channels, sizes.height, sizes.width}));
  FORETUNE_TRY_STATUS(check_nest_tensor(kName, "weight",
                                        {sizes.out_channels, sizes.channels / sizes.groups,
                                         sizes.kernel_height, sizes.kernel_width}));
  FORETUNE_TRY_STATUS(check_nest_tensor(
      kName, "out", {sizes.batch, sizes.out_channels, sizes.out_height(), sizes.out_width()}));
  if (sizes.results() * sizes.depth() > kMaxNestPoints) {
    return fail(ErrorCode::kUnsupported, kName, ": there are more than ", kMaxNestPoints,
                " points");
  }
  return check_reach(sizes);
}

// A value that is a single product takes no addition.
std::optional<ProblemWork> nest_conv_work(const Problem& problem) {
  const Sizes sizes(problem.fields());
  const auto bias = static_cast<double>(value_of(problem, NestConvField::kBias));
  const auto relu = static_cast<double>(value_of(problem, NestConvField::kRelu));
  const double input = static_cast<double>(sizes.batch) * static_cast<double>(sizes.channels) *
                       static_cast<double>(sizes.height) * static_cast<double>(sizes.width);
  const auto out_channels = static_cast<double>(sizes.out_channels);
  const double depth = sizes.depth();
  return ProblemWork{sizes.results() * ((depth > 1 ? 2 * depth : depth) + bias + relu),
                     4 * (input + out_channels * depth + sizes.results() + bias * out_channels)};
}

// Chosen by hand between LoopTune's convolutions (16 to 64 channels, 14 to 56 points) and the
// layers of ResNet-50 and MobileNetV2.
constexpr std::array<DrawnSize, 4> kDrawnSizes{
    {{position(NestConvField::kOutChannels), 4.5, 1.1, 4},
     {position(NestConvField::kHeight), 3.2, 0.8, 1, 4, 112},
     {position(NestConvField::kChannels), 4.4, 1.1, 4},
     {position(NestConvField::kBatch), 0.2, 0.6, 1, 1, 4}}};

// These are drawn beside the sizes.
struct Kind {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool is_depthwise = false;
  bool is_padded = true;
};

Kind draw_kind(Rng& rng) {
  constexpr std::array<std::int64_t, 16> kKernels{1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 5, 5, 7, 7};
  constexpr std::array<std::int64_t, 4> kGroups{2, 4, 8, 32};
  Kind kind;
  kind.kernel = kKernels[rng.below(kKernels.size())];
  kind.stride = rng.below(5) == 0 ? 2 : 1;
  kind.dilation = rng.below(20) == 0 ? 2 : 1;
  kind.is_padded = rng.below(3) != 0;
  const std::int64_t groups = kGroups[rng.below(kGroups.size())];
  const std::uint64_t way = rng.below(8);
  if (way == 0) {  // depthwise, which 1x1 kernels never are
    kind.is_depthwise = true;
    kind.kernel = std::max<std::int64_t>(kind.kernel, 3);
  } else if (way == 1) {
    kind.groups = groups;
  }
  if (kind.kernel == 1) {
    kind.dilation = 1;
  }
  return kind;
}

// Sets square maps and kernels. Pads a map that is smaller than the kernel.
void assign(const Kind& kind, const Sizes& drawn, std::span<std::int64_t> fields) {
  const auto field = [&](NestConvField index) -> std::int64_t& { return fields[position(index)]; };
  const auto in_groups = [&](std::int64_t channels) {
    return std::max<std::int64_t>(1, channels / kind.groups) * kind.groups;
  };
  const std::int64_t border = kind.dilation * (kind.kernel - 1);
  field(NestConvField::kBatch) = drawn.batch;
  field(NestConvField::kChannels) = in_groups(drawn.channels);
  field(NestConvField::kOutChannels) =
      kind.is_depthwise ? drawn.channels : in_groups(drawn.out_channels);
  field(NestConvField::kGroups) = kind.is_depthwise ? drawn.channels : kind.groups;
  field(NestConvField::kHeight) = drawn.height;
  field(NestConvField::kWidth) = drawn.height;
  field(NestConvField::kKernelHeight) = kind.kernel;
  field(NestConvField::kKernelWidth) = kind.kernel;
  field(NestConvField::kStride) = kind.stride;
  field(NestConvField::kDilation) = kind.dilation;
  field(NestConvField::kPad) = kind.is_padded || drawn.height <= border ? border / 2 : 0;
}

// Halves sizes that exceed the limit of a tensor.
void complete_nest_conv(std::span<std::int64_t> fields, Rng& rng) {
  const Kind kind = draw_kind(rng);
  Sizes drawn(fields);
  assign(kind, drawn, fields);
  while (!check_nest_conv(fields)) {
    halve_largest({&drawn.batch, &drawn.channels, &drawn.out_channels, &drawn.height});
    assign(kind, drawn, fields);
  }
}

SliceValue kind_of(const Problem& problem) {
  const std::int64_t groups = value_of(problem, NestConvField::kGroups);
  if (groups > 1) {
    return groups == value_of(problem, NestConvField::kChannels) ? SliceValue{4, "depthwise"}
                                                                 : SliceValue{3, "in groups"};
  }
  if (value_of(problem, NestConvField::kKernelHeight) == 1 &&
      value_of(problem, NestConvField::kKernelWidth) == 1) {
    return {0, "1x1"};
  }
  return value_of(problem, NestConvField::kChannels) <= 4
             ? SliceValue{1, "first layer, up to 4 channels"}
             : SliceValue{2, "dense, larger kernel"};
}

SliceValue steps_of(const Problem& problem) {
  if (value_of(problem, NestConvField::kDilation) > 1) {
    return {2, "dilated"};
  }
  return value_of(problem, NestConvField::kStride) > 1
             ? SliceValue{1, "with a stride"}
             : SliceValue{0, "neither stride nor dilation"};
}

SliceValue padding_of(const Problem& problem) {
  return value_of(problem, NestConvField::kPad) > 0 ? SliceValue{1, "padded"}
                                                    : SliceValue{0, "not padded"};
}

constexpr std::array<std::int64_t, 3> kChannelLimits{16, 64, 256};
constexpr std::array<std::int64_t, 3> kMapLimits{7, 28, 112};
constexpr std::array<ProblemSlice, 7> kSlices{
    {{"kind", &kind_of},
     {"steps", &steps_of},
     {"padding", &padding_of},
     {"input channels",
      [](const Problem& problem) {
        return slice_by_size(value_of(problem, NestConvField::kChannels), kChannelLimits);
      }},
     {"output channels",
      [](const Problem& problem) {
        return slice_by_size(value_of(problem, NestConvField::kOutChannels), kChannelLimits);
      }},
     {"map width",
      [](const Problem& problem) {
        return slice_by_size(value_of(problem, NestConvField::kWidth), kMapLimits);
      }},
     {"layout", [](const Problem& problem) {
        return slice_by_field(problem, position(NestConvField::kLayout));
      }}}};

std::span<const NamedShapeSet> nest_conv_shape_sets() {
  static const std::vector<NamedShapeSet> sets = nest_shape_sets(kNestConvProblem);
  return sets;
}

}  // namespace

const ProblemTypeInfo& nest_conv_problem_type() {
  static const ProblemTypeInfo info{
      .schema = {.type = kNestConvProblem,
                 .name = kName,
                 .version = 1,
                 .fields = nest_conv_fields(),
                 .check = check_nest_conv},
      .summary = "loop nests of convolutions in two dimensions, in groups",
      .work = &nest_conv_work,
      .drawn_sizes = kDrawnSizes,
      .complete = &complete_nest_conv,
      .slices = kSlices,
      .map_fields = {position(NestConvField::kChannels), position(NestConvField::kWidth)},
      .shape_sets = &nest_conv_shape_sets};
  return info;
}

}  // namespace foretune
