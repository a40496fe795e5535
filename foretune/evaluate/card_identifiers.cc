#include "foretune/evaluate/card_identifiers.h"

#include <string>

#include "foretune/formats/json.h"

namespace foretune {

std::vector<std::int64_t> card_identifiers(std::string_view card_json, std::string_view field) {
  const Result<formats::Json> card = formats::parse_json(card_json);
  const formats::Json* const data = card ? formats::member(*card, "data") : nullptr;
  const formats::Json* const fields =
      data == nullptr ? nullptr : formats::member(*data, "identifiers");
  const formats::Json* const numbers =
      fields == nullptr ? nullptr : formats::member(*fields, std::string(field).c_str());
  std::vector<std::int64_t> out;
  if (numbers != nullptr && numbers->is_array()) {
    for (const formats::Json& number : *numbers) {
      if (const auto known = formats::integer_of(number)) {
        out.push_back(*known);
      }
    }
  }
  return out;
}

}  // namespace foretune
