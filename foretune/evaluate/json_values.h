// What the JSON of all reports writes alike. Internal to evaluate.
// Thread safety: free functions without state.
#pragma once

#include <string>

#include "foretune/documents/json.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/hardware/hardware.h"

namespace foretune::evaluate_internal {

// JSON has no NaN: null.
nlohmann::ordered_json number(double value);
// The value of a figure with the ends of its interval.
nlohmann::ordered_json interval_json(const Interval& interval);
// "machine" of the envelope.
nlohmann::ordered_json machine_json(const Fingerprint& machine);
// Indented, with a line end. Texts may come from foreign files: bytes that are no UTF-8 are
// replaced, not thrown at us.
std::string text_of(const nlohmann::ordered_json& document);

}  // namespace foretune::evaluate_internal
