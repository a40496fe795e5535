// Parses the labels of enumerations. Internal to the module. Thread safety: free functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/base/text.h"

namespace foretune::problem_internal {

// Returns the enumerator at the position of its label. An error lists all labels. `what` is "a data
// type".
template <class Enum>
Result<Enum> parse_label(std::string_view what, std::span<const std::string_view> labels,
                         std::string_view text) {
  std::string known;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == text) {
      return static_cast<Enum>(i);
    }
    known += concat(i == 0 ? "" : ", ", labels[i]);
  }
  return fail(ErrorCode::kInvalidArgument, "'", text.substr(0, 40), "' is not ", what, " (", known,
              ")");
}

}  // namespace foretune::problem_internal
