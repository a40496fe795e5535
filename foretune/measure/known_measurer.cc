#include "foretune/measure/known_measurer.h"

#include <optional>
#include <utility>

namespace foretune {
namespace {

std::uint64_t key_of(std::uint32_t problem, std::uint32_t config) {
  return (std::uint64_t{problem} << 32U) | config;
}

}  // namespace

KnownMeasurer::KnownMeasurer(std::unique_ptr<Measurer> inner, Dataset known,
                             std::unique_ptr<JournalWriter> journal)
    : inner_(std::move(inner)), known_(std::move(known)), journal_(std::move(journal)) {
  for (std::size_t row = 0; row < known_.size(); ++row) {
    remember(row);
  }
}

Result<std::unique_ptr<KnownMeasurer>> KnownMeasurer::open(const std::filesystem::path& path,
                                                           const DatasetHeader& header,
                                                           std::unique_ptr<Measurer> inner) {
  FORETUNE_TRY(std::unique_ptr<JournalWriter> journal, JournalWriter::open(path, header));
  FORETUNE_TRY(Dataset known, read_dataset(path));
  return std::unique_ptr<KnownMeasurer>(
      new KnownMeasurer(std::move(inner), std::move(known), std::move(journal)));
}

// The last one of several counts: it was measured because the one before it said too little.
void KnownMeasurer::remember(std::size_t row) {
  const Dataset::Row& measured = known_.rows()[row];
  if (!measured.is_evaluation() && known_.contexts()[measured.context] == inner_->context()) {
    rows_[key_of(measured.problem, measured.config)] = row;
  }
}

const Dataset::Row* KnownMeasurer::find(const Request& request) const {
  const std::optional<std::uint32_t> problem = known_.find_problem(request.problem);
  const std::optional<std::uint32_t> config = known_.find_config(request.config);
  if (!problem || !config) {
    return nullptr;
  }
  const auto found = rows_.find(key_of(*problem, *config));
  if (found == rows_.end()) {
    return nullptr;
  }
  const Dataset::Row& row = known_.rows()[found->second];
  const bool says_too_little =
      row.outcome == Outcome::kCensored && static_cast<double>(row.time_ns) < request.incumbent_ns;
  const bool has_no_incumbent = row.outcome == Outcome::kCensored && request.incumbent_ns <= 0;
  return says_too_little || has_no_incumbent ? nullptr : &row;
}

Measurement KnownMeasurer::measure(const Request& request) {
  if (!request.evaluate.empty()) {
    return inner_->measure(request);
  }
  if (const Dataset::Row* const row = find(request)) {
    ++hits_;
    return known_.measurement(static_cast<RowIndex>(row - known_.rows().data()));
  }
  Measurement measured = inner_->measure(request);
  // A worker that could not be started says nothing of the config.
  if (measured.outcome == Outcome::kCrashed && measured.stage == Stage::kNone) {
    return measured;
  }
  ++misses_;
  if (status_) {
    status_ = journal_->append(measured);
  }
  known_.add(measured);
  remember(known_.size() - 1);
  return measured;
}

}  // namespace foretune
