#include "foretune/report/internal/json_values.h"

#include <cmath>

namespace foretune::report_internal {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json interval_json(const Interval& interval) {
  return {{"value", number(interval.value)},
          {"low", number(interval.low)},
          {"high", number(interval.high)}};
}

Json machine_json(const Fingerprint& machine) {
  return {{"device", machine.device},
          {"isa", machine.isa},
          {"system", machine.system},
          {"hardware", machine.hardware.text()}};
}

std::string text_of(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace foretune::report_internal
