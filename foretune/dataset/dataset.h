// Measurements in memory, with problems, configs, contexts and reasons interned. Trainers and
// evaluators read them.
//
//   FORETUNE_TRY(const Dataset dataset, read_dataset("h200.ftd"));
//   for (const Dataset::Row& row : dataset.rows()) {
//     use(dataset.problems()[row.problem], dataset.configs()[row.config], row.time_ns);
//   }
//
// Thread safety: const members may be called from several threads.
// Cost: a row takes 32 bytes, so 10 million rows take 320 MB. add() allocates only for new values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/measurement.h"
#include "foretune/hardware/hardware.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

class PayloadStore;

// Stored in files: never renumber. Training never reads a validation set.
enum class DatasetRole : std::uint8_t { kTraining = 0, kValidation = 1 };
std::string_view to_string(DatasetRole role);

// The facts that all measurements of a data set share.
struct DatasetHeader {
  std::string family;  // "cpu-gemm"
  ProblemType problem_type{};
  ConfigSchema config_schema;
  // SpaceDefinition::text() of the family when it has one, so that a model trained elsewhere has
  // the rules for legal configs; may be empty.
  std::string space_text;
  Fingerprint fingerprint;
  DatasetRole role = DatasetRole::kTraining;
  std::uint64_t seed = 0;
  std::string created_by;  // the command line
  // Metrics that rows may have besides the common ones (Dataset::metric()).
  std::vector<MetricInfo> metrics;
  bool operator==(const DatasetHeader&) const = default;
};

using RowIndex = std::uint32_t;

// Texts that travel with the measurements, by name: the meaning of numbers in problems, for
// example.
using Notes = std::map<std::string, std::string>;

// Longer reasons (a compiler's whole output) are truncated, since reasons are for people.
inline constexpr std::size_t kMaxReasonBytes = 4096;

// A metric's number within a data set and its file. The common metrics have the same numbers
// everywhere; those of the header follow.
using MetricIndex = std::uint8_t;
inline constexpr std::size_t kMaxMetrics = 255;

class Dataset {
 public:
  explicit Dataset(DatasetHeader header) : header_(std::move(header)) {}

  [[nodiscard]] const DatasetHeader& header() const { return header_; }
  DatasetHeader& mutable_header() { return header_; }

  // Adds a row. A later row with the same (problem, config, context) does not replace the first;
  // see deduplicate(). Rounds the median and the spread (the relative interquartile range) as files
  // hold them (quantise.h), so that a row reads back as it was added.
  void add(const Measurement& measurement);
  // Return the ids of interned values, for bulk readers. At most 65,534 contexts; a reason is
  // truncated at kMaxReasonBytes.
  std::uint32_t intern_problem(const Problem& problem);
  std::uint32_t intern_config(const Config& config);
  std::uint32_t intern_context(const Context& context);
  std::uint32_t intern_reason(const std::string& reason);
  // Interns a metric. An undeclared one gets its properties from metric_info(). There are at most
  // kMaxMetrics.
  MetricIndex intern_metric(std::string_view name);
  // Return the id of a value that is already interned.
  [[nodiscard]] std::optional<std::uint32_t> find_problem(const Problem& problem) const;
  [[nodiscard]] std::optional<std::uint32_t> find_config(const Config& config) const;
  [[nodiscard]] std::optional<std::uint32_t> find_context(const Context& context) const;
  struct Row {
    std::uint32_t problem = 0;
    std::uint32_t config = 0;
    std::uint16_t context = 0;
    Outcome outcome = Outcome::kOk;
    Stage stage = Stage::kNone;
    std::uint8_t flags = 0;
    std::uint16_t samples = 0;  // of the time; 65,535 stands for that and more
    std::uint32_t reason = 0;   // 0 is "none"
    float time_ns = 0;          // a lower bound when censored, 0 when there is none
    float median_ns = 0;        // 0 when unknown
    float spread = 0;
    // An ok row may lack a time; then it has other metrics.
    [[nodiscard]] bool has_time() const { return time_ns > 0; }
    [[nodiscard]] bool is_timed() const { return outcome == Outcome::kOk && has_time(); }
    // True when a later stage yielded the row, after the config was timed.
    [[nodiscard]] bool is_evaluation() const { return stage == Stage::kEvaluate; }
    bool operator==(const Row&) const = default;
  };
  // Returns the row as files hold it: median and spread rounded, no time unless ok or censored.
  static Row rounded(const Row& row);
  void add_row(const Row& row) { rows_.push_back(rounded(row)); }
  void reserve(std::size_t rows) { rows_.reserve(rows); }
  // Adds `count` rows, which a bulk reader fills with rounded ones.
  std::span<Row> extend(std::size_t count) {
    rows_.resize(rows_.size() + count);
    return std::span(rows_).last(count);
  }

  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] bool holds_nothing() const { return rows_.empty() && baselines_.empty(); }
  [[nodiscard]] std::span<const Row> rows() const { return rows_; }
  [[nodiscard]] std::span<const Problem> problems() const { return problems_; }
  [[nodiscard]] std::span<const Config> configs() const { return configs_; }
  [[nodiscard]] std::span<const Context> contexts() const { return contexts_; }
  // Returns a reason by id. Reason 0 is empty.
  [[nodiscard]] const std::string& reason(std::uint32_t id) const { return reasons_[id]; }
  [[nodiscard]] std::size_t reason_count() const { return reasons_.size(); }
  [[nodiscard]] std::span<const std::string> reasons() const { return reasons_; }
  [[nodiscard]] Measurement measurement(RowIndex row) const;
  // Attaches to the problems the descriptors of their payloads (Problem::descriptor()), which
  // features need. Errors: those of PayloadStore::describe(), for the first missing payload.
  Status describe_payloads(PayloadStore& payloads);

  // Removes the rows from `first` on with their metrics and samples, but keeps the interned values
  // and their ids.
  void drop_rows(RowIndex first = 0);
  // Keeps only the rows for which keep[row] holds; returns how many rows this removed. Interned
  // values and their ids stay.
  std::size_t keep_rows(const std::vector<bool>& keep);

  // A note with a name that exists replaces it. Notes are no part of fingerprint().
  [[nodiscard]] const Notes& notes() const { return notes_; }
  void set_note(const std::string& name, std::string text) { notes_[name] = std::move(text); }

  // Metrics besides time: sparse, in row order.
  struct ExtraMetric {
    RowIndex row = 0;
    MetricIndex metric = 0;
    std::uint32_t samples = 0;
    double value = 0;
    double spread = 0;
    bool operator==(const ExtraMetric&) const = default;
  };
  void add_extra(const ExtraMetric& extra) { extras_.push_back(extra); }
  [[nodiscard]] std::span<const ExtraMetric> extras() const { return extras_; }
  [[nodiscard]] std::span<const ExtraMetric> extras(RowIndex row) const;
  [[nodiscard]] const MetricInfo& metric(MetricIndex index) const;
  [[nodiscard]] std::size_t metric_count() const;
  [[nodiscard]] std::optional<MetricIndex> find_metric(std::string_view name) const;
  // metrics() returns all metrics that rows may have, present_metrics() those that some row has,
  // including time_ns when a row has a time.
  [[nodiscard]] std::vector<MetricInfo> metrics() const;
  [[nodiscard]] std::vector<MetricInfo> present_metrics() const;
  // Declares further metrics, all or none. Errors: kMismatch for one that the data set has with
  // another unit, direction or stage, kUnsupported beyond kMaxMetrics.
  Status declare_metrics(std::span<const MetricInfo> infos);
  // Returns all values of a row, time and median first.
  [[nodiscard]] std::vector<MetricValue> values(RowIndex row) const;
  // Samples of each window, where they were kept: in row order, at most one list per row.
  struct Samples {
    RowIndex row = 0;
    std::vector<float> values_ns;
    bool operator==(const Samples&) const = default;
  };
  void add_samples(Samples samples) { samples_.push_back(std::move(samples)); }
  [[nodiscard]] std::span<const Samples> samples() const { return samples_; }

  // The time of another picker's choice (a vendor library's own), for comparison.
  struct Baseline {
    std::uint32_t problem = 0;
    std::string name;   // "cublas"
    float time_ns = 0;  // 0 when there are only other metrics
    struct Metric {
      MetricIndex metric = 0;
      double value = 0;
      bool operator==(const Metric&) const = default;
    };
    std::vector<Metric> metrics = {};  // besides the time; each once
    bool operator==(const Baseline&) const = default;
  };
  void add_baseline(Baseline baseline);
  [[nodiscard]] std::span<const Baseline> baselines() const { return baselines_; }

  // Returns the row indices of every problem, in row order.
  [[nodiscard]] std::vector<std::vector<RowIndex>> rows_by_problem() const;
  // Merges rows of the same (problem, config, context) and returns how many rows this removed. Ok
  // rows take precedence over censored ones, and these over failed ones. Several ok rows give the
  // median of their times and of each other metric; several bounds give the highest. Values of a
  // later stage join the ok row of the config; without one they stay a row of their own. A failure
  // of a later stage stays a row of its own unless the stage also yielded values. Rows of
  // comparisons (kFlagReference) stay separate, because only the ratios of their times matter;
  // exact copies are removed. Baselines of the same problem and name are merged by their medians.
  std::size_t deduplicate();
  // Returns a digest that identifies the training data of a model. It does not depend on the order
  // of rows. It covers metrics besides the time where there are any.
  [[nodiscard]] Digest fingerprint() const;
  // Appends the rows, baselines and notes of `other`; of two notes with one name, the first stays.
  // The facts of another machine become a note (machines()).
  // When the two do not fit but one is empty, the result
  // is the other one with its header, since a schema without measurements does not matter.
  // Errors: kMismatch for another family or schema, or a metric of another unit or direction.
  Status merge(const Dataset& other);
  // Returns a new data set with only the rows and baselines for which keep[problem id] holds.
  [[nodiscard]] Dataset filter_problems(const std::vector<bool>& keep) const;

  // Returns the facts of the machines that the rows name by digest: first that of the header, then
  // others by digest. merge() keeps the facts of the other side in a note. Rows of a machine
  // without facts count as the header's. Errors: kCorrupt for such a note.
  [[nodiscard]] Result<std::vector<Fingerprint>> machines() const;
  // Returns a copy whose problems are told apart by machine (Problem::machine()), for training on
  // several; a plain copy when there is one. A baseline of a problem that several machines measured
  // is left out, because it names no machine. Errors: those of machines().
  [[nodiscard]] Result<Dataset> by_machine() const;
  // Returns only the rows of one of machines(), with its facts in the header, and the baselines of
  // problems that no other machine measured.
  [[nodiscard]] Dataset of_machine(const Fingerprint& machine) const;
  // Returns the facts of the machine of a problem in by_machine(), else those of the header.
  [[nodiscard]] const Fingerprint& machine_of(const Problem& problem) const;
  [[nodiscard]] const Hardware& hardware_of(const Problem& problem) const {
    return machine_of(problem).hardware;
  }
  // Returns the machines that by_machine() told apart; otherwise none.
  [[nodiscard]] std::vector<Fingerprint> told_apart() const;
  // Knows the machines that `other` tells apart, whose problems this data set takes over.
  void tell_apart_as(const Dataset& other) { told_apart_ = other.told_apart_; }

 private:
  [[nodiscard]] Status check_mergeable(const Dataset& other) const;
  [[nodiscard]] Status check_declarable(std::span<const MetricInfo> infos) const;
  struct Merging;
  void merge_config(std::span<const RowIndex> group, Merging& merging);
  void merge_group(std::span<const RowIndex> group, Merging& merging);
  void deduplicate_baselines();

  DatasetHeader header_;
  std::vector<Problem> problems_;
  std::vector<Config> configs_;
  std::vector<Context> contexts_;
  std::vector<std::string> reasons_{std::string()};
  std::unordered_map<Problem, std::uint32_t> problem_ids_;
  std::unordered_map<Config, std::uint32_t> config_ids_;
  std::unordered_map<std::string, std::uint32_t> reason_ids_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> context_ids_;  // by Context::hash()
  std::vector<Row> rows_;
  std::vector<ExtraMetric> extras_;
  std::vector<Samples> samples_;
  std::vector<Baseline> baselines_;
  Notes notes_;
  std::map<std::uint64_t, Fingerprint> told_apart_;  // by digest
};

}  // namespace foretune
