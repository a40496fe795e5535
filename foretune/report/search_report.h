// A surrogate search as text and JSON, measured times beside the predicted ones where there are
// any.
// Thread safety: free functions without state.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "foretune/dataset/measurement.h"
#include "foretune/hardware/hardware.h"
#include "foretune/problem/problem.h"
#include "foretune/search/surrogate.h"
#include "foretune/space/config.h"

namespace foretune {

struct SearchReport {
  Problem problem;
  ConfigSchema schema;
  std::string strategy;
  bool is_absolute = false;  // scores are ln of nanoseconds, not only of ratios
  SurrogateResult found;
  // Timed against each other: one per ranked config, then the family's default when there is one.
  // Empty when nothing was measured.
  std::vector<Measurement> measured;
  Fingerprint machine;
  // Returns the time that a score of a model of rates or latencies stands for; empty for others.
  std::function<double(double)> time_ns = {};
  // Prints a config for people, as Space::describe() does; empty: as the schema prints it.
  std::function<std::string(const Config&)> describe = {};
};

std::string search_text(const SearchReport& report, bool color);
std::string search_json(const SearchReport& report, const std::string& command);

}  // namespace foretune
