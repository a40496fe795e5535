#include "foretune/base/significant.h"

#include <array>
#include <charconv>

namespace foretune {

std::string significant(double value, int digits) {
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::general, digits);
  return std::string(buffer.data(), end.ptr);
}

}  // namespace foretune
