// The row of convolutions in the table of problem types.
#include <algorithm>
#include <array>
#include <cmath>

#include "foretune/problem/conv/ck_conv_shapes.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/network_layers.h"
#include "foretune/problem/problem_type.h"

namespace foretune {

std::span<const EmbeddedText> conv_network_texts();
const ProblemTypeInfo& conv_problem_type();

namespace {

constexpr std::int64_t kMaxStep = 0xffff;

constexpr std::size_t position(ConvField field) { return static_cast<std::size_t>(field); }
std::int64_t value_of(const Problem& problem, ConvField field) {
  return problem.field(position(field));
}

ProblemField conv_size(std::string_view name, FieldGroups groups, std::string_view help,
                       std::optional<std::int64_t> default_value = {}) {
  ProblemField field = size_field(name, default_value);
  field.groups = groups;
  field.help = help;
  return field;
}

// Returns a field for a stride, pad or dilation; its default is its smallest value unless given.
ProblemField conv_step(std::string_view name, std::int64_t minimum, FieldGroups groups,
                       std::string_view help) {
  return {.name = name,
          .minimum = minimum,
          .maximum = kMaxStep,
          .default_value = minimum,
          .groups = groups,
          .help = help};
}

ProblemField conv_label(std::string_view name, std::span<const std::string_view> labels,
                        std::size_t labels_in_id, std::string_view help) {
  ProblemField field = label_field(name, labels, 0, labels_in_id);
  field.help = help;
  return field;
}

// The group `sizes` is the key of composable_kernel's training: all sizes but strides, pads and the
// dilation of the depth.
std::span<const ProblemField> conv_fields() {
  constexpr FieldGroups kMap{.problem = true, .sizes = true};
  constexpr FieldGroups kWeights{.problem = true, .sizes = true, .weights = true};
  constexpr FieldGroups kStride{.problem = true, .weights = true};
  constexpr FieldGroups kPad{.problem = true};
  static const std::array fields = [&] {
    std::array list{
        conv_label("op", conv_operation_labels(), 3, "the direction"),
        conv_size("n", kMap, "images"),
        conv_size("c", kWeights, "input channels of all groups"),
        conv_size("k", kWeights, "filters of all groups"),
        conv_size("g", kWeights, "groups", 1),
        conv_size("di", kMap, "depth of the input", 1),
        conv_size("hi", kMap, "height of the input"),
        conv_size("wi", kMap, "width of the input"),
        conv_size("z", kWeights, "depth of a filter", 1),
        conv_size("y", kWeights, "height of a filter"),
        conv_size("x", kWeights, "width of a filter"),
        conv_step("stride_d", 1, kStride, "stride along the depth"),
        conv_step("stride_h", 1, kStride, "stride along the height"),
        conv_step("stride_w", 1, kStride, "stride along the width"),
        conv_step("pad_d", 0, kPad, "padding before and behind"),
        conv_step("pad_h", 0, kPad, "padding above and below"),
        conv_step("pad_w", 0, kPad, "padding on the left and on the right"),
        conv_step("dilation_d", 1, kStride, "dilation along the depth"),
        conv_step("dilation_h", 1, kWeights, "dilation along the height"),
        conv_step("dilation_w", 1, kWeights, "dilation along the width"),
        conv_label("dtype", data_type_labels(), 8, "data type"),
        conv_label("layout", conv_layout_labels(), 2, "how the tensors are stored"),
        conv_label(
            "weights", conv_weights_labels(), 2,
            "whether the weights stay the same from call to call, so that they may be packed "
            "once"),
        conv_label("epilogue", conv_epilogue_labels(), 4,
                   "the step that a forward pass applies to its sums"),
        conv_label("out", conv_output_labels(), 2,
                   "the type of the result: that of the problem, or that of its sums"),
        conv_step("skip_rows", 0, {}, "one of so many rows of the output is not computed; 0: none"),
        conv_step("skip_rows_at", 0, {}, "the position of that row among them"),
        conv_step("skip_columns", 0, {},
                  "one of so many columns of the output is not computed; 0: none"),
        conv_step("skip_columns_at", 0, {}, "the position of that column among them"),
        conv_step("skip_taps", 0, {}, "one of so many points of a filter counts as 0; 0: none"),
        conv_step("skip_taps_at", 0, {}, "the position of that point among them")};
    for (const ConvField skip :
         {ConvField::kSkipRows, ConvField::kSkipRowsAt, ConvField::kSkipColumns,
          ConvField::kSkipColumnsAt, ConvField::kSkipTaps, ConvField::kSkipTapsAt}) {
      list[position(skip)].since = 4;
    }
    list[position(ConvField::kWeights)].since = 2;
    list[position(ConvField::kEpilogue)].since = 2;
    list[position(ConvField::kOut)].since = 3;
    return list;
  }();
  return fields;
}

std::optional<ProblemWork> conv_work(const Problem& problem) {
  const ConvProblem conv = *ConvProblem::from(problem);
  return ProblemWork{conv.flops(), conv.bytes()};
}

// Chosen by hand near the training networks' distinct layers (networks/), whose logarithms have the
// means 5.37, 5.18 and 3.02 and the deviations 1.37, 1.06 and 1.22 for c, k and hi.
constexpr std::array<DrawnSize, 4> kDrawnSizes{{{position(ConvField::kN), 1.9, 1.4, 1, 1, 64},
                                                {position(ConvField::kC), 5.1, 1.3, 8},
                                                {position(ConvField::kK), 5.1, 1.2, 8},
                                                {position(ConvField::kHi), 3.3, 0.9, 1, 4, 224}}};

// Picks a position by weights that add up to 1.
template <std::size_t kCount>
std::size_t pick(const std::array<double, kCount>& weights, Rng& rng) {
  double left = rng.uniform();
  for (std::size_t i = 0; i + 1 < kCount; ++i) {
    left -= weights[i];
    if (left < 0) {
      return i;
    }
  }
  return kCount - 1;
}

// Makes square maps and filters. Half of the filters are 1x1, as in networks; a sixth of the layers
// are depthwise and an eighth are grouped, more than in networks, so that models see enough of
// them.
void complete_conv(std::span<std::int64_t> fields, Rng& rng) {
  const auto field = [&](ConvField index) -> std::int64_t& { return fields[position(index)]; };
  constexpr std::array<std::int64_t, 4> kFilters{1, 3, 5, 7};
  constexpr std::array<std::int64_t, 4> kGroups{2, 4, 8, 32};
  std::int64_t filter = kFilters[pick<4>({0.5, 0.36, 0.08, 0.06}, rng)];
  const std::int64_t stride = 1 + static_cast<std::int64_t>(pick<2>({0.8, 0.2}, rng));
  const std::int64_t dilation = 1 + static_cast<std::int64_t>(pick<2>({0.95, 0.05}, rng));
  const std::size_t kind = pick<3>({0.71, 0.165, 0.125}, rng);
  const std::int64_t groups = kGroups[rng.below(kGroups.size())];
  if (kind == 1) {  // depthwise, which 1x1 filters never are
    filter = std::max<std::int64_t>(filter, 3);
    field(ConvField::kK) = field(ConvField::kC);
    field(ConvField::kG) = field(ConvField::kC);
  } else if (kind == 2) {
    field(ConvField::kG) = groups;
    for (const ConvField channels : {ConvField::kC, ConvField::kK}) {
      field(channels) = std::max<std::int64_t>(1, field(channels) / groups) * groups;
    }
  }
  const std::int64_t spread = filter == 1 ? 1 : dilation;
  field(ConvField::kWi) = field(ConvField::kHi);
  for (const ConvField side : {ConvField::kY, ConvField::kX}) {
    field(side) = filter;
  }
  for (const ConvField step : {ConvField::kStrideH, ConvField::kStrideW}) {
    field(step) = stride;
  }
  for (const ConvField pad : {ConvField::kPadH, ConvField::kPadW}) {
    field(pad) = spread * (filter - 1) / 2;
  }
  for (const ConvField step : {ConvField::kDilationH, ConvField::kDilationW}) {
    field(step) = spread;
  }
}

SliceValue kind_of(const Problem& problem) {
  const std::int64_t groups = value_of(problem, ConvField::kG);
  const std::int64_t points = value_of(problem, ConvField::kZ) * value_of(problem, ConvField::kY) *
                              value_of(problem, ConvField::kX);
  if (groups > 1) {
    return groups == value_of(problem, ConvField::kC) ? SliceValue{4, "depthwise"}
                                                      : SliceValue{3, "in groups"};
  }
  if (points == 1) {
    return {0, "1x1"};
  }
  return value_of(problem, ConvField::kC) <= 4 ? SliceValue{1, "first layer, up to 4 channels"}
                                               : SliceValue{2, "dense, larger filter"};
}

SliceValue dimensions_of(const Problem& problem) {
  if (value_of(problem, ConvField::kDi) > 1 || value_of(problem, ConvField::kZ) > 1) {
    return {3, "3-D"};
  }
  return value_of(problem, ConvField::kHi) == 1 && value_of(problem, ConvField::kY) == 1
             ? SliceValue{1, "1-D"}
             : SliceValue{2, "2-D"};
}

SliceValue steps_of(const Problem& problem) {
  const auto largest = [&](std::initializer_list<ConvField> fields) {
    std::int64_t out = 1;
    for (const ConvField field : fields) {
      out = std::max(out, value_of(problem, field));
    }
    return out;
  };
  if (largest({ConvField::kDilationD, ConvField::kDilationH, ConvField::kDilationW}) > 1) {
    return {2, "dilated"};
  }
  return largest({ConvField::kStrideD, ConvField::kStrideH, ConvField::kStrideW}) > 1
             ? SliceValue{1, "with a stride"}
             : SliceValue{0, "neither stride nor dilation"};
}

constexpr std::array<std::int64_t, 3> kBatches{1, 8, 32};
constexpr std::array<std::int64_t, 3> kChannels{32, 128, 512};
constexpr std::array<std::int64_t, 3> kMaps{7, 28, 112};
constexpr std::array<ProblemSlice, 9> kSlices{
    {{"direction",
      [](const Problem& problem) {
        return slice_by_field(problem, position(ConvField::kOperation));
      }},
     {"kind", &kind_of},
     {"dimensions", &dimensions_of},
     {"steps", &steps_of},
     {"images",
      [](const Problem& problem) {
        return slice_by_size(value_of(problem, ConvField::kN), kBatches);
      }},
     {"input channels",
      [](const Problem& problem) {
        return slice_by_size(value_of(problem, ConvField::kC), kChannels);
      }},
     {"map width",
      [](const Problem& problem) {
        return slice_by_size(value_of(problem, ConvField::kWi), kMaps);
      }},
     {"dtype",
      [](const Problem& problem) { return slice_by_field(problem, position(ConvField::kDtype)); }},
     {"layout", [](const Problem& problem) {
        return slice_by_field(problem, position(ConvField::kLayout));
      }}}};

// Returns each layer in one direction at three batch sizes. A layer that is given as a gradient
// (the transposed convolutions of a decoder) swaps forward pass and gradient of the input.
std::vector<Problem> with_batches(std::span<const Problem> layers, ConvOperation direction) {
  std::vector<Problem> out;
  for (const Problem& layer : layers) {
    ConvSizes sizes = ConvProblem::from(layer)->sizes();
    const bool transposed = sizes.operation == ConvOperation::kBackwardData;
    sizes.operation = direction;
    if (transposed && direction != ConvOperation::kBackwardWeight) {
      sizes.operation = direction == ConvOperation::kForward ? ConvOperation::kBackwardData
                                                             : ConvOperation::kForward;
    }
    for (const std::int64_t n : {1, 8, 32}) {
      sizes.n = n;
      out.push_back(ConvProblem::create(sizes)->to_problem());
    }
  }
  return out;
}

NetworkExpansion expansion(ConvOperation direction, std::string suffix, std::string description) {
  return {.prefix = "conv-",
          .suffix = std::move(suffix),
          .description = std::move(description),
          .expand = [direction](std::span<const Problem> layers) {
            return with_batches(layers, direction);
          }};
}

std::span<const NamedShapeSet> conv_shape_sets() {
  static const std::vector<NamedShapeSet> sets = [] {
    std::vector<NamedShapeSet> list = ck_conv_shape_sets();
    const std::span<const EmbeddedText> texts = conv_network_texts();
    add_network_sets(texts, expansion(ConvOperation::kForward, "", "forward convolutions"), list);
    add_network_sets(
        texts, expansion(ConvOperation::kBackwardData, "-backward-data", "gradients of inputs"),
        list);
    add_network_sets(
        texts,
        expansion(ConvOperation::kBackwardWeight, "-backward-weight", "gradients of weights"),
        list);
    return list;
  }();
  return sets;
}

}  // namespace

const ProblemTypeInfo& conv_problem_type() {
  static const ProblemTypeInfo info{
      .schema = {.type = kConvProblem,
                 .name = "conv",
                 .version = 1,
                 .fields = conv_fields(),
                 .check = check_conv},
      .summary = "convolutions in one to three dimensions, in groups, and their gradients",
      .work = &conv_work,
      .drawn_sizes = kDrawnSizes,
      .complete = &complete_conv,
      .slices = kSlices,
      .map_fields = {position(ConvField::kC), position(ConvField::kWi)},
      // For one image of a forward pass: tiles of points of a row and filters, row after row.
      .result_grid = ResultGrid{.rows = position(ConvField::kWi),
                                .columns = position(ConvField::kK),
                                .repeat = position(ConvField::kHi)},
      .shape_sets = &conv_shape_sets};
  return info;
}

}  // namespace foretune
