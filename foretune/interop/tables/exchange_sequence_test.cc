// Configs that are sequences, and configs of many parameters, as tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/dataset/testing/datasets.h"
#include "foretune/interop/tables/exchange.h"

namespace foretune {
namespace {

using testing::HasSubstr;

DatasetHeader unknown_schema() {
  DatasetHeader header;
  header.problem_type = kGemmProblem;
  header.family = "test";
  return header;
}

DatasetHeader layers(std::uint32_t version = 3) {
  DatasetHeader header = unknown_schema();
  header.config_schema = {
      .name = "layers", .version = version, .kind = SchemaKind::kSequence, .parameters = {}};
  return header;
}

std::vector<std::string> configs_of(const Dataset& dataset) {
  std::vector<std::string> out;
  for (const Dataset::Row& row : dataset.rows()) {
    out.push_back(to_text(dataset.header().config_schema, dataset.configs()[row.config]));
  }
  return out;
}

TEST(ExchangeSequences, AColumnNamesItsSchema) {
  const auto read = import_csv_text(
      "m,n,k,time_ns,config:layers:3\n8,8,8,1.5,\"3,16,-1,0\"\n8,8,8,2,7\n8,8,8,3,\n"
      "8,8,8,4,\"\"\n8,8,8,5,\" 2147483647 , -2147483648\"\n",
      unknown_schema());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->header().config_schema, layers().config_schema);
  EXPECT_THAT(configs_of(*read),
              testing::ElementsAre("3,16,-1,0", "7", "", "", "2147483647,-2147483648"));
}

TEST(ExchangeSequences, ASchemaThatIsKnownIsFoundByConfigAlone) {
  const std::string text = "m,n,k,config,time_ns\n8,8,8,\"3,16\",1.5\n";
  const auto read = import_csv_text(text, layers());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(configs_of(*read), testing::ElementsAre("3,16"));
  const auto unknown = import_csv_text(text, unknown_schema());
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("is called config:NAME:VERSION"));
}

TEST(ExchangeSequences, NamesMayHoldAnything) {
  for (const char* name :
       {"", "a:b", "maximise", "minimise:x", "a,\"b\"", "two words", "line\nbreak", " edges "}) {
    DatasetHeader header = layers();
    header.config_schema.name = name;
    Dataset dataset(header);
    Measurement row = testing_support::golden_measurements(header)[8];
    row.samples_ns.clear();
    dataset.add(row);
    const auto text = export_csv_text(dataset);
    ASSERT_TRUE(text) << text.error().message;
    const auto read = import_csv_text(*text, unknown_schema());
    ASSERT_TRUE(read) << name << ": " << read.error().message;
    testing_support::expect_same(dataset, *read, name);
  }
}

TEST(ExchangeSequences, BaselinesAreToldFromConfigs) {
  Dataset dataset(layers());
  const std::uint32_t id = dataset.intern_problem(*Problem::parse("gemm m=8 n=8 k=8"));
  for (const char* name : {"", "3,16", " edges ", "baseline:x", "vendor"}) {
    dataset.add_baseline({.problem = id, .name = name, .time_ns = 2});
  }
  const auto text = export_csv_text(dataset);
  ASSERT_TRUE(text) << text.error().message;
  const auto read = import_csv_text(*text, unknown_schema());
  ASSERT_TRUE(read) << read.error().message;
  testing_support::expect_same(dataset, *read, *text);
}

TEST(ExchangeSequences, ColumnsThatContradictAreRefusedInOneSentence) {
  const auto message = [](const std::string& names, const DatasetHeader& header) {
    const auto read = import_csv_text(
        concat("m,n,k,time_ns,", names, "\n8,8,8,1.5,1", names.find(',') < 99 ? ",1\n" : "\n"),
        header);
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(message("config:layers:3", unknown_schema()), "");
  EXPECT_THAT(
      message("config:layers:3,tile", unknown_schema()),
      HasSubstr("'tile' is neither a field of gemm nor a measurement, and beside a column"));
  EXPECT_THAT(message("tile,config:layers:3", unknown_schema()), HasSubstr("'tile' is neither"));
  EXPECT_THAT(message("config:layers:3,config:layers:4", unknown_schema()),
              HasSubstr("'config:layers:4' is a second column of configs"));
  EXPECT_THAT(message("config:layers:3,config:layers:3", unknown_schema()),
              HasSubstr("repeats another column"));
  EXPECT_THAT(message("config:layers:3,config", layers()), HasSubstr("repeats another column"));
  EXPECT_THAT(message("config:layers:4", layers()),
              HasSubstr("holds configs of another schema than layers v3"));
  EXPECT_THAT(message("samples", layers()), HasSubstr("has no column 'config:layers:3'"));
  EXPECT_THAT(message("tile", layers()), HasSubstr("'tile' is neither"));
  DatasetHeader parametric = layers();
  parametric.config_schema.kind = SchemaKind::kParametric;
  parametric.config_schema.parameters = {{"tile", {}}};
  EXPECT_THAT(message("tile,config:layers:3", parametric), HasSubstr("of another schema"));
}

TEST(ExchangeSequences, WordsThatAreNoneAreDroppedAndCounted) {
  ImportReport report;
  const std::string many(std::size_t{2} << 20U, ',');
  const auto read = import_csv_text(
      concat("m,n,k,time_ns,config:layers:3\n8,8,8,1,\"3,x\"\n8,8,8,1,2147483648\n8,8,8,1,1.0\n"
             "8,8,8,1,\"1,,2\"\n8,8,8,1,vendor\n8,8,8,1,\"",
             many, "\"\n8,8,8,1,\"1,2\"\n"),
      unknown_schema(), &report);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(configs_of(*read), testing::ElementsAre("1,2"));
  std::string reasons;
  for (const auto& [reason, count] : report.dropped) {
    reasons += concat(reason, "; ");
  }
  EXPECT_EQ(report.rows_read, 7U);
  for (const char* part :
       {"'x' is not a word of a layers config", "'2147483648' is not a word", "'1.0' is not a word",
        "'' is not a word", "'vendor' is not a word", "a sequence of 2097153 words is too long"}) {
    EXPECT_THAT(reasons, HasSubstr(part));
  }
}

TEST(ExchangeSequences, AMetricThatWouldBeAColumnOfConfigsIsRefused) {
  DatasetHeader header = layers();
  header.metrics = {{.name = "config", .unit = "1"}};
  const auto text = export_csv_text(Dataset(header));
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message, HasSubstr("would be a column of configs"));
}

TEST(ExchangeSequences, AParameterMayBeCalledLikeAColumnOfConfigs) {
  DatasetHeader header = unknown_schema();
  header.config_schema = {.name = "odd", .parameters = {{"config:a:1", {}}, {"b", {}}}};
  Dataset dataset(header);
  Measurement row = testing_support::golden_measurements(header)[0];
  row.samples_ns.clear();
  dataset.add(row);
  const auto text = export_csv_text(dataset);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_THAT(*text, HasSubstr("config.config:a:1"));
  const auto read = import_csv_text(*text, header);
  ASSERT_TRUE(read) << read.error().message;
  testing_support::expect_same(dataset, *read, *text);
}

// As many as a data set may hold.
TEST(ExchangeParameters, ThousandsGoThroughEveryFormat) {
  for (const int count : {65, 500, 4096}) {
    DatasetHeader header = unknown_schema();
    header.config_schema = {.name = "wide", .parameters = {}};
    Config config;
    for (int i = 0; i < count; ++i) {
      header.config_schema.parameters.push_back({concat("p", i), {}});
      config.words.push_back(7 * i);
    }
    config.schema = header.config_schema.id();
    Dataset dataset(header);
    for (Measurement& row : testing_support::golden_measurements(header)) {
      row.config = config;
      row.samples_ns.clear();
      dataset.add(row);
      config.words[static_cast<std::size_t>(count - 1)] += 1;
    }
    const auto text = export_csv_text(dataset);
    ASSERT_TRUE(text) << text.error().message;
    const auto read = import_csv_text(*text, header);
    ASSERT_TRUE(read) << read.error().message;
    testing_support::expect_same(dataset, *read, concat(count, " csv"));
    for (const ExchangeFormat format :
         {ExchangeFormat::kJson, ExchangeFormat::kMsgpack, ExchangeFormat::kForetune}) {
      const auto bytes = export_bytes(dataset, format);
      ASSERT_TRUE(bytes) << bytes.error().message;
      const auto again = format == ExchangeFormat::kForetune ? read_dataset_bytes(*bytes)
                                                             : import_json_bytes(*bytes, format);
      ASSERT_TRUE(again) << again.error().message;
      testing_support::expect_same(dataset, *again, concat(count, " ", to_string(format)));
    }
  }
}

}  // namespace
}  // namespace foretune
