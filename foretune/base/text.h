// Text without a formatting library, so that the run-time selector depends on nothing.
// concat() joins its arguments; numbers print shortest-exact (to_chars), so text round-trips.
// Thread safety: free functions without state.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace foretune {

namespace text_internal {
void append(std::string& out, std::string_view value);
void append(std::string& out, std::int64_t value);
void append(std::string& out, std::uint64_t value);
void append(std::string& out, double value);

template <class T>
void append_any(std::string& out, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    append(out, std::string_view(value ? "true" : "false"));
  } else if constexpr (std::is_same_v<T, char>) {
    append(out, std::string_view(&value, 1));
  } else if constexpr (std::is_floating_point_v<T>) {
    append(out, static_cast<double>(value));
  } else if constexpr (std::signed_integral<T>) {
    append(out, static_cast<std::int64_t>(value));
  } else if constexpr (std::unsigned_integral<T>) {
    append(out, static_cast<std::uint64_t>(value));
  } else {
    append(out, std::string_view(value));
  }
}
}  // namespace text_internal

template <class... Parts>
[[nodiscard]] std::string concat(const Parts&... parts) {
  std::string out;
  (text_internal::append_any(out, parts), ...);
  return out;
}

// Returns `value` with `decimals` digits after the point.
[[nodiscard]] std::string fixed(double value, int decimals);
// Returns the number in hexadecimal without leading zeros.
[[nodiscard]] std::string hex_text(std::uint64_t value);

// Returns the pieces between separators; empty pieces are kept. The views point into `text`.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);
// Returns the words between runs of blanks.
[[nodiscard]] std::vector<std::string_view> split_words(std::string_view text);
[[nodiscard]] std::string_view trim(std::string_view text);
// Converts ASCII letters only, whatever the locale.
[[nodiscard]] std::string to_lower(std::string_view text);
[[nodiscard]] std::string join(const std::vector<std::string>& parts, std::string_view separator);

// Returns `text` between single quotes for a message: cut after `limit` bytes, and without control
// characters, since it may come from anywhere.
[[nodiscard]] std::string quoted(std::string_view text, std::size_t limit = 80);

// Returns the whole of `text` as a number, or nothing. Accepts no blanks and no trailing
// characters.
[[nodiscard]] std::optional<std::int64_t> parse_int(std::string_view text);
[[nodiscard]] std::optional<std::uint64_t> parse_uint(std::string_view text);
[[nodiscard]] std::optional<double> parse_double(std::string_view text);

// Returns the nearest of `candidates` by edit distance, for "did you mean"; empty when none is
// near.
[[nodiscard]] std::string nearest_word(std::string_view word,
                                       const std::vector<std::string>& candidates);

}  // namespace foretune
