// A figure: a drawing with its title, the meaning of its marks, and its source, as a part of a page
// or as a file of its own. Internal to the module. Thread safety: plain values and free functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/report/figure_file.h"
#include "foretune/report/internal/drawing.h"

namespace foretune::report_internal {

using Places = std::vector<std::pair<double, double>>;

// A meaning, and its mark in a box of 22 by 14.
struct LegendEntry {
  std::string text;
  std::string glyph;
};

struct Figure {
  std::string name;   // of its file, without the end
  std::string title;  // what is compared
  std::string note;   // how to read it
  double width = 0;
  double height = 0;
  std::string drawing;  // elements; empty: there is nothing to draw
  std::vector<LegendEntry> legend;
};

// Returns markup for a page, nothing without a drawing. `tail` is markup between legend and source.
std::string figure_html(const Figure& figure, std::string_view source, std::string_view tail = {});
// Returns a file with its own style sheet, nothing without a drawing.
std::string figure_svg(const Figure& figure, std::string_view source);
// Adds such a file where there is a drawing.
void add_file(std::vector<FigureFile>& files, const Figure& figure, std::string_view source);

// Each of many series has a colour, a shape of marks and a kind of strokes.
std::string series_class(std::size_t number);
Mark series_mark(std::size_t number);
// Draws the line of a series with some marks on it. Series have theirs at different places.
void draw_series(Svg& svg, const Places& places, std::size_t number, std::string_view style,
                 std::string_view title);

LegendEntry mark_entry(std::string text, Mark shape, double radius, std::string_view style);
LegendEntry line_entry(std::string text, std::string_view style);
LegendEntry series_entry(std::string text, std::size_t number);
// Draws a glyph by a function of the type void(Svg&).
template <class Draw>
LegendEntry drawn_entry(std::string text, const Draw& draw) {
  Svg svg = Svg::elements();
  draw(svg);
  return {std::move(text), svg.finish()};
}

}  // namespace foretune::report_internal
