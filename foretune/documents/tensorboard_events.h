// Scalars over time in the event files that TensorBoard shows, written without TensorFlow.
//
//   FORETUNE_TRY(auto writer, TensorboardWriter::create("runs/a", now_s, "host"));
//   FORETUNE_TRY_STATUS(writer.add_scalar("reward", 1, 0.5, now_s));
//   FORETUNE_TRY_STATUS(writer.close());
//
// A file is a row of TFRecords (length, its checksum, content, its checksum; CRC-32C, masked), each
// an Event of tensorflow/core/util/event.proto. A record is appended by one write: who is killed
// loses the one being written at most, and a reader ignores a last record that is cut off.
// Thread safety: one thread at a time. Cost: a system call per scalar, some microseconds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "foretune/base/descriptor.h"
#include "foretune/base/result.h"

namespace foretune::documents {

class TensorboardWriter {
 public:
  // A new file "events.out.tfevents.<whole seconds>.<name>" in `folder`, which is made where it is
  // missing; a file of that name is left as it is, and ".1" or a higher number appended to ours.
  // Times are seconds since 1970. Errors: kInvalidArgument for a name that is none for a file, or a
  // time before 1970; kIo.
  static Result<TensorboardWriter> create(const std::filesystem::path& folder, double wall_time_s,
                                          std::string_view name);

  // Stored as f32, as TensorBoard has it. Errors: kInvalidArgument for an empty tag, or after
  // close(); kIo, and then what follows would not be read: every later call fails, too.
  Status add_scalar(std::string_view tag, std::int64_t step, double value, double wall_time_s);
  // To the disk; readers on this machine see all records without it.
  Status flush();
  // Of what is closed already: nothing. A destructor closes, too, without a word of errors.
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

}  // namespace foretune::documents
