// Prints numbers with a given number of significant digits.
// Thread safety: a free function without state.
#pragma once

#include <string>

namespace foretune {

// Returns `value` with at most `digits` significant digits, as printf's %g: "0.0123", "1e-05".
[[nodiscard]] std::string significant(double value, int digits);

}  // namespace foretune
