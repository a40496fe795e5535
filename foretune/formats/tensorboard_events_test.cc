#include "foretune/formats/tensorboard_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"

namespace foretune::formats {
namespace {

using ::foretune::testing_support::TemporaryFolder;
using testing::HasSubstr;

// Computes the checksum by its definition, one bit at a time.
std::uint32_t slow_crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1U) != 0 ? crc >> 1U ^ 0x82f63b78U : crc >> 1U;
    }
  }
  return ~crc;
}

std::uint32_t slow_masked(std::string_view bytes) {
  const std::uint32_t crc = slow_crc32c(bytes);
  return (crc >> 15U | crc << 17U) + 0xa282ead8U;
}

template <class T>
T number_at(std::string_view bytes, std::size_t place) {
  T value{};
  std::memcpy(&value, bytes.data() + place, sizeof(T));
  return value;
}

// Returns the contents of whole records, up to one that is cut off. A wrong checksum fails the
// test.
std::vector<std::string> records_of(std::string_view bytes) {
  std::vector<std::string> out;
  std::size_t place = 0;
  while (place + 12 <= bytes.size()) {
    const auto length = number_at<std::uint64_t>(bytes, place);
    EXPECT_EQ(number_at<std::uint32_t>(bytes, place + 8), slow_masked(bytes.substr(place, 8)));
    if (place + 16 + length > bytes.size()) {
      break;
    }
    const std::string_view content = bytes.substr(place + 12, length);
    EXPECT_EQ(number_at<std::uint32_t>(bytes, place + 12 + length), slow_masked(content));
    out.emplace_back(content);
    place += 16 + length;
  }
  return out;
}

struct Field {
  std::uint64_t number = 0;
  std::uint64_t varint = 0;
  std::string bytes;  // of the other types
};

std::uint64_t take_varint(std::string_view& message) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; !message.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(message.front());
    message.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) {
      break;
    }
  }
  return value;
}

std::vector<Field> fields_of(std::string_view message) {
  std::vector<Field> out;
  while (!message.empty()) {
    const std::uint64_t key = take_varint(message);
    Field field{.number = key >> 3U};
    if ((key & 7U) == 0) {
      field.varint = take_varint(message);
    } else {
      const std::size_t size = (key & 7U) == 1   ? 8
                               : (key & 7U) == 5 ? 4
                                                 : static_cast<std::size_t>(take_varint(message));
      EXPECT_LE(size, message.size());
      field.bytes = message.substr(0, size);
      message.remove_prefix(std::min(size, message.size()));
    }
    out.push_back(std::move(field));
  }
  return out;
}

struct Scalar {
  double wall_time_s = 0;
  std::int64_t step = 0;
  std::string tag;
  float value = 0;
};

std::optional<Scalar> scalar_of(const std::string& record) {
  Scalar out;
  bool has_summary = false;
  for (const Field& field : fields_of(record)) {
    if (field.number == 1) {
      out.wall_time_s = number_at<double>(field.bytes, 0);
    } else if (field.number == 2) {
      out.step = static_cast<std::int64_t>(field.varint);
    } else if (field.number == 5) {
      has_summary = true;
      for (const Field& entry : fields_of(fields_of(field.bytes).at(0).bytes)) {
        if (entry.number == 1) {
          out.tag = entry.bytes;
        } else {
          EXPECT_EQ(entry.number, 2U);
          out.value = number_at<float>(entry.bytes, 0);
        }
      }
    }
  }
  return has_summary ? std::optional(out) : std::nullopt;
}

std::string contents(const TensorboardWriter& writer) {
  return read_text_file(writer.path()).value();
}

TEST(SlowCrc32c, HasTheKnownCheckValue) { EXPECT_EQ(slow_crc32c("123456789"), 0xe3069283U); }

TEST(TensorboardWriter, BeginsWithTheVersionOfTheFormat) {
  const TemporaryFolder folder;
  auto writer = TensorboardWriter::create(folder / "a/b", 1700000000.75, "host");
  ASSERT_TRUE(writer) << writer.error().message;
  EXPECT_EQ(writer->path(), folder / "a/b/events.out.tfevents.1700000000.host");
  const std::vector<std::string> records = records_of(contents(*writer));
  ASSERT_EQ(records.size(), 1U);
  const std::vector<Field> fields = fields_of(records[0]);
  ASSERT_EQ(fields.size(), 2U);
  EXPECT_EQ(number_at<double>(fields[0].bytes, 0), 1700000000.75);
  EXPECT_EQ(fields[1].number, 3U);
  EXPECT_EQ(fields[1].bytes, "brain.Event:2");
}

TEST(TensorboardWriter, ScalarsComeBackAsTheyWereGiven) {
  const TemporaryFolder folder;
  auto writer = TensorboardWriter::create(folder.path(), 12, "x");
  ASSERT_TRUE(writer) << writer.error().message;
  const std::string long_tag(300, 't');
  const std::vector<Scalar> given = {{13.5, 0, "reward/mean", 0.25F},
                                     {14, 300, long_tag, -1e30F},
                                     {15, std::numeric_limits<std::int64_t>::max(), "a", 0},
                                     {16, -1, "b", std::numeric_limits<float>::infinity()}};
  for (const Scalar& scalar : given) {
    const double value = static_cast<double>(scalar.value);
    ASSERT_TRUE(writer->add_scalar(scalar.tag, scalar.step, value, scalar.wall_time_s));
  }
  const std::vector<std::string> records = records_of(contents(*writer));
  ASSERT_EQ(records.size(), given.size() + 1);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::optional<Scalar> read = scalar_of(records[i + 1]);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->wall_time_s, given[i].wall_time_s);
    EXPECT_EQ(read->step, given[i].step);
    EXPECT_EQ(read->tag, given[i].tag);
    EXPECT_EQ(read->value, given[i].value);
  }
  EXPECT_TRUE(writer->flush());
  EXPECT_TRUE(writer->close());
}

TEST(TensorboardWriter, EveryRecordIsInTheFileBeforeItIsClosed) {
  const TemporaryFolder folder;
  auto writer = TensorboardWriter::create(folder.path(), 12, "x");
  ASSERT_TRUE(writer) << writer.error().message;
  for (int step = 0; step < 5; ++step) {
    ASSERT_TRUE(writer->add_scalar("a", step, step, 12));
    // When a file is cut off anywhere in its last record, all other records are still read.
    const std::string bytes = contents(*writer);
    EXPECT_EQ(records_of(bytes).size(), static_cast<std::size_t>(step) + 2);
    EXPECT_EQ(records_of(bytes.substr(0, bytes.size() - 1)).size(),
              static_cast<std::size_t>(step) + 1);
  }
}

TEST(TensorboardWriter, NeverWritesIntoAFileThatIsThere) {
  const TemporaryFolder folder;
  auto first = TensorboardWriter::create(folder.path(), 12, "x");
  auto second = TensorboardWriter::create(folder.path(), 12, "x");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->path(), folder / "events.out.tfevents.12.x.1");
  ASSERT_TRUE(second->add_scalar("a", 0, 1, 12));
  EXPECT_EQ(records_of(contents(*first)).size(), 1U);
}

TEST(TensorboardWriter, RefusesWhatMakesNoSense) {
  const TemporaryFolder folder;
  for (const std::string_view name : {std::string_view(), std::string_view("a/b")}) {
    const auto writer = TensorboardWriter::create(folder.path(), 12, name);
    ASSERT_FALSE(writer);
    EXPECT_EQ(writer.error().code, ErrorCode::kInvalidArgument);
  }
  for (const double time : {-1.0, std::nan(""), 1e300}) {
    EXPECT_FALSE(TensorboardWriter::create(folder.path(), time, "x")) << time;
  }
  auto writer = TensorboardWriter::create(folder.path(), 12, "x");
  ASSERT_TRUE(writer);
  EXPECT_EQ(writer->add_scalar("", 0, 1, 12).error().message, "a scalar needs a tag");
  EXPECT_TRUE(writer->close());
  EXPECT_TRUE(writer->close());
  EXPECT_THAT(writer->add_scalar("a", 0, 1, 12).error().message, HasSubstr("is closed already"));
  EXPECT_FALSE(writer->flush());
}

TEST(TensorboardWriter, SaysThatAFolderCannotBeMade) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_text_file_atomically(folder / "file", "x"));
  const auto writer = TensorboardWriter::create(folder / "file", 12, "x");
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, ErrorCode::kIo);
  EXPECT_THAT(writer.error().message, HasSubstr("cannot make the folder"));
}

}  // namespace
}  // namespace foretune::formats
