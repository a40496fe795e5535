// Our features of Composable Kernel's grouped convolutions: the matrix product that a convolution
// is, with the tile's sizes as they are meant. The features that its own models know are in
// grouped_conv_ck_foreign.cc.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "foretune/base/check.h"
#include "foretune/features/tables/ck_columns.h"
#include "foretune/features/tables/ck_tiling.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/problem/conv/conv.h"

namespace foretune::features_internal {
namespace {

constexpr std::array kProblemColumns{
    as_categorical(of_problem("operation", "number of the operation's label")),
    as_categorical(of_problem("layout", "number of the layout's label")),
    of_problem("element_bytes", "bytes of an element"),
    of_problem("log2_images", "log2 of the images"),
    of_problem("log2_groups", "log2 of the groups"),
    of_problem("log2_channels", "log2 of the channels of a group"),
    of_problem("log2_filters", "log2 of the filters of a group"),
    of_problem("log2_input_points", "log2 of the points of an image"),
    of_problem("log2_output_points", "log2 of the points of an output"),
    of_problem("log2_filter_points", "log2 of the points of a filter"),
    of_problem("is_pointwise", "1 for filters of one point, stride 1 and no padding"),
    of_problem("is_depthwise", "1 when every group has one channel"),
    of_problem("is_3d", "1 when there is depth"),
    of_problem("log2_stride", "log2 of the product of the strides"),
    of_problem("log2_dilation", "log2 of the product of the dilations"),
    of_problem("input_reuse",
               "log2 of the times that the forward pass reads an element of the input"),
    of_problem("log2_m", "log2 of the rows of a group's product"),
    of_problem("log2_n", "log2 of the columns of a group's product"),
    of_problem("log2_k", "log2 of the depth of a group's product"),
    of_problem("log2_flops", "log2 of the flops"),
    of_problem("log2_intensity", "log2 of flops per byte of input, weights and output"),
    of_problem("log2_m_over_n", "log2 of m / n"),
    of_problem("log2_k_over_mn", "log2 of k / sqrt(m n)"),
    of_problem("log2_bytes_over_l2", "log2 of the bytes of all tensors over the L2 cache"),
    of_problem("log2_roofline_ns", "log2 of the roofline time in ns"),
    of_problem("compute_units", "compute units of the device"),
};

constexpr std::array kConfigColumns{
    of_config("log2_tile_m", "log2 of the rows of a tile"),
    of_config("log2_tile_n", "log2 of the columns of a tile"),
    of_config("log2_tile_k", "log2 of the depth of one step"),
    as_categorical(of_config("pipeline", "number of the pipeline's label")),
    as_categorical(of_config("wave_mode", "number of the wave mode's label")),
    of_config("double_buffer", "1 for kernels of two buffers in local memory (_dsb)"),
    of_config("split_image", "1 for kernels that cut images up (_si)"),
    of_config("tile_elements", "elements of a tile of the result"),
    of_config("tile_aspect", "log2 of rows over columns of a tile"),
    of_config("flops_per_loaded_element", "rows times columns over their sum"),
    of_config("buffers", "copies of a step in local memory"),
};

// The columns of version 2.
constexpr FeatureInfo since_2(FeatureInfo info) {
  info.since = 2;
  return info;
}
constexpr std::array kLaterColumns{
    since_2(of_both("log2_moved_over_least",
                    "log2 of the bytes that the busiest compute unit loads and stores, over the "
                    "least of the ten tiles that composable_kernel builds")),
};

// The tiles of known_space("ck-conv-gfx950").
constexpr std::array<std::array<double, 3>, 10> kBuiltTiles{{{16, 64, 64},
                                                             {32, 64, 64},
                                                             {64, 64, 64},
                                                             {32, 128, 64},
                                                             {64, 128, 64},
                                                             {128, 128, 64},
                                                             {16, 64, 128},
                                                             {32, 64, 128},
                                                             {64, 64, 128},
                                                             {128, 64, 128}}};

double least_bytes(const GpuView& gpu, const TiledProduct& product) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [m, n, k] : kBuiltTiles) {
    least = std::min(least, busiest_bytes(gpu, product, {.m = m, .n = n, .k = k}));
  }
  return least;
}

// A convolution in doubles, which are exact for its sizes.
struct ConvView {
  ConvProblem conv;
  TiledProduct product;
  double flops = 0;

  static ConvView of(const Problem& problem) {
    const Result<ConvProblem> conv = ConvProblem::from(problem);
    FORETUNE_CHECK(conv.has_value());  // supports() said so
    const ImplicitGemm gemm = conv->implicit_gemm();
    const double bytes = bytes_per_element(conv->dtype());
    const double input = static_cast<double>(conv->input_elements()) * bytes;
    const double weights = static_cast<double>(conv->weight_elements()) * bytes;
    const double output = static_cast<double>(conv->output_elements()) * bytes;
    double result = output;
    if (conv->operation() == ConvOperation::kBackwardData) {
      result = input;
    } else if (conv->operation() == ConvOperation::kBackwardWeight) {
      result = weights;
    }
    return {.conv = *conv,
            .product = {.m = static_cast<double>(gemm.m),
                        .n = static_cast<double>(gemm.n),
                        .k = static_cast<double>(gemm.k),
                        .batch = static_cast<double>(gemm.groups),
                        .element_bytes = bytes,
                        .operand_bytes = input + weights + output - result,
                        .result_bytes = result},
            .flops = conv->flops()};
  }
  [[nodiscard]] double bytes() const { return product.operand_bytes + product.result_bytes; }
};

double log2_of(std::int64_t size) { return std::log2(static_cast<double>(size)); }

void put_shape(const ConvView& view, ColumnWriter& writer) {
  const ConvSizes& sizes = view.conv.sizes();
  const std::int64_t input_points = sizes.di * sizes.hi * sizes.wi;
  const std::int64_t output_points = view.conv.depth_out() * view.conv.ho() * view.conv.wo();
  const std::int64_t filter_points = sizes.z * sizes.y * sizes.x;
  const std::int64_t stride = sizes.stride_d * sizes.stride_h * sizes.stride_w;
  const std::int64_t padding = sizes.pad_d + sizes.pad_h + sizes.pad_w;
  const std::int64_t dilation = sizes.dilation_d * sizes.dilation_h * sizes.dilation_w;
  writer.put(static_cast<double>(sizes.operation));
  writer.put(static_cast<double>(sizes.layout));
  writer.put(view.product.element_bytes);
  writer.put(log2_of(sizes.n));
  writer.put(log2_of(sizes.g));
  writer.put(log2_of(sizes.c / sizes.g));
  writer.put(log2_of(sizes.k / sizes.g));
  writer.put(log2_of(input_points));
  writer.put(log2_of(output_points));
  writer.put(log2_of(filter_points));
  writer.put(filter_points == 1 && stride == 1 && padding == 0 ? 1 : 0);
  writer.put(sizes.g == sizes.c && sizes.g > 1 ? 1 : 0);
  writer.put(view.conv.is_3d() ? 1 : 0);
  writer.put(log2_of(stride));
  writer.put(log2_of(dilation));
  writer.put(log2_of(output_points) + log2_of(filter_points) - log2_of(input_points));
}

double buffers_of(std::span<const std::int32_t> words) {
  return std::max(ck_buffers(words[static_cast<std::size_t>(CkConvParameter::kPipeline)]),
                  at(words, CkConvParameter::kDsb) != 0 ? 2.0 : 1.0);
}

class GroupedConvTable final : public CkTable {
 public:
  GroupedConvTable()
      : CkTable("grouped-conv", kConvProblem, ck_grouped_conv_schema(),
                joined({kProblemColumns, kConfigColumns, tiling_columns(), kLaterColumns})) {}

  void problem_row(const Problem& problem, const Hardware& hardware,
                   std::span<double> out) const override {
    const ConvView view = ConvView::of(problem);
    const GpuView gpu = GpuView::of(hardware);
    const TiledProduct& product = view.product;
    const double l2_bytes = hardware.get(HardwareValue::kL2Bytes);
    ColumnWriter writer(out, 1);
    writer.start(0);
    put_shape(view, writer);
    const double log2_m = std::log2(product.m);
    const double log2_n = std::log2(product.n);
    const double log2_k = std::log2(product.k);
    writer.put(log2_m);
    writer.put(log2_n);
    writer.put(log2_k);
    writer.put(std::log2(view.flops));
    writer.put(std::log2(view.flops / view.bytes()));
    writer.put(log2_m - log2_n);
    writer.put(log2_k - 0.5 * (log2_m + log2_n));
    writer.put(std::log2(view.bytes() / (l2_bytes > 0 ? l2_bytes : 4194304)));
    writer.put(std::log2(roofline_ns(gpu, product)));
    writer.put(gpu.units);
  }

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    using P = CkConvParameter;
    const double tile_m = at(words, P::kTileM);
    const double tile_n = at(words, P::kTileN);
    const double tile_k = at(words, P::kTileK);
    ColumnWriter writer(out, 1);
    writer.start(0);
    writer.put(std::log2(tile_m));
    writer.put(std::log2(tile_n));
    writer.put(std::log2(tile_k));
    for (const P parameter : {P::kPipeline, P::kWaveMode, P::kDsb, P::kSi}) {
      writer.put(at(words, parameter));
    }
    writer.put(tile_m * tile_n);
    writer.put(std::log2(tile_m / tile_n));
    writer.put(tile_m * tile_n / (tile_m + tile_n));
    writer.put(buffers_of(words));
  }

  void interaction_columns(const Problem& problem, const Hardware& hardware, ConfigWords configs,
                           std::span<double> out, std::size_t stride) const override {
    using P = CkConvParameter;
    const ConvView view = ConvView::of(problem);
    const GpuView gpu = GpuView::of(hardware);
    const double least = least_bytes(gpu, view.product);
    ColumnWriter writer(out, stride);
    for_each_config(configs, writer, [&](std::span<const std::int32_t> config) {
      // The names do not say how many waves a block has: four, in all kernels known.
      const Tiling tiling{.m = at(config, P::kTileM),
                          .n = at(config, P::kTileN),
                          .k = at(config, P::kTileK),
                          .buffers = buffers_of(config)};
      put_tiling(gpu, view.product, tiling, writer);
      writer.put(std::log2(busiest_bytes(gpu, view.product, tiling) / least));
    });
  }
};

}  // namespace

const FeatureTable& grouped_conv_table() {
  static const GroupedConvTable table;
  return table;
}

}  // namespace foretune::features_internal
