// Writes scalars over time to event files for TensorBoard, without TensorFlow.
//
//   FORETUNE_TRY(auto writer, TensorboardWriter::create("runs/a", now_s, "host"));
//   FORETUNE_TRY_STATUS(writer.add_scalar("reward", 1, 0.5, now_s));
//   FORETUNE_TRY_STATUS(writer.close());
//
// A file is a sequence of TFRecords (length, its checksum, content, its checksum; CRC-32C, masked),
// each an Event of tensorflow/core/util/event.proto. Each record is appended by one write: a killed
// process loses at most the record being written, and a reader ignores a truncated last record.
// Thread safety: one thread at a time. Cost: a system call per scalar, some microseconds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "foretune/base/descriptor.h"
#include "foretune/base/result.h"

namespace foretune::formats {

class TensorboardWriter {
 public:
  // Creates the file "events.out.tfevents.<whole seconds>.<name>" in `folder`, which is made when
  // it is missing. An existing file of that name stays as it is; ours then gets ".1" or a higher
  // number appended. Times are seconds since 1970. Errors: kInvalidArgument for a name that no file
  // can have, or a time before 1970; kIo.
  static Result<TensorboardWriter> create(const std::filesystem::path& folder, double wall_time_s,
                                          std::string_view name);

  // Stores the value as f32, as TensorBoard does. Errors: kInvalidArgument for an empty tag, or
  // after close(); kIo. Every later call fails after kIo, because a reader would not find its
  // record.
  Status add_scalar(std::string_view tag, std::int64_t step, double value, double wall_time_s);
  // Writes to the disk; readers on this machine see all records without it.
  Status flush();
  // Closes the file; does nothing when it is closed already. The destructor closes it too, and
  // ignores errors.
  Status close();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  TensorboardWriter(Descriptor file, std::filesystem::path path)
      : file_(std::move(file)), path_(std::move(path)) {}
  Status check_open() const;
  Status append(std::span<const std::byte> event);

  Descriptor file_;
  std::filesystem::path path_;
  bool is_damaged_ = false;
};

}  // namespace foretune::formats
