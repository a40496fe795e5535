// Writes cells of comma-separated tables.
//
//   out += concat(csv_quoted(name), ",", value, "\n");
//
// Thread safety: free functions without state.
#pragma once

#include <string>
#include <string_view>

namespace foretune::formats {

// Returns `text` as one cell (RFC 4180), in quotes when it contains commas, quotes or line breaks.
std::string csv_quoted(std::string_view text);

}  // namespace foretune::formats
