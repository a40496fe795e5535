// Convolutions and StreamK's products in CK Tile's JSON and logs, and what is exported of them. All
// numbers are made up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/problem/conv/conv.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

constexpr const char* kKernel = "grouped_conv_bwd_data_bf16_2d_64x128x64_compv3_intrawave_dsb";
constexpr const char* kSizes =
    "\"N\": 16, \"C\": 256, \"K\": 128, \"G\": 2, \"Hi\": 28, \"Wi\": 30, \"Y\": 3, \"X\": 5, "
    "\"stride_h\": 2, \"stride_w\": 1, \"pad_h\": 1, \"pad_w\": 2";
const Problem& sample_layer() {
  static const Problem problem = *Problem::parse(
      "conv op=backward_data n=16 c=256 k=128 g=2 hi=28 wi=30 y=3 x=5 stride_h=2 pad_h=1 pad_w=2 "
      "dtype=bf16");
  return problem;
}

struct Imported {
  Dataset dataset;
  ImportReport report;
};

Imported import_text(const std::string& text, ExchangeFormat format) {
  ImportReport report;
  auto dataset = import_ck_text(text, format, {}, &report);
  EXPECT_TRUE(dataset) << dataset.error().message << "\n" << text.substr(0, 2000);
  return {dataset ? *std::move(dataset) : Dataset(DatasetHeader{}), std::move(report)};
}

std::uint64_t count(const std::vector<std::pair<std::string, std::uint64_t>>& list,
                    std::string_view what) {
  std::uint64_t sum = 0;
  for (const auto& [text, number] : list) {
    sum += text.find(what) != std::string::npos ? number : 0;
  }
  return sum;
}

std::string run(const std::string& problem, const std::string& kernel = kKernel) {
  return concat("{\"name\": \"", kernel, "\", \"problem\": {", problem,
                "}, \"perf_result\": {\"latency(ms)\": 0.25, \"tflops(TFlops)\": 0, "
                "\"bandwidth(GB/s)\": 0}}\n");
}

TEST(CkConvJson, ARunHasTheSizesOfItsProblem) {
  for (const ExchangeFormat format : {ExchangeFormat::kCkJson, ExchangeFormat::kCkLog}) {
    const auto [dataset, report] = import_text(
        run(concat(kSizes, ", \"direction\": \"bwd_data\", \"dtype\": \"bf16\"")), format);
    ASSERT_EQ(dataset.size(), 1U);
    EXPECT_EQ(dataset.header().config_schema, ck_grouped_conv_schema());
    EXPECT_EQ(dataset.problems()[0], sample_layer());
    EXPECT_EQ(dataset.configs()[0], parse_ck_conv_name(kKernel)->config);
    EXPECT_FLOAT_EQ(dataset.rows()[0].time_ns, 250000.0F);
  }
  // Names in lower case mean the same.
  const auto lower = import_text(run(to_lower(kSizes)), ExchangeFormat::kCkJson);
  EXPECT_EQ(lower.dataset.problems()[0], sample_layer());
}

TEST(CkConvJson, RunsThatContradictTheirKernelAreLost) {
  const std::string text = run(kSizes) + run(concat(kSizes, ", \"direction\": \"forward\"")) +
                           run(concat(kSizes, ", \"dtype\": \"fp16\"")) +
                           run("\"Hi\": 28, \"N\": 16") + run("\"m\": 4, \"n\": 4, \"k\": 4") +
                           run(concat(kSizes, ", \"Di\": 4, \"Z\": 3"));
  const auto [dataset, report] = import_text(text, ExchangeFormat::kCkLog);
  EXPECT_EQ(dataset.size(), 1U);
  EXPECT_EQ(count(report.dropped, "its direction is not the one of its kernel's name"), 1U);
  EXPECT_EQ(count(report.dropped, "its data type is not the one"), 1U);
  EXPECT_EQ(count(report.dropped, "sizes that are missing or make no convolution"), 1U);
  EXPECT_EQ(count(report.dropped, "a convolution without its sizes"), 1U);
  EXPECT_EQ(count(report.dropped, "a depth, for a kernel of fewer dimensions"), 1U);
}

TEST(CkConvJson, ABatchHoldsConvolutions) {
  const auto benchmark = [](const std::string& n, const std::string& rest) {
    std::string sizes = kSizes;
    sizes.replace(sizes.find("16"), 2, n);
    return concat("{", sizes, ", ", rest, "}");
  };
  const std::string text = concat(
      "{\"metadata\": {\"dtype\": \"bf16\", \"arch\": \"gfx950\"}, \"problem_sizes\": [{", kSizes,
      "}], \"results\": [{\"kernel_config\": {\"name\": \"", kKernel, "\"}, \"benchmarks\": [",
      benchmark("16", "\"avg_time_ms\": 0.5, \"tflops\": 0, \"is_valid\": true"), ",",
      benchmark("4",
                "\"avg_time_ms\": 0, \"tflops\": 0, \"is_valid\": false, "
                "\"error\": \"Arguments not supported\""),
      "]}]}");
  const auto [dataset, report] = import_text(text, ExchangeFormat::kCkJson);
  ASSERT_EQ(dataset.size(), 2U);
  EXPECT_EQ(dataset.problems()[0], sample_layer());
  EXPECT_EQ(dataset.rows()[1].outcome, Outcome::kUnsupported);
  EXPECT_EQ(dataset.header().fingerprint.isa, "gfx950");
}

// As the benchmark sweep prints the lines of its workers.
TEST(CkConvLog, ShapeLinesGiveTheSizesOfTheRunsBelowThem) {
  const std::string shape =
      "Shape 7: N=16 C=256 K=128 G=2 Hi=28 Wi=30 Y=3 X=5 stride_h=2 stride_w=1 pad_h=1 pad_w=2 "
      "direction=bwd_data dtype=bf16\n";
  const auto worker = [](const std::string& rest) {
    return concat("{\"idx\": 0, ", rest, ", \"kernel\": \"", kKernel, "\"}\n");
  };
  const std::string text = shape + "40 kernels\n" +
                           worker("\"ok\": true, \"ms\": 0.125, \"tflops\": 1.5, \"non_zero\": 9") +
                           shape + worker("\"ok\": false, \"error\": \"Kernel is not supported\"") +
                           worker("\"ok\": true, \"ms\": 0.5, \"tflops\": 1.5, \"non_zero\": 0");
  const auto [dataset, report] = import_text(text, ExchangeFormat::kCkLog);
  ASSERT_EQ(dataset.size(), 1U) << "one problem and one kernel";
  EXPECT_EQ(report.rows_read, 3U);
  EXPECT_EQ(dataset.problems()[0], sample_layer());
  EXPECT_EQ(dataset.rows()[0].outcome, Outcome::kOk);
  EXPECT_NEAR(static_cast<double>(dataset.rows()[0].time_ns), 125000, 1);
  // Without a shape line nothing says what was computed.
  ImportReport lost;
  EXPECT_THAT(import_ck_text(worker("\"ok\": true, \"ms\": 0.125, \"tflops\": 1.5"),
                             ExchangeFormat::kCkLog, {}, &lost)
                  .error()
                  .message,
              HasSubstr("a convolution without its sizes"));
  const auto failed =
      import_text(shape + worker("\"ok\": true, \"ms\": 0.5, \"tflops\": 1.5, \"non_zero\": 0"),
                  ExchangeFormat::kCkLog);
  EXPECT_EQ(failed.dataset.rows()[0].outcome, Outcome::kWrongResult);
}

TEST(CkConvLog, SizesOfTheRunGoBeforeThoseOfTheShapeLine) {
  const std::string shape =
      "Shape 1: N=1 C=256 K=128 G=2 Hi=28 Wi=30 Y=3 X=5 stride_h=2 "
      "stride_w=1 pad_h=1 pad_w=2\n";
  const auto [dataset, report] = import_text(shape + run(kSizes), ExchangeFormat::kCkLog);
  EXPECT_EQ(dataset.problems()[0], sample_layer());
  EXPECT_EQ(count(report.notes, "not those of the shape line"), 1U);
}

TEST(CkConvExport, RowsHaveTheNameAndTheParametersOfTheirKernel) {
  const auto [dataset, report] = import_text(run(kSizes), ExchangeFormat::kCkJson);
  const auto bytes = export_bytes(dataset, ExchangeFormat::kCkCsv);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  const std::vector<std::string_view> lines = split(text, '\n');
  ASSERT_GE(lines.size(), 2U);
  const std::vector<std::string_view> names = split(lines[0], ',');
  const std::vector<std::string_view> cells = split(lines[1], ',');
  ASSERT_EQ(names.size(), cells.size());
  const auto cell = [&](std::string_view name) -> std::string_view {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) {
        return cells[i];
      }
    }
    return "no such column";
  };
  for (const auto& [name, value] :
       std::vector<std::pair<std::string_view, std::string_view>>{{"op_type", "grouped_conv"},
                                                                  {"variant", "bwd_data"},
                                                                  {"dtype", "bf16"},
                                                                  {"kernel", kKernel},
                                                                  {"kernel_name", kKernel},
                                                                  {"ndim_spatial", "2"},
                                                                  {"block_size", "64"},
                                                                  {"gemm_m_per_block", "128"},
                                                                  {"gemm_n_per_block", "64"},
                                                                  {"pipeline", "compv3"},
                                                                  {"wave_mode", "intrawave"},
                                                                  {"has_dsb", "1"},
                                                                  {"has_si", "0"},
                                                                  {"G", "2"},
                                                                  {"latency_ms", "0.25"}}) {
    EXPECT_EQ(cell(name), value) << name;
  }
  const auto again = import_text(text, ExchangeFormat::kCkCsv);
  EXPECT_EQ(again.dataset.problems()[0], dataset.problems()[0]);
  EXPECT_EQ(again.dataset.configs()[0], dataset.configs()[0]);
}

std::string streamk_run(const std::string& reduction) {
  return concat("{\"name\": \"fp16_rcr_compv4_cshuffle_intrawave_", reduction,
                "_False_False_False_False_128x128x64_2x2x1_16x16x32\", \"dp_persistent\": \"0\", "
                "\"reduction_strategy\": \"",
                reduction,
                "\", \"problem\": {\"split_k\":1, \"m\":64, \"n\":128, \"k\":4096, "
                "\"dtype_a\":\"fp16\"}, \"perf_result\": {\"latency(ms)\": 0.25}}\n");
}

TEST(CkStreamk, KernelsOfOneTileDifferByTheirReduction) {
  const auto [dataset, report] =
      import_text(streamk_run("atomic") + streamk_run("tree"), ExchangeFormat::kCkLog);
  ASSERT_EQ(dataset.size(), 2U);
  EXPECT_EQ(dataset.header().config_schema, ck_gemm_streamk_schema());
  EXPECT_NE(dataset.configs()[0], dataset.configs()[1]);
  const auto bytes = export_bytes(dataset, ExchangeFormat::kCkCsv);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  EXPECT_THAT(text, HasSubstr(",reduction,run_id\n"));
  EXPECT_THAT(text, HasSubstr("gemm_streamk,fp16,rcr,"));
  EXPECT_THAT(text, HasSubstr(",gemm_streamk_fp16_rcr_compv4_cshuffle_intrawave_tree_"));
  const auto again = import_text(text, ExchangeFormat::kCkCsv);
  EXPECT_EQ(again.dataset.configs().size(), 2U);
  EXPECT_EQ(again.dataset.header().config_schema, ck_gemm_streamk_schema());
}

TEST(CkStreamk, ADataSetHoldsThemAlone) {
  const std::string universal =
      "{\"name\": \"gemm_universal_fp16_rcr_compv4_cshuffle_intrawave_False_False_False_False_"
      "128x128x64_2x2x1_16x16x32\", \"problem\": {\"m\":64, \"n\":128, \"k\":4096}, "
      "\"perf_result\": {\"latency(ms)\": 0.25}}\n";
  const auto [dataset, report] =
      import_text(universal + streamk_run("linear"), ExchangeFormat::kCkLog);
  EXPECT_EQ(dataset.size(), 1U);
  EXPECT_EQ(count(report.dropped, "a data set holds StreamK's kernels or others"), 1U);
}

}  // namespace
}  // namespace foretune
