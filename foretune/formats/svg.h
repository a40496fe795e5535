// Draws plots as SVG: elements with classes, axes, ticks. A style sheet says how classes look; it
// belongs to the page that contains the image, or to the image itself.
//
//   Svg svg(480, 330, "Speed by size");
//   const Panel panel{58, 12, 468, 284};
//   draw_frame(svg, panel, x, y, x_ticks, y_ticks, "size", "GFLOP/s");
//   svg.circle(x.at(64), y.at(80), 4, "dot", "m=64: 80 GFLOP/s");
//   return svg.finish();
//
// Lengths are in units of the viewBox. Texts and tooltips are escaped, class names are not.
// Thread safety: plain values and free functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretune::formats {

// Escapes text for element content and attribute values; control characters become blanks.
std::string html_escaped(std::string_view text);

// Prints a length with at most one decimal: a tenth of a unit is less than a screen shows.
std::string coordinate(double value);

// Returns an upper bound of a text's width, in units of the drawing, in a usual sans-serif face of
// `size`.
double text_width(std::string_view text, double size);

// Returns the text in lines of at most `width`, broken at blanks; a longer word has its own line.
std::vector<std::string> wrapped(std::string_view text, double size, double width);

enum class Anchor : std::uint8_t { kStart, kMiddle, kEnd };

// Shapes of marks, so that kinds can be told apart without colour.
enum class Mark : std::uint8_t { kCircle, kSquare, kDiamond, kUp, kDown, kCross, kPlus };
inline constexpr std::size_t kMarks = 7;

class Svg {
 public:
  // Starts an image inside a page; the page has the style sheet and gives the image its width.
  Svg(double width, double height, std::string_view label);
  // Starts an image in a file of its own, with its style sheet and size.
  static Svg standalone(double width, double height, std::string_view label,
                        std::string_view style_sheet);
  // Starts elements alone, which become part of an image by place().
  static Svg elements() { return Svg({}, {}); }

  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void text(double x, double y, Anchor anchor, std::string_view style, std::string_view text);
  // Writes text along the vertical axis, read from below.
  void vertical_text(double x, double y, std::string_view style, std::string_view text);
  void circle(double x, double y, double radius, std::string_view style, std::string_view title);
  // Draws a rectangle from a corner and a size. An empty title means no tooltip.
  void rect(double x, double y, double width, double height, std::string_view style,
            std::string_view title);
  void polyline(const std::vector<std::pair<double, double>>& points, std::string_view style,
                std::string_view title);
  void polygon(const std::vector<std::pair<double, double>>& points, std::string_view style,
               std::string_view title);
  // Draws a mark as wide as a circle of `radius`, all shapes with about the same weight.
  void mark(Mark shape, double x, double y, double radius, std::string_view style,
            std::string_view title);
  // Draws marks without tooltips, thousands in one element: dots, which are lines of length 0 with
  // round ends, or crosses.
  void cloud(const std::vector<std::pair<double, double>>& points, std::string_view style,
             Mark shape = Mark::kCircle);
  // Draws elements of another image with their origin at a place.
  void place(double x, double y, std::string_view elements);
  // Opens a group, which holds all elements drawn until close_group().
  void open_group(std::string_view style);
  void close_group();
  // Returns the document, or elements alone; nothing may be drawn afterwards.
  std::string finish();

 private:
  Svg(std::string opening, std::string_view closing)
      : out_(std::move(opening)), closing_(closing) {}
  void shape(std::string_view name, const std::vector<std::pair<double, double>>& points,
             std::string_view style, std::string_view title);

  std::string out_;
  std::string_view closing_;
};

struct Range {
  double low = 0;
  double high = 0;
};

// Maps values to places, linearly or logarithmically; values beyond an end are drawn at that end.
class Axis {
 public:
  Axis(const Range& range, bool is_log, double from, double to);
  // Makes a logarithmic axis with a place for zeros (and values below) at `from`, and a gap before
  // the range begins.
  static Axis log_with_zero(const Range& range, double from, double to);
  [[nodiscard]] double at(double value) const;
  // Returns the middle of the gap; nothing on an axis without one.
  [[nodiscard]] std::optional<double> gap() const;

 private:
  std::optional<double> zero_;  // its place
  double low_;
  double high_;
  bool is_log_;
  double from_;
  double to_;
};

struct Tick {
  double value = 0;
  std::string text;
};

// Returns a range a little wider than the values; it spans at least a factor of two.
Range log_range(double low, double high);
// Returns ticks at 1, 2 and 5 times every power of ten; over wide ranges, at most about seven
// powers of ten alone; none for a range that is not positive and finite.
std::vector<Tick> log_ticks(const Range& range, const std::function<std::string(double)>& text);
// Returns ticks at multiples of 1, 2 or 5 times a power of ten, at most `most` + 1 of them, printed
// as the shortest numbers; none for a range that is empty or infinite.
std::vector<Tick> linear_ticks(const Range& range, int most, std::string_view unit = {});
// Returns the linear_ticks() at whole numbers only, for counts.
std::vector<Tick> whole_ticks(const Range& range, int most);

// The area in which the values of a plot are drawn. Names and ticks of the axes are outside of it:
// 46 units below, 58 to the left, more where texts of ticks are longer than five letters.
struct Panel {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  [[nodiscard]] Axis horizontal(const Range& range, bool is_log) const {
    return {range, is_log, left, right};
  }
  [[nodiscard]] Axis vertical(const Range& range, bool is_log) const {
    return {range, is_log, bottom, top};
  }
};

// Draws a horizontal grid, and the ticks and names of both axes, with the classes grid, axis, tick
// and name.
void draw_frame(Svg& svg, const Panel& panel, const Axis& x, const Axis& y,
                std::span<const Tick> x_ticks, std::span<const Tick> y_ticks,
                std::string_view x_name, std::string_view y_name);

}  // namespace foretune::formats
