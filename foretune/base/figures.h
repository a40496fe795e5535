// Holds results in machine-readable form. Every benchmark and evaluating subcommand writes them for
// `--json FILE`:
//   {"name": ..., "metrics": {name: number, ...}, "machine": {...}, "command": ...}
// Thread safety: plain values.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/result.h"

namespace foretune {

struct Figures {
  std::string name;
  std::vector<std::pair<std::string, double>> metrics;       // numbers only
  std::vector<std::pair<std::string, std::string>> machine;  // facts as text
  std::string command;

  void add(std::string metric, double value) { metrics.emplace_back(std::move(metric), value); }
  // Returns one JSON object, keys in the order given; numbers that JSON cannot hold become null.
  [[nodiscard]] std::string json() const;
  [[nodiscard]] Status write(const std::filesystem::path& path) const;
};

// Returns `text` as a JSON string, quotes included; invalid UTF-8 bytes become U+FFFD.
std::string json_quoted(std::string_view text);
// Returns `text` as a string of Graphviz, quotes included; control characters become blanks, and
// invalid UTF-8 bytes U+FFFD.
std::string dot_quoted(std::string_view text);

}  // namespace foretune
