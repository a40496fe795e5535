// JSON documents that nobody vouches for, parsed with limits, and checked access to them. The one
// header that hands nlohmann's library on: to source files, and to headers internal to a module.
// Thread safety: free functions without state. Cost: linear in the text.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "foretune/base/result.h"

namespace foretune::documents {

using Json = nlohmann::json;

// At most 64 levels deep; the words NaN, Infinity and -Infinity, which Python writes, become
// strings. Errors: kCorrupt with the line.
Result<Json> parse_json(std::string_view text);

// Checked access: the value at `key` when `object` is one, has it, and it is of that type.
const Json* member(const Json& object, const char* key);
std::optional<std::string> text_at(const Json& object, const char* key);
std::optional<std::int64_t> integer_of(const Json& value);
std::optional<std::int64_t> integer_at(const Json& object, const char* key);

}  // namespace foretune::documents
