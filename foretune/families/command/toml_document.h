// TOML files as plain values that remember their lines, so that whoever reads one can say where it
// is wrong. Tables keep the order of the file.
//
//   FORETUNE_TRY(const TomlValue document, parse_toml(text, "family.toml"));
//   const TomlValue* name = document.find("name");
//
// Internal to the module. Thread safety: plain values. Cost: linear in the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::command_internal {

struct TomlMember;

struct TomlValue {
  enum class Kind : std::uint8_t { kText, kInteger, kReal, kFlag, kTime, kList, kTable };

  Kind kind = Kind::kTable;
  std::uint32_t line = 0;
  std::string text;
  std::int64_t integer = 0;
  double real = 0;
  bool flag = false;
  std::vector<TomlValue> items;     // of a list
  std::vector<TomlMember> members;  // of a table

  // The member of that name, or nullptr.
  [[nodiscard]] const TomlValue* find(std::string_view name) const;
};

struct TomlMember {
  std::string name;
  TomlValue value;
};

// "a text", "a table": for messages.
std::string_view kind_name(TomlValue::Kind kind);

// `name` is that of the file, for errors: kCorrupt with the line.
Result<TomlValue> parse_toml(std::string_view text, std::string_view name);

}  // namespace foretune::command_internal
