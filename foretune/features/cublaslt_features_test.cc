// The table of cuBLASLt's configs: values computed by hand, and the meaning of its numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/features/testing/named_row.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

// Tables do not look at a config's schema.
constexpr std::uint64_t kSchema = 1;

// The choices of an explicit config. All others are the same in these tests.
struct Explicit {
  std::int32_t tile = 0;
  std::int32_t cluster = 0;
  std::int32_t stages = 0;
  std::int32_t split_k = 1;
  std::int32_t reduction = 0;
  std::int32_t custom = 0;
};

Config config_of(const Explicit& config) {
  return {.schema = kSchema,
          .words = {0, 66, config.tile, config.stages, config.split_k, config.reduction, 0,
                    config.custom, config.cluster, 0}};
}

std::map<std::string, double> row_of(const GemmSizes& sizes, const Config& config,
                                     const Hardware& hardware = h200_fingerprint().hardware) {
  return named_row(**find_feature_table("gemm-cublaslt"),
                   GemmProblem::create(sizes).value().to_problem(), hardware, config);
}

Hardware two_cores() {
  Hardware hardware;
  hardware.set(HardwareValue::kCores, 2);
  return hardware;
}

constexpr std::int32_t kTile256x128 = 24;
constexpr std::int32_t kTile128x256 = 23;
constexpr std::int32_t kCluster1x1 = 2;
constexpr std::int32_t kCluster2x1 = 3;
constexpr std::int32_t kCluster1x2 = 5;
constexpr std::int32_t kCluster4x4 = 10;
constexpr std::int32_t kStages64xAuto = 35;
constexpr std::int32_t kInWorkspace = 2;

TEST(GemmCublaslt, ValuesByHand) {
  const GemmSizes sizes{.m = 100, .n = 1000, .k = 200, .dtype = DataType::kBf16};
  const Hardware h200 = h200_fingerprint().hardware;
  auto row = row_of(sizes, config_of({.tile = kTile256x128,
                                      .cluster = kCluster2x1,
                                      .stages = kStages64xAuto,
                                      .split_k = 2,
                                      .reduction = kInWorkspace,
                                      .custom = 5}));
  expect_columns(row, {{"custom", 5},
                       {"custom_bit_0", 1},
                       {"custom_bit_1", 0},
                       {"custom_bit_2", 1},
                       {"tile_m", 256},
                       {"tile_n", 128},
                       {"tile_elements", 256 * 128},
                       {"tile_perimeter", 384},
                       {"tile_aspect", 1},
                       {"flops_per_loaded_element", 256.0 * 128 / 384},
                       {"cluster_m", 2},
                       {"cluster_n", 1},
                       {"cluster_size", 2},
                       {"cluster_tile_m", 512},
                       {"cluster_tile_n", 128},
                       {"stage_depth", 64},
                       {"stage_count", 0}});
  // The library's 256 rows are our columns: 1 x 4 tiles, 1 x 2 clusters, twice for the parts.
  expect_columns(row,
                 {{"use_m", 100.0 / 128},
                  {"use_n", 1000.0 / 1024},
                  {"use_tile", 100.0 / 128 * 1000 / 1024},
                  {"cluster_use_m", 100.0 / 128},
                  {"cluster_use_n", 1000.0 / 1024},
                  {"log2_tiles", 2},
                  {"log2_units", 3},
                  {"waves", 1},
                  {"wave_use", 8.0 / 132},
                  {"cluster_waves", 1},
                  {"cluster_wave_use", 4.0 / 66},
                  {"log2_split_depth", std::log2(100.0)},
                  {"k_trips", 2},
                  {"log2_critical_work", std::log2(256.0 * 128 * 128 / (100.0 * 1000 * 200 / 132))},
                  {"log2_traffic", std::log2(1200.0 / 1100)}});
  const double bytes_per_ns = h200.get(HardwareValue::kBandwidthGbs);
  const double load_ns = 1200.0 * 200 * 2 / bytes_per_ns;
  EXPECT_DOUBLE_EQ(row["log2_load_ns"], std::log2(load_ns));
  // Two parts of four bytes an element, written and read.
  const double sum_ns = 2 * 2 * 100.0 * 1000 * 4 / bytes_per_ns;
  EXPECT_DOUBLE_EQ(row["log2_reduction_ns"], std::log2(1 + sum_ns));
  const double compute_ns =
      2.0 * 256 * 128 * 128 * 132 / h200.get(HardwareValue::kTensorPeakGflops);
  const double memory_ns = (100.0 * 200 + 200.0 * 1000 + 100.0 * 1000) * 2 / bytes_per_ns;
  expect_columns(row,
                 {{"log2_estimate_ns",
                   std::log2(std::max({compute_ns, memory_ns, 0.25 * load_ns}) + sum_ns + 2000)},
                  {"m_over_tile", 100.0 / 128},
                  {"n_over_tile", 1000.0 / 256},
                  {"log2_tiles_m", 0},
                  {"log2_tiles_n", 2},
                  {"last_wave", 8.0 / 132}});

  // Rows of A are 400 bytes long, those of B and C 2,000.
  expect_columns(row, {{"a_by_columns", 0},
                       {"b_by_columns", 0},
                       {"on_matrix_units", 1},
                       {"alignment_a", 4},
                       {"alignment_b", 4},
                       {"alignment_c", 4}});
  row = row_of({.m = 24, .n = 4096, .k = 32768, .layout = GemmLayout::kCcr},
               config_of({.tile = kTile256x128}));
  expect_columns(row, {{"a_by_columns", 1},
                       {"b_by_columns", 1},
                       {"on_matrix_units", 0},
                       {"alignment_a", 5},   // 96 bytes
                       {"alignment_b", 14},  // 131,072 bytes: larger alignments count the same
                       {"alignment_c", 14}});

  // A third tile along n leaves half of the second cluster empty.
  row = row_of({.m = 1, .n = 600, .k = 64},
               config_of({.tile = kTile256x128, .cluster = kCluster2x1}));
  expect_columns(row, {{"use_n", 600.0 / 768}, {"cluster_use_n", 600.0 / 1024}});
  row = row_of({.m = 5120, .n = 10240, .k = 64},
               config_of({.tile = kTile256x128, .cluster = kCluster4x4}));
  expect_columns(row, {{"waves", 13},          // 40 x 40 tiles on 132 multiprocessors
                       {"cluster_waves", 13},  // 10 x 10 clusters on 8 places
                       {"wave_use", 1600.0 / (13 * 132)},
                       {"last_wave", 16.0 / 132},
                       {"cluster_wave_use", 100.0 / (13 * 8)},
                       {"m_over_tile", 40}});
}

// The product with its sizes swapped by the transposed kernel is the same work.
TEST(GemmCublaslt, TransposedProblemsAndTilesAgree) {
  const auto swapped = [](std::string name) {
    for (const auto& [from, to] :
         {std::pair{"use_m", "use_n"}, std::pair{"m_over", "n_over"}, std::pair{"use_n", "use_m"},
          std::pair{"n_over", "m_over"}, std::pair{"tiles_m", "tiles_n"},
          std::pair{"tiles_n", "tiles_m"}}) {
      const std::size_t at = name.find(from);
      if (at != std::string::npos) {
        return name.replace(at, std::string_view(from).size(), to);
      }
    }
    return name;
  };
  const FeatureTable& table = **find_feature_table("gemm-cublaslt");
  const auto row = row_of({.m = 300, .n = 5000, .k = 777},
                          config_of({.tile = kTile256x128, .cluster = kCluster2x1, .split_k = 3}));
  auto other = row_of({.m = 5000, .n = 300, .k = 777},
                      config_of({.tile = kTile128x256, .cluster = kCluster1x2, .split_k = 3}));
  std::size_t compared = 0;
  for (const FeatureInfo& info : table.columns()) {
    if (info.kind == FeatureKind::kInteraction) {
      const std::string name(info.name);
      ASSERT_EQ(other.count(swapped(name)), 1U) << name;
      EXPECT_DOUBLE_EQ(row.at(name), other[swapped(name)]) << name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 23U);
}

TEST(GemmCublaslt, CornerCases) {
  const Config plain = config_of({.tile = kTile256x128, .cluster = kCluster1x1});
  auto row = row_of({}, plain);
  expect_columns(row, {{"use_m", 1.0 / 128},
                       {"use_n", 1.0 / 256},
                       {"log2_units", 0},
                       {"log2_split_depth", 0},
                       {"k_trips", 1},
                       {"log2_traffic", 0},
                       {"log2_reduction_ns", 0}});
  // One tile on one multiprocessor, a step of 64 deep.
  const double flops = 2.0 * 256 * 128 * 64;
  const double flops_per_ns = h200_fingerprint().hardware.get(HardwareValue::kTensorPeakGflops);
  EXPECT_DOUBLE_EQ(row["log2_estimate_ns"], std::log2(1000 + flops / (flops_per_ns / 132)));
  // One row, one column: the other operand is loaded once, the vector by each tile.
  row = row_of({.n = 1024, .k = 100}, plain);
  expect_columns(row, {{"log2_tiles", 2},
                       {"log2_traffic", std::log2((1 * 4 + 1024 * 1) / 1025.0)},
                       {"n_over_tile", 4}});
  row = row_of({.m = 1024, .k = 100}, plain);
  expect_columns(row,
                 {{"log2_tiles", 3}, {"log2_traffic", std::log2((1024 * 1 + 1 * 8) / 1025.0)}});
  row = row_of({.m = 1 << 20}, plain);
  EXPECT_DOUBLE_EQ(row["m_over_tile"], 64);
  // With more parts than the depth has elements, each is still a unit.
  row = row_of({.m = 10, .n = 10}, config_of({.tile = kTile256x128, .split_k = 4}));
  expect_columns(row, {{"log2_units", 2}, {"log2_split_depth", 0}});
  EXPECT_GT(row["log2_reduction_ns"], 0);
  // Products of a batch are units of their own; 512 of them take four waves.
  row =
      row_of({.m = 100, .n = 100, .k = 100, .batch = 512, .operation = GemmOperation::kBmm}, plain);
  expect_columns(row, {{"log2_tiles", 0},
                       {"log2_units", 9},
                       {"waves", 4},
                       {"wave_use", 512.0 / (4 * 132)},
                       {"log2_traffic", 0}});
  // A cluster larger than the device. Refusing it is up to the pool.
  row = row_of({.m = 1000, .n = 1000, .k = 64},
               config_of({.tile = kTile256x128, .cluster = kCluster4x4}), two_cores());
  expect_columns(row, {{"cluster_waves", 2}, {"cluster_wave_use", 1}});
  // The library's own choice of a cluster counts as none, and 64 elements as a step.
  auto chosen = row_of({.m = 1000, .n = 1000, .k = 100}, config_of({.tile = kTile256x128}));
  row = row_of({.m = 1000, .n = 1000, .k = 100}, plain);
  expect_columns(chosen, {{"cluster_size", 0}, {"cluster_tile_m", 256}});
  EXPECT_DOUBLE_EQ(chosen["cluster_use_m"], row["cluster_use_m"]);
  EXPECT_DOUBLE_EQ(chosen["cluster_waves"], row["cluster_waves"]);
  expect_columns(chosen, {{"k_trips", 2}, {"stage_depth", 0}});
}

TEST(GemmCublaslt, UnknownTilesHaveZeros) {
  const FeatureTable& table = **find_feature_table("gemm-cublaslt");
  std::vector<Config> configs;
  for (std::int32_t rank = 1; rank <= 8; ++rank) {
    configs.push_back({.schema = kSchema, .words = {rank, 0, 0, 0, 0, 0, 0, 0, 0, 0}});
  }
  constexpr std::int32_t kLargest = std::numeric_limits<std::int32_t>::max();
  for (const std::int32_t tile : {0, 635, -1, kLargest, std::numeric_limits<std::int32_t>::min()}) {
    configs.push_back(config_of({.tile = tile, .split_k = 2}));
  }
  for (const Config& config : configs) {
    auto row = row_of({.m = 100, .n = 1000, .k = 200}, config);
    for (const FeatureInfo& info : table.columns()) {
      const std::string name(info.name);
      if (info.kind == FeatureKind::kInteraction || name.find("tile_") == 0) {
        EXPECT_EQ(row[name], 0) << name << " of tile " << config.words[2];
      }
    }
    EXPECT_EQ(row["heuristic"], config.words[0]);
    EXPECT_EQ(row["tile"], config.words[2]);
    EXPECT_EQ(row["cluster_size"], 0);
  }
}

// All tiles are distinct, in steps of eight; first, last and some of each group as in cublasLt.h.
TEST(GemmCublaslt, NumbersAreTheLibrarys) {
  std::set<std::pair<double, double>> sizes;
  for (std::int32_t tile = 1; tile <= 634; ++tile) {
    auto row = row_of({}, config_of({.tile = tile}));
    EXPECT_GE(row["tile_m"], 8) << tile;
    EXPECT_GE(row["tile_n"], 8) << tile;
    EXPECT_EQ(std::fmod(row["tile_m"], 8), 0) << tile;
    EXPECT_EQ(std::fmod(row["tile_n"], 8), 0) << tile;
    EXPECT_TRUE(sizes.emplace(row["tile_m"], row["tile_n"]).second) << tile;
  }
  struct Size {
    std::int32_t number = 0;
    double first = 0;
    double second = 0;
  };
  for (const Size& size :
       {Size{1, 8, 8}, Size{20, 128, 128}, Size{34, 32, 256}, Size{116, 64, 192},
        Size{311, 768, 64}, Size{312, 64, 16}, Size{393, 128, 8}, Size{448, 192, 8},
        Size{513, 256, 256}, Size{630, 768, 80}, Size{634, 512, 1024}}) {
    auto row = row_of({}, config_of({.tile = size.number}));
    EXPECT_EQ(row["tile_m"], size.first) << size.number;
    EXPECT_EQ(row["tile_n"], size.second) << size.number;
  }
  for (const Size& size :
       {Size{0, 0, 0}, Size{1, 0, 0}, Size{2, 1, 1}, Size{3, 2, 1}, Size{5, 1, 2}, Size{16, 1, 16},
        Size{34, 3, 3}, Size{37, 3, 4}, Size{51, 1, 15}, Size{52, 0, 0}, Size{-1, 0, 0}}) {
    auto row = row_of({}, config_of({.tile = kTile256x128, .cluster = size.number}));
    EXPECT_EQ(row["cluster_m"], size.first) << size.number;
    EXPECT_EQ(row["cluster_n"], size.second) << size.number;
  }
  for (const Size& size :
       {Size{0, 0, 0}, Size{1, 16, 1}, Size{24, 128, 6}, Size{25, 32, 10}, Size{28, 8, 5},
        Size{29, 0, 0}, Size{31, 8, 3}, Size{32, 8, 0}, Size{38, 768, 0}, Size{39, 0, 0}}) {
    auto row = row_of({}, config_of({.tile = kTile256x128, .stages = size.number}));
    EXPECT_EQ(row["stage_depth"], size.first) << size.number;
    EXPECT_EQ(row["stage_count"], size.second) << size.number;
  }
}

}  // namespace
}  // namespace foretune
