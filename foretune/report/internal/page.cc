#include "foretune/report/internal/page.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/formats/svg.h"
#include "foretune/report/internal/plots.h"

namespace foretune::report_internal {

using formats::html_escaped;

Page::Page(std::string_view title) {
  add("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n", "<title>",
      html_escaped(title), "</title>\n<style>", page_style(), "</style>\n</head>\n<body>\n<main>\n",
      "<h1>", html_escaped(title), "</h1>\n");
}

std::string Page::finish(std::string_view source) {
  add("<footer class=\"source\">", html_escaped(source), "</footer>\n</main>\n</body>\n</html>\n");
  return std::exchange(text_, {});
}

std::string config_html(std::string_view config, std::string_view other) {
  // A sequence has no names: "3,16,1,0".
  const bool is_sequence = config.find('=') == std::string_view::npos;
  const auto parts = [&](std::string_view text) {
    return is_sequence ? split(text, ',') : split_words(text);
  };
  const std::vector<std::string_view> words = parts(config);
  const std::vector<std::string_view> others = parts(other);
  std::string out = "<code>";
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool differs = words.size() == others.size() && words[i] != others[i];
    out += concat(i == 0        ? ""
                  : is_sequence ? ", "
                                : " ",
                  differs ? "<mark>" : "", html_escaped(words[i]), differs ? "</mark>" : "");
  }
  return out + "</code>";
}

}  // namespace foretune::report_internal
