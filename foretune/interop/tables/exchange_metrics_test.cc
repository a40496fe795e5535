// Declared metrics, rows without a time and baselines with metrics in other formats than our own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/dataset/testing/datasets.h"
#include "foretune/dataset/testing/metric_samples.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/interop/tables/internal/csv_columns.h"
#include "foretune/interop/tables/internal/exchange_io.h"
#include "foretune/interop/tables/testing/documents.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using testing::HasSubstr;
using testing_support::DocumentChange;
using testing_support::expect_refused;
using testing_support::expect_same;

DatasetHeader header_of_tables(std::vector<MetricInfo> metrics = {kPsnr}) {
  DatasetHeader header;
  header.family = "tables";
  header.problem_type = kGemmProblem;
  header.config_schema = {
      .name = "tables", .version = 1, .parameters = {{"tile", {}}, {"order", {"mnk", "nkm"}}}};
  header.metrics = std::move(metrics);
  return header;
}

// One row of each kind that has metrics.
Dataset dataset_of_all_kinds(const DatasetHeader& header = header_of_tables()) {
  Dataset dataset(header);
  const auto add = [&](std::int32_t tile, Outcome outcome, Stage stage,
                       std::vector<MetricValue> metrics) {
    dataset.add({.problem = GemmProblem::create({.m = 8, .n = 8, .k = 8})->to_problem(),
                 .config = {.schema = header.config_schema.id(), .words = {tile, 1}},
                 .context = {.machine = 5, .device = "cpu"},
                 .outcome = outcome,
                 .stage = stage,
                 .reason = outcome == Outcome::kOk ? "" : "why",
                 .metrics = std::move(metrics),
                 .samples_ns = {}});
  };
  add(1, Outcome::kOk, Stage::kNone, {{kTimeNs, 10, 0.125, 3}, {kPackNs, 0.5, 0.25, 7}});
  add(1, Outcome::kOk, Stage::kEvaluate, {{"psnr_db", 41.5, 0, 1}});
  add(2, Outcome::kCensored, Stage::kNone, {{kTimeNs, 20, 0, 1}, {kWorkspaceBytes, 4096, 0, 1}});
  add(3, Outcome::kOk, Stage::kNone, {{"psnr_db", -3.25, 0, 1}});
  add(4, Outcome::kCrashed, Stage::kEvaluate, {});
  dataset.add_baseline({.problem = 0, .name = "vendor", .time_ns = 7, .metrics = {{7, 60.5}}});
  dataset.add_baseline({.problem = 0, .name = "untouched", .metrics = {{4, 0.0}, {7, 99.0}}});
  return dataset;
}

TEST(ExchangeMetrics, EveryFormatHoldsThem) {
  const Dataset dataset = dataset_of_all_kinds();
  for (const ExchangeFormat format :
       {ExchangeFormat::kForetune, ExchangeFormat::kJson, ExchangeFormat::kMsgpack}) {
    const auto bytes = export_bytes(dataset, format);
    ASSERT_TRUE(bytes) << bytes.error().message;
    const auto read = format == ExchangeFormat::kForetune ? read_dataset_bytes(*bytes)
                                                          : import_json_bytes(*bytes, format);
    ASSERT_TRUE(read) << read.error().message;
    expect_same(dataset, *read, std::string(to_string(format)));
  }
}

TEST(ExchangeMetrics, ATableDeclaresItsMetricsItself) {
  const Dataset dataset = dataset_of_all_kinds();
  const std::string text = *export_csv_text(dataset);
  EXPECT_THAT(text.substr(0, text.find('\n')),
              HasSubstr(",pack_ns,pack_ns_spread,pack_ns_samples,bytes,bytes_spread,bytes_samples,"
                        "psnr_db:maximise:dB:evaluation,psnr_db_spread,psnr_db_samples"));
  // Whoever reads it need not know them.
  ImportReport report;
  const auto read = import_csv_text(text, header_of_tables({}), &report);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(report.rows_kept, 7U);
  expect_same(dataset, *read, "declared by the table");
  const auto plain =
      import_csv_text("m,n,k,tile,order,psnr_db\n8,8,8,1,mnk,41.5\n", header_of_tables());
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->measurement(0).metrics, (std::vector<MetricValue>{{"psnr_db", 41.5}}));
  EXPECT_FALSE(plain->rows()[0].has_time());
}

TEST(ExchangeMetrics, ATableThatContradictsItsReaderIsRefused) {
  const auto message = [](std::string_view column) {
    const auto read = import_csv_text(concat("m,n,k,tile,order,", column, "\n8,8,8,1,mnk,41.5\n"),
                                      header_of_tables());
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(message("psnr_db:maximise:dB:evaluation"), "");
  EXPECT_EQ(message("psnr_db:minimise:dB:evaluation"),
            "the CSV's column names: the metric psnr_db:minimise:dB:evaluation is known as "
            "psnr_db:maximise:dB:evaluation");
  EXPECT_THAT(message("energy_j:minimise:kWh"), HasSubstr("is known as energy_j"));
  EXPECT_THAT(message("loss:minimise:a b"), HasSubstr("is no unit of the metric loss"));
  EXPECT_THAT(message("9x:maximise:dB"), HasSubstr("is no name of a metric"));
}

// Each of these is a column of its own, whatever else is called so.
TEST(ExchangeMetrics, NamesThatOtherColumnsHaveAreToldApart) {
  DatasetHeader header = header_of_tables({{.name = "k", .unit = "x"},
                                           {.name = "a_spread", .unit = ""},
                                           {.name = "a", .unit = ""},
                                           {.name = "samples", .unit = ""},
                                           {.name = "stage", .unit = "s"},
                                           {.name = "tile", .unit = ""}});
  header.config_schema.parameters = {{"tile", {}},  {"a", {}}, {"a_samples", {}},  {"x:y", {}},
                                     {"bytes", {}}, {"k", {}}, {"b:minimise:", {}}};
  Dataset dataset(header);
  Measurement row{.problem = GemmProblem::create({.m = 8, .n = 9, .k = 10})->to_problem(),
                  .config = {.schema = header.config_schema.id(), .words = {1, 2, 3, 4, 5, 6, 7}},
                  .context = {.machine = 5, .device = "cpu"},
                  .metrics = {{kTimeNs, 10, 0, 3}},
                  .samples_ns = {}};
  for (const MetricInfo& info : header.metrics) {
    row.metrics.emplace_back(info.name, 1.5 + static_cast<double>(row.metrics.size()), 0.25, 2U);
  }
  dataset.add(row);
  const auto text = export_csv_text(dataset);
  ASSERT_TRUE(text) << text.error().message;
  const auto read = import_csv_text(*text, header);
  ASSERT_TRUE(read) << read.error().message << "\n" << *text;
  expect_same(dataset, *read, *text);
  EXPECT_EQ(*export_csv_text(*read), *text);
  const std::vector<std::string> columns = csv_parameter_columns(header);
  EXPECT_EQ(columns, (std::vector<std::string>{"config.tile", "config.a", "config.a_samples", "x:y",
                                               "config.bytes", "config.k", "config.b:minimise:"}));
}

TEST(ExchangeMetrics, AnEvaluationWithATimeIsNoMeasurement) {
  ImportReport report;
  const auto read = import_csv_text(
      "m,n,k,tile,order,time_ns,stage,psnr_db\n8,8,8,1,mnk,10,evaluate,41\n8,8,8,1,mnk,,evaluate,"
      "41\n",
      header_of_tables(), &report);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->size(), 1U);
  ASSERT_EQ(report.dropped.size(), 1U);
  EXPECT_THAT(report.dropped[0].first, HasSubstr("an evaluation has a time"));
}

std::string json_text(const Dataset& dataset) {
  return std::string(dataset_internal::text_of(*export_bytes(dataset, ExchangeFormat::kJson)));
}

TEST(ExchangeMetrics, BadOnesInDocumentsGetOneSentence) {
  const DocumentChange cases[] = {
      {"\"metrics\":[\"psnr_db:maximise:dB:evaluation\"]", "\"metrics\":[\"psnr_db:upwards:dB\"]",
       "is no metric"},
      {"\"metrics\":[\"psnr_db:maximise:dB:evaluation\"]", "\"metrics\":[7]", "header"},
      {"\"metrics\":[\"psnr_db:maximise:dB:evaluation\"]", "\"metrics\":{\"a\":\"b\"}", "header"},
      {"\"metrics\":[\"psnr_db:maximise:dB:evaluation\"]", "\"metrics\":[\"bytes\"]",
       "declared twice"},
      {"[1,\"psnr_db\",41.5", "[1,\"psnr\",41.5", "metrics[1]"},
      {"[1,\"psnr_db\",41.5", "[0,\"median_ns\",41.5", "metrics[1]"},
      {"[1,\"psnr_db\",41.5", "[0,\"psnr_db\",41.5", "rows[1]"},
      {"\"untouched\",0.0,[", "\"untouched\",-1,[", "baselines[1]"},
      {"[\"psnr_db\",99.0]", "[\"psnr_db\"]", "baselines[1]"},
      {"[\"psnr_db\",99.0]", "[\"psnr\",99.0]", "baselines[1]"},
      {"[\"psnr_db\",99.0]", "[\"bytes\",99.0]", "has bytes twice"},
      {"[[\"bytes\",0.0],[\"psnr_db\",99.0]]", "[]", "baselines[1]"},
      {"\"ok\",\"evaluate\",0,\"\",0.0", "\"ok\",\"evaluate\",0,\"\",10.0", "rows[1]"},
  };
  const std::string good = json_text(dataset_of_all_kinds());
  expect_refused(good, cases);
}

// Windows behind a time that is not there would make a file that no reader takes.
TEST(ExchangeMetrics, CountsBehindNoTimeAreForgotten) {
  std::string text = json_text(dataset_of_all_kinds());
  const std::string from = "\"ok\",\"evaluate\",0,\"\",0.0,0.0,0.0,0]";
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, from.size(), "\"ok\",\"evaluate\",0,\"\",0.0,0.0,0.0,5]");
  const auto read = import_json_bytes(bytes_of(text), ExchangeFormat::kJson);
  ASSERT_TRUE(read) << read.error().message;
  const auto bytes = dataset_bytes(*read);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto again = read_dataset_bytes(*bytes);
  ASSERT_TRUE(again) << again.error().message;
  expect_same(*read, *again, "stored");
}

}  // namespace
}  // namespace foretune
