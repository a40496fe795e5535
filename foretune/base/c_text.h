// Copies text into the memory of C callers. Thread safety: a free function.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace foretune {

// Copies as much of `text` as fits, with a final zero; returns the length needed.
inline std::size_t copy_text(std::string_view text, char* out, std::size_t size) {
  if (out != nullptr && size > 0) {
    const std::size_t length = std::min(text.size(), size - 1);
    std::memcpy(out, text.data(), length);
    out[length] = '\0';
  }
  return text.size();
}

}  // namespace foretune
