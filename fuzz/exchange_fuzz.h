// JSON and MessagePack differ in nothing but the format that is tried.
#pragma once

#include "fuzz/dataset_fuzz.h"

namespace foretune::fuzz {

// A reason that was cut may end within a character, which JSON cannot hold: it is written as U+FFFD
// there, and is longer than before.
inline bool has_cut_reason(const Dataset& dataset) {
  return std::ranges::any_of(dataset.reasons(), [](const std::string& reason) {
    return reason.size() == kMaxReasonBytes;
  });
}

// torch-diode's format loses what it has no place for (bounds, layouts, words that are no sizes),
// and may lose everything; what has come back from it once is a fixed point.
inline void try_diode(const Dataset& dataset, ExchangeFormat format) {
  const auto first = export_bytes(dataset, format);
  if (refused(first)) {
    return;
  }
  const auto kept = import_json_bytes(*first, format);
  if (refused(kept)) {
    return;
  }
  const auto second = export_bytes(*kept, format);
  require(second.has_value());
  const auto again = import_json_bytes(*second, format);
  require(again.has_value());
  require(again->size() == kept->size());
  require(export_bytes(*again, format) == second);
}

// A document of ours or of torch-diode, whichever its content says: a data set or a reason. It
// comes back from our own export the same.
inline void try_document(std::span<const std::byte> bytes, ExchangeFormat ours,
                         ExchangeFormat diode) {
  ImportReport report;
  const Result<Dataset> dataset = import_json_bytes(bytes, ours, &report);
  if (refused(dataset)) {
    return;
  }
  require(report.rows_kept <= report.rows_read);
  require(report.rows_kept == dataset->size());
  require_storable(*dataset);
  require_mergeable(*dataset);
  const Result<std::vector<std::byte>> written = export_bytes(*dataset, ours);
  require(written.has_value());
  const Result<Dataset> again = import_json_bytes(*written, ours);
  require(again.has_value());
  if (!has_cut_reason(*dataset)) {
    require_identical(*again, *dataset);
  }
  try_diode(*dataset, diode);
}

}  // namespace foretune::fuzz
