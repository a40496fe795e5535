// Plots as SVG: elements by class, axes, ticks. How classes look is said by a style sheet, of the
// page that an image is part of or of the image itself.
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

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretune::documents {

// Text for element content and attribute values; control characters become blanks.
std::string html_escaped(std::string_view text);

// With one digit behind the point at most: a tenth of a unit is less than a screen shows.
std::string coordinate(double value);

// Units of the drawing that a text takes at most, in a usual sans-serif face of `size`.
double text_width(std::string_view text, double size);

enum class Anchor : std::uint8_t { kStart, kMiddle, kEnd };

class Svg {
 public:
  // Part of a page, which has the style sheet and gives it its width.
  Svg(double width, double height, std::string_view label);
  // A file of its own, with its style sheet and size.
  static Svg standalone(double width, double height, std::string_view label,
                        std::string_view style_sheet);

  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void text(double x, double y, Anchor anchor, std::string_view style, std::string_view text);
  // Along the vertical axis, read from below.
  void vertical_text(double x, double y, std::string_view style, std::string_view text);
  void circle(double x, double y, double radius, std::string_view style, std::string_view title);
  // A corner and a size. No tooltip for an empty title.
  void rect(double x, double y, double width, double height, std::string_view style,
            std::string_view title);
  void polyline(const std::vector<std::pair<double, double>>& points, std::string_view style,
                std::string_view title);
  void polygon(const std::vector<std::pair<double, double>>& points, std::string_view style,
               std::string_view title);
  // Dots without tooltips: thousands fit in one element, as lines of no length with round ends.
  void cloud(const std::vector<std::pair<double, double>>& points, std::string_view style);
  // What is drawn until the group is closed.
  void open_group(std::string_view style);
  void close_group();
  // Nothing may be drawn after it.
  std::string finish();

 private:
  explicit Svg(std::string opening) : out_(std::move(opening)) {}
  void shape(std::string_view name, const std::vector<std::pair<double, double>>& points,
             std::string_view style, std::string_view title);

  std::string out_;
};

struct Range {
  double low = 0;
  double high = 0;
};

// Values to places, linear or logarithmic; what lies beyond an end is drawn at it.
class Axis {
 public:
  Axis(const Range& range, bool is_log, double from, double to);
  // Logarithmic with a place for zeros (and what is below) at `from`, and a gap before the range
  // begins.
  static Axis log_with_zero(const Range& range, double from, double to);
  [[nodiscard]] double at(double value) const;
  // The middle of the gap; nothing on an axis without one.
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

// A little wider than the values, at least a factor of two.
Range log_range(double low, double high);
// 1, 2 and 5 of every power of ten, or over wide ranges at most some seven powers alone.
std::vector<Tick> log_ticks(const Range& range, const std::function<std::string(double)>& text);
// Multiples of 1, 2 or 5 times a power of ten, at most `most` + 1 of them, as shortest numbers.
std::vector<Tick> linear_ticks(const Range& range, int most, std::string_view unit = {});
// The same of what is counted: whole numbers alone.
std::vector<Tick> whole_ticks(const Range& range, int most);

// Where the values of a plot are drawn. Names and ticks of the axes are outside of it: 46 units
// below, 58 to the left, more where texts of ticks are longer than five letters.
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

// Horizontal grid, ticks and names of both axes, of the classes grid, axis, tick and name.
void draw_frame(Svg& svg, const Panel& panel, const Axis& x, const Axis& y,
                std::span<const Tick> x_ticks, std::span<const Tick> y_ticks,
                std::string_view x_name, std::string_view y_name);

}  // namespace foretune::documents
