#include "foretune/formats/json.h"

#include <algorithm>

#include "foretune/base/text.h"

namespace foretune::formats {
namespace {

constexpr std::size_t kMaxDepth = 64;

// Returns the length of a leading word that Python writes for a number that JSON does not have.
std::size_t non_finite_word(std::string_view rest) {
  for (const std::string_view word : {"Infinity", "-Infinity", "NaN"}) {
    if (rest.substr(0, word.size()) == word) {
      return word.size();
    }
  }
  return 0;
}

// Returns the text with NaN, Infinity and -Infinity in quotes, so that a parser of JSON accepts
// them. Errors: kCorrupt for deep nesting.
Result<std::string> prepare_json(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 64);
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\' && i + 1 < text.size()) {
        out += c;
        ++i;
      } else if (c == '"') {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) {
        return fail(ErrorCode::kCorrupt, "the JSON is nested over ", kMaxDepth, " levels deep");
      }
    } else if (c == ']' || c == '}') {
      depth -= depth > 0 ? 1U : 0U;
    } else if (c == 'I' || c == '-' || c == 'N') {
      if (const std::size_t length = non_finite_word(text.substr(i)); length > 0) {
        out += concat("\"", text.substr(i, length), "\"");
        i += length - 1;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

}  // namespace

Result<Json> parse_json(std::string_view text) {
  FORETUNE_TRY(const std::string prepared, prepare_json(text));
  // The library reports the position of an error only by an exception; none leaves this function.
  try {
    return Json::parse(prepared);
  } catch (const Json::parse_error& error) {
    const auto end =
        prepared.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, prepared.size()));
    return fail(ErrorCode::kCorrupt, "this is not JSON from line ",
                1 + std::count(prepared.begin(), end, '\n'), " on (byte ", error.byte, ")");
  } catch (const Json::exception&) {
    return fail(ErrorCode::kCorrupt, "the JSON holds a number out of range");
  }
}

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) {
    return nullptr;
  }
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::optional<std::string> text_at(const Json& object, const char* key) {
  const Json* value = member(object, key);
  return value != nullptr && value->is_string() ? std::optional(value->get<std::string>())
                                                : std::nullopt;
}

std::optional<std::int64_t> integer_of(const Json& value) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) {
    return std::nullopt;
  }
  return value.is_number_integer() ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

std::optional<std::int64_t> integer_at(const Json& object, const char* key) {
  const Json* value = member(object, key);
  return value == nullptr ? std::nullopt : integer_of(*value);
}

}  // namespace foretune::formats
