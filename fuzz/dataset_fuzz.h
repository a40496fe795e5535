// The checks that the fuzz targets of the data set readers share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/journal.h"
#include "foretune/interop/tables/exchange.h"

namespace foretune::fuzz {

inline void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

// Returns true for a refusal, and requires that it gives a reason.
template <class T>
bool refused(const Result<T>& result) {
  require(result.has_value() || !result.error().message.empty());
  return !result.has_value();
}

// Requires that every record that was read was either kept or dropped for a reason that can be
// printed.
inline void require_accounted(const ImportReport& report) {
  std::uint64_t dropped = 0;
  for (const auto& [reason, count] : report.dropped) {
    require(!reason.empty() && count > 0);
    dropped += count;
  }
  require(report.rows_kept + dropped == report.rows_read);
}

inline bool same_metrics(const Dataset& left, const Dataset::Baseline& a, const Dataset& right,
                         const Dataset::Baseline& b) {
  return std::ranges::equal(
      a.metrics, b.metrics,
      [&](const Dataset::Baseline::Metric& x, const Dataset::Baseline::Metric& y) {
        return left.metric(x.metric) == right.metric(y.metric) && x.value == y.value;
      });
}

// Requires the same measurements and baselines in the same order, whatever indices their values
// have.
inline void require_same_content(const Dataset& left, const Dataset& right) {
  require(left.size() == right.size());
  require(left.fingerprint() == right.fingerprint());
  for (std::size_t i = 0; i < left.size(); ++i) {
    const auto row = static_cast<RowIndex>(i);
    require(left.measurement(row) == right.measurement(row));
  }
  require(std::ranges::equal(left.baselines(), right.baselines(),
                             [&](const Dataset::Baseline& a, const Dataset::Baseline& b) {
                               return a.name == b.name && a.time_ns == b.time_ns &&
                                      left.problems()[a.problem] == right.problems()[b.problem] &&
                                      same_metrics(left, a, right, b);
                             }));
}

// Equal in everything, the numbers of interned values too. The fingerprint of a data set leaves out
// most of a row (median, reason, samples), so it cannot stand for this.
inline void require_identical(const Dataset& left, const Dataset& right) {
  require(left.header() == right.header());
  require(std::ranges::equal(left.problems(), right.problems()));
  require(std::ranges::equal(left.configs(), right.configs()));
  require(std::ranges::equal(left.contexts(), right.contexts()));
  require(std::ranges::equal(left.reasons(), right.reasons()));
  require(std::ranges::equal(left.rows(), right.rows()));
  require(std::ranges::equal(left.extras(), right.extras()));
  require(std::ranges::equal(left.samples(), right.samples()));
  require(std::ranges::equal(left.baselines(), right.baselines()));
}

// Whatever was read can be stored, and comes back the same.
inline void require_storable(const Dataset& dataset) {
  const Result<std::vector<std::byte>> written = dataset_bytes(dataset);
  require(written.has_value());
  ReadReport report;
  const Result<Dataset> again = read_dataset_bytes(*written, &report);
  require(again.has_value());
  require(report.rows == dataset.size() && report.torn_bytes == 0);
  require_identical(*again, dataset);
}

// Rows that are merged can be stored, and are merged once and for all.
inline void require_mergeable(const Dataset& dataset) {
  Dataset merged(dataset.header());
  require(merged.merge(dataset).has_value());
  merged.deduplicate();
  require(merged.size() <= dataset.size());
  require(dataset_bytes(merged).has_value());
  require(merged.deduplicate() == 0);
}

}  // namespace foretune::fuzz
