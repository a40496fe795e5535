// Texts with random damage, for tests of parsers. Thread safety: a free function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "foretune/base/rng.h"

namespace foretune::testing_support {

// Returns the text after one to six edits: a changed byte, a part that is lost, or a part that
// stands again elsewhere. The result is never empty. `text` must not be empty.
inline std::string damaged_text(const std::string& text, Rng& rng) {
  std::string out = text;
  for (std::uint64_t left = 1 + rng.below(6); left > 0; --left) {
    const std::size_t place = rng.below(out.size());
    switch (rng.below(3)) {
      case 0:
        out[place] = static_cast<char>(rng.below(256));
        break;
      case 1:
        out.erase(place, 1 + rng.below(16));
        break;
      default:
        out.insert(place, text.substr(rng.below(text.size()), rng.below(16)));
    }
    if (out.empty()) {
      out = " ";
    }
  }
  return out;
}

}  // namespace foretune::testing_support
