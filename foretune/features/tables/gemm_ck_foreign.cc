// The 55 and the 72 features that models of Composable Kernel's heuristics for GEMM were trained
// on. Their mistakes are kept: see ck_columns.h. They do not describe a batch, a bias or an
// activation.
#include <algorithm>
#include <array>
#include <cmath>

#include "foretune/features/tables/ck_columns.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::features_internal {
namespace {

constexpr std::array kFirstColumns{
    of_problem("M", "rows of C"),
    of_problem("N", "columns of C"),
    of_problem("K", "depth"),
    of_config("split_k", "parts that the depth is cut into"),
    of_problem("log2_M", "log2 of M"),
    of_problem("log2_N", "log2 of N"),
    of_problem("log2_K", "log2 of K"),
    of_problem("log2_MNK", "log2 of M N K"),
    of_problem("arithmetic_intensity", "flops per byte of A, B and C"),
    of_problem("aspect_ratio_mn", "M / N"),
    of_problem("aspect_ratio_mk", "M / K"),
    of_problem("aspect_ratio_nk", "N / K"),
    as_categorical(of_problem("layout", "code of the layout: rcr, rrr, crr, ccr")),
    of_config("tile_m", "rows of a tile"),
    of_config("tile_n", "columns of a tile"),
    of_config("tile_k", "depth of one step"),
};

constexpr std::array kLabelColumns{
    as_categorical(of_config("pipeline", "code of the pipeline, 6 for compv6, as in training")),
    as_categorical(of_config("scheduler", "code of the scheduler: intrawave, interwave")),
    as_categorical(of_config("epilogue", "code of the epilogue: default, cshuffle")),
};

constexpr std::array kSecondColumns{
    of_config("num_warps", "waves of a block"),
    of_config("tile_volume", "tile_m tile_n tile_k"),
    of_config("tile_mn", "tile_m tile_n"),
    of_both("lds_usage_estimate", "bytes of one step of A and B, with 1 byte for f64 and tf32"),
    of_both("lds_usage_ratio",
            "these over the local memory of a block, for compv4 over 32 KiB on every device"),
    of_both("num_tiles_m", "tiles along the rows"),
    of_both("num_tiles_n", "tiles along the columns"),
    of_both("num_tiles_k", "steps along the depth"),
    of_both("total_output_tiles", "tiles of C"),
    of_both("tile_eff_m", "used share of the last tile's rows: not of all tiles"),
    of_both("tile_eff_n", "used share of the last tile's columns: not of all tiles"),
    of_both("tile_eff_k", "used share of the last step's depth: not of all steps"),
    of_both("overall_tile_efficiency", "product of the three"),
    of_both("cu_utilization", "tiles of C per compute unit; a share only below 1"),
};

constexpr std::array kPaddingColumns{
    of_both("ratio_M_to_tile_m", "M / tile_m"),
    of_both("ratio_N_to_tile_n", "N / tile_n"),
    of_both("ratio_K_to_tile_k", "K / tile_k"),
    of_both("problem_smaller_than_tile_m", "1 when M < tile_m"),
    of_both("problem_smaller_than_tile_n", "1 when N < tile_n"),
    of_both("problem_smaller_than_tile_k", "1 when K < tile_k"),
    of_both("any_dim_too_small", "1 when any of the three is"),
    of_both("needs_padding_m", "1 when tile_m does not divide M"),
    of_both("needs_padding_n", "1 when tile_n does not divide N"),
    of_both("needs_padding_k", "1 when tile_k does not divide K"),
    of_both("has_padding_when_needed_m", "1 when that is so and the kernel pads rows"),
    of_both("has_padding_when_needed_n", "1 when that is so and the kernel pads columns"),
    of_both("has_padding_when_needed_k", "1 when that is so and the kernel pads the depth"),
    of_both("missing_required_padding_m", "1 when rows should be padded and are not"),
    of_both("missing_required_padding_n", "1 when columns should be padded and are not"),
    of_both("missing_required_padding_k", "1 when the depth should be padded and is not"),
    of_both("missing_any_required_padding", "1 when any of the three is missing"),
};

std::vector<FeatureInfo> columns_of(bool has_padding) {
  const std::span<const FeatureInfo> padding(kPaddingColumns);
  const std::array<std::span<const FeatureInfo>, 7> parts{
      kFirstColumns,        kCkWaveColumns, kLabelColumns,
      kCkPaddingColumns,    kSecondColumns, has_padding ? padding : padding.first(0),
      ck_hardware_columns()};
  return by_kind(parts);
}

using Triple = std::array<double, 3>;

Triple tiles_of(std::span<const std::int32_t> words) {
  return {at(words, CkGemmParameter::kTileM), at(words, CkGemmParameter::kTileN),
          at(words, CkGemmParameter::kTileK)};
}

class GemmCkForeignTable final : public CkTable {
 public:
  GemmCkForeignTable(std::string_view name, bool has_padding)
      : CkTable(name, kGemmProblem, ck_gemm_schema(), columns_of(has_padding)),
        has_padding_(has_padding) {}

  void problem_row(const Problem& problem, const Hardware& hardware,
                   std::span<double> out) const override {
    const auto [m, n, k] = sizes_of(problem);
    ColumnWriter writer(out, 1);
    writer.start(0);
    for (const double size : {m, n, k}) {
      writer.put(size);
    }
    for (const double size : {m, n, k, m * n * k}) {
      writer.put(std::log2(size));
    }
    const double bytes = (m * k + k * n + m * n) * ck_element_bytes(type_of(problem), 1);
    writer.put(2 * m * n * k / bytes);
    writer.put(m / n);
    writer.put(m / k);
    writer.put(n / k);
    writer.put(static_cast<double>(problem.field(static_cast<std::size_t>(GemmField::kLayout))));
    put_ck_hardware(hardware, writer);
  }

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    ColumnWriter writer(out, 1);
    writer.start(0);
    writer.put(at(words, CkGemmParameter::kSplitK));
    // From tile_m to persistent, the columns follow the parameters.
    constexpr auto kLast = static_cast<std::size_t>(CkGemmParameter::kPersistent);
    for (const std::int32_t word : words.first(kLast + 1)) {
      writer.put(word);
    }
    const auto [tile_m, tile_n, tile_k] = tiles_of(words);
    writer.put(at(words, CkGemmParameter::kWarpM) * at(words, CkGemmParameter::kWarpN) *
               at(words, CkGemmParameter::kWarpK));
    writer.put(tile_m * tile_n * tile_k);
    writer.put(tile_m * tile_n);
  }

  void interaction_columns(const Problem& problem, const Hardware& hardware, ConfigWords configs,
                           std::span<double> out, std::size_t stride) const override {
    const Triple sizes = sizes_of(problem);
    const double bytes = ck_element_bytes(type_of(problem), 1);
    ColumnWriter writer(out, stride);
    for_each_config(configs, writer, [&](std::span<const std::int32_t> config) {
      const Triple tiles = tiles_of(config);
      const double step = (tiles[0] + tiles[1]) * tiles[2] * bytes;
      writer.put(step);
      writer.put(
          step /
          ck_memory_cap(hardware, config[static_cast<std::size_t>(CkGemmParameter::kPipeline)]));
      put_ck_tiles(sizes, tiles, hardware, writer);
      if (has_padding_) {
        put_padding(sizes, tiles, config, writer);
      }
    });
  }

  std::optional<std::vector<std::size_t>> interaction_values() const override {
    std::vector<CkGemmParameter> used{CkGemmParameter::kTileM, CkGemmParameter::kTileN,
                                      CkGemmParameter::kTileK, CkGemmParameter::kPipeline};
    if (has_padding_) {
      used.insert(used.end(),
                  {CkGemmParameter::kPadM, CkGemmParameter::kPadN, CkGemmParameter::kPadK});
    }
    return positions_of(used);
  }

 private:
  static Triple sizes_of(const Problem& problem) {
    const auto field = [&](GemmField index) {
      return static_cast<double>(problem.field(static_cast<std::size_t>(index)));
    };
    return {field(GemmField::kM), field(GemmField::kN), field(GemmField::kK)};
  }
  static DataType type_of(const Problem& problem) {
    return static_cast<DataType>(problem.field(static_cast<std::size_t>(GemmField::kDtype)));
  }

  static void put_padding(const Triple& sizes, const Triple& tiles,
                          std::span<const std::int32_t> config, ColumnWriter& writer) {
    const std::array<bool, 3> pads{at(config, CkGemmParameter::kPadM) != 0,
                                   at(config, CkGemmParameter::kPadN) != 0,
                                   at(config, CkGemmParameter::kPadK) != 0};
    std::array<bool, 3> needs{};
    bool any_small = false;
    bool any_missing = false;
    for (std::size_t d = 0; d < 3; ++d) {
      writer.put(sizes[d] / tiles[d]);
    }
    for (std::size_t d = 0; d < 3; ++d) {
      const bool small = sizes[d] < tiles[d];
      any_small = any_small || small;
      writer.put(small ? 1 : 0);
    }
    writer.put(any_small ? 1 : 0);
    for (std::size_t d = 0; d < 3; ++d) {
      needs[d] = std::fmod(sizes[d], tiles[d]) != 0;
      writer.put(needs[d] ? 1 : 0);
    }
    for (std::size_t d = 0; d < 3; ++d) {
      writer.put(needs[d] && pads[d] ? 1 : 0);
    }
    for (std::size_t d = 0; d < 3; ++d) {
      const bool missing = needs[d] && !pads[d];
      any_missing = any_missing || missing;
      writer.put(missing ? 1 : 0);
    }
    writer.put(any_missing ? 1 : 0);
  }

  bool has_padding_;
};

}  // namespace

const FeatureTable& gemm_ck_55_table() {
  static const GemmCkForeignTable table("gemm-ck-55", false);
  return table;
}

const FeatureTable& gemm_ck_72_table() {
  static const GemmCkForeignTable table("gemm-ck-72", true);
  return table;
}

}  // namespace foretune::features_internal
