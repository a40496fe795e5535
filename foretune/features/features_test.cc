// All tables: their form, and that the three ways of computing a feature agree. Some values by
// hand.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/features/feature_table.h"
#include "foretune/features/testing/named_row.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/payload_store.h"
#include "foretune/space/schemas/cpu_gemm.h"
#include "foretune/space/schemas/cublaslt.h"
#include "foretune/space/schemas/triton.h"

namespace foretune {
namespace {

struct Sampled {
  std::string table;
  ConfigSchema schema;
  std::vector<std::vector<std::int32_t>> domains;
  ProblemType type = kGemmProblem;
};

std::vector<Sampled> sampled_ck_tables() {
  std::vector<Sampled> out;
  for (const char* table : {"gemm-ck", "gemm-ck-55", "gemm-ck-72"}) {
    out.push_back({table,
                   ck_gemm_schema(),
                   {{16, 128, 256}, {32, 64, 192},
                    {32, 128},      {1, 2, 4},
                    {1, 2, 4},      {1},
                    {4, 16, 32},    {16, 32, 64},
                    {8, 16, 128},   {0, 1, 2, 3, 4, 5, 6},
                    {0, 1},         {0, 1},
                    {0, 1},         {0, 1},
                    {0, 1},         {0, 1},
                    {1, 3, 8},      {0, 1, 8},
                    {0, 4},         {0, 2}},
                   kGemmProblem});
  }
  out.push_back(out.front());
  out.back().table = "gemm-ck-streamk";
  out.back().schema = ck_gemm_streamk_schema();
  out.back().domains.push_back({0, 1, 2, 3});
  for (const char* table :
       {"grouped-conv", "grouped-conv-ck-83", "grouped-conv-ck-91", "grouped-conv-ck-97"}) {
    out.push_back(
        {table,
         ck_grouped_conv_schema(),
         {{16, 64, 128}, {32, 64}, {64, 128}, {0, 1, 2, 3, 4, 5, 6}, {0, 1, 2}, {0, 1}, {0, 1}},
         kConvProblem});
  }
  return out;
}

std::vector<Sampled> sampled_tables() {
  std::vector<Sampled> out{
      {"gemm-cpu",
       cpu_gemm_schema(),
       {{2},
        {0, 1},
        {1, 4, 14},
        {16, 32, 64},
        {0, 1},
        {0, 1},
        {48, 192, 1024},
        {64, 512, 8192},
        {64, 256, 4096},
        {0, 1},
        {1, 4},
        {0, 4, 16},
        {1, 2, 4},
        {0, 1, 2, 3, 4}}},
      {"gemm-triton",
       triton_gemm_schema(),
       {{16, 64, 256}, {16, 128, 256}, {32, 128}, {8}, {2, 5}, {2, 4, 8}}},
      {"gemm-triton-templates",
       triton_matmul_schema(),
       {{0, 1, 2}, {16, 64, 256}, {16, 128, 256}, {32, 128}, {8}, {2, 5}, {2, 4, 8}}},
      {"gemm-triton-flags",
       diode_triton_schema(),
       {{0, 16, 256},
        {0, 128, 256},
        {0, 32, 128},
        {0, 8},
        {0, 2, 5},
        {0, 4, 8},
        {0, 1},
        {0, 1},
        {0, 1},
        {0, 1, 2, 3}}},
      {"gemm-diode",
       triton_gemm_schema(),
       {{0, 16, 256}, {0, 128, 256}, {0, 32, 128}, {0, 8}, {0, 2, 5}, {0, 4, 8}}},
      {"gemm-diode-v1",
       triton_matmul_schema(),
       {{0, 1, 2}, {0, 16, 256}, {0, 128, 256}, {0, 32, 128}, {0, 8}, {0, 2, 5}, {0, 4, 8}}},
      // With numbers that the library does not have, and ranks beside explicit algorithms.
      {"gemm-cublaslt",
       cublaslt_schema(),
       {{0, 0, 0, 0, 1, 8},
        {0, 21, 66},
        {0, 1, 18, 20, 24, 513, 634, 635, -1},
        {0, 8, 24, 29, 35, 38, 39, -1},
        {0, 1, 2, 3, 16, 100},
        {0, 1, 2, 4},
        {0, 1},
        {0, 255},
        {0, 1, 2, 3, 6, 15, 16, 34, 51, 52, -1},
        {0, 3}}}};
  const std::vector<Sampled> others = sampled_ck_tables();
  out.insert(out.end(), others.begin(), others.end());
  return out;
}

Config random_config(const Sampled& sampled, Rng& rng) {
  Config config{.schema = sampled.schema.id(), .words = {}};
  for (const auto& domain : sampled.domains) {
    config.words.push_back(domain[rng.below(domain.size())]);
  }
  return config;
}

Problem random_convolution(Rng& rng) {
  const auto size = [&](double largest) {
    return std::max<std::int64_t>(1, std::llround(std::exp(std::log(largest) * rng.uniform())));
  };
  while (true) {
    ConvSizes sizes{.n = size(256), .g = size(64), .hi = size(200), .wi = size(200)};
    sizes.operation = static_cast<ConvOperation>(rng.below(3));
    sizes.dtype = static_cast<DataType>(rng.below(data_type_labels().size()));
    sizes.c = sizes.g * size(512);
    sizes.k = sizes.g * size(512);
    sizes.y = rng.between(1, 7);
    sizes.x = rng.between(1, 7);
    sizes.stride_h = rng.between(1, 3);
    sizes.dilation_w = rng.between(1, 3);
    sizes.pad_h = rng.between(0, 3);
    if (rng.below(4) == 0) {
      sizes.di = size(16);
      sizes.z = rng.between(1, 3);
    }
    if (const auto conv = ConvProblem::create(sizes)) {
      return conv->to_problem();
    }
  }
}

Problem random_problem(ProblemType type, Rng& rng) {
  if (type == kConvProblem) {
    return random_convolution(rng);
  }
  const auto size = [&] {
    return std::max<std::int64_t>(1, std::llround(std::exp(12 * rng.uniform())));
  };
  GemmSizes sizes{.m = size(), .n = size(), .k = size()};
  sizes.dtype = static_cast<DataType>(rng.below(data_type_labels().size()));
  sizes.layout = static_cast<GemmLayout>(rng.below(gemm_layout_labels().size()));
  if (rng.below(3) == 0) {
    sizes.operation = GemmOperation::kBmm;
    sizes.batch = rng.between(1, 64);
  }
  return GemmProblem::create(sizes).value().to_problem();
}

Hardware some_cpu() {
  Hardware hardware;
  hardware.set(HardwareValue::kCores, 2);
  hardware.set(HardwareValue::kVectorBytes, 64);
  hardware.set(HardwareValue::kL1Bytes, 48 * 1024);
  hardware.set(HardwareValue::kL2Bytes, 2 * 1024 * 1024);
  return hardware;
}

TEST(FeatureTables, ColumnsAreDistinctDescribedAndInOrder) {
  ASSERT_GE(feature_tables().size(), 3U);
  std::set<std::uint64_t> ids;
  for (const FeatureTable* table : feature_tables()) {
    SCOPED_TRACE(std::string(table->name()));
    std::set<std::string_view> names;
    FeatureKind last = FeatureKind::kProblem;
    for (const FeatureInfo& info : table->columns()) {
      EXPECT_TRUE(names.insert(info.name).second) << info.name;
      EXPECT_FALSE(info.description.empty()) << info.name;
      EXPECT_GE(info.kind, last) << info.name;
      last = info.kind;
    }
    EXPECT_EQ(feature_count(*table, FeatureKind::kProblem) +
                  feature_count(*table, FeatureKind::kConfig) +
                  feature_count(*table, FeatureKind::kInteraction),
              table->columns().size());
    EXPECT_TRUE(ids.insert(feature_table_id(*table)).second);
    EXPECT_EQ(find_feature_table(table->name()).value(), table);
  }
  const auto unknown = find_feature_table("gemm-tritn");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("gemm-triton"), std::string::npos);
}

TEST(FeatureTables, RefuseConfigsOfOtherParameters) {
  for (const Sampled& sampled : sampled_tables()) {
    const FeatureTable& table = **find_feature_table(sampled.table);
    const ProblemType other = sampled.type == kGemmProblem ? kConvProblem : kGemmProblem;
    EXPECT_TRUE(table.supports(sampled.type, sampled.schema));
    EXPECT_FALSE(table.supports(other, sampled.schema));
    ConfigSchema swapped = sampled.schema;
    std::swap(swapped.parameters[0], swapped.parameters[1]);
    EXPECT_FALSE(table.supports(sampled.type, swapped));
    ConfigSchema shorter = sampled.schema;
    shorter.parameters.pop_back();
    const Support support = table.supports(sampled.type, shorter);
    EXPECT_FALSE(support);
    EXPECT_FALSE(support.reason().empty());
  }
}

TEST(FeatureTables, PartsAgreeWithWholeRowsAndAreFinite) {
  constexpr std::uint64_t kSeed = 17;
  Rng rng(kSeed);
  for (const Sampled& sampled : sampled_tables()) {
    SCOPED_TRACE(sampled.table);
    const FeatureTable& table = **find_feature_table(sampled.table);
    const std::size_t problem_columns = feature_count(table, FeatureKind::kProblem);
    const std::size_t config_columns = feature_count(table, FeatureKind::kConfig);
    const std::size_t columns = feature_count(table, FeatureKind::kInteraction);
    for (int round = 0; round < 200; ++round) {
      const Problem problem = random_problem(sampled.type, rng);
      const Hardware hardware = round % 3 == 0   ? Hardware()
                                : round % 3 == 1 ? some_cpu()
                                : round % 2 == 0 ? known_device("ck-gfx950")->hardware
                                                 : h200_fingerprint().hardware;
      const std::size_t count = 1 + rng.below(7);
      const std::size_t stride = count + rng.below(3);
      constexpr double kUntouched = -12345;
      std::vector<Config> configs;
      std::vector<std::int32_t> words;
      for (std::size_t i = 0; i < count; ++i) {
        configs.push_back(random_config(sampled, rng));
        words.insert(words.end(), configs.back().words.begin(), configs.back().words.end());
      }
      std::vector<double> interaction(columns * stride, kUntouched);
      table.interaction_columns(problem, hardware, {words, sampled.domains.size()}, interaction,
                                stride);
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<double> row(table.columns().size());
        feature_row(table, problem, hardware, configs[i], row);
        std::vector<double> problem_row(problem_columns);
        table.problem_row(problem, hardware, problem_row);
        std::vector<double> config_row(config_columns);
        table.config_row(configs[i].words.view(), config_row);
        for (std::size_t c = 0; c < row.size(); ++c) {
          const bool is_missing = table.columns()[c].may_be_missing && std::isnan(row[c]);
          ASSERT_TRUE(std::isfinite(row[c]) || is_missing)
              << table.columns()[c].name << " of " << problem.text() << " seed " << kSeed;
          const double part =
              c < problem_columns ? problem_row[c]
              : c < problem_columns + config_columns
                  ? config_row[c - problem_columns]
                  : interaction[(c - problem_columns - config_columns) * stride + i];
          ASSERT_TRUE(row[c] == part || is_missing) << table.columns()[c].name;
        }
      }
      for (std::size_t c = 0; c < columns; ++c) {
        for (std::size_t i = count; i < stride; ++i) {
          ASSERT_EQ(interaction[c * stride + i], kUntouched);
        }
      }
    }
  }
}

TEST(FeatureTables, InteractionColumnsDependOnTheValuesThatTheTableNames) {
  Rng rng(18);
  std::size_t tables = 0;
  for (const Sampled& sampled : sampled_tables()) {
    SCOPED_TRACE(sampled.table);
    const FeatureTable& table = **find_feature_table(sampled.table);
    const auto values = table.interaction_values();
    if (!values) {
      continue;
    }
    ++tables;
    const std::size_t width = sampled.domains.size();
    const std::size_t columns = feature_count(table, FeatureKind::kInteraction);
    for (int round = 0; round < 200; ++round) {
      const Config config = random_config(sampled, rng);
      Config other = random_config(sampled, rng);
      for (const std::size_t value : *values) {
        ASSERT_LT(value, width);
        other.words[value] = config.words[value];
      }
      std::vector<std::int32_t> words(config.words.begin(), config.words.end());
      words.insert(words.end(), other.words.begin(), other.words.end());
      std::vector<double> out(2 * columns);
      table.interaction_columns(random_problem(sampled.type, rng),
                                known_device("ck-gfx950")->hardware, {words, width}, out, 2);
      for (std::size_t c = 0; c < columns; ++c) {
        ASSERT_EQ(out[2 * c], out[2 * c + 1]) << c;
      }
    }
  }
  EXPECT_GE(tables, 5U);
}

TEST(GemmTriton, ValuesByHand) {
  const Sampled sampled = sampled_tables()[1];
  const FeatureTable& table = **find_feature_table("gemm-triton");
  const Problem problem =
      GemmProblem::create({.m = 100, .n = 1000, .k = 200, .dtype = DataType::kBf16})
          .value()
          .to_problem();
  const Config config{.schema = sampled.schema.id(), .words = {64, 128, 64, 8, 4, 8}};
  auto row = named_row(table, problem, h200_fingerprint().hardware, config);
  expect_columns(row, {{"use_m", 100.0 / 128},
                       {"use_n", 1000.0 / 1024},
                       {"use_k", 200.0 / 256},
                       {"log2_tiles", 4},  // 2 x 8
                       {"waves", 1},
                       {"wave_use", 16.0 / 132},
                       {"k_trips", 4},
                       {"k_trips_per_stage", 1},
                       {"accumulators_per_thread", 64.0 * 128 / 256}});
  // 4 stages of 64 x 192 elements of 2 bytes and a kilobyte: two such blocks fit into 228 KiB.
  expect_columns(row, {{"resident_blocks", 2}, {"m_over_block", 100.0 / 64}});
}

TEST(GemmCpu, ValuesByHand) {
  const Sampled sampled = sampled_tables()[0];
  const FeatureTable& table = **find_feature_table("gemm-cpu");
  const Problem problem = GemmProblem::create({.m = 100, .n = 100, .k = 300}).value().to_problem();
  // AVX-512, 14 x 32, both packed, blocks of 56 x 64 x 128, rows outermost, two threads share rows.
  const Config config{.schema = sampled.schema.id(),
                      .words = {2, 0, 14, 32, 1, 1, 56, 64, 128, 1, 1, 0, 2, 0}};
  auto row = named_row(table, problem, some_cpu(), config);
  expect_columns(
      row,
      {{"vectors", 2}, {"accumulators", 28}, {"loads_per_fma", 16.0 / 28}, {"flops_per_cycle", 2}});
  // A thread gets 50 rows, rounded up to whole blocks: 56.
  expect_columns(row, {{"use_m", 1},
                       {"use_lanes", 100.0 / 112},
                       {"use_n", 100.0 / 128},
                       {"balance", 50.0 / 56},
                       {"log2_blocks_m", 2},
                       {"log2_blocks_n", 2},
                       {"k_passes", 3},
                       {"k_block", 100},
                       {"row_stride_pages", 0}});

  // Dot kernels of 4 x 4, two threads that share the depth.
  const Config dot{.schema = sampled.schema.id(),
                   .words = {2, 1, 4, 4, 0, 0, 64, 256, 512, 0, 1, 0, 2, 4}};
  row = named_row(table, problem, some_cpu(), dot);
  expect_columns(row, {{"vectors", 4},
                       {"accumulators", 16},
                       {"use_lanes", 152.0 / 160},  // 150 rounded up to 8
                       {"balance", 150.0 / 152},
                       {"k_passes", 1},
                       {"k_block", 152}});

  // Four threads in a grid of two by two.
  const Config grid{.schema = sampled.schema.id(),
                    .words = {2, 0, 14, 32, 1, 1, 56, 64, 512, 1, 1, 0, 4, 3}};
  row = named_row(table, problem, some_cpu(), grid);
  expect_columns(row,
                 {{"log2_blocks_m", 2}, {"log2_blocks_n", 1}, {"balance", 2500.0 / (56 * 64)}});
}

TEST(GemmCpu, KnowsOfWeightsWhatTheirFileSays) {
  const testing_support::TemporaryFolder folder;
  const std::vector<float> weights{0, 0, 0.25F, -8, 0, 0x1p-130F, 0, 1};
  ASSERT_TRUE(write_file_atomically(folder / "w", std::as_bytes(std::span(weights))));
  const auto store = PayloadStore::open(std::vector{folder.path().string()}).value();
  const Problem plain = Problem::parse("gemm m=3 n=4 k=2").value();
  const Problem problem =
      Problem::parse(store->resolve_names("gemm m=3 n=4 k=2 payload=@w").value()).value();
  const Sampled sampled = sampled_tables()[0];
  const FeatureTable& table = **find_feature_table("gemm-cpu");
  const Config config{.schema = sampled.schema.id(),
                      .words = {2, 0, 14, 32, 1, 1, 56, 64, 128, 1, 1, 0, 2, 0}};
  auto row = named_row(table, store->resolve(problem).value(), some_cpu(), config);
  EXPECT_EQ(row["weights_zeros"], 0.5);
  EXPECT_EQ(row["weights_constant"], 0);
  EXPECT_EQ(row["weights_subnormals"], 0.125);
  EXPECT_EQ(row["weights_log2_largest"], 3);
  EXPECT_EQ(row["weights_log2_smallest"], -130);
  const Problem constant = Problem::parse("gemm m=3 n=4 k=2 weights=constant").value();
  EXPECT_EQ(named_row(table, constant, some_cpu(), config)["weights_constant"], 1);
  for (const Problem& unknown : {plain, problem}) {
    auto other = named_row(table, unknown, some_cpu(), config);
    EXPECT_TRUE(std::isnan(other["weights_zeros"]));
    EXPECT_TRUE(std::isnan(other["weights_log2_smallest"]));
    EXPECT_EQ(other["k_block"], row["k_block"]);
  }
}

// Models refuse a table whose id differs. A column that changes its meaning must change its name.
TEST(FeatureTables, IdsAreGolden) {
  std::map<std::string, std::uint64_t> ids;
  for (const FeatureTable* table : feature_tables()) {
    ids.emplace(table->name(), feature_table_id(*table));
  }
  const std::map<std::string, std::uint64_t> golden{
      {"gemm-cpu", 4572547745254685475U},          {"gemm-triton", 5464519619889270585U},
      {"gemm-cublaslt", 290416288027860257U},      {"gemm-triton-templates", 18112573255556927389U},
      {"gemm-triton-flags", 6872679073680674645U}, {"gemm-diode", 14145410688281213581U},
      {"gemm-diode-v1", 3823267661630822691U},     {"gemm-ck", 14050647595413995567U},
      {"grouped-conv", 12767648221588833716U},     {"gemm-ck-55", 14656727082876628685U},
      {"gemm-ck-72", 12070358566649545680U},       {"grouped-conv-ck-83", 3491618065044313682U},
      {"sparse-schedule", 7081440990715265522U}};
  for (const auto& [name, id] : golden) {
    EXPECT_EQ(ids[name], id) << name;
  }
}

}  // namespace
}  // namespace foretune
