// JSON values that all reports share. Internal to the module.
// Thread safety: free functions without state.
#pragma once

#include <string>

#include "foretune/evaluate/evaluate.h"
#include "foretune/formats/json.h"
#include "foretune/hardware/hardware.h"

namespace foretune::report_internal {

// Returns the number, or null for NaN and infinity, which JSON lacks.
nlohmann::ordered_json number(double value);
// Returns the value of a figure with the ends of its interval.
nlohmann::ordered_json interval_json(const Interval& interval);
// Returns "machine" of the envelope.
nlohmann::ordered_json machine_json(const Fingerprint& machine);
// Returns what `to_json` makes of each entry.
template <class Entries, class ToJson>
nlohmann::ordered_json array_of(const Entries& entries, const ToJson& to_json) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& entry : entries) {
    out.push_back(to_json(entry));
  }
  return out;
}
// Returns indented text with a line end. Strings may come from foreign files: bytes that are not
// UTF-8 are replaced instead of raising an exception.
std::string text_of(const nlohmann::ordered_json& document);

}  // namespace foretune::report_internal
