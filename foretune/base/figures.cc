#include "foretune/base/figures.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "foretune/base/file.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

// Returns the bytes of the UTF-8 sequence that starts at `i`, or 0 when it is not one (RFC 3629).
std::size_t sequence_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(text[at]); };
  const std::uint8_t lead = byte(i);
  std::size_t length = 0;
  std::uint32_t code = 0;
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
    code = lead & 0x1fU;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    code = lead & 0x0fU;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    code = lead & 0x07U;
  } else {
    return 0;
  }
  if (i + length > text.size()) {
    return 0;
  }
  for (std::size_t j = 1; j < length; ++j) {
    if ((byte(i + j) & 0xc0U) != 0x80U) {
      return 0;
    }
    code = (code << 6U) | (byte(i + j) & 0x3fU);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return overlong || surrogate || code > 0x10ffff ? 0 : length;
}

void append_control(std::string& out, char c) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  switch (c) {
    case '\n':
      out += "\\n";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\r':
      out += "\\r";
      break;
    default: {
      const auto code = static_cast<unsigned char>(c);
      out += "\\u00";
      out += kDigits[code >> 4U];
      out += kDigits[code & 15U];
    }
  }
}

template <class Value, class Append>
std::string json_object(const std::vector<std::pair<std::string, Value>>& entries,
                        const Append& append) {
  std::string out = "{";
  for (const auto& [key, value] : entries) {
    out += concat(out.size() == 1 ? "\n    " : ",\n    ", json_quoted(key), ": ");
    append(out, value);
  }
  return out + (entries.empty() ? "}" : "\n  }");
}

}  // namespace

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
      ++i;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      append_control(out, c);
      ++i;
    } else if (const std::size_t length = sequence_length(text, i); length > 0) {
      out += text.substr(i, length);
      i += length;
    } else {
      out += "\xef\xbf\xbd";
      ++i;
    }
  }
  return out + "\"";
}

std::string dot_quoted(std::string_view text) {
  // Graphviz knows all escapes of JSON but \uXXXX. Those are for control characters, which have no
  // place in a label.
  std::string plain;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    plain += code < 0x20 || code == 0x7f ? ' ' : c;
  }
  return json_quoted(plain);
}

std::string Figures::json() const {
  const auto number = [](std::string& out, double value) {
    out += std::isfinite(value) ? concat(value) : std::string("null");
  };
  const auto text = [](std::string& out, const std::string& value) { out += json_quoted(value); };
  return concat("{\n  \"name\": ", json_quoted(name),
                ",\n  \"metrics\": ", json_object(metrics, number),
                ",\n  \"machine\": ", json_object(machine, text),
                ",\n  \"command\": ", json_quoted(command), "\n}\n");
}

Status Figures::write(const std::filesystem::path& path) const {
  return write_text_file_atomically(path, json());
}

}  // namespace foretune
