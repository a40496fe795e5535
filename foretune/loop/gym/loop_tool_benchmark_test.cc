#include "foretune/loop/gym/loop_tool_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"

namespace foretune::loop::gym {
namespace {

using testing::HasSubstr;

// A product c[m][n] = a[0 x 1 as given] * b, with these loops.
std::string product_text(const std::string& a, const std::string& b, const std::string& c,
                         const std::string& loops, const std::string& all = "0,1,2,") {
  return concat("v:m_98\nv:k_99\nv:n_137\nv:b_7\nn:2::", a, ":::0:::::\nn:2::", b,
                ":::0:::::\nn:7:0,1,:", all, ":::0:", loops, "::,,,::\nn:5:2,:", c, ":::0:", loops,
                "::,,,::\nn:1:3,:", c, ":::0:0;1;0,::,,::\ni:0,1,\no:4,\n");
}

std::string start_of(const Benchmark& benchmark) {
  std::string out;
  for (const Loop& loop : benchmark.start().loops) {
    out += concat(benchmark.computation.vars[loop.var].name, " by ", loop.step, ", ");
  }
  return out;
}

TEST(LoopToolBenchmark, ReadsProductsWithTheOrderOfTheirLoops) {
  const auto plain = parse_loop_tool(
      product_text("0,1,", "1,2,", "0,2,", "0;112;0,1;96;0,2;160;0,"), "mm112_160_96");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->name, "mm112_160_96");
  EXPECT_EQ(plain->computation.name, "mm m=112 n=160 k=96");
  EXPECT_EQ(start_of(*plain), "m by 1, k by 1, n by 1, ");
  EXPECT_TRUE(plain->schedule.empty());
  const auto permuted =
      parse_loop_tool(product_text("0,1,", "1,2,", "0,2,", "1;128;0,2;128;0,0;128;0,"), "120");
  ASSERT_TRUE(permuted) << permuted.error().message;
  EXPECT_EQ(start_of(*permuted), "k by 1, n by 1, m by 1, ");
}

TEST(LoopToolBenchmark, ReadsSplitsAndWhatTheyLeave) {
  // 10 times 12 and 7 more are 127.
  const auto split = parse_loop_tool(
      product_text("0,1,", "1,2,", "0,2,", "0;10;7,0;12;0,1;3;21,1;36;0,2;7;15,2;16;0,"), "x");
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_EQ(split->computation.name, "mm m=127 n=127 k=129");
  EXPECT_EQ(start_of(*split), "m by 12, m by 1, k by 36, k by 1, n by 16, n by 1, ");
}

TEST(LoopToolBenchmark, ReadsLayoutsAndBatches) {
  const auto text_of = [](const std::string& a, const std::string& b, const std::string& c) {
    const auto read = parse_loop_tool(product_text(a, b, c, "0;2;0,1;3;0,2;4;0,"), "x");
    return read ? read->computation.name : read.error().message;
  };
  EXPECT_EQ(text_of("1,0,", "1,2,", "0,2,"), "mm m=2 n=4 k=3 ta");
  EXPECT_EQ(text_of("0,1,", "2,1,", "0,2,"), "mm m=2 n=4 k=3 tb");
  // An output by columns is the transposed product: n and m change places.
  EXPECT_EQ(text_of("0,1,", "1,2,", "2,0,"), "mm m=4 n=2 k=3 ta tb");
  const auto batch = parse_loop_tool(
      product_text("3,0,1,", "3,1,2,", "3,0,2,", "3;5;0,0;2;0,1;3;0,2;4;0,", "0,1,2,3,"), "x");
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_EQ(batch->computation.name, "mm m=2 n=4 k=3 batch=5");
}

// Images of 2 x 3 x h x w with a kernel of 3 x 3, outputs of 4 x 5 points.
std::string convolution_text(int height, int width) {
  return concat(
      "v:n_0\nv:c_1\nv:h_2\nv:w_3\nv:ho_4\nv:wo_5\nv:kh_6\nv:kw_7\nv:m_8\nn:2::0,1,2,3,:::0:::::\n"
      "n:3:0,:0,1,4,5,6,7,:0|s|w|;3|f|0,|;=0|v|",
      width, "|;/0|s|h|;3|f|12,|;=0|v|", height,
      "|;/:21=0,:0:::::\nn:2::8,1,6,7,:::0:::::\nn:7:1,2,:0,1,4,5,6,7,8,:::0:",
      "0;2;0,8;7;0,1;3;0,4;4;0,5;5;0,6;3;0,7;3;0,::,,,,,,,::\nn:5:3,:0,8,4,5,:::0:0;2;0,::,::\n"
      "n:1:4,:0,8,4,5,:::0:0;2;0,::,::\ni:0,2,\no:5,\n");
}

TEST(LoopToolBenchmark, ReadsConvolutionsWithoutStrides) {
  const auto conv = parse_loop_tool(convolution_text(6, 7), "conv");
  ASSERT_TRUE(conv) << conv.error().message;
  EXPECT_EQ(conv->computation.name, "conv b=2 c=3 h=6 w=7 o=7 r=3 s=3");
  EXPECT_EQ(start_of(*conv), "b by 1, o by 1, c by 1, y by 1, x by 1, r by 1, s by 1, ");
  const auto strided = parse_loop_tool(convolution_text(12, 7), "conv");
  ASSERT_FALSE(strided);
  EXPECT_EQ(strided.error().code, ErrorCode::kUnsupported);
}

TEST(LoopToolBenchmark, RefusesOtherGraphsWithASentence) {
  const std::string good = product_text("0,1,", "1,2,", "0,2,", "0;2;0,1;3;0,2;4;0,");
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"n:7:", "n:6:"},
                                 {"n:5:2,", "n:5:0,"},
                                 {"n:7:0,1,", "n:7:0,"},
                                 {"0;2;0,", "0;2;5,"},
                                 {"0;2;0,", "0;0;0,"},
                                 {"0;2;0,", "9;2;0,"},
                                 {"0;2;0,", "0;2,"},
                                 {"0;2;0,", ""},
                                 {"n:2::1,2,", "n:2::0,2,"},
                                 {"i:0,1,", "x:0"},
                                 {"0;2;0,", "0;200000000;0,0;200000000;0,"},
                                 {":0,1,2,:", ":0,1,2,3,:"}}) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    const auto read = parse_loop_tool(text, "x");
    EXPECT_FALSE(read) << from << " -> " << to;
  }
  EXPECT_FALSE(parse_loop_tool("v:m\n", "x"));
}

TEST(LoopToolBenchmark, FoldersOfFilesAreDataSets) {
  const foretune::testing_support::TemporaryFolder folder;
  std::ofstream(folder / "mm2_4_3") << product_text("0,1,", "1,2,", "0,2,", "0;2;0,1;3;0,2;4;0,");
  std::ofstream(folder / "102.txt") << product_text("0,1,", "1,2,", "0,2,", "1;3;0,0;2;0,2;4;0,");
  std::ofstream(folder / "LICENSE") << "whatever\n";
  const auto all = load_benchmarks((folder / "").string());
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ(all->at(0).name, "102");
  EXPECT_EQ(all->at(1).name, "mm2_4_3");
  std::ofstream(folder / "broken.txt") << "v:m\n";
  EXPECT_THAT(load_benchmarks((folder / "").string()).error().message, HasSubstr("broken.txt"));
}

}  // namespace
}  // namespace foretune::loop::gym
