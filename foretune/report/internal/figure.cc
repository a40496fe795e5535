#include "foretune/report/internal/figure.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "foretune/base/text.h"
#include "foretune/formats/svg.h"
#include "foretune/report/internal/plots.h"

namespace foretune::report_internal {
namespace {

using formats::html_escaped;
using formats::text_width;

constexpr std::size_t kColours = 7;
constexpr std::size_t kStrokes = 5;
constexpr int kMarksOfLine = 4;

constexpr double kFileMargin = 16;
constexpr double kGlyphWidth = 28;  // with the gap behind it
constexpr double kLegendRow = 20;

// Lines of one size of letters.
struct TextBlock {
  std::string_view style;
  double size;
  double row;
};
constexpr TextBlock kTitleText{"heading", 16, 21};
constexpr TextBlock kNoteText{"note", 12.5, 17};
constexpr TextBlock kSourceText{"source", 11, 15};

class FileLayout {
 public:
  FileLayout(const Figure& figure, std::string_view source) : figure_(figure) {
    const double width = figure.width - 2 * kFileMargin;
    title_ = formats::wrapped(figure.title, kTitleText.size, width);
    note_ = formats::wrapped(figure.note, kNoteText.size, width);
    source_ = formats::wrapped(source, kSourceText.size, width);
    double x = kFileMargin;
    std::size_t row = 0;
    for (const LegendEntry& entry : figure.legend) {
      const double needed = kGlyphWidth + text_width(entry.text, 12);
      if (x > kFileMargin && x + needed > figure.width - kFileMargin) {
        x = kFileMargin;
        ++row;
      }
      legend_.emplace_back(x, kLegendRow * static_cast<double>(row));
      x += needed + 12;
    }
    legend_rows_ = figure.legend.empty() ? 0 : row + 1;
  }

  std::string write() const {
    const double top = 18 + height(kTitleText, title_) + height(kNoteText, note_);
    const double legend_top = top + figure_.height + 12;
    const double source_top =
        legend_top + (legend_rows_ == 0 ? 0 : kLegendRow * static_cast<double>(legend_rows_) + 4);
    const double bottom = source_top + height(kSourceText, source_) + 10;
    Svg svg = Svg::standalone(figure_.width, bottom, figure_.title, plot_style());
    svg.rect(0, 0, figure_.width, bottom, "sheet", {});
    draw(svg, kTitleText, title_, 12);
    draw(svg, kNoteText, note_, 12 + height(kTitleText, title_));
    svg.place(0, top, figure_.drawing);
    for (std::size_t i = 0; i < legend_.size(); ++i) {
      const auto& [x, y] = legend_[i];
      svg.place(x, legend_top + y, figure_.legend[i].glyph);
      svg.text(x + kGlyphWidth, legend_top + y + 11, Anchor::kStart, "tick",
               figure_.legend[i].text);
    }
    draw(svg, kSourceText, source_, source_top);
    return svg.finish() + "\n";
  }

 private:
  static double height(const TextBlock& block, const std::vector<std::string>& lines) {
    return block.row * static_cast<double>(lines.size());
  }
  static void draw(Svg& svg, const TextBlock& block, const std::vector<std::string>& lines,
                   double top) {
    for (const std::string& line : lines) {
      top += block.row;
      svg.text(kFileMargin, top - 4, Anchor::kStart, block.style, line);
    }
  }

  const Figure& figure_;
  std::vector<std::string> title_;
  std::vector<std::string> note_;
  std::vector<std::string> source_;
  Places legend_;
  std::size_t legend_rows_ = 0;
};

// Returns the place on a line at a share of its width.
std::pair<double, double> place_on(const Places& places, double share) {
  const double x = places.front().first + share * (places.back().first - places.front().first);
  const auto after = std::find_if(places.begin() + 1, places.end(),
                                  [&](const auto& place) { return place.first >= x; });
  if (after == places.end()) {
    return places.back();
  }
  const auto& [x1, y1] = *(after - 1);
  const auto& [x2, y2] = *after;
  return {x, x2 > x1 ? y1 + (y2 - y1) * (x - x1) / (x2 - x1) : y2};
}

}  // namespace

std::string figure_html(const Figure& figure, std::string_view source, std::string_view tail) {
  if (figure.drawing.empty()) {
    return {};
  }
  std::string out =
      concat("<figure>\n<figcaption><h3>", html_escaped(figure.title), "</h3>",
             figure.note.empty() ? std::string()
                                 : concat("<p class=\"hint\">", html_escaped(figure.note), "</p>"),
             "</figcaption>\n<svg style=\"max-width:", 1.25 * figure.width, "px\" viewBox=\"0 0 ",
             figure.width, " ", figure.height, "\" role=\"img\" aria-label=\"",
             html_escaped(figure.title), "\">", figure.drawing, "</svg>\n");
  if (!figure.legend.empty()) {
    out += "<p class=\"legend\">";
    for (const LegendEntry& entry : figure.legend) {
      out += concat("<span><svg viewBox=\"0 0 22 14\" aria-hidden=\"true\">", entry.glyph, "</svg>",
                    html_escaped(entry.text), "</span> ");
    }
    out += "</p>\n";
  }
  return concat(out, tail, "<p class=\"source\">", html_escaped(source), "</p>\n</figure>\n");
}

std::string figure_svg(const Figure& figure, std::string_view source) {
  return figure.drawing.empty() ? std::string() : FileLayout(figure, source).write();
}

void add_file(std::vector<FigureFile>& files, const Figure& figure, std::string_view source) {
  if (!figure.drawing.empty()) {
    files.push_back({figure.name, figure_svg(figure, source)});
  }
}

std::string series_class(std::size_t number) {
  return concat("c", number % kColours, " s", number % kStrokes);
}

Mark series_mark(std::size_t number) { return static_cast<Mark>(number % formats::kMarks); }

void draw_series(Svg& svg, const Places& places, std::size_t number, std::string_view style,
                 std::string_view title) {
  svg.polyline(places, concat(style, " ", series_class(number)), title);
  for (int i = 0; i < kMarksOfLine; ++i) {
    const double share = (i + 0.2 + 0.12 * static_cast<double>(number % kStrokes)) / kMarksOfLine;
    const auto [x, y] = place_on(places, share);
    svg.mark(series_mark(number), x, y, 3.4, concat("mark c", number % kColours), title);
  }
}

LegendEntry mark_entry(std::string text, Mark shape, double radius, std::string_view style) {
  return drawn_entry(std::move(text), [&](Svg& svg) { svg.mark(shape, 11, 7, radius, style, {}); });
}

LegendEntry line_entry(std::string text, std::string_view style) {
  return drawn_entry(std::move(text),
                     [&](Svg& svg) { svg.polyline({{0, 7}, {22, 7}}, style, {}); });
}

LegendEntry series_entry(std::string text, std::size_t number) {
  return drawn_entry(std::move(text), [&](Svg& svg) {
    svg.polyline({{0, 7}, {22, 7}}, concat("series ", series_class(number)), {});
    svg.mark(series_mark(number), 11, 7, 3.4, concat("mark c", number % kColours), {});
  });
}

}  // namespace foretune::report_internal
