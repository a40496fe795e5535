// Data sets joined, and cut down to some of their problems.
#include "foretune/base/check.h"
#include "foretune/base/text.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/internal/machine_notes.h"
#include "foretune/dataset/internal/row_copier.h"

namespace foretune {

Status Dataset::check_mergeable(const Dataset& other) const {
  if (other.header_.family != header_.family) {
    return fail(ErrorCode::kMismatch, "family '", other.header_.family, "' cannot be merged with '",
                header_.family, "'");
  }
  if (other.header_.problem_type != header_.problem_type) {
    return fail(ErrorCode::kMismatch, "data sets of different problem types cannot be merged");
  }
  if (other.header_.config_schema != header_.config_schema) {
    return fail(ErrorCode::kMismatch, "config schema ", other.header_.config_schema.name, " v",
                other.header_.config_schema.version, " cannot be merged with ",
                header_.config_schema.name, " v", header_.config_schema.version,
                other.header_.config_schema.name == header_.config_schema.name &&
                        other.header_.config_schema.version == header_.config_schema.version
                    ? ": their parameters differ"
                    : "");
  }
  return check_declarable(other.header_.metrics);
}

Status Dataset::merge(const Dataset& other) {
  const Status mergeable = check_mergeable(other);
  if (!mergeable && other.holds_nothing()) {
    return {};
  }
  if (!mergeable && holds_nothing()) {
    *this = other;
    return {};
  }
  FORETUNE_TRY_STATUS(mergeable);
  FORETUNE_TRY_STATUS(declare_metrics(std::vector<MetricInfo>(other.header_.metrics)));
  dataset_internal::RowCopier(other, *this).copy({});
  notes_.insert(other.notes_.begin(), other.notes_.end());
  const Fingerprint& machine = other.header_.fingerprint;
  if (machine.digest() != 0 && machine.digest() != header_.fingerprint.digest()) {
    notes_.emplace(concat(dataset_internal::kMachineNote, hex_text(machine.digest())),
                   machine.text());
  }
  return {};
}

Dataset Dataset::filter_problems(const std::vector<bool>& keep) const {
  FORETUNE_CHECK(keep.size() == problems_.size());
  Dataset out(header_);
  out.notes_ = notes_;
  out.told_apart_ = told_apart_;
  const auto is_kept = [&](std::uint32_t problem) { return keep[problem]; };
  dataset_internal::RowCopier(*this, out)
      .copy({.keeps_row = [&](const Row& row) { return is_kept(row.problem); },
             .keeps_baseline = is_kept,
             .machine_of_row = {},
             .machine_of_baseline = {}});
  return out;
}

}  // namespace foretune
