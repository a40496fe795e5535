// Checks pages, for the tests of this module.
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace foretune {

// Tags closed in order, attributes quoted, entities known. Returns what is wrong, or "".
inline std::string html_defect(const std::string& html) {
  static const std::set<std::string> kVoid{"meta"};
  std::vector<std::string> open;
  std::size_t i = html.find('>') + 1;  // after the doctype
  while (i < html.size()) {
    if (html[i] == '&') {
      const std::size_t end = html.find(';', i);
      static const std::set<std::string> kEntities{"&amp", "&lt", "&gt", "&quot", "&#39"};
      if (end == std::string::npos || !kEntities.contains(html.substr(i, end - i))) {
        return "entity at " + html.substr(i, 20);
      }
    }
    if (html[i] != '<') {
      ++i;
      continue;
    }
    // To the end of the tag, with quotes kept.
    std::size_t end = i + 1;
    bool quoted = false;
    while (end < html.size() && (quoted || html[end] != '>')) {
      if (!quoted && html[end] == '<') {
        return "a tag in a tag at " + html.substr(i, 40);
      }
      quoted = html[end] == '"' ? !quoted : quoted;
      ++end;
    }
    if (end == html.size()) {
      return "unclosed tag at " + html.substr(i, 40);
    }
    const std::string tag = html.substr(i + 1, end - i - 1);
    i = end + 1;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) {
        return "</" + tag.substr(1) + "> closes " + (open.empty() ? "nothing" : open.back());
      }
      open.pop_back();
      continue;
    }
    const std::string name = tag.substr(0, tag.find_first_of(" /"));
    for (std::size_t at = tag.find('='); at != std::string::npos; at = tag.find('=', at + 1)) {
      const bool in_quotes = std::count(tag.begin(), tag.begin() + static_cast<long>(at), '"') % 2;
      if (!in_quotes && tag[at + 1] != '"') {
        return "an attribute without quotes in <" + tag + ">";
      }
    }
    if (name == "style") {
      i = html.find("</style>", i);  // a style sheet is not markup
    }
    if (!kVoid.contains(name) && tag.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

// Returns how often the part occurs.
inline std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// Returns what a figure of its own lacks of those parts that every figure has, or "": a title, axes
// with names, the source of its numbers, both palettes.
inline std::string figure_defect(const std::string& svg, std::string_view source) {
  if (const std::string defect = html_defect("<!>" + svg); !defect.empty()) {
    return defect;
  }
  for (const std::string_view part :
       {std::string_view("<svg xmlns="), std::string_view("class=\"heading\""),
        std::string_view("class=\"name\""), std::string_view("class=\"source\""),
        std::string_view("prefers-color-scheme: dark"), source}) {
    if (svg.find(part) == std::string::npos) {
      return "lacks " + std::string(part);
    }
  }
  return "";
}

}  // namespace foretune
