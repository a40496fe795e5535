#include "foretune/formats/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "foretune/base/text.h"

namespace foretune::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::vector<std::string> texts(const std::vector<Tick>& ticks) {
  std::vector<std::string> out;
  for (const Tick& tick : ticks) {
    out.push_back(tick.text);
  }
  return out;
}

std::string number(double value) { return concat(value); }

TEST(HtmlEscaped, LeavesNothingThatMarksUp) {
  EXPECT_EQ(html_escaped("a<b>&\"c'\n\x01"), "a&lt;b&gt;&amp;&quot;c&#39;\n ");
}

TEST(Svg, PartOfAPageHasNoSizeOfItsOwn) {
  Svg svg(480, 330, "a & b");
  svg.line(0, 1.25, 2.04, 3, "grid");
  EXPECT_EQ(svg.finish(),
            "<svg viewBox=\"0 0 480 330\" role=\"img\" aria-label=\"a &amp; b\">"
            "<line class=\"grid\" x1=\"0\" y1=\"1.2\" x2=\"2\" y2=\"3\"/></svg>");
}

TEST(Svg, StandaloneHasNamespaceSizeAndStyle) {
  const std::string text = Svg::standalone(100, 50, "x", ".a { fill: red; }").finish();
  EXPECT_THAT(text, StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 100 50\" "
                               "width=\"100\" height=\"50\""));
  EXPECT_THAT(text, HasSubstr("<style>.a { fill: red; }</style>"));
}

TEST(Svg, TooltipsAreEscapedAndLeftOutWhenEmpty) {
  Svg svg(1, 1, "");
  svg.rect(1, 2, 3, -4, "bar", "a<b");
  svg.rect(1, 2, 3, 4, "bar", "");
  svg.polygon({{0, 0}, {1, 1}}, "shape", "");
  const std::string text = svg.finish();
  EXPECT_THAT(text, HasSubstr("<rect class=\"bar\" x=\"1\" y=\"2\" width=\"3\" height=\"0\">"
                              "<title>a&lt;b</title></rect>"));
  EXPECT_THAT(text, HasSubstr("height=\"4\"/><polygon class=\"shape\" points=\"0,0 1,1 \"/>"));
}

TEST(Svg, MarksHaveShapesOfTheirOwn) {
  std::set<std::string> shapes;
  for (std::size_t i = 0; i < kMarks; ++i) {
    Svg svg = Svg::elements();
    svg.mark(static_cast<Mark>(i), 10, 10, 4, "dot", "a & b");
    const std::string text = svg.finish();
    EXPECT_THAT(text, HasSubstr("class=\"dot\""));
    EXPECT_THAT(text, HasSubstr("<title>a &amp; b</title>"));
    shapes.insert(text);
  }
  EXPECT_EQ(shapes.size(), kMarks);
}

TEST(Svg, ElementsBecomePartOfAnImage) {
  Svg part = Svg::elements();
  part.cloud({{1, 2}}, "cloud", Mark::kCross);
  Svg svg(10, 10, "x");
  svg.place(3, 4.5, part.finish());
  EXPECT_THAT(svg.finish(), HasSubstr("<g transform=\"translate(3 4.5)\"><path class=\"cloud\" "
                                      "d=\"M-1 0l4 4m0-4l-4 4\"/></g></svg>"));
}

TEST(Wrapped, BreaksAtBlanksAndKeepsLongWords) {
  EXPECT_THAT(wrapped("a b  c", 10, 20), ElementsAre("a b", "c"));
  EXPECT_THAT(wrapped("longer word", 10, 5), ElementsAre("longer", "word"));
  EXPECT_THAT(wrapped("", 10, 5), ElementsAre());
}

TEST(Axis, IsLinearOrLogarithmicAndEndsAtItsEnds) {
  const Axis linear({0, 10}, false, 100, 0);
  EXPECT_DOUBLE_EQ(linear.at(2.5), 75);
  EXPECT_DOUBLE_EQ(linear.at(20), 0);
  const Axis logarithmic({1, 100}, true, 0, 200);
  EXPECT_DOUBLE_EQ(logarithmic.at(10), 100);
  EXPECT_DOUBLE_EQ(logarithmic.at(0.1), 0);
}

TEST(Axis, HasAPlaceForZeroBeforeLogarithms) {
  const Axis axis = Axis::log_with_zero({1, 100}, 0, 100);
  EXPECT_DOUBLE_EQ(axis.at(0), 0);
  EXPECT_DOUBLE_EQ(axis.at(-3), 0);
  EXPECT_DOUBLE_EQ(axis.at(1), 10);
  EXPECT_DOUBLE_EQ(axis.at(10), 55);
  EXPECT_DOUBLE_EQ(axis.at(1000), 100);
  ASSERT_TRUE(axis.gap());
  EXPECT_DOUBLE_EQ(*axis.gap(), 5);
  EXPECT_FALSE(Axis({1, 100}, true, 0, 100).gap());
}

TEST(LinearTicks, AreRoundNumbersAndNeverMoreThanWanted) {
  EXPECT_THAT(texts(linear_ticks({0, 100}, 5, " %")),
              ElementsAre("0 %", "20 %", "40 %", "60 %", "80 %", "100 %"));
  EXPECT_THAT(texts(linear_ticks({0, 0.7}, 4)), ElementsAre("0.0", "0.2", "0.4", "0.6"));
  EXPECT_THAT(texts(linear_ticks({0, 131}, 6)), ElementsAre("0", "50", "100"));
  EXPECT_TRUE(linear_ticks({1, 1}, 6).empty());
  for (double high = 0.003; high < 1e7; high *= 1.37) {
    const std::vector<Tick> ticks = linear_ticks({0, high}, 6);
    EXPECT_GE(ticks.size(), 3U) << high;
    EXPECT_LE(ticks.size(), 7U) << high;
    EXPECT_LE(ticks.back().value, high * (1 + 1e-6));
  }
}

TEST(WholeTicks, LeaveOutWhatCannotBeCounted) {
  EXPECT_THAT(texts(whole_ticks({0, 2}, 6)), ElementsAre("0", "1", "2"));
  EXPECT_THAT(texts(whole_ticks({1, 57}, 6)), ElementsAre("10", "20", "30", "40", "50"));
}

TEST(TextWidth, CountsLettersAndNotBytes) {
  EXPECT_DOUBLE_EQ(text_width("abc", 10), 3 * text_width("a", 10));
  EXPECT_DOUBLE_EQ(text_width("\u00d7", 10), text_width("a", 10));
}

TEST(LogTicks, AreFineOverFewDecadesAndPowersOverMany) {
  EXPECT_THAT(texts(log_ticks({0.9, 12}, number)), ElementsAre("1", "2", "5", "10"));
  EXPECT_THAT(texts(log_ticks({0.5, 2e4}, number)), ElementsAre("1", "10", "100", "1000", "10000"));
}

TEST(Ticks, AreNoneForARangeThatNoPlotShows) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Range& range : {Range{0, 1}, Range{-1, 1}, Range{2, 1}, Range{1, kInfinity},
                             Range{std::nan(""), 1}, Range{1, std::nan("")}}) {
    EXPECT_THAT(log_ticks(range, number), IsEmpty()) << range.low << " to " << range.high;
  }
  EXPECT_THAT(linear_ticks({0, kInfinity}, 5), IsEmpty());
  EXPECT_THAT(linear_ticks({-kInfinity, 0}, 5), IsEmpty());
  EXPECT_THAT(linear_ticks({0, std::nan("")}, 5), IsEmpty());
}

TEST(LogRange, IsWiderThanOneValue) {
  const Range range = log_range(4, 4);
  EXPECT_LT(range.low, 3);
  EXPECT_GT(range.high, 5);
}

TEST(DrawFrame, NamesBothAxesAndEveryTick) {
  Svg svg(480, 330, "");
  const Panel panel{58, 12, 468, 284};
  draw_frame(svg, panel, panel.horizontal({0, 10}, false), panel.vertical({1, 100}, true),
             linear_ticks({0, 10}, 5), log_ticks({1, 100}, number), "size", "speed");
  const std::string text = svg.finish();
  for (const char* word : {">size<", ">speed<", ">4<", ">50<"}) {
    EXPECT_THAT(text, HasSubstr(word));
  }
}

}  // namespace
}  // namespace foretune::formats
