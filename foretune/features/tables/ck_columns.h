// The code shared by the tables for Composable Kernel's configs. Internal to the module.
//
// The tables gemm-ck-55, gemm-ck-72 and grouped-conv-ck-83, -91 and -97 reproduce the features that
// the models of its heuristics (dispatcher/heuristics, 2026) were trained on, by the same
// arithmetic, so that such a model can be run here. They therefore have the same mistakes, which
// the descriptions of the columns mention:
//
// - tile_eff_*, overall_tile_efficiency: how full the last tile is, not how much of all tiles is
//   useful. 129 rows in tiles of 128 have 0.008, not 0.504.
// - lds_usage_ratio: compv4 is held against 32 KiB on every device; compv6 and preshufflev2, which
//   have half of the memory, too, are held against all of it. The engines' own hardware numbers
//   (known_device("ck-gfx950")) have 64 KiB on gfx950, not 160.
// - lds_usage_estimate, arithmetic_intensity: types that the engines do not know (f64, tf32) have
//   1 byte in a GEMM and 2 in a convolution.
// - pipeline: compv6 has code 6, as in training; the C++ side of the original says 5, basic_v1.
// - block_size, gemm_*_per_block: the first, second and third size in a convolution kernel's name,
//   which are rows, columns and depth of its tile. All that is derived from them (num_tiles_*,
//   tile_eff_*, lds_*, num_warps, ratio_*) is about other dimensions than it says.
// - Ho, Wo: without dilation; depth is left out, too. Tables of 91 and 97 features have both right.
// - gemm_*_output: those of the forward pass for the gradients, too, and with the filters of all
//   groups.
// - hw_*: constant for a device, so that no model of one device can learn from them.
//
// Thread safety: constant.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/features/column_table.h"
#include "foretune/features/feature_table.h"
#include "foretune/interop/ck/ck_kernels.h"

namespace foretune::features_internal {

// Columns of a GEMM config that have the same values in all tables: the arrangement of waves, and
// the last flags.
inline constexpr std::array kCkWaveColumns{
    of_config("warp_m", "waves of a block along the rows"),
    of_config("warp_n", "waves of a block along the columns"),
    of_config("warp_k", "waves of a block along the depth"),
    of_config("warp_tile_m", "rows of one matrix instruction"),
    of_config("warp_tile_n", "columns of one matrix instruction"),
    of_config("warp_tile_k", "depth of one matrix instruction"),
};
inline constexpr std::array kCkPaddingColumns{
    of_config("pad_m", "1 when the kernel pads rows"),
    of_config("pad_n", "1 when the kernel pads columns"),
    of_config("pad_k", "1 when the kernel pads the depth"),
    of_config("persistent", "1 for blocks that stay and take one tile after another"),
};

// The 12 columns on the device that all foreign tables end with, and their values.
std::span<const FeatureInfo> ck_hardware_columns();
void put_ck_hardware(const Hardware& hardware, ColumnWriter& writer);

// Sorts the columns of a foreign model, given in its order, by kind. Each gets its foreign
// position.
std::vector<FeatureInfo> by_kind(std::span<const std::span<const FeatureInfo>> parts);

// Returns the engines' bytes of an element; `unknown` for the types that they do not know.
double ck_element_bytes(DataType type, double unknown);

// Writes the nine columns from num_tiles_m to cu_utilization of a product in tiles. Sizes and tiles
// are rows, columns and depth.
void put_ck_tiles(const std::array<double, 3>& sizes, const std::array<double, 3>& tiles,
                  const Hardware& hardware, ColumnWriter& writer);

// Returns the bytes of local memory to which the engines compare a tile.
double ck_memory_cap(const Hardware& hardware, std::int32_t pipeline);

// Returns the numbers of parameters.
template <class Parameter>
std::vector<std::size_t> positions_of(const std::vector<Parameter>& parameters) {
  std::vector<std::size_t> out;
  for (const Parameter parameter : parameters) {
    out.push_back(static_cast<std::size_t>(parameter));
  }
  return out;
}

// The base class of these tables. It keeps the schema by reference.
class CkTable : public FeatureTable {
 public:
  std::string_view name() const final { return name_; }
  std::span<const FeatureInfo> columns() const final { return columns_; }
  Support supports(ProblemType type, const ConfigSchema& schema) const final;

 protected:
  CkTable(std::string_view name, ProblemType problem_type, const ConfigSchema& schema,
          std::vector<FeatureInfo> columns)
      : name_(name), problem_type_(problem_type), schema_(schema), columns_(std::move(columns)) {}

 private:
  std::string_view name_;
  ProblemType problem_type_;
  const ConfigSchema& schema_;
  std::vector<FeatureInfo> columns_;
};

}  // namespace foretune::features_internal
