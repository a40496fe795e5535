// A data set file that several processes append to at once, and read while it grows. Every append
// takes the file's lock for some microseconds, reads what others have appended, and writes its rows
// by one system call; so a JournalWriter, which holds the lock as long as it lives, is for a
// process that has the file for itself.
//
//   FORETUNE_TRY(auto journal, SharedJournal::open("matmul.ftd", header));
//   FORETUNE_TRY_STATUS(journal->append({&measurement, 1}));
//   FORETUNE_TRY_STATUS(journal->refresh());
//   use(journal->dataset());                       // rows of all processes
//
// kill -9 at any moment loses at most the append being written: the next one cuts off its torn end.
// Another program may replace the file (seal it, merge into it, remove it); the journal then reads
// the new one, and counts it in generation().
// Thread safety: one thread at a time per object. Cost: an append opens, locks and closes the file,
// some 20 microseconds; reading takes as long as by read_dataset(), each row once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/measurement.h"

namespace foretune {

class SharedJournal {
 public:
  // Reads the file when it exists. With a header, the first append creates a missing file. Errors:
  // kNotFound for a missing file without a header; those of refresh().
  static Result<std::unique_ptr<SharedJournal>> open(const std::filesystem::path& path,
                                                     const std::optional<DatasetHeader>& header);
  ~SharedJournal();
  SharedJournal(const SharedJournal&) = delete;
  SharedJournal& operator=(const SharedJournal&) = delete;

  // Reads the rows that other processes have appended. A file that is missing meanwhile has no
  // rows. Errors: kMismatch when the file has another family, schema, role or machine than the
  // header that open() got; kCorrupt with the position of damage; kIo, also when a lock is held for
  // ten seconds.
  Status refresh();
  // Appends all measurements, or none, and the notes that the file does not have yet. Errors: those
  // of refresh() and of JournalWriter::append().
  Status append(std::span<const Measurement> measurements, const Notes& notes = {});
  // Removes the rows that `is_removed` returns true for, of all processes: writes the file anew and
  // replaces it. Errors: those of refresh().
  Status remove_rows(const std::function<bool(const Dataset::Row& row)>& is_removed);

  // The rows read so far, in the order of the file; those appended by this object among them.
  [[nodiscard]] const Dataset& dataset() const;
  // Changes when rows are no longer those of before, because the file was replaced.
  [[nodiscard]] std::uint64_t generation() const;

 private:
  SharedJournal();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretune
