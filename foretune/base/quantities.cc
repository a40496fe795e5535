#include "foretune/base/quantities.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "foretune/base/text.h"

namespace foretune {

std::string seconds_text(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) {
    return "?";
  }
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 120) {
    return concat(whole, " s");
  }
  if (whole < 7200) {
    return concat(whole / 60, " min ", whole % 60, " s");
  }
  return concat(whole / 3600, " h ", whole % 3600 / 60, " min");
}

std::string nanoseconds_text(double nanoseconds) {
  if (nanoseconds < 0) {
    return "-";
  }
  if (nanoseconds < 1e3) {
    return concat(fixed(nanoseconds, 0), " ns");
  }
  if (nanoseconds < 1e6) {
    return concat(fixed(nanoseconds / 1e3, nanoseconds < 1e4 ? 2 : 1), " us");
  }
  if (nanoseconds < 1e9) {
    return concat(fixed(nanoseconds / 1e6, nanoseconds < 1e7 ? 2 : 1), " ms");
  }
  return concat(fixed(nanoseconds / 1e9, 2), " s");
}

std::string bytes_text(double bytes) {
  constexpr std::array<std::string_view, 6> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  double value = bytes;
  // A value that would print as 1024 becomes 1 of the next unit.
  while (std::fabs(value) >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const double size = std::fabs(value);
  std::string digits = fixed(value, unit == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
  if (digits.find('.') != std::string::npos) {
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.ends_with('.')) {
      digits.pop_back();
    }
  }
  return concat(digits, " ", kUnits[unit]);
}

std::string count_text(std::uint64_t count) {
  std::string digits = concat(count);
  for (std::size_t i = digits.size(); i > 3; i -= 3) {
    digits.insert(i - 3, 1, ',');
  }
  return digits;
}

std::string count_of(std::uint64_t count, std::string_view noun) {
  return concat(count_text(count), " ", noun, count == 1 ? "" : "s");
}

std::string_view word_for(std::uint64_t count, std::string_view of_one,
                          std::string_view of_several) {
  return count == 1 ? of_one : of_several;
}

}  // namespace foretune
