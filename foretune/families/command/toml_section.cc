#include "foretune/families/command/toml_section.h"

#include <algorithm>
#include <utility>

#include "foretune/base/text.h"

namespace foretune::command_internal {
namespace {

using Kind = TomlValue::Kind;

// Keys may be any text; what is printed of them is short and on one line.
std::string shown(std::string_view key) {
  const bool is_plain =
      !key.empty() && key.size() <= 60 &&
      std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7f && c != '\''; });
  return is_plain ? std::string(key) : quoted(key, 60);
}

}  // namespace

std::string TomlSection::path_of(std::string_view key) const {
  if (key.empty()) {
    return path_.empty() ? std::string("the file") : path_;
  }
  return path_.empty() ? shown(key) : concat(path_, ".", shown(key));
}

std::string TomlSection::place(std::string_view key) const {
  const TomlValue* value = key.empty() ? nullptr : find(key);
  const std::uint32_t line = std::max<std::uint32_t>(1, (value == nullptr ? *table_ : *value).line);
  return concat(file_, ":", line, ": ", path_of(key));
}

Status TomlSection::check_keys(const std::vector<std::string>& known) const {
  for (const auto& [name, value] : table_->members) {
    if (std::find(known.begin(), known.end(), name) != known.end()) {
      continue;
    }
    const std::string near = nearest_word(name, known);
    return refuse(name, "is no key",
                  near.empty() ? concat("; there are ", join(known, ", "))
                               : concat("; did you mean ", near, "?"));
  }
  return {};
}

Result<std::optional<std::string>> TomlSection::text(std::string_view key) const {
  const TomlValue* value = find(key);
  if (value == nullptr) {
    return std::optional<std::string>();
  }
  if (value->kind != Kind::kText) {
    return refuse(key, "is ", kind_name(value->kind), "; it must be a text");
  }
  if (value->text.find('\0') != std::string::npos) {
    return refuse(key, "has a zero byte, which no text may have");
  }
  return std::optional(value->text);
}

Result<std::string> TomlSection::needed_text(std::string_view key) const {
  FORETUNE_TRY(std::optional<std::string> value, text(key));
  if (!value) {
    return refuse(key, "is missing; it must be a text");
  }
  return *std::move(value);
}

Result<std::optional<std::int64_t>> TomlSection::integer(std::string_view key, std::int64_t low,
                                                         std::int64_t high) const {
  const TomlValue* value = find(key);
  if (value == nullptr) {
    return std::optional<std::int64_t>();
  }
  if (value->kind != Kind::kInteger) {
    return refuse(key, "is ", kind_name(value->kind), "; it must be an integer");
  }
  if (value->integer < low || value->integer > high) {
    return refuse(key, "is ", value->integer, "; it must be from ", low, " to ", high);
  }
  return std::optional(value->integer);
}

Result<double> TomlSection::number(std::string_view key, double otherwise, double low,
                                   double high) const {
  const TomlValue* value = find(key);
  if (value == nullptr) {
    return otherwise;
  }
  if (value->kind != Kind::kInteger && value->kind != Kind::kReal) {
    return refuse(key, "is ", kind_name(value->kind), "; it must be a number");
  }
  const double number =
      value->kind == Kind::kReal ? value->real : static_cast<double>(value->integer);
  if (!(number >= low && number <= high)) {
    return refuse(key, "is ", number, "; it must be from ", low, " to ", high);
  }
  return number;
}

Result<bool> TomlSection::flag(std::string_view key) const {
  const TomlValue* value = find(key);
  if (value == nullptr) {
    return false;
  }
  if (value->kind != Kind::kFlag) {
    return refuse(key, "is ", kind_name(value->kind), "; it must be true or false");
  }
  return value->flag;
}

Result<std::vector<std::string>> TomlSection::texts(std::string_view key) const {
  const TomlValue* value = find(key);
  std::vector<std::string> out;
  if (value == nullptr) {
    return out;
  }
  if (value->kind != Kind::kList) {
    return refuse(key, "is ", kind_name(value->kind), "; it must be a list of texts");
  }
  for (const TomlValue& item : value->items) {
    if (item.kind != Kind::kText) {
      return refuse(key, "holds ", kind_name(item.kind), "; it must be a list of texts");
    }
    if (item.text.find('\0') != std::string::npos) {
      return refuse(key, "has a zero byte, which no text may have");
    }
    out.push_back(item.text);
  }
  if (out.empty()) {
    return refuse(key, "is an empty list");
  }
  return out;
}

Result<std::optional<TomlSection>> TomlSection::section(std::string_view key) const {
  const TomlValue* value = find(key);
  if (value == nullptr) {
    return std::optional<TomlSection>();
  }
  if (value->kind != Kind::kTable) {
    return refuse(key, "is ", kind_name(value->kind), "; it must be a table");
  }
  return std::optional<TomlSection>(std::in_place, *value, file_, path_of(key));
}

Result<std::vector<TomlSection>> TomlSection::sections(std::string_view key) const {
  const TomlValue* value = find(key);
  std::vector<TomlSection> out;
  if (value == nullptr) {
    return out;
  }
  if (value->kind != Kind::kList) {
    return refuse(key, "is ", kind_name(value->kind), "; it must be a list of tables");
  }
  for (const TomlValue& item : value->items) {
    if (item.kind != Kind::kTable) {
      return refuse(key, "holds ", kind_name(item.kind), "; it must be a list of tables");
    }
    out.emplace_back(item, file_, concat(path_of(key), "[", out.size() + 1, "]"));
  }
  return out;
}

}  // namespace foretune::command_internal
