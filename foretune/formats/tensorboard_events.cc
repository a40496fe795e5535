#include "foretune/formats/tensorboard_events.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <string>
#include <system_error>
#include <utility>

#include "foretune/base/byte_io.h"
#include "foretune/base/hash.h"
#include "foretune/base/system_error.h"
#include "foretune/base/text.h"

namespace foretune::formats {
namespace {

// Limits the files of one name and second; nobody begins more by accident.
constexpr int kMaxSameName = 1000;
constexpr double kMaxTime = 1e12;

// Fields of protocol buffers: a number and how the value is stored.
enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_key(ByteWriter& out, std::uint32_t field, WireType type) {
  out.put_varint(field << 3U | static_cast<std::uint32_t>(type));
}

void put_bytes_field(ByteWriter& out, std::uint32_t field, std::span<const std::byte> bytes) {
  put_key(out, field, WireType::kBytes);
  out.put_varint(bytes.size());
  out.put_bytes(bytes);
}

// Event: wall_time = 1 (double), step = 2 (int64), file_version = 3 (string), summary = 5.
ByteWriter begin_event(double wall_time_s) {
  ByteWriter out;
  put_key(out, 1, WireType::kFixed64);
  out.put(wall_time_s);
  return out;
}

// Summary: value = 1, repeated; each value has tag = 1 (string), simple_value = 2 (float).
ByteWriter scalar_summary(std::string_view tag, double value) {
  ByteWriter entry;
  put_bytes_field(entry, 1, bytes_of(tag));
  put_key(entry, 2, WireType::kFixed32);
  entry.put(static_cast<float>(value));
  ByteWriter summary;
  put_bytes_field(summary, 1, entry.bytes());
  return summary;
}

// Keeps a checksum useful for data that contains checksums (TFRecord's masking).
std::uint32_t masked_crc(std::span<const std::byte> bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8U;
}

}  // namespace

Result<TensorboardWriter> TensorboardWriter::create(const std::filesystem::path& folder,
                                                    double wall_time_s, std::string_view name) {
  if (name.empty() || name.find_first_of(std::string_view("/\0", 2)) != std::string_view::npos) {
    return fail(ErrorCode::kInvalidArgument, "a file of events cannot be called ", quoted(name));
  }
  if (!(wall_time_s >= 0 && wall_time_s < kMaxTime)) {
    return fail(ErrorCode::kInvalidArgument, "events cannot begin at ", wall_time_s, " s");
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return fail(ErrorCode::kIo, "cannot make the folder ", folder.string(), ": ", error.message());
  }
  const std::string stem =
      concat("events.out.tfevents.", static_cast<std::int64_t>(std::floor(wall_time_s)), ".", name);
  for (int number = 0; number < kMaxSameName; ++number) {
    std::filesystem::path path = folder / (number == 0 ? stem : concat(stem, ".", number));
    Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
    if (!file.ok()) {
      if (errno == EEXIST) {
        continue;
      }
      return fail(ErrorCode::kIo, "cannot write ", path.string(), ": ", last_error());
    }
    TensorboardWriter writer(std::move(file), std::move(path));
    ByteWriter event = begin_event(wall_time_s);
    put_bytes_field(event, 3, bytes_of("brain.Event:2"));
    FORETUNE_TRY_STATUS(writer.append(event.bytes()));
    return writer;
  }
  return fail(ErrorCode::kIo, "there are ", kMaxSameName, " files called ",
              (folder / stem).string(), " already");
}

Status TensorboardWriter::check_open() const {
  if (!file_.ok()) {
    return fail(ErrorCode::kInvalidArgument, path_.string(), " is closed already");
  }
  if (is_damaged_) {
    return fail(ErrorCode::kIo, path_.string(), " ends in a record that could not be written");
  }
  return {};
}

Status TensorboardWriter::append(std::span<const std::byte> event) {
  ByteWriter record;
  record.put(static_cast<std::uint64_t>(event.size()));
  record.put(masked_crc(record.bytes()));
  record.put_bytes(event);
  record.put(masked_crc(event));
  Status written = write_fully(file_.get(), record.bytes(), path_.string());
  is_damaged_ = !written;
  return written;
}

Status TensorboardWriter::add_scalar(std::string_view tag, std::int64_t step, double value,
                                     double wall_time_s) {
  FORETUNE_TRY_STATUS(check_open());
  if (tag.empty()) {
    return fail(ErrorCode::kInvalidArgument, "a scalar needs a tag");
  }
  ByteWriter event = begin_event(wall_time_s);
  put_key(event, 2, WireType::kVarint);
  event.put_varint(static_cast<std::uint64_t>(step));
  put_bytes_field(event, 5, scalar_summary(tag, value).bytes());
  return append(event.bytes());
}

Status TensorboardWriter::flush() {
  FORETUNE_TRY_STATUS(check_open());
  if (::fsync(file_.get()) != 0) {
    return fail(ErrorCode::kIo, "cannot write ", path_.string(), " to disk: ", last_error());
  }
  return {};
}

Status TensorboardWriter::close() {
  if (!file_.close()) {
    return fail(ErrorCode::kIo, "cannot close ", path_.string(), ": ", last_error());
  }
  return {};
}

}  // namespace foretune::formats
