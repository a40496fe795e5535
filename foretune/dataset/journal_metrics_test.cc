// Metrics in data set files: declarations, continued journals, damage, and files without any.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/dataset/records.h"
#include "foretune/dataset/testing/datasets.h"
#include "foretune/dataset/testing/metric_samples.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using dataset_internal::BlockType;
using testing::HasSubstr;
using testing_support::contents_of;
using testing_support::TemporaryFolder;

DatasetHeader metrics_header(std::vector<MetricInfo> metrics) {
  DatasetHeader header = testing_support::golden_header(SchemaKind::kParametric);
  header.metrics = std::move(metrics);
  return header;
}

Measurement row_of(std::int32_t tile, std::vector<MetricValue> metrics, Stage stage = Stage::kNone,
                   Outcome outcome = Outcome::kOk) {
  return row_with_metrics(GemmProblem::create({.m = 8, .n = 8, .k = 8})->to_problem(),
                          {.schema = metrics_header({}).config_schema.id(), .words = {tile, 0}},
                          std::move(metrics), stage, outcome);
}

std::vector<BlockType> block_types(std::span<const std::byte> file) {
  std::vector<BlockType> out;
  auto reader = dataset_internal::BlockReader::create(file);
  while (const auto block = *reader->next()) {
    out.push_back(block->type);
  }
  return out;
}

TEST(JournalMetrics, ADeclarationStandsInTheFileOnceBeforeTheFirstRow) {
  const TemporaryFolder folder;
  for (int session = 0; session < 3; ++session) {
    auto writer = JournalWriter::open(folder / "a.ftd", metrics_header({kPsnr, kMisses}));
    ASSERT_TRUE(writer) << writer.error().message;
    ASSERT_TRUE((*writer)->append(row_of(session, {{kTimeNs, 10, 0, 3}, {"l2_misses", 4}})));
    ASSERT_TRUE((*writer)->append(row_of(session, {{"psnr_db", 41.5}}, Stage::kEvaluate)));
  }
  const std::vector<BlockType> types = block_types(*read_file(folder / "a.ftd"));
  EXPECT_EQ(std::ranges::count(types, BlockType::kMetrics), 1);
  EXPECT_EQ(types[1], BlockType::kMetrics);
  const auto read = read_dataset(folder / "a.ftd");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->header(), metrics_header({kPsnr, kMisses}));
  EXPECT_EQ(read->measurement(1).metrics, (std::vector<MetricValue>{{"psnr_db", 41.5}}));
  ASSERT_TRUE(seal(folder / "a.ftd"));
  testing_support::expect_same(*read, *read_dataset(folder / "a.ftd"), "sealed");
}

TEST(JournalMetrics, AnOldJournalIsContinuedByAFamilyThatDeclaresMore) {
  const TemporaryFolder folder;
  {
    auto writer = JournalWriter::open(folder / "a.ftd", metrics_header({}));
    ASSERT_TRUE((*writer)->append(row_of(1, {{kTimeNs, 10, 0, 3}, {kEnergyJ, 2}})));
  }
  const std::vector<std::byte> before = *read_file(folder / "a.ftd");
  {
    auto writer = JournalWriter::open(folder / "a.ftd", metrics_header({kPsnr}));
    ASSERT_TRUE(writer) << writer.error().message;
    EXPECT_EQ(*read_file(folder / "a.ftd"), before) << "nothing is written without a row";
    ASSERT_TRUE((*writer)->append(row_of(1, {{"psnr_db", 41.5}}, Stage::kEvaluate)));
  }
  {
    auto writer = JournalWriter::open(folder / "a.ftd", metrics_header({kMisses, kPsnr}));
    ASSERT_TRUE(writer) << writer.error().message;
    ASSERT_TRUE((*writer)->append(row_of(2, {{kTimeNs, 10, 0, 3}, {"l2_misses", 4}})));
  }
  const auto read = read_dataset(folder / "a.ftd");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->header().metrics, (std::vector<MetricInfo>{kPsnr, kMisses}));
  ASSERT_EQ(read->size(), 3U);
  EXPECT_EQ(read->measurement(2).find("l2_misses")->value, 4);
  MetricInfo other = kPsnr;
  other.unit = "%";
  const auto refused = JournalWriter::open(folder / "a.ftd", metrics_header({other}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kMismatch);
  EXPECT_THAT(refused.error().message, HasSubstr("cannot continue"));
  EXPECT_THAT(refused.error().message, HasSubstr("the metric psnr_db:maximise:%:evaluation is "
                                                 "psnr_db:maximise:dB:evaluation"));
}

TEST(JournalMetrics, KnowsWhatEachStageHasYielded) {
  const TemporaryFolder folder;
  const Measurement timed = row_of(1, {{kTimeNs, 10, 0, 3}, {"l2_misses", 4}});
  const auto open = [&] {
    return *JournalWriter::open(folder / "a.ftd", metrics_header({kPsnr, kMisses}));
  };
  const auto has = [&](const JournalWriter& journal, std::int32_t tile, std::string_view metric) {
    const Measurement asked = row_of(tile, {});
    return journal.contains(asked.problem, asked.config, asked.context, metric);
  };
  auto journal = open();
  ASSERT_TRUE(journal->append(row_of(1, {{"psnr_db", 41.5}}, Stage::kEvaluate)));
  EXPECT_FALSE(journal->contains(timed.problem, timed.config, timed.context));
  ASSERT_TRUE(journal->append(timed));
  ASSERT_TRUE(journal->append(row_of(2, {}, Stage::kEvaluate, Outcome::kCrashed)));
  ASSERT_TRUE(journal->append(row_of(3, {}, Stage::kRun, Outcome::kCrashed)));
  // The same again from the file, and when it was sealed and its rows were joined.
  for (int session = 0; session < 3; ++session) {
    EXPECT_TRUE(journal->contains(timed.problem, timed.config, timed.context));
    EXPECT_TRUE(has(*journal, 1, "psnr_db"));
    EXPECT_TRUE(has(*journal, 1, "l2_misses"));
    EXPECT_FALSE(has(*journal, 1, kEnergyJ));
    EXPECT_FALSE(has(*journal, 1, "unheard_of"));
    EXPECT_TRUE(has(*journal, 2, "psnr_db")) << "it failed, and is not tried for ever";
    EXPECT_FALSE(has(*journal, 3, "psnr_db"));
    EXPECT_FALSE(has(*journal, 4, "psnr_db"));
    journal.reset();
    if (session == 1) {
      Dataset joined = *read_dataset(folder / "a.ftd");
      EXPECT_EQ(joined.deduplicate(), 1U);
      ASSERT_TRUE(write_dataset(joined, folder / "a.ftd"));
    }
    journal = open();
  }
}

TEST(JournalMetrics, WhatCannotBeStoredIsRefusedAndHarmsNothing) {
  const TemporaryFolder folder;
  auto journal = *JournalWriter::open(folder / "a.ftd", metrics_header({kPsnr}));
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<Measurement> bad{
      row_of(1, {}),
      row_of(1, {{kTimeNs, 10}, {"", 1}}),
      row_of(1, {{kTimeNs, 10}, {"two words", 1}}),
      row_of(1, {{kTimeNs, 10}, {std::string(65, 'x'), 1}}),
      row_of(1, {{kTimeNs, 10}, {"psnr_db", infinity}}),
      row_of(1, {{kTimeNs, 10}, {"psnr_db", 1, infinity}}),
      row_of(1, {{"psnr_db", 1}, {kTimeNs, 10}}, Stage::kEvaluate),
      row_of(1, {{"psnr_db", 1}}, Stage::kNone, Outcome::kCensored),
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const Status refused = journal->append(bad[i]);
    ASSERT_FALSE(refused) << i;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument) << refused.error().message;
  }
  Measurement many = row_of(1, {{kTimeNs, 10}});
  for (int i = 0; i < 248; ++i) {
    many.metrics.emplace_back(concat("metric", i), 1.0);
  }
  EXPECT_EQ(journal->append(many).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(journal->row_count(), 0U);
  ASSERT_TRUE(journal->append(row_of(1, {{kTimeNs, 10}, {"undeclared", 1}})));
  journal.reset();
  const auto read = read_dataset(folder / "a.ftd");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->size(), 1U);
  EXPECT_EQ(read->header().metrics, (std::vector<MetricInfo>{kPsnr, {.name = "undeclared"}}));
}

std::vector<std::byte> journal_with_metrics(const TemporaryFolder& folder) {
  {
    auto journal = *JournalWriter::open(folder / "a.ftd", metrics_header({kPsnr}));
    EXPECT_TRUE(journal->append(row_of(1, {{kTimeNs, 10, 0, 3}, {kPackNs, 4}})));
    EXPECT_TRUE(journal->append(row_of(1, {{"psnr_db", 41.5}}, Stage::kEvaluate)));
  }
  {
    auto journal = *JournalWriter::open(folder / "a.ftd", metrics_header({kPsnr, kMisses}));
    EXPECT_TRUE(journal->append(row_of(2, {{"l2_misses", 4}})));
    EXPECT_TRUE(journal->append(row_of(2, {}, Stage::kEvaluate, Outcome::kTimedOut)));
  }
  return *read_file(folder / "a.ftd");
}

TEST(JournalMetrics, ATornTailKeepsWholeRecordsAndIsContinued) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes = journal_with_metrics(folder);
  const std::vector<Measurement> full = contents_of(*read_dataset_bytes(bytes)).rows;
  ASSERT_EQ(full.size(), 4U);
  std::size_t most = 0;
  for (std::size_t size = 12; size < bytes.size(); ++size) {
    const auto read = read_dataset_bytes(std::span(bytes).first(size));
    if (!read) {
      continue;  // within the header
    }
    const std::vector<Measurement> rows = contents_of(*read).rows;
    ASSERT_TRUE(std::equal(rows.begin(), rows.end(), full.begin())) << size;
    ASSERT_GE(rows.size(), most);
    most = rows.size();
    if (size % 5 != 0) {
      continue;
    }
    ASSERT_TRUE(write_file_atomically(folder / "cut.ftd", std::span(bytes).first(size)));
    {
      auto writer = JournalWriter::open(folder / "cut.ftd", metrics_header({kPsnr, kMisses}));
      ASSERT_TRUE(writer) << size << ": " << writer.error().message;
      ASSERT_TRUE((*writer)->append(full[1]));
    }
    const auto again = read_dataset(folder / "cut.ftd");
    ASSERT_TRUE(again) << size << ": " << again.error().message;
    ASSERT_EQ(again->size(), rows.size() + 1);
    EXPECT_EQ(again->measurement(static_cast<RowIndex>(rows.size())), full[1]);
  }
  EXPECT_EQ(most, 3U);
}

TEST(JournalMetrics, DamagedBlocksAreNoticed) {
  const TemporaryFolder folder;
  std::vector<std::vector<std::byte>> files{journal_with_metrics(folder)};
  Dataset dataset = *read_dataset_bytes(files[0]);
  dataset.add_baseline({.problem = 0, .name = "vendor", .metrics = {{7, 60.5}}});
  files.push_back(*dataset_bytes(dataset));
  for (const std::vector<std::byte>& file : files) {
    const Dataset whole = *read_dataset_bytes(file);
    for (std::size_t i = 12; i < file.size(); ++i) {
      std::vector<std::byte> bad = file;
      bad[i] ^= std::byte{0x10};
      const auto read = read_dataset_bytes(bad);
      // The reserved byte of a head is not looked at.
      EXPECT_TRUE(!read || contents_of(*read) == contents_of(whole)) << i;
    }
  }
}

// A right checksum vouches for nothing but the way.
TEST(JournalMetrics, NonsenseInBlocksIsRefused) {
  const auto decode = [](BlockType type, const ByteWriter& payload) {
    Dataset dataset(metrics_header({}));
    dataset.intern_problem(row_of(1, {}).problem);
    return dataset_internal::decode_block(
        {.type = type, .payload = payload.bytes(), .position = 99}, dataset);
  };
  const auto declare = [&](const std::vector<MetricInfo>& infos) {
    ByteWriter payload;
    for (const MetricInfo& info : infos) {
      dataset_internal::encode_metric_info(payload, info);
    }
    return decode(BlockType::kMetrics, payload);
  };
  EXPECT_TRUE(declare({kPsnr, kMisses}));
  for (const std::vector<MetricInfo>& bad : std::vector<std::vector<MetricInfo>>{
           {kPsnr, kPsnr},
           {{.name = "bytes", .unit = "B"}},
           {{.name = "bytes", .unit = "KiB"}},
           {{.name = "1st"}},
           {{.name = "x", .unit = "two words"}},
           {{.name = "x", .direction = static_cast<Direction>(2)}},
           {{.name = "x", .stage = static_cast<MetricStage>(2)}}}) {
    const Status refused = declare(bad);
    ASSERT_FALSE(refused) << bad.back().name;
    EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(refused.error().message, HasSubstr("the block at byte 99: "));
  }
  for (const Dataset::Baseline& bad : std::vector<Dataset::Baseline>{
           {.problem = 0, .name = "v"},
           {.problem = 1, .name = "v", .time_ns = 1},
           {.problem = 0, .name = "v", .metrics = {{0, 1}}},
           {.problem = 0, .name = "v", .metrics = {{7, 1}}},
           {.problem = 0, .name = "v", .metrics = {{4, 1}, {4, 1}}},
           {.problem = 0,
            .name = "v",
            .metrics = {{4, std::numeric_limits<double>::quiet_NaN()}}}}) {
    ByteWriter payload;
    dataset_internal::encode_metric_baseline(payload, bad);
    const Status refused = decode(BlockType::kMetricBaselines, payload);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt);
  }
}

// A segment's rows are read many at a time, so their rules are written down there once more.
TEST(JournalMetrics, SegmentsFollowTheRulesOfRows) {
  struct Case {
    Dataset::Row row;
    bool has_metric;
    bool is_good;
  };
  const std::vector<Case> cases{
      {{.outcome = Outcome::kOk, .time_ns = 5}, false, true},
      {{.outcome = Outcome::kOk}, true, true},
      {{.outcome = Outcome::kOk}, false, false},
      {{.outcome = Outcome::kOk, .stage = Stage::kEvaluate}, true, true},
      {{.outcome = Outcome::kOk, .stage = Stage::kEvaluate, .time_ns = 5}, true, false},
      {{.outcome = Outcome::kOk, .stage = Stage::kEvaluate}, false, false},
      {{.outcome = Outcome::kCensored, .time_ns = 5}, true, true},
      {{.outcome = Outcome::kCensored}, true, false},
      {{.outcome = Outcome::kCensored, .stage = Stage::kEvaluate, .time_ns = 5}, false, false},
      {{.outcome = Outcome::kCrashed, .stage = Stage::kEvaluate}, false, true},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Dataset dataset(metrics_header({kPsnr}));
    // Another row's metric must not stand for one of this row.
    dataset.add(row_of(1, {{kTimeNs, 3}, {kPackNs, 4}}));
    dataset.add_row(cases[i].row);
    if (cases[i].has_metric) {
      dataset.add_extra({.row = 1, .metric = 7, .samples = 1, .value = 41.5});
    }
    EXPECT_EQ(dataset_bytes(dataset).has_value(), cases[i].is_good) << i;
    ByteWriter payload;
    dataset_internal::encode_segment(payload, dataset, 0, 2, true);
    Dataset read(metrics_header({kPsnr}));
    read.intern_problem(dataset.problems()[0]);
    read.intern_config(dataset.configs()[0]);
    read.intern_context(dataset.contexts()[0]);
    const Status decoded = dataset_internal::decode_block(
        {.type = BlockType::kSegment, .payload = payload.bytes()}, read);
    EXPECT_EQ(decoded.has_value(), cases[i].is_good) << i;
  }
}

// Readers of earlier versions take them, and the golden files keep them so.
TEST(JournalMetrics, FilesWithCommonMetricsAloneHaveNoNewBlocks) {
  Dataset dataset = testing_support::golden_dataset(SchemaKind::kParametric);
  dataset.add_baseline({.problem = 0, .name = "vendor", .time_ns = 5});
  const std::vector<std::byte> bytes = *dataset_bytes(dataset);
  for (const BlockType type : block_types(bytes)) {
    EXPECT_LE(type, BlockType::kBaselines);
  }
  // The same in bytes as one whose header names a metric, but for the block that declares it.
  Dataset declared(dataset);
  declared.mutable_header().metrics = {kPsnr};
  std::vector<BlockType> types = block_types(*dataset_bytes(declared));
  EXPECT_EQ(std::erase(types, BlockType::kMetrics), 1U);
  EXPECT_EQ(types, block_types(bytes));
}

}  // namespace
}  // namespace foretune
