// Answers requests from a data set when they were measured before, and stores new measurements in
// it, so that successive searches of one problem share their measurements.
//
//   FORETUNE_TRY(const auto known, KnownMeasurements::open("known.ftd", header));
//   KnownMeasurer measurer(std::move(inner), known);
//   measurer.measure(request);   // calls the inner measurer the first time only
//
// Comparisons and later stages always go to the inner measurer, and are not stored. A config that
// was stopped early is measured again when its known bound does not decide whether it is slower
// than the current best.
// Thread safety: any number of threads may share the data set; a measurer belongs to one. One
// process at a time may have the file open. Cost: a known answer takes about a microsecond.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/journal.h"
#include "foretune/measure/measure.h"

namespace foretune {

// The data set: any number of measurers may share it.
class KnownMeasurements {
 public:
  // The file is created when it is not there. Errors: those of JournalWriter::open() and
  // read_dataset().
  static Result<std::shared_ptr<KnownMeasurements>> open(const std::filesystem::path& path,
                                                         const DatasetHeader& header);

  // Returns what answers the request in that context; nothing when no row does, or when it does not
  // suffice.
  [[nodiscard]] std::optional<Measurement> find(const Request& request,
                                                const Context& context) const;
  void keep(const Measurement& measured);
  [[nodiscard]] ProblemType problem_type() const { return known_.header().problem_type; }
  // Returns the number of rows of measurements, of all contexts.
  [[nodiscard]] std::size_t size() const;
  // Returns the error that kept a measurement from being stored, if any. This process knows the
  // measurement nevertheless.
  [[nodiscard]] Status status() const;

 private:
  struct Key {
    std::uint32_t problem = 0;
    std::uint32_t config = 0;
    std::uint32_t context = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  KnownMeasurements(Dataset known, std::unique_ptr<JournalWriter> journal);
  void remember(std::size_t row);

  mutable std::mutex mutex_;  // of all below
  Dataset known_;
  std::unique_ptr<JournalWriter> journal_;
  std::unordered_map<Key, std::size_t, KeyHash> rows_;
  Status status_;
};

class KnownMeasurer final : public Measurer {
 public:
  KnownMeasurer(std::unique_ptr<Measurer> inner, std::shared_ptr<KnownMeasurements> known);

  Measurement measure(const Request& request) override;
  std::vector<Measurement> compare(const Problem& problem, std::span<const Config> configs,
                                   int rounds) override {
    return inner_->compare(problem, configs, rounds);
  }
  const Context& context() const override { return inner_->context(); }

  // Count the answers that were known, and the measurements that were made and stored.
  [[nodiscard]] std::uint64_t hits() const { return hits_; }
  [[nodiscard]] std::uint64_t misses() const { return misses_; }
  [[nodiscard]] Status status() const { return known_->status(); }

 private:
  std::unique_ptr<Measurer> inner_;
  std::shared_ptr<KnownMeasurements> known_;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace foretune
