// The data set file (.ftd): magic, version, header, then checksummed blocks. A journal grows row by
// row while measuring. seal() rewrites it by columns, in segments of a million rows (interned
// problems, configs and contexts, usually 6 to 16 bytes a row). A sealed file can be appended to
// again. docs/reference/file-formats/dataset.md describes the format byte by byte.
//
//   FORETUNE_TRY(auto journal, JournalWriter::open("h200.ftd", header));
//   if (!journal->contains(problem, config, context)) {
//     FORETUNE_TRY_STATUS(journal->append(measurement));
//   }
//
// kill -9 at any moment loses at most the record being written: opening for append cuts off a torn
// tail, reading ignores and reports it. Damage anywhere else is an error with the position. A lock
// refuses a second writer on a file; readers may read while a writer writes.
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

// How a writer keeps others from its file. kNone is for a file whose name no other process writes
// to, such as that of one task in a folder of several machines: a lock there may be unknown to the
// file server, or stay after a crash.
enum class JournalLock : std::uint8_t { kExclusive, kNone };

class JournalWriter {
 public:
  // Creates the file, or opens it to continue. Then it keeps seed, peaks and command line of its
  // first header. Errors: kMismatch when an existing file has another family, schema, role or
  // machine; kCorrupt when it is damaged or not a data set; kIo when locked.
  static Result<std::unique_ptr<JournalWriter>> open(const std::filesystem::path& path,
                                                     const DatasetHeader& header,
                                                     JournalLock lock = JournalLock::kExclusive);
  ~JournalWriter();
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  // Appends a record by one write system call, so the kernel has it when this returns. After an
  // error (a full disk) the file is as before. Errors: kMismatch for a config of another schema,
  // kInvalidArgument for a censored measurement without a positive time, an ok one without any
  // metric, an evaluation with a time, and for a metric whose name or value cannot be stored.
  Status append(const Measurement& measurement);
  // Flushes the appended records to the disk.
  Status sync();
  // True when (problem, config, context) is already in the file; rows of later stages do not count.
  [[nodiscard]] bool contains(const Problem& problem, const Config& config,
                              const Context& context) const;
  // True when a later stage has yielded this metric for it, or failed.
  [[nodiscard]] bool contains(const Problem& problem, const Config& config, const Context& context,
                              std::string_view metric) const;
  // Return the number of rows in the file, and of the bytes cut off at the end when it was opened.
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
// Returns true for a file whose writer was killed before the header was complete: it holds nothing
// yet. Errors: kNotFound, kIo.
Result<bool> is_only_begun(const std::filesystem::path& path);
Result<DatasetHeader> read_dataset_header(const std::filesystem::path& path);
// Reads the file's bytes from memory. The fuzzer calls this.
Result<Dataset> read_dataset_bytes(std::span<const std::byte> bytes, ReadReport* report = nullptr);

struct WriteOptions {
  bool keep_samples = true;
};
// Writes a sealed file through a temporary one and a rename: the old file stays until the new one
// is complete. Errors: kIo while another writer appends to the old one.
Status write_dataset(const Dataset& dataset, const std::filesystem::path& path,
                     const WriteOptions& options = {});
// Returns the bytes of a sealed file. Errors: kInvalidArgument, kMismatch for contents that a file
// cannot hold.
Result<std::vector<std::byte>> dataset_bytes(const Dataset& dataset,
                                             const WriteOptions& options = {});
// Replaces a journal by its sealed form.
Status seal(const std::filesystem::path& path);

}  // namespace foretune
