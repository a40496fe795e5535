// Parts that all pages have in common. Internal to evaluate.
// Thread safety: free functions without state.
#pragma once

#include <string>
#include <string_view>

namespace foretune::evaluate_internal {

// Until behind the heading, style sheet included.
std::string page_opening(std::string_view title);
inline constexpr std::string_view kPageEnd = "</main>\n</body>\n</html>\n";

// A config, its words that differ from the other's marked.
std::string config_html(std::string_view config, std::string_view other);

}  // namespace foretune::evaluate_internal
