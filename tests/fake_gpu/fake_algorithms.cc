#include "tests/fake_gpu/fake_algorithms.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "tests/fake_gpu/fake_state.h"

namespace foretune::fake_gpu {
namespace {

using cublaslt::ComputeType;
using cublaslt::CudaType;

constexpr double kMultiprocessors = 132;

struct Tile {
  std::uint32_t id = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};
constexpr std::array kTileSizes{Tile{11, 32, 32},   Tile{15, 64, 64},   Tile{18, 128, 64},
                                Tile{20, 128, 128}, Tile{23, 128, 256}, Tile{448, 192, 128}};

constexpr std::array<std::uint32_t, 5> kLargeTiles{18, 20, 23, 15, 448};
constexpr std::array<std::uint32_t, 3> kSmallTiles{11, 15, 20};
constexpr std::array<std::uint32_t, 1> kAutomaticStages{35};
constexpr std::array<std::uint32_t, 1> kNoStages{0};
constexpr std::array<std::uint16_t, 4> kClusters{0, 2, 3, 5};
constexpr std::array<std::uint16_t, 1> kNoClusters{0};

constexpr AlgorithmFacts plain(std::int32_t id, double slowness) {
  return {.id = id,
          .tiles = kSmallTiles,
          .stages = kNoStages,
          .clusters = kNoClusters,
          .slowness = slowness};
}
constexpr AlgorithmFacts with_split_k(AlgorithmFacts facts, std::uint32_t mask) {
  facts.split_k = 1;
  facts.reduction_mask = mask;
  return facts;
}
constexpr std::array kTensorAlgorithms{with_split_k({.id = 66,
                                                     .tiles = kLargeTiles,
                                                     .stages = kAutomaticStages,
                                                     .clusters = kClusters,
                                                     .swizzling = 1,
                                                     .custom_max = 2,
                                                     .slowness = 1},
                                                    7),
                                       with_split_k(plain(67, 1.3), 2)};
constexpr std::array kPlainAlgorithms{plain(1, 1), plain(2, 1.1)};

Tile tile_of(std::uint32_t id) {
  for (const Tile& tile : kTileSizes) {
    if (tile.id == id) {
      return tile;
    }
  }
  return {id, 64, 64};
}

template <class Set, class Value>
bool contains(const Set& set, Value value) {
  return std::find(set.begin(), set.end(), value) != set.end();
}

bool is_16_bit(CudaType type) { return type == CudaType::kF16 || type == CudaType::kBf16; }

std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }
std::int64_t round_up(std::int64_t value, std::int64_t to) { return divide_up(value, to) * to; }

// Returns the time of one multiplication and addition on one multiprocessor, at about an H200's
// peak.
double step_ns(const Types& types) {
  switch (types.compute) {
    case ComputeType::kF64:
    case ComputeType::kF32Pedantic:
      return 1 / 250.0;
    case ComputeType::kTf32:
      return 1 / 1800.0;
    case ComputeType::kF32:
      break;
  }
  if (types.a == CudaType::kF32) {
    return 1 / 250.0;
  }
  return types.a == CudaType::kF8e4m3 ? 1 / 7200.0 : 1 / 3600.0;
}

bool sane(const Matrix& matrix, std::int64_t rows, std::int64_t columns, std::int64_t batches) {
  return matrix.rows == rows && matrix.columns == columns && matrix.batches == batches &&
         rows > 0 && columns > 0 && batches > 0 && matrix.leading >= rows && matrix.stride >= 0;
}

bool product_is_sane(const Product& product) {
  const std::int64_t m = product.d.rows;
  const std::int64_t n = product.d.columns;
  const std::int64_t k = product.k;
  const std::int64_t batches = product.d.batches;
  if (!sane(product.a, product.transpose_a ? k : m, product.transpose_a ? m : k, batches) ||
      !sane(product.b, product.transpose_b ? n : k, product.transpose_b ? k : n, batches) ||
      !sane(product.c, m, n, batches) || !sane(product.d, m, n, batches)) {
    return false;
  }
  // Batches of D would overwrite each other.
  if (batches > 1 && product.d.stride < product.d.leading * (n - 1) + m) {
    return false;
  }
  if (product.a.type == CudaType::kF8e4m3) {
    return product.transpose_a && !product.transpose_b && product.a.leading % 16 == 0 &&
           product.b.leading % 16 == 0;
  }
  return true;
}

bool config_is_known(const AlgorithmFacts& facts, const Config& config, std::int64_t k) {
  if (!contains(facts.tiles, config.tile) || !contains(facts.stages, config.stages) ||
      !contains(facts.clusters, config.cluster_shape) || config.inner_shape != 0 ||
      config.swizzle > facts.swizzling ||
      config.custom > static_cast<std::uint32_t>(facts.custom_max)) {
    return false;
  }
  if (config.split_k == 1) {
    return config.reduction == 0;
  }
  const bool one_scheme = config.reduction == 1 || config.reduction == 2 || config.reduction == 4;
  return facts.split_k != 0 && config.split_k > 1 && config.split_k <= 16 && one_scheme &&
         (config.reduction & facts.reduction_mask) != 0 && k / config.split_k >= 16;
}

// Counts the tiles of all batches and parts of k, without regard to clusters.
double tiles_of(const Config& config, const Product& product) {
  const Tile tile = tile_of(config.tile);
  return static_cast<double>(divide_up(product.d.rows, tile.rows) *
                             divide_up(product.d.columns, tile.columns) * product.d.batches *
                             config.split_k);
}

double tile_ns(const Config& config, const Product& product) {
  const Tile tile = tile_of(config.tile);
  return static_cast<double>(tile.rows * tile.columns * divide_up(product.k, config.split_k)) *
         step_ns(config.types);
}

// Small tiles load more for each multiplication, and do not fill a multiprocessor.
double inefficiency(const Tile& tile) {
  const double loads = 1 / static_cast<double>(tile.rows) + 1 / static_cast<double>(tile.columns);
  return 24 * loads + 12000 / static_cast<double>(tile.rows * tile.columns);
}

double slowness_of(const Config& config) {
  const AlgorithmFacts* const facts = find_algorithm(config.types, config.algorithm);
  return facts == nullptr ? 1 : facts->slowness;
}

double reduction_ns(const Config& config, const Product& product) {
  if (config.split_k == 1) {
    return 0;
  }
  const double elements =
      static_cast<double>(product.d.rows * product.d.columns * product.d.batches * config.split_k);
  const double output_bytes = static_cast<double>(type_bytes(product.d.type));
  switch (config.reduction) {
    case 1:  // in place, by atomic additions
      return 500 + elements * output_bytes / 600;
    case 2:  // a second kernel over parts of the compute type
      return 1400 + elements * 4 / 2400;
    default:  // a second kernel over parts of the output type
      return 1400 + elements * output_bytes / 2400;
  }
}

}  // namespace

static_assert(sizeof(Config) <= sizeof(cublaslt::Algorithm) &&
              std::is_trivially_copyable_v<Config>);

cublaslt::Algorithm pack(const Config& config) {
  cublaslt::Algorithm algorithm;
  std::memcpy(algorithm.data.data(), &config, sizeof(config));
  return algorithm;
}

std::optional<Config> unpack(const cublaslt::Algorithm* algorithm) {
  if (algorithm == nullptr) {
    return std::nullopt;
  }
  Config config;
  // Config is trivially copyable; the compiler would warn only because of its default values.
  std::memcpy(static_cast<void*>(&config), algorithm->data.data(), sizeof(config));
  if (config.mark != Config::kMark) {
    return std::nullopt;
  }
  return config;
}

std::span<const AlgorithmFacts> algorithms_for(const Types& types) {
  if (types.compute == ComputeType::kF64) {
    const bool all = types == Types{ComputeType::kF64, CudaType::kF64, CudaType::kF64,
                                    CudaType::kF64,    CudaType::kF64, CudaType::kF64};
    return all ? std::span<const AlgorithmFacts>(kPlainAlgorithms)
               : std::span<const AlgorithmFacts>();
  }
  if (types.scale != CudaType::kF32 || types.a != types.b) {
    return {};
  }
  if (types.a == CudaType::kF32) {
    const bool computes = types.compute == ComputeType::kF32 ||
                          types.compute == ComputeType::kF32Pedantic ||
                          types.compute == ComputeType::kTf32;
    return computes && types.c == CudaType::kF32 && types.d == CudaType::kF32
               ? std::span<const AlgorithmFacts>(kPlainAlgorithms)
               : std::span<const AlgorithmFacts>();
  }
  bool supported = false;
  if (is_16_bit(types.a)) {
    supported = types.c == types.d && (types.d == types.a || types.d == CudaType::kF32);
  } else if (types.a == CudaType::kF8e4m3) {
    supported = types.d == CudaType::kF8e4m3
                    ? is_16_bit(types.c)
                    : types.c == types.d && (is_16_bit(types.d) || types.d == CudaType::kF32);
  }
  return supported && types.compute == ComputeType::kF32
             ? std::span<const AlgorithmFacts>(kTensorAlgorithms)
             : std::span<const AlgorithmFacts>();
}

const AlgorithmFacts* find_algorithm(const Types& types, std::int32_t id) {
  for (const AlgorithmFacts& facts : algorithms_for(types)) {
    if (facts.id == id) {
      return &facts;
    }
  }
  return nullptr;
}

Verdict judge(const Config& config, const Product& product, const Types& types) {
  const AlgorithmFacts* const facts = find_algorithm(types, config.algorithm);
  if (facts == nullptr || config.types != types || !product_is_sane(product) ||
      !config_is_known(*facts, config, product.k)) {
    return {};
  }
  Verdict verdict;
  verdict.status = cublaslt::kSuccess;
  if (config.split_k > 1) {
    verdict.workspace_bytes = 4 * static_cast<std::size_t>(product.d.rows * product.d.columns *
                                                           config.split_k * product.d.batches);
  }
  verdict.waves = static_cast<float>(tiles_of(config, product) / kMultiprocessors);
  return verdict;
}

double simulated_ns(const Config& config, const Product& product) {
  const Tile tile = tile_of(config.tile);
  std::int64_t tile_rows = divide_up(product.d.rows, tile.rows);
  std::int64_t tile_columns = divide_up(product.d.columns, tile.columns);
  double factor = slowness_of(config);
  // "Automatic" means a pair along the rows where there are enough tiles.
  const bool automatic = config.cluster_shape == 0 && config.algorithm == 66;
  if (config.cluster_shape == 3 || (automatic && tile_rows > 1)) {
    tile_rows = round_up(tile_rows, 2);
    factor *= product.k >= 256 ? 0.96 : 1.01;
  } else if (config.cluster_shape == 5) {
    tile_columns = round_up(tile_columns, 2);
    factor *= product.k >= 256 ? 0.97 : 1.01;
  }
  const double tiles =
      static_cast<double>(tile_rows * tile_columns * product.d.batches * config.split_k);
  const double waves = std::ceil(tiles / kMultiprocessors);
  if (config.swizzle != 0) {
    factor *= waves > 1 ? 0.98 : 1.005;
  }
  if (config.custom != 0) {
    // The factor depends on the shape, up to 2 % in either direction.
    const std::uint64_t hash = mix(static_cast<std::uint64_t>(product.d.rows) << 40 ^
                                   static_cast<std::uint64_t>(product.d.columns) << 20 ^
                                   static_cast<std::uint64_t>(product.k) ^
                                   static_cast<std::uint64_t>(config.custom) << 60);
    factor *= 0.98 + 0.04 * static_cast<double>(hash >> 11) * 0x1p-53;
  }
  const double work = tile_ns(config, product) * (1 + inefficiency(tile));
  return 2000 + waves * work * factor + reduction_ns(config, product);
}

std::vector<Config> heuristic(const Product& product, const Types& types,
                              std::uint64_t max_workspace_bytes, std::size_t requested) {
  constexpr std::size_t kMost = 8;
  std::vector<std::pair<double, Config>> candidates;
  for (const AlgorithmFacts& facts : algorithms_for(types)) {
    for (const std::uint32_t tile : facts.tiles) {
      for (const std::int32_t split_k : {1, 2, 4, 8}) {
        Config config{.mark = Config::kMark,
                      .algorithm = facts.id,
                      .tile = tile,
                      .split_k = split_k,
                      .reduction = split_k > 1 ? 2U : 0U,
                      .stages = facts.stages.front(),
                      .types = types};
        const Verdict verdict = judge(config, product, types);
        if (verdict.status != cublaslt::kSuccess || verdict.workspace_bytes > max_workspace_bytes) {
          continue;
        }
        const double waves = std::max(1.0, tiles_of(config, product) / kMultiprocessors);
        const double work = tile_ns(config, product) * (1 + inefficiency(tile_of(tile)) / 2);
        const double estimate = waves * work * facts.slowness + reduction_ns(config, product);
        candidates.emplace_back(estimate, config);
      }
    }
  }
  std::ranges::stable_sort(candidates, {}, &std::pair<double, Config>::first);
  candidates.resize(std::min({candidates.size(), requested, kMost}));
  std::vector<Config> best;
  for (const auto& [estimate, config] : candidates) {
    best.push_back(config);
  }
  return best;
}

}  // namespace foretune::fake_gpu
