// CK Tile's files: every format, its losses, and what is restored. All numbers are made up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;
using testing_support::TemporaryFolder;

std::string kernel(const std::string& pipeline = "compv3", const std::string& pads = "False",
                   const std::string& dtype = "fp16") {
  return concat("gemm_universal_", dtype, "_rcr_", pipeline, "_cshuffle_intrawave_", pads, "_",
                pads, "_", pads, "_False_128x64x32_2x2x1_32x32x16");
}

std::string run(const std::string& name, const std::string& m, const std::string& n,
                const std::string& k, const std::string& perf, const std::string& more = "") {
  return concat("{\n \"name\": \"", name, "\",\n \"problem\": {\n   \"split_k\":1,\n   \"m\":", m,
                ",\n   \"n\":", n, ",\n   \"k\":", k,
                ",\n   \"dtype_a\":\"fp16\",\n   \"dtype_c\":\"fp16\",\n   \"layout_a\":"
                "\"RowMajor\",\n   \"layout_b\":\"ColumnMajor\",\n   \"layout_c\":\"RowMajor\"\n},"
                "\n \"perf_result\": {",
                perf, "}", more, "\n}\n");
}

std::string perf(const std::string& latency, const std::string& tflops,
                 const std::string& bandwidth) {
  return concat("\"latency(ms)\": ", latency, ", \"tflops(TFlops)\": ", tflops,
                ", \"bandwidth(GB/s)\": ", bandwidth);
}

struct ImportedRows {
  Dataset dataset;
  ImportReport report;
};

ImportedRows import_rows(const std::string& text, ExchangeFormat format,
                         const ImportFacts& facts = {}) {
  ImportReport report;
  auto dataset = import_ck_text(text, format, facts, &report);
  EXPECT_TRUE(dataset) << dataset.error().message << "\n" << text.substr(0, 2000);
  return {dataset ? *std::move(dataset) : Dataset(DatasetHeader{}), std::move(report)};
}

std::uint64_t times(const std::vector<std::pair<std::string, std::uint64_t>>& list,
                    const std::string& what) {
  std::uint64_t sum = 0;
  for (const auto& [text, number] : list) {
    sum += text.find(what) != std::string::npos ? number : 0;
  }
  return sum;
}

std::vector<Outcome> outcomes_of(const Dataset& dataset) {
  std::vector<Outcome> out;
  for (const Dataset::Row& row : dataset.rows()) {
    out.push_back(row.outcome);
  }
  return out;
}

TEST(CkJson, OneRunIsOneMeasurement) {
  const std::string text = run(kernel(), "16", "1536", "7168", perf("0.04", "8.81", "557.60"));
  const auto [dataset, report] = import_rows(text, ExchangeFormat::kCkLog);
  ASSERT_EQ(dataset.size(), 1U);
  EXPECT_EQ(dataset.header().config_schema, ck_gemm_schema());
  EXPECT_EQ(dataset.problems()[0], *Problem::parse("gemm m=16 n=1536 k=7168 dtype=f16 layout=rcr"));
  EXPECT_EQ(dataset.configs()[0], parse_ck_gemm_name(kernel())->config);
  const Dataset::Row& row = dataset.rows()[0];
  EXPECT_EQ(row.outcome, Outcome::kOk);
  EXPECT_EQ(row.flags, kFlagImported);
  // 22,298,624 bytes at 557.60 GB/s leave least open.
  EXPECT_NEAR(static_cast<double>(row.time_ns), 22298624 / 557.60, 0.01);
  EXPECT_NEAR(static_cast<double>(row.spread), 0.005 / 557.60, 1e-6);
  EXPECT_EQ(dataset.header().fingerprint.device, "unknown AMD GPU");
  EXPECT_EQ(times(report.notes, "architecture"), 1U);
  const auto same = import_rows(text, ExchangeFormat::kCkJson);
  EXPECT_EQ(same.dataset.rows()[0], row);
}

TEST(CkJson, FactsOfTheCallerNameTheDevice) {
  ImportFacts facts{.family = "ck", .role = DatasetRole::kValidation, .fingerprint = {}};
  facts.fingerprint = *ck_fingerprint("gfx99x");
  const auto [dataset, report] = import_rows(
      run(kernel(), "8", "8", "8192", perf("0.01", "0.10", "0")), ExchangeFormat::kCkLog, facts);
  EXPECT_EQ(dataset.header().family, "ck");
  EXPECT_EQ(dataset.header().role, DatasetRole::kValidation);
  EXPECT_EQ(dataset.header().fingerprint.isa, "gfx99x");
  EXPECT_EQ(dataset.contexts()[0].device, "gfx99x");
  EXPECT_EQ(dataset.contexts()[0].machine, facts.fingerprint.digest());
  EXPECT_TRUE(report.notes.empty());
  EXPECT_FALSE(ck_fingerprint(""));
  EXPECT_FALSE(ck_fingerprint("gfx 950"));
  EXPECT_FALSE(ck_fingerprint(std::string(100, 'g')));
}

constexpr const char* kLogHead = "Profiling on GPU 0\n=====\n";

std::string shape_line(int number, const std::string& sizes) {
  return concat("Shape ", number, ": ", sizes, " dtype=fp16 layout=rcr\n");
}

TEST(CkLog, RunsAreFoundBetweenOtherOutput) {
  const std::string text =
      kLogHead + shape_line(1, "M=1 N=4096 K=4096") + "Found {2} kernels\n" +
      run(kernel(), "1", "4096", "4096", perf("0.00", "10.97", "10970.00")) +
      "[1/2] done {\"name\": 3} in 2 s\n" +
      run(kernel("mem"), "1", "4096", "4096", perf("0.01", "5.59", "5590.00")) +
      shape_line(2, "M=7 N=1 K=1") + "no kernel supports it\n" + shape_line(3, "M=64 N=64 K=64") +
      run(kernel(), "64", "64", "64", perf("0.00", "0.17", "8.19"));
  const auto [dataset, report] = import_rows(text, ExchangeFormat::kCkLog);
  EXPECT_EQ(report.rows_read, 3U);
  EXPECT_EQ(report.rows_kept, 3U);
  EXPECT_TRUE(report.dropped.empty());
  ASSERT_EQ(dataset.size(), 3U);
  EXPECT_NEAR(static_cast<double>(dataset.rows()[0].time_ns), 3059, 2);
  EXPECT_EQ(times(report.notes, "restored from its rate"), 2U);
  EXPECT_EQ(times(report.notes, "pad flags are set (line 21)"), 1U);
  EXPECT_EQ(times(report.notes, "a shape without a single run"), 1U);
  EXPECT_EQ(to_text(ck_gemm_schema(), dataset.configs()[1]),
            to_text(ck_gemm_schema(), parse_ck_gemm_name(kernel("mem", "True"))->config));
}

TEST(CkLog, ShapeLinesSayWhatRunsDoNot) {
  const std::string bare =
      concat("{\"name\": \"", kernel(), "\", \"perf_result\": {", perf("0.5", "0", "0"), "}}\n");
  const auto [dataset, report] =
      import_rows(shape_line(1, "M=17 N=31 K=61") + bare, ExchangeFormat::kCkLog);
  ASSERT_EQ(dataset.size(), 1U);
  EXPECT_EQ(dataset.problems()[0], *Problem::parse("gemm m=17 n=31 k=61 dtype=f16 layout=rcr"));
  // Without one, nothing says what was computed.
  ImportReport lost;
  EXPECT_THAT(import_ck_text(bare, ExchangeFormat::kCkLog, {}, &lost).error().message,
              HasSubstr("sizes that are missing"));
  const auto other = import_rows(
      shape_line(1, "M=2 N=2 K=2") + run(kernel(), "4", "4", "4", perf("1.5", "0", "0")),
      ExchangeFormat::kCkLog);
  EXPECT_EQ(times(other.report.notes, "not those of the shape line"), 1U);
  EXPECT_EQ(other.dataset.problems()[0].field(1), 4);
}

TEST(CkLog, EmptyAndRunlessLogsAreEmptySets) {
  for (const std::string& text :
       {std::string(), std::string("\n\n"), kLogHead + shape_line(1, "M=1 N=1 K=1")}) {
    const auto [dataset, report] = import_rows(text, ExchangeFormat::kCkLog);
    EXPECT_EQ(dataset.size(), 0U);
    EXPECT_EQ(report.rows_read, 0U);
    EXPECT_EQ(dataset.header().config_schema, ck_gemm_schema());
  }
}

TEST(CkLog, BrokenRunsCostOnlyThemselves) {
  const std::string good = run(kernel(), "32", "64", "128", perf("0.52", "1.00", "1.00"));
  const std::string text = shape_line(1, "M=32 N=64 K=128") + good.substr(0, good.size() / 2) +
                           "\n" + good + "{\"name\": oops}\n" + "{\"other\": 1}\n" + "}}}\n" +
                           good.substr(0, good.find("128x64")) + "\n" +
                           shape_line(2, "M=32 N=64 K=128") + good;
  const auto [dataset, report] = import_rows(text, ExchangeFormat::kCkLog);
  EXPECT_EQ(times(report.dropped, "a run that is cut off (first: line 2)"), 2U);
  EXPECT_EQ(times(report.dropped, "a run that is not JSON"), 1U);
  EXPECT_EQ(times(report.dropped, "an object that is no run"), 1U);
  EXPECT_EQ(report.rows_kept, 2U);
  EXPECT_EQ(report.rows_read, 6U);
  EXPECT_EQ(dataset.size(), 1U);  // the same problem and kernel twice
}

// Wherever the file ends, all runs before that are there, and the lost one is counted.
TEST(CkLog, MayEndAtEveryByte) {
  const std::string first =
      shape_line(1, "M=2 N=3 K=5") + run(kernel(), "2", "3", "5", perf("1.25", "0.00", "0.00"));
  const std::string text =
      first + run(kernel("compv4"), "2", "3", "5", perf("0.75", "0.00", "0.00"));
  for (std::size_t end = 0; end <= text.size(); ++end) {
    ImportReport report;
    const auto dataset =
        import_ck_text(std::string_view(text).substr(0, end), ExchangeFormat::kCkLog, {}, &report);
    const std::size_t runs = end + 1 >= text.size() ? 2 : end + 1 >= first.size() ? 1 : 0;
    EXPECT_EQ(report.rows_kept, runs) << end;
    EXPECT_LE(report.rows_read, runs + 1) << end;
    EXPECT_EQ(dataset.has_value(), runs > 0 || report.rows_read == 0) << end;
  }
}

TEST(CkRows, UnknownKernelsAreCountedTogether) {
  std::string text = run(kernel(), "8", "8", "8", perf("1.00", "0.00", "0.00"));
  for (const char* pads : {"True", "False"}) {
    text += run(kernel("compv9", pads), "8", "8", "8", perf("1.00", "0.00", "0.00"));
  }
  text += run(kernel("compv3", "False", "bf16"), "8", "8", "8", perf("1.00", "0.00", "0.00"));
  text += run("", "8", "8", "8", perf("1.00", "0.00", "0.00"));
  const auto [dataset, report] = import_rows(text, ExchangeFormat::kCkLog);
  EXPECT_EQ(dataset.size(), 1U);
  EXPECT_EQ(times(report.dropped, "'compv9' is not a pipeline"), 2U);
  EXPECT_EQ(times(report.dropped, "data type is not the one"), 1U);
  EXPECT_EQ(times(report.dropped, "does not begin with gemm_universal_"), 1U);
}

TEST(CkRows, SmallestAndLargestSizes) {
  const std::string largest = "2147483647";
  const std::string text =
      run(kernel(), "1", "1", "1", perf("0.01", "0.00", "0.00")) +
      run(kernel(), largest, largest, largest, perf("1000000.00", "19807040.62", "0.00")) +
      run(kernel(), "0", "1", "1", perf("1", "0", "0")) +
      run(kernel(), "2147483648", "1", "1", perf("1", "0", "0")) +
      run(kernel(), "1e400", "1", "1", perf("1", "0", "0")) +
      run(kernel(), "99999999999999999999999", "1", "1", perf("1", "0", "0")) +
      run(kernel(), "1", "1", "1.5", perf("1", "0", "0"));
  const auto [dataset, report] = import_rows(text, ExchangeFormat::kCkLog);
  EXPECT_EQ(dataset.size(), 2U);
  EXPECT_EQ(report.rows_kept, 2U);
  EXPECT_EQ(report.rows_read, 7U);
  EXPECT_EQ(times(report.dropped, "sizes that are missing or out of range") +
                times(report.dropped, "not JSON"),
            5U);
}

TEST(CkRows, TimesWithoutSenseAreCounted) {
  std::string text = run(kernel(), "8", "8", "8", perf("1.00", "0.00", "0.00"));
  for (const char* bad : {"-1.00", "NaN", "Infinity", "1e300", "\"fast\""}) {
    text += run(kernel(), "8", "8", "8", perf(bad, "0.00", "0.00"));
  }
  text += run(kernel(), "8", "8", "8", "");
  text += run(kernel(), "8", "8", "8", perf("0.00", "0.00", "0.00"));
  text += run(kernel(), "8", "8", "8", perf("0.00", "-3.00", "0.00"));
  const auto [dataset, report] = import_rows(text, ExchangeFormat::kCkLog);
  EXPECT_EQ(dataset.size(), 1U);
  EXPECT_EQ(times(report.dropped, "makes no sense"), 6U);
  EXPECT_EQ(times(report.dropped, "without a time"), 1U);
  EXPECT_EQ(times(report.dropped, "rounded to 0"), 1U);
}

TEST(CkRows, RepeatsBecomeTheirMedianWithTheirSpread) {
  std::string text;
  for (const char* latency : {"1.00", "1.10", "4.00"}) {
    text += run(kernel(), "8", "8", "8", perf(latency, "0.00", "0.00"));
  }
  text += run(kernel(), "8", "8", "8", perf("0", "0", "0"), ", \"error\": \"GPU hang\"");
  const auto [dataset, report] = import_rows(text, ExchangeFormat::kCkLog);
  ASSERT_EQ(dataset.size(), 1U);
  const Dataset::Row& row = dataset.rows()[0];
  EXPECT_EQ(row.outcome, Outcome::kOk);
  EXPECT_FLOAT_EQ(row.time_ns, 1.1e6F);
  EXPECT_EQ(row.samples, 3);
  EXPECT_GT(row.spread, 0.5F);
  EXPECT_EQ(report.rows_kept, 4U);
  EXPECT_EQ(times(report.notes, "a repeat of a problem and kernel"), 3U);
}

TEST(CkRows, SplitKIsPartOfTheConfig) {
  std::string twice = run(kernel(), "8", "8", "8", perf("1.00", "0.00", "0.00"));
  std::string other = twice;
  other.replace(other.find("\"split_k\":1"), 11, "\"split_k\":4");
  std::string wrong = twice;
  wrong.replace(wrong.find("\"split_k\":1"), 11, "\"split_k\":0");
  const auto [dataset, report] = import_rows(twice + other + wrong, ExchangeFormat::kCkLog);
  ASSERT_EQ(dataset.size(), 2U);
  EXPECT_EQ(dataset.configs()[1].words[static_cast<std::size_t>(CkGemmParameter::kSplitK)], 4);
  EXPECT_EQ(times(report.dropped, "split_k"), 1U);
}

std::string batch(const std::string& benchmarks) {
  return concat(
      "{\"metadata\": {\"dtype\": \"fp16\", \"layout\": \"rcr\", \"num_kernels\": 1},\n"
      "\"problem_sizes\": [{\"m\": 1, \"n\": 1, \"k\": 1}],\n"
      "\"results\": [{\"kernel_config\": {\"name\": \"",
      kernel(), "\"}, \"benchmarks\": [", benchmarks, "]}]}");
}
std::string benchmark(const std::string& sizes, const std::string& rest) {
  return concat("{\"kernel_name\": \"", kernel(), "\", ", sizes, ", ", rest, "}");
}

TEST(CkBatch, FailuresAreOutcomes) {
  std::vector<std::string> failures{"Arguments not supported", "Timeout after 120 s",
                                    "verification failed",     "segmentation fault",
                                    "compilation failed",      ""};
  std::string list;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    list += concat(i == 0 ? "" : ",",
                   benchmark(concat("\"m\": ", i + 1, ", \"n\": 1, \"k\": 1"),
                             concat("\"avg_time_ms\": 0.0, \"tflops\": 0.0, \"is_valid\": false, "
                                    "\"error\": \"",
                                    failures[i], "\"")));
  }
  const auto [dataset, report] = import_rows(batch(list), ExchangeFormat::kCkJson);
  ASSERT_EQ(dataset.size(), failures.size());
  EXPECT_EQ(report.rows_kept, failures.size());
  for (const Dataset::Row& row : dataset.rows()) {
    EXPECT_EQ(row.time_ns, 0.0F);
    EXPECT_NE(dataset.reason(row.reason), "");
  }
  EXPECT_EQ(
      outcomes_of(dataset),
      (std::vector<Outcome>{Outcome::kUnsupported, Outcome::kTimedOut, Outcome::kWrongResult,
                            Outcome::kCrashed, Outcome::kPrepareFailed, Outcome::kUnsupported}));
  EXPECT_EQ(dataset.reason(dataset.rows()[3].reason), "segmentation fault");
}

TEST(CkBatch, FastRunsThatWereMarkedInvalidAreKept) {
  const auto [dataset, report] = import_rows(
      batch(benchmark("\"m\": 1, \"n\": 4096, \"k\": 4096",
                      "\"avg_time_ms\": 0.0, \"tflops\": 10.97, \"is_valid\": false, \"error\": "
                      "null") +
            "," +
            benchmark("\"m\": 2, \"n\": 4096, \"k\": 4096",
                      "\"avg_time_ms\": 0.012345, \"tflops\": 5.436, \"is_valid\": true")),
      ExchangeFormat::kCkJson);
  ASSERT_EQ(dataset.size(), 2U);
  EXPECT_EQ(dataset.rows()[0].outcome, Outcome::kOk);
  EXPECT_NEAR(static_cast<double>(dataset.rows()[0].time_ns), 3059, 2);
  EXPECT_NEAR(static_cast<double>(dataset.rows()[1].time_ns), 12345, 1);
  EXPECT_EQ(times(report.notes, "marked as not valid only because"), 1U);
}

TEST(CkBatch, EmptyAndDamagedResults) {
  EXPECT_EQ(import_rows(batch(""), ExchangeFormat::kCkJson).dataset.size(), 0U);
  EXPECT_EQ(
      import_rows("{\"metadata\": {}, \"results\": []}", ExchangeFormat::kCkJson).report.rows_read,
      0U);
  for (const char* text :
       {"{}", "[]", "{\"results\": {}}", "{\"metadata\": 1, \"results\": [1, {\"benchmarks\": 2}]}",
        "{\"metadata\": 1, \"results\": [{\"benchmarks\": [1, null, \"x\", []]}]}", "nonsense"}) {
    EXPECT_FALSE(import_ck_text(text, ExchangeFormat::kCkJson, {})) << text;
  }
  std::string deep = "{\"metadata\": ";
  for (int i = 0; i < 100000; ++i) {
    deep += "[";
  }
  EXPECT_THAT(import_ck_text(deep, ExchangeFormat::kCkJson, {}).error().message,
              HasSubstr("nested"));
  const std::string whole =
      batch(benchmark("\"m\": 1, \"n\": 1, \"k\": 1", "\"avg_time_ms\": 1.0"));
  for (std::size_t end = 0; end < whole.size(); ++end) {
    EXPECT_FALSE(
        import_ck_text(std::string_view(whole).substr(0, end), ExchangeFormat::kCkJson, {}));
  }
}

constexpr const char* kConvHeader =
    "kernel,problem_idx,N,C,K,G,Hi,Wi,Y,X,stride_h,stride_w,pad_h,pad_w,latency_ms,tflops,"
    "non_zero\n";
constexpr const char* kConv = "grouped_conv_forward_bf16_2d_16x64x64_compv3";

TEST(CkCsv, ConvolutionsAreJoinedByTheirSizes) {
  const std::string row = concat(kConv, ",0,1,64,32,2,56,56,3,3,1,1,1,1,");
  const std::string same_index = concat(kConv, ",0,2,64,32,2,56,56,3,3,2,2,1,1,0.02,,5\n");
  const std::string text =
      concat(kConvHeader, row, "0.0084,6.881,100\n", row.substr(0, row.find(",0,1")), ",7",
             row.substr(row.find(",1,64")), "0.0086,6.721,100\n", same_index, kConv,
             "_intrawave_dsb,3,1,64,32,2,56,56,3,3,1,1,1,1,0.0100,5.78,0\n");
  const auto [dataset, report] = import_rows(text, ExchangeFormat::kCkCsv);
  EXPECT_EQ(dataset.header().problem_type, kConvProblem);
  EXPECT_EQ(dataset.header().config_schema, ck_grouped_conv_schema());
  ASSERT_EQ(dataset.problems().size(), 2U);
  ASSERT_EQ(dataset.size(), 3U);
  const ConvProblem conv = *ConvProblem::from(dataset.problems()[0]);
  EXPECT_EQ(conv.sizes(), (ConvSizes{.n = 1,
                                     .c = 64,
                                     .k = 32,
                                     .g = 2,
                                     .hi = 56,
                                     .wi = 56,
                                     .y = 3,
                                     .x = 3,
                                     .pad_h = 1,
                                     .pad_w = 1,
                                     .dtype = DataType::kBf16}));
  EXPECT_NEAR(static_cast<double>(dataset.rows()[0].time_ns), 8500, 100);
  EXPECT_EQ(times(report.notes, "a repeat"), 1U);
  EXPECT_EQ(dataset.rows()[2].outcome, Outcome::kWrongResult);
  EXPECT_THAT(dataset.reason(dataset.rows()[2].reason), HasSubstr("all zeros"));
}

TEST(CkCsv, BackwardVariantsAreOperations) {
  const std::string text =
      concat(kConvHeader,
             "grouped_conv_bwd_weight_bf16_2d_16x64x64_mem,0,1,8,8,1,9,9,3,3,1,1,0,0,1.5,,9\n");
  const auto [dataset, report] = import_rows(text, ExchangeFormat::kCkCsv);
  EXPECT_EQ(ConvProblem::from(dataset.problems()[0])->operation(), ConvOperation::kBackwardWeight);
}

TEST(CkCsv, GemmsHaveArchitecturesAndDamage) {
  const std::string head =
      "op_type,dtype,layout,arch,kernel_name,m,n,k,latency_ms,measured_tflops,"
      "is_valid\n";
  const std::string row = concat("gemm_universal,fp16,rcr,gfx99x,", kernel(), ",64,64,64,");
  const std::string text =
      concat(head, row, "0.25,,True\n", row, "x,,True\n", row, "0.25,,maybe\n", row, "0.25\n\n",
             "gemm_universal,fp16,rrr,gfx99x,", kernel(), ",64,64,64,0.25,,True\n",
             "gemm_universal,fp16,rcr,gfx98x,", kernel(), ",64,64,64,0.5,,1\n",
             "gemm_universal,fp16,rcr,gf x,", kernel(), ",64,64,64,0.5,,1\n", "g,bf16,rcr,gfx99x,",
             kConv, ",64,64,64,0.5,,1\n", row, "\"0.25,,True\n");
  const auto [dataset, report] = import_rows(text, ExchangeFormat::kCkCsv);
  ASSERT_EQ(dataset.size(), 2U);
  EXPECT_EQ(dataset.header().fingerprint.isa, "gfx99x");
  EXPECT_EQ(dataset.contexts()[1].device, "gfx98x");
  EXPECT_EQ(report.rows_read, 9U);
  EXPECT_EQ(times(report.dropped, "a number or flag that is none"), 2U);
  EXPECT_EQ(times(report.dropped, "another number of columns"), 1U);
  EXPECT_EQ(times(report.dropped, "layout is not the one"), 1U);
  EXPECT_EQ(times(report.dropped, "not the name of an architecture"), 1U);
  EXPECT_EQ(times(report.dropped, "a convolution without its sizes"), 1U);
  EXPECT_EQ(times(report.dropped, "a quote that is never closed"), 1U);
}

TEST(CkCsv, MissingColumnsAreNamed) {
  EXPECT_THAT(import_ck_text("a,b\n", ExchangeFormat::kCkCsv, {}).error().message,
              HasSubstr("kernel_name"));
  EXPECT_THAT(
      import_ck_text("kernel,latency_ms,Hi,N\n", ExchangeFormat::kCkCsv, {}).error().message,
      HasSubstr("column C"));
  EXPECT_THAT(import_ck_text("kernel,m,n,k\n", ExchangeFormat::kCkCsv, {}).error().message,
              HasSubstr("latency_ms"));
  EXPECT_FALSE(import_ck_text("", ExchangeFormat::kCkCsv, {}));
  EXPECT_EQ(import_rows(kConvHeader, ExchangeFormat::kCkCsv).dataset.size(), 0U);
}

TEST(CkCsv, WhatIsWrittenIsReadAgain) {
  const std::string log =
      run(kernel(), "1", "4096", "4096", perf("0.00", "10.97", "0.00")) +
      run(kernel("mem"), "64", "512", "17", perf("1.25", "0.00", "0.00")) +
      run(kernel("compv5"), "8", "8", "8", perf("0", "0", "0"), ", \"error\": \"not supported\"");
  ImportFacts facts;
  facts.fingerprint = *ck_fingerprint("gfx99x");
  const auto [dataset, report] = import_rows(log, ExchangeFormat::kCkLog, facts);
  ImportReport written;
  const auto bytes = export_bytes(dataset, ExchangeFormat::kCkCsv, &written);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const std::string csv(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  EXPECT_THAT(csv, HasSubstr("\ngemm_universal,fp16,rcr,gfx99x,gemm_universal_fp16_rcr_mem_"));
  EXPECT_THAT(csv, HasSubstr(",mem,intrawave,cshuffle,True,True,True,False,"));
  EXPECT_EQ(times(written.notes, "without its reason"), 1U);
  const auto [again, read] = import_rows(csv, ExchangeFormat::kCkCsv);
  ASSERT_EQ(again.size(), dataset.size());
  for (std::size_t i = 0; i < dataset.size(); ++i) {
    EXPECT_EQ(again.problems()[again.rows()[i].problem],
              dataset.problems()[dataset.rows()[i].problem]);
    EXPECT_EQ(again.configs()[again.rows()[i].config], dataset.configs()[dataset.rows()[i].config]);
    EXPECT_EQ(again.rows()[i].outcome, dataset.rows()[i].outcome);
    EXPECT_FLOAT_EQ(again.rows()[i].time_ns, dataset.rows()[i].time_ns);
  }
  EXPECT_EQ(again.header().fingerprint, dataset.header().fingerprint);
}

TEST(CkCsv, ConvolutionsAreWrittenAndReadAgain) {
  const std::string text = concat(
      kConvHeader, kConv, ",0,1,64,32,2,56,56,3,3,2,2,1,1,0.0084,1.7203,100\n",
      "grouped_conv_bwd_data_bf16_2d_16x64x64_basic_v1_interwave_si,0,1,8,8,1,9,9,1,1,1,1,0,0,2.5,,"
      "9\n");
  const auto [dataset, report] = import_rows(text, ExchangeFormat::kCkCsv);
  const auto bytes = export_bytes(dataset, ExchangeFormat::kCkCsv);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto [again, read] =
      import_rows(std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()),
                  ExchangeFormat::kCkCsv);
  ASSERT_EQ(again.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(again.problems()[i], dataset.problems()[i]);
    EXPECT_EQ(again.configs()[i], dataset.configs()[i]);
    EXPECT_FLOAT_EQ(again.rows()[i].time_ns, dataset.rows()[i].time_ns);
  }
}

TEST(CkCsv, OtherConfigsAreRefused) {
  DatasetHeader header;
  header.problem_type = kGemmProblem;
  header.family = "test";
  header.config_schema = {.name = "other", .version = 1, .parameters = {{"tile", {}}}};
  EXPECT_THAT(export_bytes(Dataset(header), ExchangeFormat::kCkCsv).error().message,
              HasSubstr("ck-gemm configs only, not other"));
  header.config_schema = ck_gemm_schema();
  EXPECT_EQ(export_bytes(Dataset(header), ExchangeFormat::kCkLog).error().code,
            ErrorCode::kUnsupported);
}

TEST(CkFormats, AreFoundByTheirContent) {
  const TemporaryFolder folder;
  const std::string one = run(kernel(), "8", "8", "8", perf("1.00", "0.00", "0.00"));
  const std::string gemm_csv = concat("kernel_name,m,n,k,latency_ms\n", kernel(), ",8,8,8,1.00\n");
  const std::vector<std::pair<std::string, ExchangeFormat>> files{
      {one, ExchangeFormat::kCkLog},
      {"text, first\n" + one, ExchangeFormat::kCkLog},
      {kLogHead + shape_line(1, "M=1 N=1 K=1"), ExchangeFormat::kCkLog},
      {batch(benchmark("\"m\": 1, \"n\": 1, \"k\": 1", "\"avg_time_ms\": 1.0")),
       ExchangeFormat::kCkJson},
      {gemm_csv, ExchangeFormat::kCkCsv},
      {concat(kConvHeader, kConv, ",0,1,8,8,1,9,9,3,3,1,1,0,0,1.5,,9\n"), ExchangeFormat::kCkCsv},
      {"m,n,k,tile,time_ns\n8,8,8,1,5\n", ExchangeFormat::kCsv}};
  for (const auto& [text, format] : files) {
    ASSERT_TRUE(write_text_file_atomically(folder / "file", text));
    const auto found = detect_format(folder / "file");
    ASSERT_TRUE(found) << text;
    EXPECT_EQ(*found, format) << text;
    const auto dataset = import_dataset(folder / "file", std::nullopt);
    ASSERT_TRUE(dataset) << dataset.error().message;
    EXPECT_EQ(dataset->size(), text.find("Profiling") == 0 ? 0U : 1U) << text;
  }
}

ImportedRows import_sample(const std::string& name, ExchangeFormat expected) {
  const std::string path = concat(FORETUNE_SOURCE_DIR "/foretune/dataset/testdata/ck/", name);
  EXPECT_EQ(detect_format(path), expected) << name;
  ImportReport report;
  auto dataset = import_ck(path, expected, {}, &report);
  EXPECT_TRUE(dataset) << name;
  return {dataset ? *std::move(dataset) : Dataset(DatasetHeader{}), std::move(report)};
}

TEST(CkFormats, SampleFilesAreRead) {
  const ImportedRows one = import_sample("run.json", ExchangeFormat::kCkLog);
  ASSERT_EQ(one.dataset.size(), 1U);
  EXPECT_NEAR(static_cast<double>(one.dataset.rows()[0].time_ns), 20000, 10);

  const ImportedRows log = import_sample("stream.log", ExchangeFormat::kCkLog);
  EXPECT_EQ(log.report.rows_read, 5U);
  EXPECT_EQ(log.report.rows_kept, 3U);
  EXPECT_EQ(times(log.report.dropped, "'compv7' is not a pipeline"), 1U);
  EXPECT_EQ(times(log.report.dropped, "cut off"), 1U);
  EXPECT_EQ(times(log.report.notes, "a shape without a single run"), 1U);
  EXPECT_EQ(times(log.report.notes, "pad flags"), 1U);
  ASSERT_EQ(log.dataset.size(), 3U);
  EXPECT_NEAR(static_cast<double>(log.dataset.rows()[0].time_ns), 3500, 1);

  const ImportedRows batched = import_sample("batch.json", ExchangeFormat::kCkJson);
  EXPECT_EQ(
      outcomes_of(batched.dataset),
      (std::vector<Outcome>{Outcome::kOk, Outcome::kOk, Outcome::kUnsupported, Outcome::kOk}));
  EXPECT_NEAR(static_cast<double>(batched.dataset.rows()[0].time_ns), 3100, 50);

  const ImportedRows gemm = import_sample("gemm.csv", ExchangeFormat::kCkCsv);
  EXPECT_EQ(outcomes_of(gemm.dataset),
            (std::vector<Outcome>{Outcome::kOk, Outcome::kUnsupported, Outcome::kOk}));
  EXPECT_EQ(gemm.dataset.rows()[0].samples, 2);
  EXPECT_EQ(gemm.dataset.header().fingerprint.isa, "gfx942");

  const ImportedRows conv = import_sample("conv.csv", ExchangeFormat::kCkCsv);
  EXPECT_EQ(outcomes_of(conv.dataset),
            (std::vector<Outcome>{Outcome::kOk, Outcome::kOk, Outcome::kWrongResult}));
  EXPECT_EQ(times(conv.report.dropped, "make no convolution"), 1U);
  EXPECT_NEAR(static_cast<double>(conv.dataset.rows()[0].time_ns), 12346, 2);
}

// Nothing that a file holds crashes a reader, and every run is accounted for.
TEST(CkFormats, RandomDamageIsAccountedFor) {
  const std::vector<std::pair<std::string, ExchangeFormat>> seeds{
      {shape_line(1, "M=1 N=2 K=3") + run(kernel(), "1", "2", "3", perf("0.00", "1.00", "2.00")) +
           run(kernel("mem"), "1", "2", "3", perf("4.00", "0.00", "2.00")),
       ExchangeFormat::kCkLog},
      {batch(benchmark("\"m\": 1, \"n\": 1, \"k\": 1",
                       "\"avg_time_ms\": 1.0, \"tflops\": 2.0, \"is_valid\": true")),
       ExchangeFormat::kCkJson},
      {concat(kConvHeader, kConv, ",0,1,8,8,1,9,9,3,3,1,1,0,0,1.5,,9\n"), ExchangeFormat::kCkCsv}};
  constexpr std::uint64_t kSeed = 4;
  constexpr std::string_view kAlphabet = "{}[]\",:0123456789.-eE\n\\ax_=M";
  Rng rng(kSeed);
  int kept = 0;
  for (int i = 0; i < 6000; ++i) {
    auto [text, format] = seeds[rng.below(seeds.size())];
    for (std::uint64_t edits = rng.below(6); edits > 0; --edits) {
      const std::size_t at = rng.below(text.size());
      if (rng.below(2) == 0) {
        text[at] = kAlphabet[rng.below(kAlphabet.size())];
      } else {
        text.insert(at, 1, kAlphabet[rng.below(kAlphabet.size())]);
      }
    }
    ImportReport report;
    const auto dataset = import_ck_text(text, format, {}, &report);
    if (dataset) {
      kept += dataset->size() > 0 ? 1 : 0;
      std::uint64_t dropped = 0;
      for (const auto& [reason, number] : report.dropped) {
        dropped += number;
      }
      EXPECT_EQ(report.rows_kept + dropped, report.rows_read) << "seed " << kSeed << "\n" << text;
      EXPECT_GE(report.rows_kept, dataset->size());
      EXPECT_TRUE(export_bytes(*dataset, ExchangeFormat::kForetune)) << text;
    }
  }
  EXPECT_GT(kept, 1000);
}

}  // namespace
}  // namespace foretune
