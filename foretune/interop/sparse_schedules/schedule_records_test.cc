#include "foretune/interop/sparse_schedules/schedule_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/formats/gzip.h"
#include "foretune/interop/sparse_schedules/schedule_text.h"
#include "foretune/space/schemas/sparse_schedule.h"

namespace foretune {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr std::string_view kHeader = "matrix,rows,cols,nnz,schedule,time_ms,repeat\n";

// A schedule of a matrix of 8 x 16 with 128 dense columns.
std::string schedule(std::string_view splits = "i 2 i0 4 i1 2 k 2 k0 4 k1 4", int chunk = 4) {
  return concat(
      "2 ", splits,
      " 1 A 4 i0 i1 k0 k1 A 4 i0 0 i1 0 k0 1 k1 0 1 j 2 j0 32 j1 4 6 i0 i1 k0 k1 j0 j1 i0 "
      "None None 0 128 ",
      chunk);
}

std::string row(std::string_view matrix, std::string_view text, std::string_view time) {
  return concat(matrix, ",8,16,5,", text, ",", time, ",0\n");
}

Dataset imported(const std::string& rows, std::string_view name, ImportReport* report = nullptr,
                 const ScheduleImportOptions& options = {}) {
  const ScheduleTable table = parse_schedule_table(name).value();
  return import_schedule_text(concat(kHeader, rows), table, options, report).value();
}

TEST(ScheduleTable, ANameTellsOperationMachineAndWidth) {
  struct Case {
    const char* name;
    const char* operation;
    std::int64_t width;
    const char* device;
  };
  for (const Case& known :
       std::vector<Case>{{"spmv_epyc7543.csv.zst", "spmv", 1, "epyc7543"},
                         {"spmm_xeon8272cl.csv.gz", "spmm", 128, "xeon8272cl"},
                         {"spmm_early_xeon_e5_2620v4.csv", "spmm", 128, "xeon_e5_2620v4"},
                         {"spmm_nn_epyc7543.csv", "spmm", 0, "epyc7543"},
                         {"spmm_waco_n256_epyc7543.csv", "spmm", 256, "epyc7543"},
                         {"sddmm_waco_nn_epyc7543.csv", "sddmm", 256, "epyc7543"},
                         {"sddmm_waco_xeon_e5_2680v3.csv", "sddmm", 256, "xeon_e5_2680v3"},
                         {"plus3_xeon8272cl", "plus3", 1, "xeon8272cl"}}) {
    const auto table = parse_schedule_table(known.name);
    ASSERT_TRUE(table) << table.error().message;
    EXPECT_EQ(to_string(table->operation), known.operation);
    EXPECT_EQ(table->width, known.width) << known.name;
    EXPECT_EQ(table->fingerprint, known_device(known.device).value());
  }
  EXPECT_TRUE(parse_schedule_table("spmv_early_epyc7543")->is_superseded);
  for (const char* bad : {"data.csv", "spmm.csv", "gemm_epyc7543.csv", "mttkrp_epyc7543.csv"}) {
    const auto table = parse_schedule_table(bad);
    ASSERT_FALSE(table) << bad;
    EXPECT_THAT(table.error().message, HasSubstr("OPERATION[_early]")) << bad;
  }
  EXPECT_THAT(parse_schedule_table("spmm_epyc9999.csv").error().message, HasSubstr("epyc7543"));
}

TEST(ScheduleRecords, RepeatsBecomeTheirMedianUnlessTheyAreKept) {
  const std::string swapped = schedule("k 2 k0 4 k1 4 i 2 i0 4 i1 2");
  const std::string rows = row("m", schedule(), "3") + row("m", swapped, "1") +
                           row("m", schedule(), "2") + row("m", schedule(), "9") +
                           row("m", schedule("i 2 i0 8 i1 1 k 2 k0 4 k1 4"), "0.5");
  ImportReport report;
  const Dataset dataset = imported(rows, "spmm_epyc7543.csv", &report);
  ASSERT_EQ(dataset.size(), 2U);
  EXPECT_FLOAT_EQ(dataset.rows()[0].time_ns, 2.5e6F);
  EXPECT_GT(dataset.rows()[0].spread, 0.5F);
  EXPECT_EQ(dataset.rows()[0].flags, kFlagImported);
  EXPECT_EQ(dataset.contexts()[0].threads, 128);
  EXPECT_EQ(dataset.contexts()[0].device, "AMD EPYC 7543 (two sockets)");
  EXPECT_EQ(report.rows_read, 5U);
  EXPECT_EQ(report.rows_kept, 5U);
  EXPECT_THAT(report.notes, UnorderedElementsAre(
                                Pair(HasSubstr("another order than the canonical text"), 1U),
                                Pair(HasSubstr("has the median of the times (first: row 2)"), 3U)));
  EXPECT_EQ(imported(rows, "spmm_epyc7543.csv", nullptr, {.keep_repeats = true}).size(), 5U);
}

TEST(ScheduleRecords, ProblemsKnowSizesWidthAndOriginal) {
  const std::string rows = row("Trec6_16x16_9", schedule(), "1") + row("Trec6", schedule(), "1") +
                           row("net100", schedule(), "1") + row("net150", schedule(), "1") +
                           row("netscience", schedule(), "1");
  const Dataset dataset = imported(rows, "spmm_epyc7543.csv");
  ASSERT_EQ(dataset.problems().size(), 3U);
  const SparseSizes sizes = SparseProblem::from(dataset.problems()[0])->sizes();
  EXPECT_EQ(sizes.operation, SparseOperation::kSpmm);
  EXPECT_EQ(sizes.rows, 8);
  EXPECT_EQ(sizes.columns, 16);
  EXPECT_EQ(sizes.non_zeros, 5);
  EXPECT_EQ(sizes.width, 128);
  EXPECT_EQ(sizes.origin, sparse_origin("Trec6.mtx"));
  const std::string layers =
      "encoder.layer.9.output.dense.weight,768,3072,99," +
      std::string(
          "2 i 2 i0 16 i1 32 k 2 k0 2048 k1 1 1 A 4 i0 i1 k0 k1 A 4 i0 0 i1 0 k0 1 k1 0 1 j "
          "2 j0 256 j1 2 6 i0 i1 k0 k1 j0 j1 None None None 0 128 1,1,0\n");
  const Dataset network = imported(layers, "spmm_nn_epyc7543.csv");
  const SparseSizes weights = SparseProblem::from(network.problems()[0])->sizes();
  EXPECT_EQ(weights.width, 768);
  EXPECT_EQ(weights.origin, sparse_origin("encoder.layer."));
}

TEST(ScheduleRecords, TheMachineKnowsTheThreadsOfWacosTexts) {
  ImportReport report;
  const std::string text = "2 4 8 i1 i0 k1 k0 j1 j0 1 0 0 1 i1 48 2";
  const Dataset port = imported(row("m", text, "1"), "spmm_waco_epyc7543.csv", &report);
  EXPECT_EQ(port.contexts()[0].threads, 128);
  EXPECT_THAT(report.notes, Contains(Pair(HasSubstr("the machine used 128"), 1U)));
  const Dataset original = imported(row("m", text, "1"), "spmm_waco_xeon_e5_2680v3.csv", &report);
  EXPECT_EQ(original.contexts()[0].threads, 48);
  EXPECT_TRUE(report.notes.empty());
  EXPECT_EQ(SparseProblem::from(original.problems()[0])->sizes().width, 256);
}

TEST(ScheduleRecords, ASupersededTableHasAnotherFidelity) {
  ImportReport report;
  const Dataset early = imported(row("m", schedule(), "1"), "spmm_early_epyc7543.csv", &report);
  EXPECT_EQ(early.contexts()[0].fidelity, 1);
  EXPECT_THAT(report.notes, Contains(Pair(HasSubstr("superseded"), 1U)));
  Dataset both = imported(row("m", schedule(), "2"), "spmm_epyc7543.csv");
  ASSERT_TRUE(both.merge(early));
  both.deduplicate();
  EXPECT_EQ(both.size(), 2U);
}

TEST(ScheduleRecords, BadRowsAreCountedWithTheReason) {
  ImportReport report;
  const std::string rows =
      row("m", schedule(), "1") + row("m", "2 i 2", "1") + row("m", schedule(), "0") +
      row("m", schedule(), "soon") + "m,8,16\n" + concat("m,9,16,5,", schedule(), ",1,0\n") +
      row("x", schedule(), "1e40") + concat("y,8,16,999,", schedule(), ",1,0\n");
  const Dataset dataset = imported(rows, "spmm_epyc7543.csv", &report);
  EXPECT_EQ(dataset.size(), 1U);
  EXPECT_EQ(report.rows_read, 8U);
  EXPECT_EQ(report.rows_kept, 1U);
  EXPECT_THAT(report.dropped,
              UnorderedElementsAre(Pair(HasSubstr("the text ends where"), 1U),
                                   Pair(HasSubstr("no number of milliseconds"), 3U),
                                   Pair(HasSubstr("another number of columns"), 1U),
                                   Pair(HasSubstr("other sizes than in rows before"), 1U),
                                   Pair(HasSubstr("more than A has elements"), 1U)));
  const ScheduleTable table = parse_schedule_table("spmm_epyc7543").value();
  const auto without_rows = import_schedule_text(concat(kHeader, row("m", "x", "1")), table, {});
  EXPECT_THAT(without_rows.error().message, HasSubstr("none of its 1 rows can be used"));
  EXPECT_THAT(import_schedule_text("matrix,rows\n", table, {}).error().message,
              HasSubstr("lacks one of the columns"));
}

TEST(ScheduleRecords, AreDetectedByTheirColumnsAndReadCompressed) {
  const testing_support::TemporaryFolder folder;
  const auto path = folder / "spmm_epyc7543.csv.gz";
  const std::string text = concat(kHeader, row("m", schedule(), "1"));
  const auto zipped = formats::deflate_gzip(std::as_bytes(std::span(text)));
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(zipped.data()),
             static_cast<std::streamsize>(zipped.size()));
  EXPECT_EQ(detect_format(path).value(), ExchangeFormat::kScheduleCsv);
  EXPECT_EQ(import_dataset(path, std::nullopt).value().size(), 1U);
  EXPECT_EQ(import_schedule_file(path, {}).value().size(), 1U);
  const auto renamed = folder / "renamed.csv";
  std::filesystem::rename(path, renamed);
  EXPECT_THAT(import_dataset(renamed, std::nullopt).error().message, HasSubstr("'renamed.csv'"));
}

TEST(ScheduleRecords, APatternThatIsThereBecomesThePayload) {
  const testing_support::TemporaryFolder folder;
  std::ofstream(folder / "m.mtx") << "%%MatrixMarket matrix coordinate pattern general\n"
                                     "8 16 5\n1 1\n2 2\n3 3\n4 4\n8 16\n";
  std::ofstream(folder / "bad.mtx") << "%%MatrixMarket matrix coordinate pattern general\n"
                                       "8 16 1\n1 1\n";
  const std::vector<std::string> folders{folder.path().string()};
  const auto payloads = PayloadStore::open(folders, &formats::inflate_gzip).value();
  const Dataset dataset = imported(row("m", schedule(), "1") + row("n", schedule(), "1"),
                                   "spmm_epyc7543.csv", nullptr, {.payloads = payloads.get()});
  ASSERT_EQ(dataset.problems().size(), 2U);
  EXPECT_TRUE(dataset.problems()[0].has_payload());
  EXPECT_NE(dataset.problems()[0].descriptor(), nullptr);
  EXPECT_FALSE(dataset.problems()[1].has_payload());
  const auto bad = import_schedule_text(concat(kHeader, row("bad", schedule(), "1")),
                                        parse_schedule_table("spmm_epyc7543").value(),
                                        {.payloads = payloads.get()});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::kMismatch);
  EXPECT_THAT(bad.error().message, AllOf(HasSubstr("the pattern of bad: "),
                                         HasSubstr("the file has nnz=1, the problem nnz=5")));
}

// Every row of the published tables is read, and its schedule comes back from its own text. The
// larger ones take half a minute, so they are read only where FORETUNE_ALL_TABLES is set.
TEST(ScheduleRecords, OfThePublishedTablesNothingIsLost) {
  const std::filesystem::path folder =
      std::filesystem::path(FORETUNE_SHARED_DATA_DIR) / "sparse" / "records";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "there are no published tables in FORETUNE_SHARED_DATA";
  }
  constexpr std::size_t kSmallTable = 250'000;
  const bool takes_all =
      std::getenv("FORETUNE_ALL_TABLES") != nullptr;  // NOLINT(concurrency-mt-unsafe)
  std::size_t tables = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".csv.zst") ||
        (!takes_all && std::filesystem::file_size(entry.path()) > kSmallTable)) {
      continue;
    }
    SCOPED_TRACE(name);
    ++tables;
    ImportReport report;
    const auto dataset = import_schedule_file(entry.path(), {}, &report);
    ASSERT_TRUE(dataset) << dataset.error().message;
    EXPECT_TRUE(report.dropped.empty());
    EXPECT_EQ(report.rows_kept, report.rows_read);
    const ScheduleTable table = parse_schedule_table(name).value();
    const WacoReading reading = table.is_of_networks && table.operation == SparseOperation::kSddmm
                                    ? WacoReading::kPort
                                    : WacoReading::kOriginal;
    for (const Dataset::Row& measured : dataset->rows()) {
      const SparseSizes sizes = SparseProblem::from(dataset->problems()[measured.problem])->sizes();
      const SparseSchedule known =
          SparseSchedule::from(dataset->configs()[measured.config]).value();
      const auto text = table.is_waco ? waco_schedule(known, sizes, 48, reading)
                                      : autosparse_schedule(known, sizes, 128);
      ASSERT_TRUE(text) << text.error().message;
      const auto read = table.is_waco ? parse_waco_schedule(*text, sizes, reading)
                                      : parse_autosparse_schedule(*text, sizes);
      ASSERT_EQ(read->schedule, known) << *text;
    }
  }
  EXPECT_GT(tables, 10U);
}

}  // namespace
}  // namespace foretune
