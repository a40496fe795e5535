#include "foretune/formats/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>

#include "foretune/base/text.h"

namespace foretune::formats {
namespace {

constexpr double kTickLetters = 12;
constexpr std::string_view kClosing = "</svg>";
// A vertical name's letters rise to the left of its base line.
constexpr double kMinNameX = 10;

std::string titled(std::string_view name, std::string_view title) {
  return title.empty() ? std::string("/>")
                       : concat("><title>", html_escaped(title), "</title></", name, ">");
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f ? ' ' : c;
    }
  }
  return out;
}

std::string coordinate(double value) {
  std::string out = fixed(value, 1);
  if (out.ends_with(".0")) {
    out.resize(out.size() - 2);
  }
  return out;
}

double text_width(std::string_view text, double size) {
  // Continuation bytes of UTF-8 have no width of their own.
  const auto letters = std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  });
  return 0.66 * size * static_cast<double>(letters);
}

std::vector<std::string> wrapped(std::string_view text, double size, double width) {
  std::vector<std::string> lines;
  for (const std::string_view word : split_words(text)) {
    if (lines.empty() || text_width(concat(lines.back(), " ", word), size) > width) {
      lines.emplace_back(word);
    } else {
      lines.back() += concat(" ", word);
    }
  }
  return lines;
}

Svg::Svg(double width, double height, std::string_view label)
    : Svg(concat("<svg viewBox=\"0 0 ", width, " ", height, "\" role=\"img\" aria-label=\"",
                 html_escaped(label), "\">"),
          kClosing) {}

Svg Svg::standalone(double width, double height, std::string_view label,
                    std::string_view style_sheet) {
  return Svg(concat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width, " ", height,
                    "\" width=\"", width, "\" height=\"", height, "\" role=\"img\" aria-label=\"",
                    html_escaped(label), "\">\n<style>", style_sheet, "</style>\n"),
             kClosing);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view style) {
  out_ += concat("<line class=\"", style, "\" x1=\"", coordinate(x1), "\" y1=\"", coordinate(y1),
                 "\" x2=\"", coordinate(x2), "\" y2=\"", coordinate(y2), "\"/>");
}

void Svg::text(double x, double y, Anchor anchor, std::string_view style, std::string_view text) {
  static constexpr std::array<std::string_view, 3> kAnchors{"start", "middle", "end"};
  out_ += concat("<text class=\"", style, "\" x=\"", coordinate(x), "\" y=\"", coordinate(y),
                 "\" text-anchor=\"", kAnchors[static_cast<std::size_t>(anchor)], "\">",
                 html_escaped(text), "</text>");
}

void Svg::vertical_text(double x, double y, std::string_view style, std::string_view text) {
  out_ +=
      concat("<text class=\"", style, "\" text-anchor=\"middle\" transform=\"translate(",
             coordinate(x), " ", coordinate(y), ") rotate(-90)\">", html_escaped(text), "</text>");
}

void Svg::circle(double x, double y, double radius, std::string_view style,
                 std::string_view title) {
  out_ += concat("<circle class=\"", style, "\" cx=\"", coordinate(x), "\" cy=\"", coordinate(y),
                 "\" r=\"", coordinate(radius), "\"", titled("circle", title));
}

void Svg::rect(double x, double y, double width, double height, std::string_view style,
               std::string_view title) {
  out_ += concat("<rect class=\"", style, "\" x=\"", coordinate(x), "\" y=\"", coordinate(y),
                 "\" width=\"", coordinate(std::max(width, 0.0)), "\" height=\"",
                 coordinate(std::max(height, 0.0)), "\"", titled("rect", title));
}

void Svg::shape(std::string_view name, const std::vector<std::pair<double, double>>& points,
                std::string_view style, std::string_view title) {
  out_ += concat("<", name, " class=\"", style, "\" points=\"");
  for (const auto& [x, y] : points) {
    out_ += concat(coordinate(x), ",", coordinate(y), " ");
  }
  out_ += concat("\"", titled(name, title));
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, std::string_view style,
                   std::string_view title) {
  shape("polyline", points, style, title);
}

void Svg::polygon(const std::vector<std::pair<double, double>>& points, std::string_view style,
                  std::string_view title) {
  shape("polygon", points, style, title);
}

void Svg::mark(Mark shape, double x, double y, double radius, std::string_view style,
               std::string_view title) {
  std::vector<std::pair<double, double>> points;
  const auto add = [&](std::initializer_list<std::pair<double, double>> corners) {
    for (const auto& [dx, dy] : corners) {
      points.emplace_back(x + radius * dx, y + radius * dy);
    }
  };
  switch (shape) {
    case Mark::kCircle:
      return circle(x, y, radius, style, title);
    case Mark::kSquare:
      add({{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}});
      break;
    case Mark::kDiamond:
      add({{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}});
      break;
    case Mark::kUp:
      add({{0, -1.25}, {1.2, 0.9}, {-1.2, 0.9}});
      break;
    case Mark::kDown:
      add({{0, 1.25}, {1.2, -0.9}, {-1.2, -0.9}});
      break;
    case Mark::kCross:
      add({{0, -0.5},
           {0.7, -1.2},
           {1.2, -0.7},
           {0.5, 0},
           {1.2, 0.7},
           {0.7, 1.2},
           {0, 0.5},
           {-0.7, 1.2},
           {-1.2, 0.7},
           {-0.5, 0},
           {-1.2, -0.7},
           {-0.7, -1.2}});
      break;
    case Mark::kPlus:
      add({{-0.4, -1.3},
           {0.4, -1.3},
           {0.4, -0.4},
           {1.3, -0.4},
           {1.3, 0.4},
           {0.4, 0.4},
           {0.4, 1.3},
           {-0.4, 1.3},
           {-0.4, 0.4},
           {-1.3, 0.4},
           {-1.3, -0.4},
           {-0.4, -0.4}});
      break;
  }
  polygon(points, style, title);
}

void Svg::cloud(const std::vector<std::pair<double, double>>& points, std::string_view style,
                Mark shape) {
  out_ += concat("<path class=\"", style, "\" d=\"");
  for (const auto& [x, y] : points) {
    out_ += shape == Mark::kCross
                ? concat("M", coordinate(x - 2), " ", coordinate(y - 2), "l4 4m0-4l-4 4")
                : concat("M", coordinate(x), " ", coordinate(y), "h0");
  }
  out_ += "\"/>";
}

void Svg::place(double x, double y, std::string_view elements) {
  out_ += concat("<g transform=\"translate(", coordinate(x), " ", coordinate(y), ")\">", elements,
                 "</g>");
}

void Svg::open_group(std::string_view style) { out_ += concat("<g class=\"", style, "\">"); }

void Svg::close_group() { out_ += "</g>"; }

std::string Svg::finish() { return std::move(out_) += closing_; }

Axis::Axis(const Range& range, bool is_log, double from, double to)
    : low_(is_log ? std::log(range.low) : range.low),
      high_(is_log ? std::log(range.high) : range.high),
      is_log_(is_log),
      from_(from),
      to_(to) {}

Axis Axis::log_with_zero(const Range& range, double from, double to) {
  constexpr double kGapShare = 0.1;
  Axis axis(range, true, from + kGapShare * (to - from), to);
  axis.zero_ = from;
  return axis;
}

std::optional<double> Axis::gap() const {
  return zero_ ? std::optional((*zero_ + from_) / 2) : std::nullopt;
}

double Axis::at(double value) const {
  if (zero_ && value <= 0) {
    return *zero_;
  }
  const double place = ((is_log_ ? std::log(value) : value) - low_) / (high_ - low_);
  return from_ + std::clamp(place, 0.0, 1.0) * (to_ - from_);
}

Range log_range(double low, double high) {
  const double margin = std::max(std::pow(high / low, 0.04), high / low < 2 ? 1.5 : 1.0);
  return {low / margin, high * margin};
}

std::vector<Tick> log_ticks(const Range& range, const std::function<std::string(double)>& text) {
  if (!(range.low > 0 && range.high >= range.low && std::isfinite(range.high))) {
    return {};
  }
  const double decades = std::log10(range.high / range.low);
  const int every = std::max(1, static_cast<int>(std::ceil(decades / 6)));
  std::vector<Tick> out;
  for (int power = static_cast<int>(std::floor(std::log10(range.low))) - 1;
       std::pow(10.0, power) <= range.high; ++power) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double value = digit * std::pow(10.0, power);
      const bool wanted = decades < 2.2 ? true : (digit == 1 && power % every == 0);
      if (wanted && value >= range.low && value <= range.high) {
        out.push_back({value, text(value)});
      }
    }
  }
  return out;
}

std::vector<Tick> linear_ticks(const Range& range, int most, std::string_view unit) {
  std::vector<Tick> out;
  const double width = range.high - range.low;
  if (!(width > 0 && std::isfinite(width)) || most < 1) {
    return out;
  }
  const double least = width / most;
  const auto power = static_cast<int>(std::floor(std::log10(least)));
  double step = std::pow(10.0, power + 1);
  for (const double digit : {5.0, 2.0, 1.0}) {
    if (const double finer = digit * std::pow(10.0, power); finer >= least * (1 - 1e-9)) {
      step = finer;
    }
  }
  const double first = std::ceil(range.low / step - 1e-9);
  for (int i = 0; i <= most && (first + i) * step <= range.high + 1e-9 * step; ++i) {
    out.push_back({(first + i) * step,
                   concat(fixed((first + i) * step, std::max(0, step < 1 ? -power : 0)), unit)});
  }
  return out;
}

std::vector<Tick> whole_ticks(const Range& range, int most) {
  std::vector<Tick> out = linear_ticks(range, most);
  std::erase_if(out, [](const Tick& tick) { return tick.value != std::round(tick.value); });
  for (Tick& tick : out) {
    tick.text = fixed(tick.value, 0);
  }
  return out;
}

void draw_frame(Svg& svg, const Panel& panel, const Axis& x, const Axis& y,
                std::span<const Tick> x_ticks, std::span<const Tick> y_ticks,
                std::string_view x_name, std::string_view y_name) {
  double name_x = panel.left - 44;
  for (const Tick& tick : y_ticks) {
    const double place = y.at(tick.value);
    name_x = std::min(name_x, panel.left - 12 - text_width(tick.text, kTickLetters));
    svg.line(panel.left, place, panel.right, place, "grid");
    svg.text(panel.left - 6, place + 4, Anchor::kEnd, "tick", tick.text);
  }
  for (const Tick& tick : x_ticks) {
    const double place = x.at(tick.value);
    svg.line(place, panel.bottom, place, panel.bottom + 4, "axis");
    svg.text(place, panel.bottom + 17, Anchor::kMiddle, "tick", tick.text);
  }
  svg.line(panel.left, panel.bottom, panel.right, panel.bottom, "axis");
  svg.text((panel.left + panel.right) / 2, panel.bottom + 38, Anchor::kMiddle, "name", x_name);
  svg.vertical_text(std::max(name_x, kMinNameX), (panel.top + panel.bottom) / 2, "name", y_name);
}

}  // namespace foretune::formats
