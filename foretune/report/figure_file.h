// A figure of a report as a file of its own.
// Thread safety: plain values.
#pragma once

#include <string>

namespace foretune {

struct FigureFile {
  std::string name;  // without the end: "picks"
  std::string svg;   // with its own style sheet, for a browser or a document
};

}  // namespace foretune
