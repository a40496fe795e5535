// What the targets of the data set readers share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/journal.h"

namespace foretune::fuzz {

inline void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

// A refusal says why.
template <class T>
bool refused(const Result<T>& result) {
  require(result.has_value() || !result.error().message.empty());
  return !result.has_value();
}

// Whatever was read can be stored, and comes back the same.
inline void require_storable(const Dataset& dataset) {
  const Result<std::vector<std::byte>> written = dataset_bytes(dataset);
  require(written.has_value());
  const Result<Dataset> again = read_dataset_bytes(*written);
  require(again.has_value());
  require(again->size() == dataset.size());
  require(again->fingerprint() == dataset.fingerprint());
  require(again->header() == dataset.header());
}

}  // namespace foretune::fuzz
