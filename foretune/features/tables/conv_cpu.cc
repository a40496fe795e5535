// Features of convolutions on a CPU, as expressions: models carry them.
#include <memory>

#include "foretune/base/check.h"
#include "foretune/features/expression_table.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune::features_internal {
namespace {

// The sizes behind the columns. Sums are over channels in a forward pass, over filters in a
// gradient of inputs, over points in a gradient of weights.
#define FORETUNE_WO "((wi + 2 * pad_w - dilation_w * (x - 1) - 1) / stride_w + 1)"
#define FORETUNE_HO "((hi + 2 * pad_h - dilation_h * (y - 1) - 1) / stride_h + 1)"
#define FORETUNE_DO "((di + 2 * pad_d - dilation_d * (z - 1) - 1) / stride_d + 1)"
#define FORETUNE_WIDTH "select(op == op.backward_data, wi / stride_w, " FORETUNE_WO ")"
#define FORETUNE_ROWS                                                       \
  "select(op == op.backward_data, n * di * hi / stride_h, n * " FORETUNE_DO \
  " * "                                                                     \
  "" FORETUNE_HO ")"
#define FORETUNE_CHANNELS "(select(op == op.backward_data, k, c) / g)"
// Register blocks of channels first have channels as rows and points as columns; gradients of
// weights are computed alike with channels first and last.
#define FORETUNE_IS_PLANAR "(algorithm == algorithm.planar && op != op.backward_weight)"
#define FORETUNE_IS_POINTWISE \
  "(x * y * z == 1 && stride_d * stride_h * stride_w == 1 && pad_d + pad_h + pad_w == 0)"
// A pointwise convolution has rows without end.
#define FORETUNE_POINTS "select(" FORETUNE_IS_POINTWISE ", n * di * hi * wi, " FORETUNE_WIDTH ")"
#define FORETUNE_ALL_OUTPUTS "select(op == op.backward_data, c, k)"
#define FORETUNE_OUTPUTS "(" FORETUNE_ALL_OUTPUTS " / g)"
// Neighbouring values of a filter that one run of input multiplies.
#define FORETUNE_VALUES "(select(taps == taps.row, x, 1) * c / g)"
// The rows and the columns that all register blocks cover. A vector of the algorithm groups
// holds several groups.
#define FORETUNE_COLUMNS                                                                        \
  "select(algorithm == algorithm.groups, " FORETUNE_ALL_OUTPUTS                                 \
  ", select(op == op.backward_weight, select(algorithm == algorithm.turned, k / g, "            \
  "" FORETUNE_VALUES "), select(" FORETUNE_IS_PLANAR ", " FORETUNE_POINTS ", " FORETUNE_OUTPUTS \
  ")))"
#define FORETUNE_HEIGHT                                                            \
  "select(algorithm == algorithm.groups, " FORETUNE_WIDTH                          \
  ", select(algorithm == algorithm.turned, " FORETUNE_VALUES                       \
  ", select(op == op.backward_weight || " FORETUNE_IS_PLANAR ", " FORETUNE_OUTPUTS \
  ", " FORETUNE_POINTS ")))"
#define FORETUNE_LANES "select(isa == isa.avx512, 16, select(isa == isa.avx2, 8, 4))"
// Channels of a slab that are read together: a chunk of kc channels of all groups, or all of one.
#define FORETUNE_SLAB_CHANNELS \
  "select(algorithm == algorithm.groups, min(kc, c), " FORETUNE_CHANNELS ")"
// Points a large power of two apart share few places of a cache.
#define FORETUNE_STEP(channels)                                                               \
  "select(" channels " % 1024 == 0, 12, select(" channels " % 512 == 0, 11, select(" channels \
  " % 256 == 0, 10, select(" channels " % 64 == 0, 8, select(" channels " % 16 == 0, 6, 0)))))"
#define FORETUNE_FLOPS \
  "(2 * " FORETUNE_WO " * " FORETUNE_HO " * " FORETUNE_DO " * n * k * c / g * x * y * z)"

ExpressionFeatures definition() {
  return {
      .name = "conv-cpu",
      .problem_type = kConvProblem,
      .parameters = cpu_conv_schema().parameters,
      .columns = {
          {"operation", "op", "number of the operation's label", true},
          {"epilogue", "epilogue", "number of the epilogue's label", true},
          {"weights", "weights", "1 when weights are packed once", true},
          {"log2_images", "log2(n)", "log2 of the images"},
          {"log2_groups", "log2(g)", "log2 of the groups"},
          {"log2_channels", "log2(c / g)", "log2 of the channels of a group"},
          {"log2_filters", "log2(k / g)", "log2 of the filters of a group"},
          {"log2_width", "log2(" FORETUNE_WO ")", "log2 of the points of an output row"},
          {"log2_height", "log2(" FORETUNE_HO ")", "log2 of the rows of an output"},
          {"log2_depth", "log2(" FORETUNE_DO ")", "log2 of the planes of an output"},
          {"log2_filter_points", "log2(x * y * z)", "log2 of the points of a filter"},
          {"filter_width", "x", "points of a filter's row"},
          {"log2_stride", "log2(stride_w * stride_h * stride_d)", "log2 of the strides' product"},
          {"dilation", "max(dilation_w, dilation_h)", "the larger dilation"},
          {"is_padded", "pad_w + pad_h + pad_d > 0", "1 when taps reach beyond the image"},
          {"log2_flops", "log2(" FORETUNE_FLOPS ")", "log2 of the flops"},
          {"log2_weights_over_l2", "log2(k * c / g * x * y * z * 4 / max(1, hw.l2_bytes))",
           "log2 of the weights over the L2 cache"},
          {"log2_input_over_l2", "log2(c * di * hi * wi * 4 / max(1, hw.l2_bytes))",
           "log2 of an image over the L2 cache"},
          {"log2_input_step", FORETUNE_STEP("c"),
           "log2 of the largest power of two that divides the bytes of a point of the input"},
          {"log2_output_step", FORETUNE_STEP("k"), "... of the output"},
          {"isa", "isa", "number of the instruction set's label", true},
          {"algorithm", "algorithm", "number of the algorithm's label", true},
          {"mr", "mr", "rows of a register block"},
          {"nr", "nr", "columns of a register block"},
          {"block", "mr * nr", "sums of a register block"},
          {"log2_rows", "log2(rows)", "log2 of the rows of a slab"},
          {"log2_kc", "log2(kc)", "log2 of a chunk"},
          {"order", "order", "number of the order's label", true},
          {"taps", "taps", "number of the label of taps", true},
          {"copy", "copy", "number of the label of copying", true},
          {"threads", "threads", "threads"},
          {"split", "split", "number of the split's label", true},
          {"use_rows", FORETUNE_HEIGHT " / (ceil_div(" FORETUNE_HEIGHT ", mr) * mr)",
           "useful share of the register blocks' rows"},
          {"use_columns", FORETUNE_COLUMNS " / (ceil_div(" FORETUNE_COLUMNS ", nr) * nr)",
           "useful share of the register blocks' columns"},
          {"use_block",
           FORETUNE_HEIGHT " / (ceil_div(" FORETUNE_HEIGHT ", mr) * mr) * " FORETUNE_COLUMNS
                           " / (ceil_div(" FORETUNE_COLUMNS ", nr) * nr)",
           "useful share of the register blocks' sums"},
          {"loads_per_product", "1 / mr + " FORETUNE_LANES " / nr",
           "vectors that a register block loads for each product of vectors"},
          {"log2_blocks",
           "log2(max(1, ceil_div(" FORETUNE_HEIGHT ", mr) * ceil_div(" FORETUNE_COLUMNS ", nr)))",
           "log2 of the register blocks of a row"},
          {"log2_chunks",
           "log2(max(1, select(op == op.backward_weight, " FORETUNE_ROWS
           ", select(algorithm == algorithm.groups, " FORETUNE_ALL_OUTPUTS ", " FORETUNE_CHANNELS
           ")) / kc))",
           "log2 of the chunks"},
          {"log2_slabs", "log2(max(1, " FORETUNE_ROWS " / rows))", "log2 of the slabs"},
          {"log2_panel_over_l1",
           "log2(nr * min(kc, " FORETUNE_CHANNELS ") * x * y * z * 4 / max(1, hw.l1_bytes))",
           "log2 of a chunk of a panel over the L1 cache"},
          {"log2_chunk_over_l2",
           "log2(" FORETUNE_ALL_OUTPUTS " * min(kc, " FORETUNE_CHANNELS
           ") * x * y * z * 4 / max(1, hw.l2_bytes))",
           "log2 of the chunk of all panels over the L2 cache"},
          {"log2_points_over_l1",
           "log2((mr + nr) * kc * " FORETUNE_WIDTH " * 4 / max(1, hw.l1_bytes))",
           "log2 of what a block of a gradient of weights reads over the L1 cache"},
          {"log2_slab_over_l1",
           "log2(rows * stride_h * wi * " FORETUNE_SLAB_CHANNELS " * 4 / max(1, hw.l1_bytes))",
           "log2 of a slab over the L1 cache"},
          {"log2_slab_over_l2",
           "log2(rows * stride_h * wi * " FORETUNE_SLAB_CHANNELS " * 4 / max(1, hw.l2_bytes))",
           "log2 of a slab over the L2 cache"},
      }};
}

}  // namespace

const FeatureTable& conv_cpu_table() {
  static const std::unique_ptr<const FeatureTable> table = [] {
    auto made = make_expression_table(definition());
    FORETUNE_CHECK(made.has_value());
    return *std::move(made);
  }();
  return *table;
}

}  // namespace foretune::features_internal
