// A config is one point of a family's space: a schema id and a few 32-bit values. The schema says
// what the values mean: fixed positions for a parametric family, opcodes and arguments for a
// schedule, one knob per layer for a network. Configs are comparable, hashable, and have a text
// form. Thread safety: plain values. Cost: no allocation for up to 12 values.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/hash.h"
#include "foretune/base/result.h"
#include "foretune/base/small_vector.h"

namespace foretune {

// Stored in files: never renumber.
enum class SchemaKind : std::uint8_t {
  kParametric = 0,  // value i is that of parameter i
  kSequence = 1,    // opcode and arguments, of any length
};

struct Parameter {
  std::string name;
  // Labels of an enumerated parameter (the value is the index); empty for an integer.
  std::vector<std::string> labels;
  bool operator==(const Parameter&) const = default;
};

struct ConfigSchema {
  std::string name;
  std::uint32_t version = 1;
  SchemaKind kind = SchemaKind::kParametric;
  std::vector<Parameter> parameters;  // of a parametric schema

  // Identifies the schema in files and configs; changes when any member above changes.
  [[nodiscard]] std::uint64_t id() const;
  [[nodiscard]] std::optional<std::size_t> find(std::string_view parameter) const;
  bool operator==(const ConfigSchema&) const = default;
};

struct Config {
  using Words = SmallVector<std::int32_t, 12>;

  std::uint64_t schema = 0;  // ConfigSchema::id()
  Words words;

  [[nodiscard]] std::uint64_t hash() const {
    std::uint64_t value = mix64(schema);
    for (const std::int32_t word : words.view()) {
      value = hash_combine(value, static_cast<std::uint32_t>(word));
    }
    return value;
  }
  bool operator==(const Config&) const = default;
  auto operator<=>(const Config&) const = default;
};

// Returns "mr=8 nr=32 order=nkm"; a sequence prints its values as "3,16,1,0".
std::string to_text(const ConfigSchema& schema, const Config& config);
// Returns a text for people: as above, but for a sequence of many words only the first and last
// ones and their number, "3,16,1,0,2,2,7,1,0,0,4,4 ... 1,0,2,2 (221 words)".
std::string shown_text(const ConfigSchema& schema, const Config& config);
// Parses what to_text prints; parameters may come in any order, none may be missing.
Result<Config> parse_config(const ConfigSchema& schema, std::string_view text);

}  // namespace foretune

template <>
struct std::hash<foretune::Config> {
  std::size_t operator()(const foretune::Config& config) const noexcept {
    return static_cast<std::size_t>(config.hash());
  }
};
