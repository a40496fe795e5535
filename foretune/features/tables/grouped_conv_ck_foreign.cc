// The features that models of Composable Kernel's heuristics for grouped convolutions were trained
// on: 83 at first, 91 with depth and dilation, 97 with the endings of kernels' names. Their
// mistakes are kept: see ck_columns.h.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/features/tables/ck_columns.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/problem/conv/conv.h"

namespace foretune::features_internal {
namespace {

// The engine's features grew; a version is its number of them.
enum class Version : std::uint8_t { k83 = 83, k91 = 91, k97 = 97 };

constexpr std::array kLayerColumns{
    of_problem("N", "images"),
    of_problem("C", "channels of all groups"),
    of_problem("K", "filters of all groups"),
    of_problem("G", "groups"),
    of_problem("Hi", "rows of the input"),
    of_problem("Wi", "columns of the input"),
    of_problem("Y", "rows of a filter"),
    of_problem("X", "columns of a filter"),
    of_problem("stride_h", "rows between outputs"),
    of_problem("stride_w", "columns between outputs"),
    of_problem("pad_h", "rows of zeros on either side"),
    of_problem("pad_w", "columns of zeros on either side"),
    of_problem("Ho", "rows of the output if there were no dilation"),
    of_problem("Wo", "columns of the output if there were no dilation"),
    of_problem("log2_N", "log2 of N"),
    of_problem("log2_C", "log2 of C"),
    of_problem("log2_K", "log2 of K"),
    of_problem("log2_G", "log2 of G"),
    of_problem("log2_Hi", "log2 of Hi"),
    of_problem("log2_Wi", "log2 of Wi"),
    of_problem("log2_spatial", "log2 of Hi Wi"),
    of_problem("log2_filter", "log2 of Y X"),
    of_problem("log2_output", "log2 of Ho Wo"),
    of_problem("arithmetic_intensity", "flops per byte of input, weights and output"),
    of_problem("filter_area", "Y X"),
    of_problem("is_1x1_conv", "1 for filters of one point"),
    of_problem("is_3x3_conv", "1 for filters of 3 x 3 points"),
    of_problem("channels_per_group", "C / G"),
    of_problem("aspect_ratio_hw", "Hi / Wi"),
    of_problem("aspect_ratio_filter", "Y / X"),
};

constexpr std::array kDepthColumns{
    of_problem("is_3d", "1 when input, filter or padding have depth"),
    of_problem("Di", "depth of the input"),
    of_problem("Z", "depth of a filter"),
    of_problem("Do", "depth of the output"),
    of_problem("stride_d", "layers between outputs"),
    of_problem("pad_d", "layers of zeros on either side"),
    of_problem("dilation_h", "rows between points of a filter"),
    of_problem("dilation_w", "columns between points of a filter"),
};

constexpr std::array kGroupColumns{
    of_problem("log2_channels_per_group", "log2 of C / G"),
    of_problem("log2_output_channels_per_group", "log2 of K / G"),
    of_problem("is_depthwise", "1 when every group has one channel and one filter"),
    of_problem("group_density", "G / C"),
    of_problem("is_small_group", "1 when C / G or K / G is below 16"),
    of_problem("channels_product_per_group", "(C / G) (K / G)"),
    of_problem("batch_group_product", "N G"),
    of_problem("is_small_batch_grouped", "1 for several groups of fewer than 8 images"),
};

constexpr std::array kKernelColumns{
    of_config("block_size", "first size in the kernel's name: rows of a tile, not threads"),
    of_config("gemm_m_per_block", "second size in the kernel's name: columns of a tile"),
    of_config("gemm_n_per_block", "third size in the kernel's name: depth of a step"),
    as_categorical(of_config("pipeline", "code of the pipeline, 6 for compv6, as in training")),
    of_config("num_warps", "block_size / 4, which is no number of waves"),
    of_config("tile_volume", "product of the three sizes"),
    of_config("tile_mn", "product of the second and the third size"),
    of_both("lds_usage_estimate",
            "bytes of (second + third) x first size, with 2 bytes for f64 and tf32"),
    of_both("lds_usage_ratio",
            "these over the local memory of a block, for compv4 over 32 KiB on every device"),
    of_config("block_tile_ratio_m", "second size over the first"),
    of_config("block_tile_ratio_n", "third size over the first"),
    of_config("block_efficiency", "smaller over larger of the second and the third size"),
    of_config("is_compv3", "1 for this pipeline"),
    of_config("is_compv4", "1 for this pipeline"),
    of_config("is_compv5", "1 for this pipeline"),
};

constexpr std::array kEndingColumns{
    of_config("is_intrawave", "1 for this wave mode, and for names without one"),
    of_config("has_dsb", "1 for names with _dsb"),
    of_config("has_si", "1 for names with _si"),
    of_config("is_basic", "1 for the pipeline basic_v1"),
    of_config("is_compv6", "1 for this pipeline"),
    of_config("is_mem", "1 for this pipeline"),
};

constexpr std::array kInteractionColumns{
    of_problem("gemm_m_output", "N Ho Wo, for the gradients, too"),
    of_problem("gemm_n_output", "K of all groups, for the gradients, too"),
    of_problem("gemm_k_output", "(C / G) Y X, for the gradients, too"),
    of_both("num_tiles_m", "gemm_m_output over the second size, rounded up"),
    of_both("num_tiles_n", "gemm_n_output over the third size, rounded up"),
    of_both("num_tiles_k", "gemm_k_output over the first size, rounded up"),
    of_both("total_output_tiles", "num_tiles_m num_tiles_n"),
    of_both("tile_eff_m", "gemm_m_output's share of the last of these tiles: not of all"),
    of_both("tile_eff_n", "gemm_n_output's share of the last of these tiles: not of all"),
    of_both("tile_eff_k", "gemm_k_output's share of the last of these steps: not of all"),
    of_both("overall_tile_efficiency", "product of the three"),
    of_both("cu_utilization", "total_output_tiles per compute unit; a share only below 1"),
    of_both("ratio_gemm_m_to_tile_m", "gemm_m_output over the second size"),
    of_both("ratio_gemm_n_to_tile_n", "gemm_n_output over the third size"),
    of_both("ratio_gemm_k_to_tile_k", "gemm_k_output over the first size"),
    of_both("problem_smaller_than_tile_m", "1 when that is below 1"),
    of_both("problem_smaller_than_tile_n", "1 when that is below 1"),
    of_both("problem_smaller_than_tile_k", "1 when that is below 1"),
};

// Descriptions of columns that the later versions compute otherwise.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kLaterDescriptions{
    {{"Ho", "rows of the output"},
     {"Wo", "columns of the output"},
     {"log2_spatial", "log2 of Di Hi Wi"},
     {"log2_filter", "log2 of Z Y X"},
     {"log2_output", "log2 of Do Ho Wo"},
     {"filter_area", "Z Y X"},
     {"is_3x3_conv", "1 for filters of 3 x 3 points, with depth of 3 x 3 x 3"},
     {"gemm_m_output", "N Do Ho Wo, for the gradients, too"},
     {"gemm_k_output", "(C / G) Z Y X, for the gradients, too"}}};

// Returns the columns in the order of the engine.
std::vector<FeatureInfo> columns_of(Version version) {
  std::vector<FeatureInfo> out;
  const auto put = [&](std::span<const FeatureInfo> part) {
    out.insert(out.end(), part.begin(), part.end());
  };
  put(kLayerColumns);
  if (version != Version::k83) {
    put(kDepthColumns);
  }
  put(kGroupColumns);
  put(kKernelColumns);
  if (version == Version::k97) {
    put(kEndingColumns);
  }
  put(kInteractionColumns);
  put(ck_hardware_columns());
  for (FeatureInfo& info : out) {
    for (const auto& [name, description] : kLaterDescriptions) {
      if (version != Version::k83 && info.name == name) {
        info.description = description;
      }
    }
  }
  const std::span<const FeatureInfo> whole(out);
  return by_kind({&whole, 1});
}

// The fields of a convolution that the engine sees. The first version sees two dimensions without
// dilation: its filters reach as far as if they had none.
struct Seen {
  double n = 1, c = 1, k = 1, g = 1, hi = 1, wi = 1, y = 1, x = 1;
  double stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  double bytes_per_element = 2;
  double di = 1, z = 1, stride_d = 1, pad_d = 0;
  double dilation_d = 1, dilation_h = 1, dilation_w = 1;

  static Seen of(const Problem& problem, Version version) {
    const auto field = [&](ConvField index) {
      return static_cast<double>(problem.field(static_cast<std::size_t>(index)));
    };
    Seen out = plane_of(problem, field);
    if (version != Version::k83) {
      out.di = field(ConvField::kDi);
      out.z = field(ConvField::kZ);
      out.stride_d = field(ConvField::kStrideD);
      out.pad_d = field(ConvField::kPadD);
      out.dilation_d = field(ConvField::kDilationD);
      out.dilation_h = field(ConvField::kDilationH);
      out.dilation_w = field(ConvField::kDilationW);
    }
    return out;
  }

  template <class Field>
  static Seen plane_of(const Problem& problem, const Field& field) {
    return {
        .n = field(ConvField::kN),
        .c = field(ConvField::kC),
        .k = field(ConvField::kK),
        .g = field(ConvField::kG),
        .hi = field(ConvField::kHi),
        .wi = field(ConvField::kWi),
        .y = field(ConvField::kY),
        .x = field(ConvField::kX),
        .stride_h = field(ConvField::kStrideH),
        .stride_w = field(ConvField::kStrideW),
        .pad_h = field(ConvField::kPadH),
        .pad_w = field(ConvField::kPadW),
        .bytes_per_element = ck_element_bytes(
            static_cast<DataType>(problem.field(static_cast<std::size_t>(ConvField::kDtype))), 2)};
  }
  // Returns the outputs along a dimension of `size` points.
  static double outputs(double size, double pad, double filter, double dilation, double stride) {
    return std::floor((size + 2 * pad - ((filter - 1) * dilation + 1)) / stride) + 1;
  }
  [[nodiscard]] bool is_3d() const { return di > 1 || z > 1 || pad_d > 0; }
  [[nodiscard]] double depth_out() const { return outputs(di, pad_d, z, dilation_d, stride_d); }
  [[nodiscard]] double ho() const { return outputs(hi, pad_h, y, dilation_h, stride_h); }
  [[nodiscard]] double wo() const { return outputs(wi, pad_w, x, dilation_w, stride_w); }
  [[nodiscard]] double input_points() const { return di * hi * wi; }
  [[nodiscard]] double filter_points() const { return z * y * x; }
  [[nodiscard]] double output_points() const { return depth_out() * ho() * wo(); }
  [[nodiscard]] double gemm_m() const { return n * output_points(); }
  [[nodiscard]] double gemm_n() const { return k; }
  [[nodiscard]] double gemm_k() const { return c / g * filter_points(); }
  [[nodiscard]] double intensity() const {
    const double flops = n * k * output_points() * (c / g) * filter_points() * 2;
    const double bytes = n * c * input_points() * bytes_per_element +
                         k * (c / g) * filter_points() * bytes_per_element +
                         n * k * output_points() * bytes_per_element;
    return flops / bytes;
  }
};

constexpr std::array<CkPipeline, 3> kFlagged{CkPipeline::kCompV3, CkPipeline::kCompV4,
                                             CkPipeline::kCompV5};
constexpr std::array<CkPipeline, 3> kFlaggedLater{CkPipeline::kBasicV1, CkPipeline::kCompV6,
                                                  CkPipeline::kMem};

// The three sizes of a kernel's name, named as the engine interprets them.
struct Sizes {
  double block, m, n;
  explicit Sizes(std::span<const std::int32_t> words)
      : block(at(words, CkConvParameter::kTileM)),
        m(at(words, CkConvParameter::kTileN)),
        n(at(words, CkConvParameter::kTileK)) {}
};

std::int32_t pipeline_of(std::span<const std::int32_t> words) {
  return words[static_cast<std::size_t>(CkConvParameter::kPipeline)];
}

class GroupedConvCkForeignTable final : public CkTable {
 public:
  GroupedConvCkForeignTable(std::string_view name, Version version)
      : CkTable(name, kConvProblem, ck_grouped_conv_schema(), columns_of(version)),
        version_(version) {}

  void problem_row(const Problem& problem, const Hardware& hardware,
                   std::span<double> out) const override {
    const Seen seen = Seen::of(problem, version_);
    ColumnWriter writer(out, 1);
    writer.start(0);
    for (const double size :
         {seen.n, seen.c, seen.k, seen.g, seen.hi, seen.wi, seen.y, seen.x, seen.stride_h,
          seen.stride_w, seen.pad_h, seen.pad_w, seen.ho(), seen.wo()}) {
      writer.put(size);
    }
    for (const double size : {seen.n, seen.c, seen.k, seen.g, seen.hi, seen.wi, seen.input_points(),
                              seen.filter_points(), seen.output_points()}) {
      writer.put(std::log2(size));
    }
    writer.put(seen.intensity());
    writer.put(seen.filter_points());
    writer.put(seen.filter_points() == 1 ? 1 : 0);
    writer.put(seen.y == 3 && seen.x == 3 && (!seen.is_3d() || seen.z == 3) ? 1 : 0);
    writer.put(seen.c / seen.g);
    writer.put(seen.hi / seen.wi);
    writer.put(seen.y / seen.x);
    if (version_ != Version::k83) {
      for (const double size : {seen.is_3d() ? 1.0 : 0.0, seen.di, seen.z, seen.depth_out(),
                                seen.stride_d, seen.pad_d, seen.dilation_h, seen.dilation_w}) {
        writer.put(size);
      }
    }
    put_groups(seen, writer);
    writer.put(seen.gemm_m());
    writer.put(seen.gemm_n());
    writer.put(seen.gemm_k());
    put_ck_hardware(hardware, writer);
  }

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    const Sizes sizes(words);
    ColumnWriter writer(out, 1);
    writer.start(0);
    writer.put(sizes.block);
    writer.put(sizes.m);
    writer.put(sizes.n);
    writer.put(pipeline_of(words));
    writer.put(sizes.block / 4);
    writer.put(sizes.m * sizes.n * sizes.block);
    writer.put(sizes.m * sizes.n);
    writer.put(sizes.m / sizes.block);
    writer.put(sizes.n / sizes.block);
    writer.put(std::min(sizes.m, sizes.n) / std::max(sizes.m, sizes.n));
    for (const CkPipeline pipeline : kFlagged) {
      writer.put(pipeline_of(words) == static_cast<std::int32_t>(pipeline) ? 1 : 0);
    }
    if (version_ == Version::k97) {
      constexpr double kInterwave = 2;
      writer.put(at(words, CkConvParameter::kWaveMode) == kInterwave ? 0 : 1);
      writer.put(at(words, CkConvParameter::kDsb));
      writer.put(at(words, CkConvParameter::kSi));
      for (const CkPipeline pipeline : kFlaggedLater) {
        writer.put(pipeline_of(words) == static_cast<std::int32_t>(pipeline) ? 1 : 0);
      }
    }
  }

  void interaction_columns(const Problem& problem, const Hardware& hardware, ConfigWords configs,
                           std::span<double> out, std::size_t stride) const override {
    const Seen seen = Seen::of(problem, version_);
    const std::array<double, 3> gemm{seen.gemm_m(), seen.gemm_n(), seen.gemm_k()};
    ColumnWriter writer(out, stride);
    for_each_config(configs, writer, [&](std::span<const std::int32_t> config) {
      const Sizes sizes(config);
      const std::array<double, 3> tiles{sizes.m, sizes.n, sizes.block};
      const double step = (sizes.m * sizes.block + sizes.n * sizes.block) * seen.bytes_per_element;
      writer.put(step);
      writer.put(step / ck_memory_cap(hardware, pipeline_of(config)));
      put_ck_tiles(gemm, tiles, hardware, writer);
      put_ratios(gemm, tiles, writer);
    });
  }

  std::optional<std::vector<std::size_t>> interaction_values() const override {
    return positions_of(std::vector{CkConvParameter::kTileM, CkConvParameter::kTileN,
                                    CkConvParameter::kTileK, CkConvParameter::kPipeline});
  }

 private:
  static void put_ratios(const std::array<double, 3>& gemm, const std::array<double, 3>& tiles,
                         ColumnWriter& writer) {
    for (std::size_t d = 0; d < 3; ++d) {
      writer.put(gemm[d] / tiles[d]);
    }
    for (std::size_t d = 0; d < 3; ++d) {
      writer.put(gemm[d] < tiles[d] ? 1 : 0);
    }
  }

  static void put_groups(const Seen& seen, ColumnWriter& writer) {
    const double channels = seen.c / seen.g;
    const double filters = seen.k / seen.g;
    writer.put(std::log2(channels));
    writer.put(std::log2(filters));
    writer.put(seen.g == seen.c && seen.g == seen.k ? 1 : 0);
    writer.put(seen.g / seen.c);
    writer.put(channels < 16 || filters < 16 ? 1 : 0);
    writer.put(channels * filters);
    writer.put(seen.n * seen.g);
    writer.put(seen.n < 8 && seen.g > 1 ? 1 : 0);
  }

  Version version_;
};

}  // namespace

const FeatureTable& grouped_conv_ck_83_table() {
  static const GroupedConvCkForeignTable table("grouped-conv-ck-83", Version::k83);
  return table;
}

const FeatureTable& grouped_conv_ck_91_table() {
  static const GroupedConvCkForeignTable table("grouped-conv-ck-91", Version::k91);
  return table;
}

const FeatureTable& grouped_conv_ck_97_table() {
  static const GroupedConvCkForeignTable table("grouped-conv-ck-97", Version::k97);
  return table;
}

}  // namespace foretune::features_internal
