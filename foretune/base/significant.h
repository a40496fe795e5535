// Numbers with as many digits as say something.
// Thread safety: a free function without state.
#pragma once

#include <string>

namespace foretune {

// `value` with at most `digits` significant digits, as printf's %g has it: "0.0123", "1e-05".
[[nodiscard]] std::string significant(double value, int digits);

}  // namespace foretune
