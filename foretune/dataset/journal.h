// The data set file (.ftd): magic, version, header, then checksummed blocks. A journal is appended
// row by row while measuring; seal() rewrites it by columns, in segments of a million rows
// (interned problems, configs and contexts, usually 6 to 16 bytes a row). A sealed file can be
// appended to again. The format is described byte by byte in docs/file-formats.md.
//
//   FORETUNE_TRY(auto journal, JournalWriter::open("h200.ftd", header));
//   if (!journal->contains(problem, config, context)) {
//     FORETUNE_TRY_STATUS(journal->append(measurement));
//   }
//
// kill -9 at any moment loses at most the record being written: opening for append cuts off a torn
// tail, reading ignores it and says so. Damage anywhere else is an error that names the position.
// Two writers on one file are refused by a lock; readers may read while a writer writes.
// Thread safety: a writer belongs to one thread; readers are free functions.
// Cost: append() is one system call of some microseconds; reading takes about 50 ns a sealed row.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/measurement.h"

namespace foretune {

class JournalWriter {
 public:
  // Creates the file, or opens it to continue; seed, peaks and command line stay those of its first
  // header. Errors: kMismatch when an existing file has another family, schema, role or machine;
  // kCorrupt when it is damaged or not a data set; kIo when locked.
  static Result<std::unique_ptr<JournalWriter>> open(const std::filesystem::path& path,
                                                     const DatasetHeader& header);
  ~JournalWriter();
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  // One write system call: the record is in the kernel's hands when this returns. After an error
  // (a full disk) the file is as before. Errors: kMismatch for a config of another schema,
  // kInvalidArgument for a censored measurement without a positive time, an ok one without any
  // metric, an evaluation with a time, and for a metric whose name or value cannot be stored.
  Status append(const Measurement& measurement);
  // Asks the disk to keep what was appended.
  Status sync();
  // Whether (problem, config, context) is in the file already; rows of later stages do not count.
  [[nodiscard]] bool contains(const Problem& problem, const Config& config,
                              const Context& context) const;
  // Whether a later stage has yielded this metric of it, or failed.
  [[nodiscard]] bool contains(const Problem& problem, const Config& config, const Context& context,
                              std::string_view metric) const;
  // Rows in the file, and bytes cut off at the end when it was opened.
  [[nodiscard]] std::uint64_t row_count() const;
  [[nodiscard]] std::uint64_t recovered_bytes() const;

 private:
  JournalWriter();
  struct State;
  std::unique_ptr<State> state_;
};

struct ReadReport {
  std::uint64_t rows = 0;
  std::uint64_t torn_bytes = 0;  // ignored at the end of the file
};

// Reads a data set file, journal or sealed. Errors: kNotFound, kCorrupt with the position.
Result<Dataset> read_dataset(const std::filesystem::path& path, ReadReport* report = nullptr);
Result<DatasetHeader> read_dataset_header(const std::filesystem::path& path);
// The same from memory; what the fuzzer calls.
Result<Dataset> read_dataset_bytes(std::span<const std::byte> bytes, ReadReport* report = nullptr);

struct WriteOptions {
  bool keep_samples = true;
};
// Writes a sealed file through a temporary one and a rename: the old file stays until the new one
// is complete. Errors: kIo while somebody appends to the old one.
Status write_dataset(const Dataset& dataset, const std::filesystem::path& path,
                     const WriteOptions& options = {});
// The same in memory. Errors: kInvalidArgument, kMismatch for what a file cannot hold.
Result<std::vector<std::byte>> dataset_bytes(const Dataset& dataset,
                                             const WriteOptions& options = {});
// Replaces a journal by its sealed form.
Status seal(const std::filesystem::path& path);

}  // namespace foretune
