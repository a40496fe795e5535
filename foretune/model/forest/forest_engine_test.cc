#include "foretune/model/forest/forest_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>

#include "foretune/model/forest/testing/forest_samples.h"

namespace foretune {
namespace {

constexpr std::array kKinds{FeatureKind::kProblem, FeatureKind::kConfig, FeatureKind::kInteraction};

class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t size)
      : data_(static_cast<std::byte*>(::operator new(size + 64, std::align_val_t{64}))) {}
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  ~AlignedBytes() { ::operator delete(data_, std::align_val_t{64}); }
  [[nodiscard]] std::byte* get() const { return data_; }

 private:
  std::byte* data_;
};

std::vector<const EngineKernels*> usable_kernels() {
  std::vector<const EngineKernels*> out{engine_kernels_generic()};
  const auto add = [&](const EngineKernels* kernels, bool is_usable) {
    if (kernels != nullptr && is_usable) {
      out.push_back(kernels);
    }
  };
  add(engine_kernels_avx2(), best_cpu_isa() >= CpuIsa::kAvx2);
  add(engine_kernels_avx512(), best_cpu_isa() >= CpuIsa::kAvx512);
  // Which the CPU may have or not.
  add(engine_kernels_vbmi(), best_cpu_isa() >= CpuIsa::kAvx512 &&
                                 engine_kernels(CpuIsa::kAvx512) == engine_kernels_vbmi());
  return out;
}

// The values of a query, row by row for the reference and by kind for the engine.
struct Pool {
  std::vector<FeatureKind> kinds;
  std::size_t candidates = 0;
  std::vector<std::vector<double>> rows;
  std::vector<double> problem;
  std::vector<double> config_columns;
};

// `one_value` makes interaction columns that all candidates share, `narrow` such of few values.
enum class Columns { kWild, kNarrow, kOneValue };

Pool random_pool(const ForestShape& shape, std::size_t candidates, Columns columns, Rng& rng) {
  Pool pool;
  pool.candidates = candidates;
  pool.rows.assign(candidates, std::vector<double>(shape.features));
  for (std::uint32_t f = 0; f < shape.features; ++f) {
    const FeatureKind kind = kKinds[rng.below(shape.interactions ? 3 : 2)];
    pool.kinds.push_back(kind);
    const std::array few{sample_value(shape, rng), sample_value(shape, rng)};
    for (std::size_t i = 0; i < candidates; ++i) {
      double value = few[0];
      if (kind == FeatureKind::kConfig ||
          (kind == FeatureKind::kInteraction && columns == Columns::kWild)) {
        value = sample_value(shape, rng);
      } else if (kind == FeatureKind::kInteraction && columns == Columns::kNarrow) {
        value = few[rng.below(2)];
      }
      pool.rows[i][f] = value;
    }
    if (kind == FeatureKind::kProblem) {
      pool.problem.push_back(few[0]);
    } else if (kind == FeatureKind::kConfig) {
      for (const std::vector<double>& row : pool.rows) {
        pool.config_columns.push_back(row[f]);
      }
    }
  }
  return pool;
}

void expect_equals_reference(const Forest& forest, const Pool& pool, const EngineKernels* kernels) {
  const auto engine =
      ForestEngine::create(forest, pool.kinds, pool.config_columns, pool.candidates, kernels);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const AlignedBytes codes((*engine)->codes_bytes());
  const AlignedBytes scratch((*engine)->scratch_bytes());
  std::memset(codes.get(), 0xa5, (*engine)->codes_bytes());
  std::memset(scratch.get(), 0xa5, (*engine)->scratch_bytes());
  for (int repeat = 0; repeat < 2; ++repeat) {
    (*engine)->begin(codes.get());
    for (std::size_t first = 0; first < pool.candidates; first += kEngineBlock) {
      const std::size_t count = std::min(kEngineBlock, pool.candidates - first);
      std::vector<double> columns;
      for (std::size_t f = 0; f < pool.kinds.size(); ++f) {
        for (std::size_t i = 0; pool.kinds[f] == FeatureKind::kInteraction && i < count; ++i) {
          columns.push_back(pool.rows[first + i][f]);
        }
      }
      (*engine)->add_chunk(codes.get(), first, count, columns.data(), count);
    }
    (*engine)->run(codes.get(), scratch.get(), pool.problem);
    for (std::size_t i = 0; i < pool.candidates; ++i) {
      const double expected = predict_reference(forest, pool.rows[i]);
      const double actual = (*engine)->sum(scratch.get(), i);
      ASSERT_EQ(std::bit_cast<std::uint64_t>(expected), std::bit_cast<std::uint64_t>(actual))
          << "candidate " << i << " on " << kernels->name << ": " << expected << " " << actual;
    }
  }
}

struct EngineCase {
  const char* name;
  ForestShape shape;
  std::size_t candidates;
};

class ForestEngineTest : public testing::TestWithParam<EngineCase> {};

TEST_P(ForestEngineTest, EqualsTheReferenceBitForBitOnEveryInstructionSet) {
  constexpr std::uint64_t kSeed = 20240117;
  RecordProperty("seed", static_cast<int>(kSeed));
  Rng rng(kSeed);
  for (int round = 0; round < 4; ++round) {
    const Forest forest = random_forest(GetParam().shape, rng);
    ASSERT_TRUE(forest.validate());
    for (const Columns columns : {Columns::kWild, Columns::kNarrow, Columns::kOneValue}) {
      const Pool pool = random_pool(GetParam().shape, GetParam().candidates, columns, rng);
      for (const EngineKernels* kernels : usable_kernels()) {
        SCOPED_TRACE(testing::Message() << "seed " << kSeed << " round " << round);
        expect_equals_reference(forest, pool, kernels);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ForestEngineTest,
    testing::Values(
        EngineCase{"small", {}, 100}, EngineCase{"one_candidate", {}, 1},
        EngineCase{"one_word", {.trees = 60, .max_leaves = 60}, 60},
        EngineCase{"one_full_word", {.features = 12, .trees = 30, .max_leaves = 200}, 64},
        EngineCase{"two_words", {.features = 12, .trees = 30, .max_leaves = 200}, 65},
        EngineCase{"two_full_words", {.trees = 30, .max_leaves = 100, .levels = 0}, 128},
        EngineCase{"four_words", {.features = 12, .trees = 30, .max_leaves = 600}, 129},
        EngineCase{
            "four_full_words",
            {.features = 3, .trees = 9, .max_leaves = 700, .vary_leaves = false, .levels = 0},
            256},
        EngineCase{"eight_words", {.trees = 30, .max_leaves = 256, .vary_leaves = false}, 300},
        EngineCase{
            "a_word_of_chains", {.trees = 9, .max_leaves = 90, .chains = true, .levels = 0}, 50},
        EngineCase{"a_word_of_categories",
                   {.trees = 30, .max_leaves = 60, .sets = 12, .interactions = false},
                   62},
        EngineCase{"one_block", {}, 512}, EngineCase{"one_more_than_a_block", {}, 513},
        EngineCase{"many_candidates", {.features = 9, .trees = 30}, 1700},
        EngineCase{"single_leaves", {.trees = 5, .max_leaves = 1}, 70},
        EngineCase{"two_leaves", {.trees = 40, .max_leaves = 2}, 130},
        EngineCase{"sixteen_leaves", {.max_leaves = 16, .vary_leaves = false}, 300},
        EngineCase{"127_leaves", {.trees = 20, .max_leaves = 127, .vary_leaves = false}, 600},
        EngineCase{"more_trees_than_are_cut_together", {.trees = 150, .max_leaves = 20}, 520},
        EngineCase{"paths_of_eight",
                   {.trees = 20, .max_leaves = 9, .vary_leaves = false, .chains = true},
                   530},
        EngineCase{"paths_of_twelve",
                   {.features = 14, .trees = 40, .max_leaves = 13, .chains = true},
                   530},
        EngineCase{"paths_of_sixteen_and_more",
                   {.features = 20, .trees = 60, .max_leaves = 20, .chains = true, .levels = 0},
                   530},
        EngineCase{"leaves_for_every_table",
                   {.features = 30, .trees = 40, .max_leaves = 240, .levels = 0},
                   1100},
        EngineCase{"no_missing",
                   {.features = 12, .trees = 20, .max_leaves = 127, .any_missing = false},
                   600},
        EngineCase{"large_trees", {.trees = 3, .max_leaves = 700, .vary_leaves = false}, 700},
        EngineCase{
            "chains", {.trees = 4, .max_leaves = 300, .vary_leaves = false, .chains = true}, 300},
        EngineCase{
            "categories", {.trees = 30, .max_leaves = 60, .sets = 12, .interactions = false}, 600},
        EngineCase{"distinct_thresholds",
                   {.features = 3, .trees = 12, .max_leaves = 40, .levels = 0},
                   400},
        EngineCase{
            "two_byte_codes",
            {.features = 2, .trees = 30, .max_leaves = 90, .vary_leaves = false, .levels = 0},
            900}),
    [](const testing::TestParamInfo<EngineCase>& test) { return test.param.name; });

// All of 2^levels leaves are reached: from few to more than are numbered by their paths.
TEST(ForestEngine, PerfectTreesOfAnySize) {
  Rng rng(5);
  for (std::uint32_t levels = 1; levels <= 9; ++levels) {
    SCOPED_TRACE(levels);
    Forest forest;
    forest.feature_count = levels;
    const std::uint32_t leaves = 1U << levels;
    for (std::uint32_t tree = 0; tree < 3; ++tree) {
      forest.trees.push_back({tree * (leaves - 1), leaves - 1, tree * leaves, leaves});
      for (std::uint32_t node = 0; node + 1 < leaves; ++node) {
        const auto child = [&](std::uint32_t index) {
          return index + 1 < leaves ? static_cast<std::int32_t>(index)
                                    : ~static_cast<std::int32_t>(index + 1 - leaves);
        };
        forest.feature.push_back(static_cast<std::uint32_t>(std::bit_width(node + 1)) - 1);
        forest.threshold.push_back(0.1 * rng.normal());
        forest.left.push_back(child(2 * node + 1));
        forest.right.push_back(child(2 * node + 2));
        forest.default_left.push_back(0);
        forest.missing.push_back(Forest::Missing::kNone);
        forest.leaf_value.push_back(rng.normal());
      }
      forest.leaf_value.push_back(rng.normal());
    }
    Pool pool;
    pool.candidates = 3000;
    pool.kinds.assign(levels, FeatureKind::kInteraction);
    pool.rows.assign(pool.candidates, std::vector<double>(levels));
    for (std::vector<double>& row : pool.rows) {
      std::generate(row.begin(), row.end(), [&] { return rng.normal(); });
    }
    for (const EngineKernels* kernels : usable_kernels()) {
      expect_equals_reference(forest, pool, kernels);
    }
  }
}

TEST(ForestEngine, DeepChainsNeedLittleWorkspace) {
  Rng rng(3);
  const ForestShape shape{.trees = 1, .max_leaves = 30000, .vary_leaves = false, .chains = true};
  const Forest forest = random_forest(shape, rng);
  const Pool pool = random_pool(shape, 40, Columns::kWild, rng);
  for (const EngineKernels* kernels : usable_kernels()) {
    expect_equals_reference(forest, pool, kernels);
  }
}

TEST(ForestEngine, RefusesWhatItCannotHold) {
  Rng rng(4);
  const ForestShape shape{.features = 1, .trees = 1, .max_leaves = 40000, .vary_leaves = false};
  const Forest forest = random_forest(shape, rng);
  const std::vector<FeatureKind> kinds{FeatureKind::kProblem};
  const auto engine = ForestEngine::create(forest, kinds, {}, 10, CpuIsa::kGeneric);
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().code, ErrorCode::kUnsupported);
  const auto other = ForestEngine::create(forest, {}, {}, 10, CpuIsa::kGeneric);
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, ErrorCode::kMismatch);
}

TEST(ForestEngine, RefusesCategoriesOfAnInteractionFeature) {
  Forest forest;
  forest.feature_count = 2;
  forest.trees = {{0, 1, 0, 2}};
  forest.feature = {1};
  forest.threshold = {0};
  forest.left = {~0};
  forest.right = {~1};
  forest.default_left = {0};
  forest.missing = {Forest::Missing::kCategorical};
  forest.leaf_value = {1, 2};
  forest.categories = {.end = {1}, .words = {5}};
  const std::vector<FeatureKind> kinds{FeatureKind::kProblem, FeatureKind::kInteraction};
  const auto engine = ForestEngine::create(forest, kinds, {}, 4, CpuIsa::kGeneric);
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(engine.error().message.find("split by category"), std::string::npos)
      << engine.error().message;
}

}  // namespace
}  // namespace foretune
