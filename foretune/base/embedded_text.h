// Holds a file of the sources as a constant of the library; see foretune_embed_texts() in
// cmake/foretune.cmake. Thread safety: plain values.
#pragma once

#include <span>
#include <string_view>

namespace foretune {

struct EmbeddedText {
  std::string_view name;  // of the file, without folder and extension
  std::string_view text;
};

}  // namespace foretune
