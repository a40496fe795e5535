// Prints quantities for people: in a suitable unit, with only significant digits.
// Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace foretune {

// Returns "45 s", "3 min 20 s", "2 h 5 min"; "?" below 0 and beyond thirty years.
[[nodiscard]] std::string seconds_text(double seconds);
// Returns "812 ns", "3.52 us", "12.4 ms"; "-" below 0.
[[nodiscard]] std::string nanoseconds_text(double nanoseconds);
// Returns "0 B", "640 B", "1.5 KiB", "12 MiB": at most three significant digits.
[[nodiscard]] std::string bytes_text(double bytes);

// Returns "12,345".
[[nodiscard]] std::string count_text(std::uint64_t count);
// Returns the count and the noun, with an "s" unless the count is 1.
[[nodiscard]] std::string count_of(std::uint64_t count, std::string_view noun);
// Returns the first word where the count is 1, else the second: "is" and "are".
[[nodiscard]] std::string_view word_for(std::uint64_t count, std::string_view of_one,
                                        std::string_view of_several);

}  // namespace foretune
