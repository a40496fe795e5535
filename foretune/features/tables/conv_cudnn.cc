// Features of cuDNN's configs. The library does not say what the values of its knobs mean, so that
// configs are numbers; what is known is the product that a convolution is.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "foretune/base/check.h"
#include "foretune/features/column_table.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/schemas/cudnn.h"

namespace foretune::features_internal {
namespace {

struct Tile {
  double m;
  double n;
};
// Usual sizes of tiles; their waves tell how a problem fills the device.
constexpr std::array<Tile, 4> kTiles{{{64, 64}, {128, 64}, {128, 128}, {256, 128}}};
// Channels are loaded in vectors of up to 16 elements.
constexpr std::int64_t kMostAligned = 16;

constexpr std::array kProblemColumns{
    as_categorical(of_problem("operation", "number of the operation's label")),
    as_categorical(of_problem("dtype", "number of the type's label")),
    as_categorical(of_problem("layout", "number of the layout's label")),
    as_categorical(of_problem("epilogue", "number of the epilogue's label")),
    of_problem("has_sums", "1 when the result is wider than the operands"),
    of_problem("log2_images", "log2 of the images"),
    of_problem("log2_groups", "log2 of the groups"),
    of_problem("log2_channels", "log2 of the channels of a group"),
    of_problem("log2_filters", "log2 of the filters of a group"),
    of_problem("channels_aligned", "largest power of two up to 16 that divides those channels"),
    of_problem("filters_aligned", "largest power of two up to 16 that divides those filters"),
    of_problem("log2_input_points", "log2 of the points of an image"),
    of_problem("log2_output_points", "log2 of the points of an output"),
    of_problem("log2_output_width", "log2 of the points of a row of an output"),
    of_problem("filter_points", "points of a filter"),
    of_problem("filter_width", "points of a row of a filter"),
    of_problem("is_pointwise", "1 for filters of one point, stride 1 and no padding"),
    of_problem("is_depthwise", "1 when every group has one channel"),
    of_problem("is_3d", "1 when there is depth"),
    of_problem("is_1d", "1 when images have one row"),
    of_problem("log2_stride", "log2 of the product of the strides"),
    of_problem("log2_dilation", "log2 of the product of the dilations"),
    of_problem("log2_m", "log2 of the rows of a group's product"),
    of_problem("log2_n", "log2 of the columns of a group's product"),
    of_problem("log2_k", "log2 of the depth of a group's product"),
    of_problem("log2_flops", "log2 of the flops"),
    of_problem("log2_bytes", "log2 of the bytes of all tensors"),
    of_problem("log2_intensity", "log2 of flops per byte of all tensors"),
    of_problem("log2_m_over_n", "log2 of m / n"),
    of_problem("log2_k_over_mn", "log2 of k / sqrt(m n)"),
    of_problem("log2_bytes_over_l2", "log2 of the bytes of all tensors over the L2 cache"),
    of_problem("waves_64_64", "tiles of 64 x 64 of all groups per multiprocessor, up to 64"),
    of_problem("waves_128_64", "the same of 128 x 64"),
    of_problem("waves_128_128", "the same of 128 x 128"),
    of_problem("waves_256_128", "the same of 256 x 128"),
    of_problem("wave_use_128_128", "tiles of 128 x 128 over the places of all their waves"),
    of_problem("wave_use_256_128", "the same of 256 x 128"),
};

constexpr std::size_t kFirstKnob = 3;
constexpr std::size_t kWords = kFirstKnob + kCudnnKnobs.size() + 2 * kCudnnOtherKnobs;
// Positions of knobs that cut a sum into parts, in a config's words.
constexpr std::size_t kSplitK = kFirstKnob;
constexpr std::size_t kSplitKSlices = kFirstKnob + 11;
static_assert(kCudnnKnobs[0].name == "split_k" && kCudnnKnobs[11].name == "split_k_slc");

// Knobs whose values are names rather than sizes.
constexpr bool is_name(std::string_view knob) {
  return knob == "tile_size" || knob == "kernel_cfg" || knob == "ldga" || knob == "ldgb" ||
         knob == "ldgc" || knob == "idx_mode" || knob == "specfilt" || knob == "workspace";
}

std::vector<FeatureInfo> config_columns() {
  std::vector<FeatureInfo> columns{
      as_categorical(of_config("heuristic", "number of the heuristic's label")),
      of_config("rank", "rank in its answer, 0 for an explicit config"),
      as_categorical(of_config("engine", "number of the engine, -1 for a rank"))};
  for (const CudnnKnob& knob : kCudnnKnobs) {
    const FeatureInfo column = of_config(knob.name, "value of the knob, -1 for the library's");
    columns.push_back(is_name(knob.name) ? as_categorical(column) : column);
  }
  constexpr std::array kOthers{
      of_config("other1", "type of another knob, -1 for none"),
      of_config("other1_value", "its value"),
      of_config("other2", "type of another knob, -1 for none"),
      of_config("other2_value", "its value"),
      of_config("other3", "type of another knob, -1 for none"),
      of_config("other3_value", "its value"),
      of_config("other4", "type of another knob, -1 for none"),
      of_config("other4_value", "its value"),
  };
  columns.insert(columns.end(), kOthers.begin(), kOthers.end());
  return columns;
}

constexpr std::array kInteractionColumns{
    of_both("log2_split_depth", "log2 of the depth of a part of a split sum"),
    of_both("split_waves", "tiles of 128 x 128 of all parts per multiprocessor, up to 64"),
};

double log2_of(std::int64_t size) { return std::log2(static_cast<double>(size)); }

double alignment_of(std::int64_t size) { return static_cast<double>(std::gcd(size, kMostAligned)); }

// A convolution as a product in doubles, which are exact for its sizes.
struct ProductView {
  double m = 1;
  double n = 1;
  double k = 1;
  double groups = 1;
  double units = 1;  // multiprocessors

  static ProductView of(const ConvProblem& conv, const Hardware& hardware) {
    const ImplicitGemm gemm = conv.implicit_gemm();
    return {.m = static_cast<double>(gemm.m),
            .n = static_cast<double>(gemm.n),
            .k = static_cast<double>(gemm.k),
            .groups = static_cast<double>(gemm.groups),
            .units = std::max(1.0, hardware.get(HardwareValue::kCores))};
  }
  [[nodiscard]] double waves(const Tile& tile, double parts = 1) const {
    return ceil_div(m, tile.m) * ceil_div(n, tile.n) * groups * parts / units;
  }
};

double parts_of(std::span<const std::int32_t> words) {
  return std::max({1, words[kSplitK], words[kSplitKSlices]});
}

class ConvCudnnTable final : public FeatureTable {
 public:
  ConvCudnnTable() : columns_(joined({kProblemColumns, config_columns(), kInteractionColumns})) {}

  std::string_view name() const override { return "conv-cudnn"; }
  std::span<const FeatureInfo> columns() const override { return columns_; }
  Support supports(ProblemType type, const ConfigSchema& schema) const override {
    return type == kConvProblem && has_parameters(schema, cudnn_schema())
               ? Support::yes()
               : Support::no("conv-cudnn describes convolutions and configs of cudnn");
  }

  void problem_row(const Problem& problem, const Hardware& hardware,
                   std::span<double> out) const override {
    const Result<ConvProblem> conv = ConvProblem::from(problem);
    FORETUNE_CHECK(conv.has_value());  // supports() said so
    const ConvSizes& sizes = conv->sizes();
    const std::int64_t filter_points = sizes.z * sizes.y * sizes.x;
    const std::int64_t stride = sizes.stride_d * sizes.stride_h * sizes.stride_w;
    const std::int64_t padding = sizes.pad_d + sizes.pad_h + sizes.pad_w;
    ColumnWriter writer(out, 1);
    writer.start(0);
    writer.put(static_cast<double>(sizes.operation));
    writer.put(static_cast<double>(conv->dtype()));
    writer.put(static_cast<double>(sizes.layout));
    writer.put(static_cast<double>(conv->epilogue()));
    writer.put(conv->has_sums() ? 1 : 0);
    writer.put(log2_of(sizes.n));
    writer.put(log2_of(sizes.g));
    writer.put(log2_of(sizes.c / sizes.g));
    writer.put(log2_of(sizes.k / sizes.g));
    writer.put(alignment_of(sizes.c / sizes.g));
    writer.put(alignment_of(sizes.k / sizes.g));
    writer.put(log2_of(sizes.di * sizes.hi * sizes.wi));
    writer.put(log2_of(conv->depth_out() * conv->ho() * conv->wo()));
    writer.put(log2_of(conv->wo()));
    writer.put(static_cast<double>(filter_points));
    writer.put(static_cast<double>(sizes.x));
    writer.put(filter_points == 1 && stride == 1 && padding == 0 ? 1 : 0);
    writer.put(sizes.g == sizes.c && sizes.g > 1 ? 1 : 0);
    writer.put(conv->is_3d() ? 1 : 0);
    writer.put(sizes.hi == 1 && sizes.y == 1 ? 1 : 0);
    writer.put(log2_of(stride));
    writer.put(log2_of(sizes.dilation_d * sizes.dilation_h * sizes.dilation_w));
    put_product(*conv, hardware, writer);
  }

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    FORETUNE_CHECK(words.size() == kWords && out.size() == kWords);
    std::copy(words.begin(), words.end(), out.begin());
  }

  void interaction_columns(const Problem& problem, const Hardware& hardware, ConfigWords configs,
                           std::span<double> out, std::size_t stride) const override {
    const Result<ConvProblem> conv = ConvProblem::from(problem);
    FORETUNE_CHECK(conv.has_value());
    const ProductView product = ProductView::of(*conv, hardware);
    ColumnWriter writer(out, stride);
    for_each_config(configs, writer, [&](std::span<const std::int32_t> words) {
      const double parts = parts_of(words);
      writer.put_log2(product.k / parts);
      writer.put(std::min(64.0, product.waves(kTiles[2], parts)));
    });
  }

 private:
  static void put_product(const ConvProblem& conv, const Hardware& hardware, ColumnWriter& writer) {
    const ProductView product = ProductView::of(conv, hardware);
    const double l2_bytes = hardware.get(HardwareValue::kL2Bytes);
    const double log2_m = std::log2(product.m);
    const double log2_n = std::log2(product.n);
    const double log2_k = std::log2(product.k);
    writer.put(log2_m);
    writer.put(log2_n);
    writer.put(log2_k);
    writer.put(std::log2(conv.flops()));
    writer.put(std::log2(conv.bytes()));
    writer.put(std::log2(conv.flops() / conv.bytes()));
    writer.put(log2_m - log2_n);
    writer.put(log2_k - 0.5 * (log2_m + log2_n));
    writer.put(std::log2(conv.bytes() / (l2_bytes > 0 ? l2_bytes : 4194304)));
    for (const Tile& tile : kTiles) {
      writer.put(std::min(64.0, product.waves(tile)));
    }
    for (const std::size_t tile : {2U, 3U}) {
      const double waves = product.waves(kTiles.at(tile));
      writer.put(waves / ceil_of(waves));
    }
  }

  std::vector<FeatureInfo> columns_;
};

}  // namespace

const FeatureTable& conv_cudnn_table() {
  static const ConvCudnnTable table;
  return table;
}

}  // namespace foretune::features_internal
