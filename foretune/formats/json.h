// Parses untrusted JSON documents, with limits, and gives checked access to them. Only this header
// passes nlohmann's library on: to source files, and to headers internal to a module. Thread
// safety: free functions without state. Cost: linear in the text.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "foretune/base/result.h"

namespace foretune::formats {

using Json = nlohmann::json;

// Parses at most 64 levels. The words NaN, Infinity and -Infinity, which Python writes, become
// strings. Errors: kCorrupt with the line.
Result<Json> parse_json(std::string_view text);

// Return the value at `key` when `object` is an object that has it, with the right type.
const Json* member(const Json& object, const char* key);
std::optional<std::string> text_at(const Json& object, const char* key);
std::optional<std::int64_t> integer_of(const Json& value);
std::optional<std::int64_t> integer_at(const Json& object, const char* key);

}  // namespace foretune::formats
