// Several writers of one data set file, and the notes that it holds.
#include "foretune/dataset/shared_journal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/problem/kernel/kernel.h"

namespace foretune {
namespace {

DatasetHeader header_for_tests() {
  DatasetHeader header;
  header.family = "recorded";
  header.problem_type = kKernelProblem;
  header.config_schema = {.name = "tile", .parameters = {{"block", {}}, {"warps", {}}}};
  header.fingerprint.device = "Simulated 132";
  header.metrics = {{.name = "measure_s",
                     .unit = "s",
                     .direction = Direction::kMinimise,
                     .stage = MetricStage::kRun}};
  return header;
}

Measurement row(int number, Outcome outcome = Outcome::kOk) {
  const DatasetHeader header = header_for_tests();
  Measurement out{
      .problem = Problem::parse(concat("kernel variant=1 size_1=", 1 + number % 7)).value(),
      .config = {.schema = header.config_schema.id(), .words = {}},
      .context = {.device = "Simulated 132"},
      .outcome = outcome,
      .stage = Stage::kNone,
      .reason = outcome == Outcome::kOk ? "" : "it does not fit",
      .metrics = {},
      .samples_ns = {}};
  out.config.words = {number, 4};
  if (outcome == Outcome::kOk) {
    out.metrics = {{kTimeNs, 100.0 + number, 0, 1}};
  }
  out.metrics.push_back({"measure_s", 0.5, 0, 1});
  return out;
}

class SharedJournalTest : public ::testing::Test {
 protected:
  std::unique_ptr<SharedJournal> opened(const DatasetHeader& header = header_for_tests()) {
    auto journal = SharedJournal::open(path_, header);
    EXPECT_TRUE(journal) << (journal ? "" : journal.error().message);
    return journal ? std::move(*journal) : nullptr;
  }
  static void add(SharedJournal& journal, const Measurement& measurement) {
    const Status added = journal.append({&measurement, 1});
    ASSERT_TRUE(added) << added.error().message;
  }

  const testing_support::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "shared.ftd";
};

TEST_F(SharedJournalTest, AMissingFileIsMadeByTheFirstAppend) {
  const auto journal = opened();
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(SharedJournal::open(path_, {}).error().code, ErrorCode::kNotFound);
  add(*journal, row(1));
  const Dataset dataset = read_dataset(path_).value();
  EXPECT_EQ(dataset.measurement(0), row(1));
  EXPECT_EQ(dataset.header(), header_for_tests());
  EXPECT_EQ(SharedJournal::open(path_, {}).value()->dataset().size(), 1U);
}

TEST_F(SharedJournalTest, WritersReadEachOthersRows) {
  const auto first = opened();
  const auto second = opened();
  for (int i = 0; i < 20; i += 2) {
    add(*first, row(i));
    add(*second, row(i + 1));
  }
  ASSERT_TRUE(first->refresh());
  ASSERT_EQ(first->dataset().size(), 20U);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(first->dataset().measurement(static_cast<RowIndex>(i)), row(i));
  }
  EXPECT_EQ(first->generation(), 0U);
  EXPECT_EQ(read_dataset(path_).value().fingerprint(), first->dataset().fingerprint());
}

TEST_F(SharedJournalTest, ProcessesAppendAtOnce) {
  constexpr int kEach = 200;
  std::vector<pid_t> children;
  for (int child = 0; child < 3; ++child) {
    const pid_t process = ::fork();
    if (process == 0) {
      auto journal = SharedJournal::open(path_, header_for_tests());
      bool is_good = journal.has_value();
      for (int i = 0; is_good && i < kEach; ++i) {
        const Measurement measurement = row(child * kEach + i);
        is_good = (*journal)->append({&measurement, 1}).has_value();
      }
      ::_exit(is_good ? 0 : 1);
    }
    children.push_back(process);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  Dataset dataset = read_dataset(path_).value();
  EXPECT_EQ(dataset.size(), 3U * kEach);
  EXPECT_EQ(dataset.deduplicate(), 0U);
}

TEST_F(SharedJournalTest, ATornEndIsCutOffByTheNextAppend) {
  const auto journal = opened();
  for (int i = 0; i < 3; ++i) {
    add(*journal, row(i));
  }
  const auto whole = std::filesystem::file_size(path_);
  add(*journal, row(3));
  for (std::uintmax_t size = whole; size < whole + 20; ++size) {
    std::filesystem::resize_file(path_, size);
    const auto again = opened();
    EXPECT_EQ(again->dataset().size(), 3U);
    add(*again, row(4));
    EXPECT_EQ(read_dataset(path_).value().size(), 4U);
  }
}

TEST_F(SharedJournalTest, AFileThatWasCutWhileItBeganIsMadeAnew) {
  add(*opened(), row(0));
  const std::vector<std::byte> bytes = read_file(path_).value();
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{5}, std::size_t{12}, std::size_t{40}}) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(size));
    add(*opened(), row(7));
    EXPECT_EQ(read_dataset(path_).value().measurement(0), row(7));
  }
}

TEST_F(SharedJournalTest, AReplacedFileIsReadAnew) {
  const auto journal = opened();
  add(*journal, row(0));
  add(*journal, row(1));
  ASSERT_TRUE(seal(path_));
  ASSERT_TRUE(journal->refresh());
  EXPECT_EQ(journal->generation(), 1U);
  EXPECT_EQ(journal->dataset().size(), 2U);
  add(*journal, row(2));
  EXPECT_EQ(read_dataset(path_).value().size(), 3U);
  std::filesystem::remove(path_);
  ASSERT_TRUE(journal->refresh());
  EXPECT_EQ(journal->generation(), 2U);
  EXPECT_EQ(journal->dataset().size(), 0U);
  add(*journal, row(3));
  EXPECT_EQ(read_dataset(path_).value().measurement(0), row(3));
}

TEST_F(SharedJournalTest, RowsAreRemovedForAllProcesses) {
  const auto journal = opened();
  const auto other = opened();
  add(*journal, row(0, Outcome::kUnsupported));
  add(*journal, row(1));
  add(*other, row(2, Outcome::kPrepareFailed));
  const auto has_failed = [](const Dataset::Row& one) { return one.outcome != Outcome::kOk; };
  ASSERT_TRUE(journal->remove_rows(has_failed));
  ASSERT_EQ(journal->dataset().size(), 1U);
  EXPECT_EQ(journal->dataset().measurement(0), row(1));
  add(*other, row(3));
  ASSERT_EQ(other->dataset().size(), 2U);
  ASSERT_TRUE(journal->remove_rows(has_failed));
  EXPECT_EQ(read_dataset(path_).value().measurement(1), row(3));
}

TEST_F(SharedJournalTest, AnAppendThatFailsAddsNothing) {
  const auto journal = opened();
  add(*journal, row(0));
  Measurement wrong = row(1);
  wrong.outcome = Outcome::kCensored;
  wrong.metrics.clear();
  const std::vector<Measurement> rows{row(5), wrong};
  EXPECT_EQ(journal->append(rows).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(read_dataset(path_).value().size(), 1U);
  add(*journal, row(2));
  EXPECT_EQ(journal->dataset().size(), 2U);
  EXPECT_EQ(read_dataset(path_).value().measurement(1), row(2));
}

TEST_F(SharedJournalTest, OtherFilesAndDamageAreErrorsWithThePlace) {
  add(*opened(), row(0));
  DatasetHeader other = header_for_tests();
  other.config_schema.parameters.pop_back();
  EXPECT_EQ(SharedJournal::open(path_, other).error().code, ErrorCode::kMismatch);
  other = header_for_tests();
  other.fingerprint.device = "another";
  EXPECT_EQ(SharedJournal::open(path_, other).error().code, ErrorCode::kMismatch);
  std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(-6, std::ios::end);
  file.put('?');
  file.close();
  const auto damaged = SharedJournal::open(path_, header_for_tests());
  EXPECT_EQ(damaged.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(damaged.error().message.find("at byte"), std::string::npos);
}

TEST_F(SharedJournalTest, NotesTravelWithTheRows) {
  const auto journal = opened();
  const Notes notes{{"variant 1", "f16"}, {"identity", "a kernel"}};
  const Measurement first = row(0);
  ASSERT_TRUE(journal->append({&first, 1}, notes));
  const auto size = std::filesystem::file_size(path_);
  ASSERT_TRUE(journal->append({}, notes));
  EXPECT_EQ(std::filesystem::file_size(path_), size);
  ASSERT_TRUE(journal->append({}, {{"identity", "another kernel"}}));
  const Notes changed{{"variant 1", "f16"}, {"identity", "another kernel"}};
  EXPECT_EQ(opened()->dataset().notes(), changed);

  ASSERT_TRUE(seal(path_));
  Dataset dataset = read_dataset(path_).value();
  EXPECT_EQ(dataset.notes(), changed);
  EXPECT_EQ(dataset.filter_problems({true}).notes(), changed);
  for (const ExchangeFormat format : {ExchangeFormat::kJson, ExchangeFormat::kMsgpack}) {
    const std::filesystem::path exported = folder_ / "exported";
    ASSERT_TRUE(export_dataset(dataset, exported, format, nullptr));
    EXPECT_EQ(import_dataset(exported, format).value().notes(), changed);
  }
  Dataset other(header_for_tests());
  other.set_note("identity", "mine");
  ASSERT_TRUE(other.merge(dataset));
  EXPECT_EQ(other.notes().at("identity"), "mine");
  EXPECT_EQ(other.notes().size(), 2U);
}

}  // namespace
}  // namespace foretune
