// The 83 features that models of Composable Kernel's heuristics for grouped convolutions were
// trained on. Their mistakes are kept: see ck_columns.h.
#include <algorithm>
#include <array>
#include <cmath>

#include "foretune/features/tables/ck_columns.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/problem/conv/conv.h"

namespace foretune::features_internal {
namespace {

constexpr std::array kProblemColumns{
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

// The fields of a convolution that the engine sees: two dimensions without dilation.
struct Seen {
  double n = 1, c = 1, k = 1, g = 1, hi = 1, wi = 1, y = 1, x = 1;
  double stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  double bytes_per_element = 2;

  static Seen of(const Problem& problem) {
    const auto field = [&](ConvField index) {
      return static_cast<double>(problem.field(static_cast<std::size_t>(index)));
    };
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
  [[nodiscard]] double ho() const { return std::floor((hi + 2 * pad_h - y) / stride_h) + 1; }
  [[nodiscard]] double wo() const { return std::floor((wi + 2 * pad_w - x) / stride_w) + 1; }
  [[nodiscard]] double gemm_m() const { return n * ho() * wo(); }
  [[nodiscard]] double gemm_n() const { return k; }
  [[nodiscard]] double gemm_k() const { return c / g * (y * x); }
  [[nodiscard]] double intensity() const {
    const double flops = n * k * (ho() * wo()) * (c / g) * (y * x) * 2;
    const double bytes = n * c * (hi * wi) * bytes_per_element +
                         k * (c / g) * (y * x) * bytes_per_element +
                         n * k * (ho() * wo()) * bytes_per_element;
    return flops / bytes;
  }
};

constexpr std::array<CkPipeline, 3> kFlagged{CkPipeline::kCompV3, CkPipeline::kCompV4,
                                             CkPipeline::kCompV5};

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
  GroupedConvCkForeignTable()
      : CkTable("grouped-conv-ck-83", kConvProblem, ck_grouped_conv_schema(),
                by_kind(std::array<std::span<const FeatureInfo>, 4>{
                    kProblemColumns, kKernelColumns, kInteractionColumns, ck_hardware_columns()})) {
  }

  void problem_row(const Problem& problem, const Hardware& hardware,
                   std::span<double> out) const override {
    const Seen seen = Seen::of(problem);
    ColumnWriter writer(out, 1);
    writer.start(0);
    for (const double size :
         {seen.n, seen.c, seen.k, seen.g, seen.hi, seen.wi, seen.y, seen.x, seen.stride_h,
          seen.stride_w, seen.pad_h, seen.pad_w, seen.ho(), seen.wo()}) {
      writer.put(size);
    }
    for (const double size : {seen.n, seen.c, seen.k, seen.g, seen.hi, seen.wi, seen.hi * seen.wi,
                              seen.y * seen.x, seen.ho() * seen.wo()}) {
      writer.put(std::log2(size));
    }
    writer.put(seen.intensity());
    writer.put(seen.y * seen.x);
    writer.put(seen.y == 1 && seen.x == 1 ? 1 : 0);
    writer.put(seen.y == 3 && seen.x == 3 ? 1 : 0);
    writer.put(seen.c / seen.g);
    writer.put(seen.hi / seen.wi);
    writer.put(seen.y / seen.x);
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
  }

  void interaction_columns(const Problem& problem, const Hardware& hardware, ConfigWords configs,
                           std::span<double> out, std::size_t stride) const override {
    const Seen seen = Seen::of(problem);
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
};

}  // namespace

const FeatureTable& grouped_conv_ck_83_table() {
  static const GroupedConvCkForeignTable table;
  return table;
}

}  // namespace foretune::features_internal
