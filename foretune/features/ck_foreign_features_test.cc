// The features of Composable Kernel's models, row by row in the order of those models. The expected
// values were computed independently of the code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/features/testing/foreign_row.h"
#include "foretune/features/testing/named_row.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

const FeatureTable& table_of(std::string_view name) { return *find_feature_table(name).value(); }
Problem foreign_problem(std::string_view text) { return Problem::parse(text).value(); }
Hardware device(std::string_view name) { return known_device(name).value().hardware; }

Config foreign_gemm(std::string_view name, std::int32_t split_k = 1) {
  Config config = parse_ck_gemm_name(name).value().config;
  config.words[static_cast<std::size_t>(CkGemmParameter::kSplitK)] = split_k;
  return config;
}
Config foreign_kernel(std::string_view name) { return parse_ck_conv_name(name).value().config; }

using Values = std::vector<double>;

void expect_row(std::string_view table_name, const Problem& problem, std::string_view device_name,
                const Config& config, const Values& expected) {
  SCOPED_TRACE(std::string(table_name) + " " + problem.text());
  const FeatureTable& table = table_of(table_name);
  Values row(table.columns().size());
  ASSERT_EQ(row.size(), expected.size());
  foreign_row(table, problem, device(device_name), config, row);
  const std::vector<std::uint16_t> order = foreign_order(table);
  for (std::size_t i = 0; i < row.size(); ++i) {
    EXPECT_DOUBLE_EQ(row[i], expected[i]) << i << ": " << table.columns()[order[i]].name;
  }
}

struct GemmCase {
  std::string_view problem;
  std::string_view kernel;
  std::int32_t split_k;
  std::string_view device;
  Values first;     // of both tables
  Values padding;   // of gemm-ck-72 only
  Values hardware;  // of both
};

const std::vector<GemmCase>& gemm_cases() {
  static const std::vector<GemmCase> cases{
      // The last row has a tile of its own; compv4 is compared to 32 KiB.
      {"gemm op=mm m=129 n=1536 k=7168 dtype=f8e4m3 layout=rcr",
       "gemm_universal_fp8_rcr_compv4_cshuffle_intrawave_False_False_False_False_128x64x128_1x4x1_"
       "16x16x128",
       1,
       "ck-gfx950",
       {129,
        1536,
        7168,
        1,
        7.011227255423254,
        10.584962500721156,
        12.807354922057604,
        30.403544678202014,
        234.1238131409039,
        0.083984375,
        0.017996651785714284,
        0.21428571428571427,
        0,
        128,
        64,
        128,
        1,
        4,
        1,
        16,
        16,
        128,
        1,
        0,
        1,
        0,
        0,
        0,
        0,
        4,
        1048576,
        8192,
        24576,
        0.75,
        2,
        24,
        56,
        48,
        0.0078125,
        1,
        1,
        0.0078125,
        0.1875},
       {1.0078125, 24, 56, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1},
       {256, 4, 1024, 32, 2400, 32, 64, 65536, 32, 4096, 262144, 8}},
      // One multiply-add.
      {"gemm m=1 n=1 k=1 dtype=f16 layout=rrr",
       "gemm_universal_fp16_rrr_mem_default_interwave_True_True_False_True_64x128x64_2x2x1_"
       "32x32x16",
       4,
       "ck-gfx90a",
       {1,
        1,
        1,
        4,
        0,
        0,
        0,
        0,
        0.3333333333333333,
        1,
        1,
        1,
        1,
        64,
        128,
        64,
        2,
        2,
        1,
        32,
        32,
        16,
        3,
        1,
        0,
        1,
        1,
        0,
        1,
        4,
        524288,
        8192,
        24576,
        0.375,
        1,
        1,
        1,
        1,
        0.015625,
        0.0078125,
        0.015625,
        1.9073486328125e-06,
        0.00909090909090909},
       {0.015625, 0.0078125, 0.015625, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1},
       {110, 4, 440, 8, 1700, 32, 64, 65536, 16, 8192, 131072, 1}},
      // Primes, one of them below the tile; code 6.
      {"gemm m=4093 n=17 k=257 dtype=f32 layout=ccr",
       "gemm_universal_fp32_ccr_compv6_cshuffle_intrawave_False_True_True_False_256x192x32_4x1x1_"
       "32x32x8",
       1,
       "gfx942",
       {4093,
        17,
        257,
        1,
        11.998942951443086,
        4.087462841250339,
        8.005624549193879,
        24.092030341887302,
        7.94168899792246,
        240.76470588235293,
        15.926070038910506,
        0.06614785992217899,
        3,
        256,
        192,
        32,
        4,
        1,
        1,
        32,
        32,
        8,
        6,
        0,
        1,
        0,
        1,
        1,
        0,
        4,
        1572864,
        49152,
        57344,
        0.875,
        16,
        1,
        9,
        16,
        0.98828125,
        0.08854166666666667,
        0.03125,
        0.002734502156575521,
        0.05263157894736842},
       {15.98828125, 0.08854166666666667, 8.03125, 0, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1},
       {304, 4, 1216, 32, 2100, 32, 64, 65536, 32, 32768, 262144, 8}},
  };
  return cases;
}

Values joined(const std::vector<Values>& parts) {
  Values out;
  for (const Values& part : parts) {
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

TEST(GemmCkForeign, RowsAreThoseOfTheModels) {
  for (const GemmCase& test : gemm_cases()) {
    const Problem problem = foreign_problem(test.problem);
    const Config config = foreign_gemm(test.kernel, test.split_k);
    expect_row("gemm-ck-55", problem, test.device, config, joined({test.first, test.hardware}));
    expect_row("gemm-ck-72", problem, test.device, config,
               joined({test.first, test.padding, test.hardware}));
  }
}

// The engines do not know f64 and tf32: 1 byte.
TEST(GemmCkForeign, UnknownTypesHaveOneByte) {
  const Config config = foreign_gemm(gemm_cases()[0].kernel);
  const auto bytes_of = [&](const std::string& dtype) {
    return named_row(table_of("gemm-ck-55"), foreign_problem("gemm m=1 n=1 k=1 dtype=" + dtype),
                     device("ck-gfx950"), config)["lds_usage_estimate"] /
           24576;
  };
  EXPECT_EQ(bytes_of("f64"), 1);
  EXPECT_EQ(bytes_of("tf32"), 1);
  EXPECT_EQ(bytes_of("f32"), 4);
  EXPECT_EQ(bytes_of("bf16"), 2);
  EXPECT_EQ(bytes_of("i8"), 1);
}

TEST(GroupedConvCkForeign, RowsAreThoseOfTheModels) {
  expect_row("grouped-conv-ck-83",
             foreign_problem("conv n=16 c=256 k=128 hi=28 wi=30 y=3 x=3 stride_h=2 pad_h=1 pad_w=1 "
                             "dtype=bf16"),
             "ck-gfx950", foreign_kernel("grouped_conv_forward_bf16_2d_16x64x32_compv4_dsb"),
             {16,
              256,
              128,
              1,
              28,
              30,
              3,
              3,
              2,
              1,
              1,
              1,
              14,
              30,
              4,
              8,
              7,
              0,
              4.807354922057604,
              4.906890595608519,
              9.714245517666123,
              3.169925001442312,
              8.714245517666123,
              431.2299465240642,
              9,
              0,
              1,
              256,
              0.9333333333333333,
              1,
              8,
              7,
              0,
              0.00390625,
              0,
              32768,
              16,
              0,
              16,
              64,
              32,
              1,
              4,
              32768,
              2048,
              3072,
              0.09375,
              4,
              2,
              0.5,
              0,
              1,
              0,
              6720,
              128,
              2304,
              105,
              4,
              144,
              420,
              1,
              1,
              1,
              1,
              1.640625,
              105,
              4,
              144,
              0,
              0,
              0,
              256,
              4,
              1024,
              32,
              2400,
              32,
              64,
              65536,
              32,
              4096,
              262144,
              8});
  // A depthwise convolution of few images. Every tile is larger than the problem except in rows.
  expect_row("grouped-conv-ck-83",
             foreign_problem("conv op=backward_data n=3 c=24 k=24 g=24 hi=7 wi=5 y=1 x=5 pad_w=2 "
                             "dtype=f32"),
             "ck-gfx90a",
             foreign_kernel("grouped_conv_bwd_data_fp32_2d_64x32x128_compv6_intrawave_si"),
             {3,
              24,
              24,
              24,
              7,
              5,
              1,
              5,
              1,
              1,
              0,
              2,
              7,
              5,
              1.584962500721156,
              4.584962500721156,
              4.584962500721156,
              4.584962500721156,
              2.807354922057604,
              2.321928094887362,
              5.129283016944966,
              2.321928094887362,
              5.129283016944966,
              1.2209302325581395,
              5,
              0,
              0,
              1,
              1.4,
              0.2,
              0,
              0,
              1,
              1,
              1,
              1,
              72,
              1,
              64,
              32,
              128,
              6,
              16,
              262144,
              4096,
              40960,
              0.625,
              0.5,
              2,
              0.25,
              0,
              0,
              0,
              105,
              24,
              5,
              4,
              1,
              1,
              4,
              0.28125,
              0.1875,
              0.078125,
              0.004119873046875,
              0.03636363636363636,
              3.28125,
              0.1875,
              0.078125,
              0,
              1,
              1,
              110,
              4,
              440,
              8,
              1700,
              32,
              64,
              65536,
              16,
              8192,
              131072,
              1});
}

// The rows exclude everything that the engine does not see.
TEST(GroupedConvCkForeign, DilationDepthAndTheOperationAreNotSeen) {
  const FeatureTable& table = table_of("grouped-conv-ck-83");
  const Config config = foreign_kernel("grouped_conv_forward_bf16_2d_16x64x32_compv3");
  const std::string sizes = "conv n=2 c=8 k=8 hi=9 wi=9 y=3 x=3 dtype=bf16";
  Values plain(table.columns().size());
  foreign_row(table, foreign_problem(sizes), device("ck-gfx950"), config, plain);
  for (const char* unseen : {" dilation_h=2 dilation_w=3", " di=3 z=2 pad_d=1",
                             " op=backward_weight", " layout=channels_first"}) {
    Values row(table.columns().size());
    foreign_row(table, foreign_problem(sizes + unseen), device("ck-gfx950"), config, row);
    EXPECT_EQ(row, plain) << unseen;
  }
}

TEST(GroupedConvCkForeign, LaterVersionsSeeDepthDilationAndEndings) {
  const Problem problem = foreign_problem(
      "conv n=2 c=64 k=96 g=2 di=9 hi=20 wi=21 z=3 y=3 x=5 stride_d=2 stride_h=2 pad_d=1 "
      "pad_h=3 pad_w=2 dilation_h=3 dilation_w=2 dtype=bf16");
  const Config config = foreign_kernel("grouped_conv_forward_bf16_3d_32x64x128_mem_interwave_dsb");
  auto row = named_row(table_of("grouped-conv-ck-97"), problem, device("ck-gfx950"), config);
  // 5 x 10 x 17 outputs; the first version would see 12 x 21.
  const std::map<std::string, double> expected{
      {"Ho", 10},
      {"Wo", 17},
      {"Do", 5},
      {"is_3d", 1},
      {"Di", 9},
      {"Z", 3},
      {"stride_d", 2},
      {"pad_d", 1},
      {"dilation_h", 3},
      {"dilation_w", 2},
      {"filter_area", 45},
      {"is_3x3_conv", 0},
      {"is_1x1_conv", 0},
      {"is_intrawave", 0},
      {"has_dsb", 1},
      {"has_si", 0},
      {"is_basic", 0},
      {"is_compv6", 0},
      {"is_mem", 1},
      {"is_compv3", 0},
      {"gemm_m_output", 1700},
      {"gemm_n_output", 96},
      {"gemm_k_output", 1440},
      {"num_tiles_m", 27},
      {"num_tiles_k", 45},
      {"log2_spatial", std::log2(3780)},
      {"log2_output", std::log2(850)},
      {"arithmetic_intensity",
       2.0 * 2 * 96 * 850 * 32 * 45 / (2.0 * (2 * 64 * 3780 + 96 * 32 * 45 + 2 * 96 * 850))}};
  for (const auto& [name, value] : expected) {
    EXPECT_DOUBLE_EQ(row[name], value) << name;
  }
  // A name without a wave mode counts as intrawave.
  row = named_row(table_of("grouped-conv-ck-97"), problem, device("ck-gfx950"),
                  foreign_kernel("grouped_conv_forward_bf16_3d_32x64x128_basic_v1"));
  EXPECT_EQ(row["is_intrawave"], 1);
  EXPECT_EQ(row["is_basic"], 1);
  EXPECT_EQ(row["has_dsb"], 0);
}

// On two dimensions without dilation the versions agree.
TEST(GroupedConvCkForeign, VersionsAgreeWhereTheySeeTheSame) {
  const Problem problem =
      foreign_problem("conv n=3 c=32 k=48 g=2 hi=19 wi=20 y=3 x=3 stride_w=2 pad_h=1 dtype=f16");
  const Config config =
      foreign_kernel("grouped_conv_forward_fp16_2d_64x128x64_compv6_intrawave_si");
  const auto first =
      named_row(table_of("grouped-conv-ck-83"), problem, device("ck-gfx950"), config);
  for (const char* name : {"grouped-conv-ck-91", "grouped-conv-ck-97"}) {
    auto row = named_row(table_of(name), problem, device("ck-gfx950"), config);
    for (const auto& [column, value] : first) {
      EXPECT_EQ(row[column], value) << name << " " << column;
    }
  }
}

TEST(ForeignOrder, IsAPermutationOfTheColumns) {
  for (const FeatureTable* table : feature_tables()) {
    SCOPED_TRACE(std::string(table->name()));
    const std::vector<std::uint16_t> order = foreign_order(*table);
    if (table->columns()[0].foreign_position < 0) {
      EXPECT_TRUE(order.empty());
      continue;
    }
    EXPECT_EQ(order.size(), table->columns().size());
    EXPECT_EQ(std::set<std::uint16_t>(order.begin(), order.end()).size(), order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(table->columns()[order[i]].foreign_position, static_cast<int>(i));
    }
  }
  EXPECT_EQ(foreign_order(table_of("gemm-ck-55")).size(), 55U);
  EXPECT_EQ(foreign_order(table_of("gemm-ck-72")).size(), 72U);
  EXPECT_EQ(foreign_order(table_of("grouped-conv-ck-83")).size(), 83U);
  EXPECT_EQ(foreign_order(table_of("grouped-conv-ck-91")).size(), 91U);
  EXPECT_EQ(foreign_order(table_of("grouped-conv-ck-97")).size(), 97U);
}

TEST(FindColumns, MapsAModelsFeaturesByName) {
  const FeatureTable& table = table_of("gemm-ck-55");
  const std::vector<std::string_view> names{"hw_num_xcd", "tile_m", "M"};
  const auto found = find_columns(table, names);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 3U);
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(table.columns()[(*found)[i]].name, names[i]);
  }
  const std::vector<std::string_view> others{"M", "ratio_M_to_tile_m", "speed"};
  const auto missing = find_columns(table, others);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kMismatch);
  EXPECT_THAT(missing.error().message, HasSubstr("'ratio_M_to_tile_m', 'speed'"));
}

TEST(CkTables, FlagTheirCodes) {
  const auto categorical = [](std::string_view name) {
    std::set<std::string> out;
    for (const FeatureInfo& info : table_of(name).columns()) {
      if (info.is_categorical) {
        out.emplace(info.name);
      }
    }
    return out;
  };
  const std::set<std::string> of_gemm{"layout", "pipeline", "scheduler", "epilogue"};
  EXPECT_EQ(categorical("gemm-ck-55"), of_gemm);
  EXPECT_EQ(categorical("gemm-ck-72"), of_gemm);
  EXPECT_EQ(categorical("grouped-conv-ck-83"), std::set<std::string>{"pipeline"});
  EXPECT_EQ(categorical("gemm-ck"), (std::set<std::string>{"pipeline", "scheduler", "epilogue"}));
  EXPECT_EQ(categorical("grouped-conv"),
            (std::set<std::string>{"operation", "layout", "pipeline", "wave_mode"}));
}

// A schema with another order of labels has other codes.
TEST(CkTables, RefuseOtherLabels) {
  ConfigSchema schema = ck_gemm_schema();
  std::swap(schema.parameters[9].labels[0], schema.parameters[9].labels[1]);
  for (const char* name : {"gemm-ck", "gemm-ck-55", "gemm-ck-72"}) {
    EXPECT_TRUE(table_of(name).supports(kGemmProblem, ck_gemm_schema()));
    EXPECT_FALSE(table_of(name).supports(kGemmProblem, schema));
  }
}

}  // namespace
}  // namespace foretune
