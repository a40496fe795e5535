#include "foretune/dataset/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/dataset/records.h"
#include "foretune/dataset/testing/datasets.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using testing_support::TemporaryFolder;

DatasetHeader make_header(SchemaKind kind = SchemaKind::kParametric) {
  DatasetHeader header;
  header.problem_type = kGemmProblem;
  header.family = "test";
  header.config_schema = {.name = "test", .version = 3, .kind = kind, .parameters = {}};
  if (kind == SchemaKind::kParametric) {
    header.config_schema.parameters = {{"tile", {}}, {"pack", {"no", "yes"}}};
  }
  header.space_text = "space test 3 gemm\n";
  header.fingerprint.device = "a machine";
  header.fingerprint.hardware.set(HardwareValue::kCores, 2);
  header.fingerprint.hardware.set(HardwareValue::kFmaPeakGflops, 123.25);
  header.seed = 99;
  header.created_by = "foretune collect 'x y'";
  return header;
}

Measurement random_measurement(const DatasetHeader& header, Rng& rng) {
  const auto size = [&] { return rng.between(1, 40); };
  Problem problem = GemmProblem::create({.m = size(), .n = size(), .k = size()})->to_problem();
  Config config{.schema = header.config_schema.id(), .words = {}};
  const std::size_t words =
      header.config_schema.kind == SchemaKind::kParametric ? 2 : 1 + rng.below(200);
  for (std::size_t i = 0; i < words; ++i) {
    config.words.push_back(static_cast<std::int32_t>(rng.between(-3, 1000)));
  }
  Measurement out{.problem = std::move(problem),
                  .config = std::move(config),
                  .context = {.machine = 5,
                              .device = "cpu",
                              .threads = static_cast<std::int32_t>(rng.between(1, 2)),
                              .cache = CacheState::kWarm},
                  .outcome = static_cast<Outcome>(rng.below(7)),
                  .stage = Stage::kNone,
                  .flags = static_cast<std::uint8_t>(rng.below(16)),
                  .reason = {},
                  .metrics = {},
                  .samples_ns = {}};
  if (out.outcome == Outcome::kOk || out.outcome == Outcome::kCensored) {
    const double time = std::exp(5 + 10 * rng.uniform());
    out.metrics = {{kTimeNs, time, 0.1 * rng.uniform(), 5},
                   {kMedianNs, time * (1 + 0.2 * rng.uniform()), 0, 5}};
    if (rng.below(4) == 0) {
      out.metrics.push_back({kEnergyJ, rng.uniform(), 0.25, 3});
    }
    if (rng.below(4) == 0) {
      out.samples_ns = {1.5F, 2.5F};
    }
  } else {
    out.stage = static_cast<Stage>(1 + rng.below(4));
    out.reason = concat("it broke in way ", rng.below(5));
  }
  return out;
}

std::vector<Measurement> all_rows(const Dataset& dataset) {
  std::vector<Measurement> out;
  for (RowIndex i = 0; i < dataset.size(); ++i) {
    out.push_back(dataset.measurement(i));
  }
  return out;
}

// Returns the row with its spread and median rounded for storage.
Measurement stored(const DatasetHeader& header, const Measurement& measurement) {
  Dataset dataset(header);
  dataset.add(measurement);
  return dataset.measurement(0);
}

class JournalRoundTrip : public ::testing::TestWithParam<SchemaKind> {};

TEST_P(JournalRoundTrip, AppendedReopenedAndSealedRowsAreTheSame) {
  const TemporaryFolder folder;
  const DatasetHeader header = make_header(GetParam());
  Rng rng(11);
  std::vector<Measurement> expected;
  for (int session = 0; session < 4; ++session) {
    auto writer = JournalWriter::open(folder / "a.ftd", header);
    ASSERT_TRUE(writer) << writer.error().message;
    EXPECT_EQ((*writer)->row_count(), expected.size());
    for (int i = 0; i < 50; ++i) {
      const Measurement measurement = random_measurement(header, rng);
      ASSERT_TRUE((*writer)->append(measurement));
      EXPECT_TRUE(
          (*writer)->contains(measurement.problem, measurement.config, measurement.context));
      expected.push_back(stored(header, measurement));
    }
    writer->reset();
    const auto read = read_dataset(folder / "a.ftd");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(all_rows(*read), expected);
    EXPECT_EQ(read->header(), header);
    if (session % 2 == 1) {
      ASSERT_TRUE(seal(folder / "a.ftd"));
      EXPECT_EQ(all_rows(*read_dataset(folder / "a.ftd")), expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schemas, JournalRoundTrip,
                         ::testing::Values(SchemaKind::kParametric, SchemaKind::kSequence));

std::filesystem::path small_journal(const TemporaryFolder& folder, int rows) {
  const DatasetHeader header = make_header();
  Rng rng(3);
  auto writer = JournalWriter::open(folder / "small.ftd", header);
  for (int i = 0; i < rows; ++i) {
    EXPECT_TRUE((*writer)->append(random_measurement(header, rng)));
  }
  return folder / "small.ftd";
}

TEST(Journal, TruncatedAnywhereKeepsAllCompleteRecordsAndCanBeContinued) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes = *read_file(small_journal(folder, 12));
  const std::vector<Measurement> full = all_rows(*read_dataset_bytes(bytes));
  std::size_t last_rows = 0;
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const std::span<const std::byte> part = std::span(bytes).first(size);
    const auto read = read_dataset_bytes(part);
    if (read) {
      const std::vector<Measurement> rows = all_rows(*read);
      ASSERT_LE(rows.size(), full.size());
      EXPECT_TRUE(std::equal(rows.begin(), rows.end(), full.begin())) << size;
      EXPECT_GE(rows.size(), last_rows);
      last_rows = rows.size();
    }
    if (size % 7 == 0) {
      ASSERT_TRUE(write_file_atomically(folder / "cut.ftd", part));
      auto writer = JournalWriter::open(folder / "cut.ftd", make_header());
      ASSERT_TRUE(writer) << size << ": " << writer.error().message;
      ASSERT_TRUE((*writer)->append(full[0]));
      writer->reset();
      EXPECT_EQ(read_dataset(folder / "cut.ftd")->size(), last_rows + 1) << size;
    }
  }
  EXPECT_EQ(last_rows, full.size());
}

TEST(Journal, AnyDamagedByteIsNoticed) {
  const TemporaryFolder folder;
  const std::vector<std::byte> good = *read_file(small_journal(folder, 6));
  const std::vector<Measurement> full = all_rows(*read_dataset_bytes(good));
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const unsigned mask : {1U, 0x80U, 0xffU}) {
      std::vector<std::byte> bad = good;
      bad[i] ^= static_cast<std::byte>(mask);
      EXPECT_FALSE(read_dataset_bytes(bad)) << "byte " << i;
    }
  }
}

TEST(Journal, ZerosAtTheEndAreATornTail) {
  const TemporaryFolder folder;
  std::vector<std::byte> bytes = *read_file(small_journal(folder, 3));
  bytes.resize(bytes.size() + 100);
  ReadReport report;
  const auto read = read_dataset_bytes(bytes, &report);
  ASSERT_TRUE(read);
  EXPECT_EQ(report.rows, 3U);
  EXPECT_EQ(report.torn_bytes, 100U);
}

TEST(Journal, SecondWriterIsRefused) {
  const TemporaryFolder folder;
  const auto first = JournalWriter::open(folder / "a.ftd", make_header());
  ASSERT_TRUE(first);
  const auto second = JournalWriter::open(folder / "a.ftd", make_header());
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, ::testing::HasSubstr("another process"));
}

TEST(Journal, OtherFamilySchemaRoleOrMachineIsRefused) {
  const TemporaryFolder folder;
  const std::filesystem::path path = small_journal(folder, 1);
  const std::vector<std::byte> before = *read_file(path);
  DatasetHeader family = make_header();
  family.family = "other";
  DatasetHeader schema = make_header();
  schema.config_schema.version = 4;
  DatasetHeader role = make_header();
  role.role = DatasetRole::kValidation;
  DatasetHeader machine = make_header();
  machine.fingerprint.device = "another machine";
  for (const DatasetHeader& header : {family, schema, role, machine}) {
    const auto writer = JournalWriter::open(path, header);
    ASSERT_FALSE(writer);
    EXPECT_EQ(writer.error().code, ErrorCode::kMismatch);
  }
  DatasetHeader limited = make_header();
  limited.fingerprint.hardware.set(HardwareValue::kCores, 1);
  const auto writer = JournalWriter::open(path, limited);
  ASSERT_FALSE(writer);
  EXPECT_THAT(writer.error().message,
              ::testing::HasSubstr("with the threads of 2 cores of this machine, not of 1"));
  EXPECT_EQ(*read_file(path), before);
}

TEST(Journal, ForeignAndMissingFilesAreNamed) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_text_file_atomically(folder / "x.ftd", "m,n,k\n1,2,3\n"));
  EXPECT_EQ(read_dataset(folder / "x.ftd").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(read_dataset(folder / "y.ftd").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(JournalWriter::open(folder / "x.ftd", make_header()));
  EXPECT_EQ(*read_text_file(folder / "x.ftd"), "m,n,k\n1,2,3\n");
}

// A child appends rows as fast as it can and is killed at a random moment.
TEST(Journal, KilledWriterLosesNothingThatItReported) {
  const TemporaryFolder folder;
  const DatasetHeader header = make_header();
  Rng rng(17);
  std::uint64_t reported = 0;
  for (int round = 0; round < 25; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto writer = JournalWriter::open(folder / "k.ftd", header);
      Rng own(1000 + static_cast<std::uint64_t>(round));
      while (writer && (*writer)->append(random_measurement(header, own))) {
        const std::uint64_t count = (*writer)->row_count();
        static_cast<void>(::write(pipe_ends[1], &count, sizeof(count)));
      }
      ::_exit(1);
    }
    ::close(pipe_ends[1]);
    ::usleep(static_cast<useconds_t>(2000 + rng.below(20000)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    std::uint64_t count = 0;
    while (::read(pipe_ends[0], &count, sizeof(count)) == static_cast<ssize_t>(sizeof(count))) {
      reported = count;
    }
    ::close(pipe_ends[0]);
    if (reported > 0) {
      const auto read = read_dataset(folder / "k.ftd");
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_GE(read->size(), reported);
      EXPECT_LE(read->size(), reported + 1);
      reported = read->size();
    }
  }
  EXPECT_GT(reported, 0U);
}

TEST(Journal, ARowTakesAtMostSixteenBytesWhenSealed) {
  const DatasetHeader header = make_header();
  Dataset dataset(header);
  Rng rng(5);
  for (int i = 0; i < 200000; ++i) {
    Measurement measurement = random_measurement(header, rng);
    measurement.samples_ns.clear();
    std::erase_if(measurement.metrics,
                  [](const MetricValue& value) { return value.metric == kEnergyJ; });
    dataset.add(measurement);
  }
  const double definitions = 40.0 * 40 * 40 * 8 + 1004.0 * 1004 * 4;
  const double bytes = static_cast<double>(dataset_bytes(dataset)->size());
  EXPECT_LT((bytes - definitions) / 200000, 16.0) << bytes;
}

// The first version with the format wrote these files. All later versions must read the same
// contents.
TEST(Journal, GoldenFilesOfVersion1AreReadAndWrittenTheSame) {
  const std::string folder = FORETUNE_SOURCE_DIR "/foretune/dataset/testdata/";
  for (const SchemaKind kind : {SchemaKind::kParametric, SchemaKind::kSequence}) {
    const std::string name = kind == SchemaKind::kParametric ? "parametric" : "sequence";
    const Dataset expected = testing_support::golden_dataset(kind);
    for (const char* form : {"sealed_", "journal_"}) {
      const std::string path = concat(folder, form, name, "_v1.ftd");
      const Result<Dataset> dataset = read_dataset(path);
      ASSERT_TRUE(dataset) << dataset.error().message;
      testing_support::expect_same(expected, *dataset, path);
    }
    const auto sealed = read_file(concat(folder, "sealed_", name, "_v1.ftd"));
    ASSERT_TRUE(sealed) << sealed.error().message;
    EXPECT_EQ(dataset_bytes(expected).value(), *sealed);
    const TemporaryFolder temporary;
    auto writer = JournalWriter::open(temporary / "j.ftd", expected.header());
    ASSERT_TRUE(writer) << writer.error().message;
    for (const Measurement& measurement : testing_support::golden_measurements(expected.header())) {
      ASSERT_TRUE((*writer)->append(measurement));
    }
    writer->reset();
    EXPECT_EQ(read_file(temporary / "j.ftd").value(),
              read_file(concat(folder, "journal_", name, "_v1.ftd")).value());
  }
}

// Reads a problem block as a later version writes it, with an additional field by name after the
// others.
Status read_with_later_field(std::string_view name, unsigned bits) {
  Dataset dataset(testing_support::golden_header(SchemaKind::kParametric));
  ByteWriter out;
  dataset_internal::encode_problem(out, *Problem::parse("gemm m=8 n=16 k=32"));
  std::vector<std::byte> bytes = out.take();
  bytes.back() = static_cast<std::byte>(bits);
  ByteWriter behind;
  behind.put_bytes(bytes);
  behind.put_varint(1);
  behind.put_string(name);
  behind.put_zigzag(3);
  return dataset_internal::decode_block(
      {.type = dataset_internal::BlockType::kProblems, .payload = behind.bytes()}, dataset);
}

TEST(Journal, AFieldOfALaterVersionIsRefusedByItsName) {
  const Status unknown = read_with_later_field("colour", 2);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kMismatch);
  EXPECT_EQ(unknown.error().message,
            "the block at byte 0: the data set has problems with the field 'colour', which gemm "
            "problems do not have in "
            "this version");
  // A field of the first version is not a later one, and a problem has no other parts.
  EXPECT_FALSE(read_with_later_field("m", 2));
  EXPECT_FALSE(read_with_later_field("colour", 4));
}

}  // namespace
}  // namespace foretune
