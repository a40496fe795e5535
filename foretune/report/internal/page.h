// Parts that all pages have in common. Internal to the module.
// Thread safety: free functions without state.
#pragma once

#include <string>
#include <string_view>

#include "foretune/base/text.h"

namespace foretune::report_internal {

// A page that is written from top to bottom.
class Page {
 public:
  // Writes the style sheet and the heading.
  explicit Page(std::string_view title);
  template <class... Parts>
  void add(const Parts&... parts) {
    text_ += concat(parts...);
  }
  // Returns the whole page with its source below; the object is empty then.
  std::string finish(std::string_view source);

 private:
  std::string text_;
};

// A config, its words that differ from the other's marked.
std::string config_html(std::string_view config, std::string_view other);

}  // namespace foretune::report_internal
