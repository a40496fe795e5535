#include "foretune/measure/known_measurer.h"

#include <optional>
#include <utility>

#include "foretune/base/hash.h"

namespace foretune {

std::size_t KnownMeasurements::KeyHash::operator()(const Key& key) const {
  return hash_combine(hash_combine(key.problem, key.config), key.context);
}

KnownMeasurements::KnownMeasurements(Dataset known, std::unique_ptr<JournalWriter> journal)
    : known_(std::move(known)), journal_(std::move(journal)) {
  for (std::size_t row = 0; row < known_.size(); ++row) {
    remember(row);
  }
}

Result<std::shared_ptr<KnownMeasurements>> KnownMeasurements::open(
    const std::filesystem::path& path, const DatasetHeader& header) {
  FORETUNE_TRY(std::unique_ptr<JournalWriter> journal, JournalWriter::open(path, header));
  FORETUNE_TRY(Dataset known, read_dataset(path));
  return std::shared_ptr<KnownMeasurements>(
      new KnownMeasurements(std::move(known), std::move(journal)));
}

// When several rows answer the same request, the last one counts: it was measured because the one
// before it said too little.
void KnownMeasurements::remember(std::size_t row) {
  const Dataset::Row& measured = known_.rows()[row];
  if (!measured.is_evaluation()) {
    rows_[{.problem = measured.problem, .config = measured.config, .context = measured.context}] =
        row;
  }
}

std::optional<Measurement> KnownMeasurements::find(const Request& request,
                                                   const Context& context) const {
  const std::lock_guard lock(mutex_);
  const std::optional<std::uint32_t> problem = known_.find_problem(request.problem);
  const std::optional<std::uint32_t> config = known_.find_config(request.config);
  const std::optional<std::uint32_t> measured_in = known_.find_context(context);
  if (!problem || !config || !measured_in) {
    return std::nullopt;
  }
  const auto found = rows_.find({.problem = *problem, .config = *config, .context = *measured_in});
  if (found == rows_.end()) {
    return std::nullopt;
  }
  const Dataset::Row& row = known_.rows()[found->second];
  const bool says_too_little =
      row.outcome == Outcome::kCensored && static_cast<double>(row.time_ns) < request.incumbent_ns;
  const bool has_no_incumbent = row.outcome == Outcome::kCensored && request.incumbent_ns <= 0;
  return says_too_little || has_no_incumbent
             ? std::nullopt
             : std::optional(known_.measurement(static_cast<RowIndex>(found->second)));
}

std::size_t KnownMeasurements::size() const {
  const std::lock_guard lock(mutex_);
  return rows_.size();
}

Status KnownMeasurements::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void KnownMeasurements::keep(const Measurement& measured) {
  const std::lock_guard lock(mutex_);
  if (status_) {
    status_ = journal_->append(measured);
  }
  known_.add(measured);
  remember(known_.size() - 1);
}

KnownMeasurer::KnownMeasurer(std::unique_ptr<Measurer> inner,
                             std::shared_ptr<KnownMeasurements> known)
    : inner_(std::move(inner)), known_(std::move(known)) {}

Measurement KnownMeasurer::measure(const Request& request) {
  if (!request.evaluate.empty()) {
    return inner_->measure(request);
  }
  if (std::optional<Measurement> known = known_->find(request, context())) {
    ++hits_;
    return *std::move(known);
  }
  Measurement measured = inner_->measure(request);
  // A worker that could not be started says nothing about the config.
  if (measured.outcome == Outcome::kCrashed && measured.stage == Stage::kNone) {
    return measured;
  }
  ++misses_;
  known_->keep(measured);
  return measured;
}

}  // namespace foretune
