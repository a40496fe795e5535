#include "foretune/formats/csv.h"

namespace foretune::formats {

std::string csv_quoted(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) {
    return std::string(text);
  }
  std::string out = "\"";
  for (const char c : text) {
    out += c;
    if (c == '"') {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace foretune::formats
