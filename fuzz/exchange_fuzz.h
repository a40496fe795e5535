// JSON and MessagePack differ in nothing but the format that is tried.
#pragma once

#include "foretune/dataset/exchange.h"
#include "fuzz/dataset_fuzz.h"

namespace foretune::fuzz {

// A document of ours or of torch-diode: a data set or a reason; ours comes back from its own
// export.
inline void try_document(std::span<const std::byte> bytes, ExchangeFormat ours,
                         ExchangeFormat diode) {
  for (const ExchangeFormat format : {ours, diode}) {
    ImportReport report;
    const Result<Dataset> dataset = import_json_bytes(bytes, format, &report);
    if (refused(dataset)) {
      continue;
    }
    require(report.rows_kept <= report.rows_read);
    require_storable(*dataset);
    const Result<std::vector<std::byte>> written = export_bytes(*dataset, ours);
    require(written.has_value());
    const Result<Dataset> again = import_json_bytes(*written, ours);
    require(again.has_value());
    require(again->fingerprint() == dataset->fingerprint());
  }
}

}  // namespace foretune::fuzz
