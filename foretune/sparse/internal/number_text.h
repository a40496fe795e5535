// Numbers in lines of a text. Internal to the module.
// Thread safety: free functions. Cost: no allocation, except for a number with Fortran's exponent.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace foretune::sparse::internal {

inline bool is_blank(char letter) { return letter == ' ' || letter == '\t'; }

inline void skip_blanks(std::string_view& text) {
  std::size_t at = 0;
  while (at < text.size() && is_blank(text[at])) {
    ++at;
  }
  text.remove_prefix(at);
}

// Takes a number from the beginning of `text`; it has to end at a blank or with the line.
template <class Number>
inline bool take_number(std::string_view& text, Number& out) {
  skip_blanks(text);
  const char* begin = text.data();
  const char* const end = begin + text.size();
  // from_chars() knows no plus.
  if (text.size() > 1 && *begin == '+' && begin[1] != '-') {
    ++begin;
  }
  const auto [stop, error] = std::from_chars(begin, end, out);
  if (error != std::errc() || (stop != end && !is_blank(*stop))) {
    return false;
  }
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return true;
}

// Takes a finite value, also one that Fortran wrote (1.5D+03).
inline bool take_value(std::string_view& text, double& out) {
  if (take_number(text, out)) {
    return std::isfinite(out);
  }
  skip_blanks(text);
  std::string word(text.substr(0, text.find_first_of(" \t")));
  const std::size_t exponent = word.find_first_of("dD");
  if (exponent == std::string::npos) {
    return false;
  }
  word[exponent] = 'e';
  std::string_view rest = word;
  if (!take_number(rest, out) || !rest.empty()) {
    return false;
  }
  text.remove_prefix(word.size());
  return std::isfinite(out);
}

// Returns true when nothing but blanks is left.
inline bool is_used_up(std::string_view text) {
  skip_blanks(text);
  return text.empty();
}

}  // namespace foretune::sparse::internal
