// Answers from a data set what was measured before, and keeps in it what was not: searches of one
// problem, one after the other, then share their measurements.
//
//   FORETUNE_TRY(const auto known, KnownMeasurer::open("known.ftd", header, std::move(measurer)));
//   known->measure(request);   // asks the other measurer the first time only
//
// Comparisons and later stages always go through, and are not kept. A config that was stopped early
// is measured again when what is known does not tell whether it is slower than the best by now.
// Thread safety: one thread. One process at a time may have the file open. Cost: a known answer
// takes about a microsecond.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/journal.h"
#include "foretune/measure/measure.h"

namespace foretune {

class KnownMeasurer final : public Measurer {
 public:
  // The file is created when it is not there; its rows of other contexts are not looked at. Errors:
  // those of JournalWriter::open() and read_dataset().
  static Result<std::unique_ptr<KnownMeasurer>> open(const std::filesystem::path& path,
                                                     const DatasetHeader& header,
                                                     std::unique_ptr<Measurer> inner);

  Measurement measure(const Request& request) override;
  std::vector<Measurement> compare(const Problem& problem, std::span<const Config> configs,
                                   int rounds) override {
    return inner_->compare(problem, configs, rounds);
  }
  const Context& context() const override { return inner_->context(); }

  // Answers that were known, and measurements that were made and kept.
  [[nodiscard]] std::uint64_t hits() const { return hits_; }
  [[nodiscard]] std::uint64_t misses() const { return misses_; }
  // Returns what kept a measurement from being stored, if anything did: measuring goes on then.
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  KnownMeasurer(std::unique_ptr<Measurer> inner, Dataset known,
                std::unique_ptr<JournalWriter> journal);
  void remember(std::size_t row);
  [[nodiscard]] const Dataset::Row* find(const Request& request) const;

  std::unique_ptr<Measurer> inner_;
  Dataset known_;
  std::unique_ptr<JournalWriter> journal_;
  std::unordered_map<std::uint64_t, std::size_t> rows_;  // by problem and config
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
  Status status_;
};

}  // namespace foretune
