#include "foretune/loop/gym/benchmarks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <unordered_set>

#include "foretune/base/rng.h"
#include "foretune/base/testing/damaged_text.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/loop/problem_computation.h"
#include "foretune/problem/network_layers.h"

namespace foretune::loop::gym {
namespace {

using ::testing::HasSubstr;

std::vector<Benchmark> generated(const BenchmarkGenerator& generator) {
  auto made = generate_benchmarks(generator);
  EXPECT_TRUE(made) << made.error().message;
  return made ? *std::move(made) : std::vector<Benchmark>{};
}

std::string refusal(const BenchmarkGenerator& generator) {
  const auto made = generate_benchmarks(generator);
  EXPECT_FALSE(made);
  return made ? "" : made.error().message;
}

TEST(GenerateBenchmarks, MultipliesRangesOfSizes) {
  const auto all = generated({.dim_a = "64:128:16,3|5:7", .dim_b = "3|5:7,10"});
  ASSERT_EQ(all.size(), 5U * 4U);
  EXPECT_EQ(all[0].name, "mm64_10_3");
  EXPECT_EQ(all[0].computation.name, "mm m=64 n=10 k=3");
  EXPECT_EQ(all[1].name, "mm64_10_5");
  EXPECT_EQ(all.back().name, "mm128_10_7");
  EXPECT_EQ(generated({.dim_a = "64:256:16,64:256:16", .dim_b = "64:256:16,64:256:16"}).size(),
            2197U);
  // The end counts where a step reaches it.
  EXPECT_EQ(generated({.dim_a = "1:6:2,4", .dim_b = "4,4"}).size(), 3U);
}

TEST(GenerateBenchmarks, ConvolutionsAreSquare) {
  const auto all = generated({.kind = "conv",
                              .dim_a = "1,16|32,14|28,14|28",
                              .dim_b = "8,16|32,1|3,1|3",
                              .words = "nhwc relu"});
  ASSERT_EQ(all.size(), 8U);
  EXPECT_EQ(all[0].name, "conv1_16_14_8_1");
  EXPECT_THAT(all[7].computation.name, HasSubstr("c=32 h=28 w=28 o=8 r=3 s=3"));
  EXPECT_THAT(all[7].computation.name, HasSubstr("relu"));
  EXPECT_EQ(generated({.kind = "conv", .dim_a = "1,8,9,11", .dim_b = "4,8,3,1"})[0].name,
            "conv1_8_9x11_4_3x1");
}

TEST(GenerateBenchmarks, PermutationsStartFromEveryOrder) {
  const auto all = generated({.dim_a = "8,4", .dim_b = "4,6", .permute = true});
  ASSERT_EQ(all.size(), 6U);
  std::set<std::string> orders;
  for (const Benchmark& benchmark : all) {
    std::string order;
    for (const loop::Loop& loop : benchmark.start().loops) {
      if (benchmark.computation.vars[loop.var].extent > 1) {
        order += benchmark.computation.vars[loop.var].name;
      }
    }
    EXPECT_EQ(benchmark.name, concat("mm8_6_4.", order));
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 6U);
  EXPECT_EQ(generated({.dim_a = "1,4", .dim_b = "4,6", .permute = true}).size(), 2U);
}

TEST(GenerateBenchmarks, SaysWhatIsWrong) {
  EXPECT_EQ(refusal({.kind = "fft"}),
            "there is no kind 'fft' of benchmarks; there are mm and conv");
  EXPECT_THAT(refusal({.dim_a = "4", .dim_b = "4,4"}), HasSubstr("dimA takes 2 sizes"));
  EXPECT_EQ(refusal({.dim_a = "4,4", .dim_b = "5,4"}),
            "the columns of A and the rows of B are not the same list of sizes");
  EXPECT_THAT(refusal({.dim_a = "4,x", .dim_b = "4,4"}), HasSubstr("dimA: 'x' is no size"));
  EXPECT_THAT(refusal({.dim_a = "4,0", .dim_b = "4,4"}), HasSubstr("'0' is no size"));
  EXPECT_THAT(refusal({.dim_a = "9:4,4", .dim_b = "4,4"}), HasSubstr("ends before it begins"));
  EXPECT_THAT(refusal({.dim_a = "1:2:3:4,4", .dim_b = "4,4"}), HasSubstr("is no range"));
  EXPECT_THAT(refusal({.dim_a = "1:2:0,4", .dim_b = "4,4"}), HasSubstr("'0' is no size"));
  EXPECT_THAT(refusal({.dim_a = "1:1000,1:1000", .dim_b = "1:1000,1:1000"}),
              HasSubstr("more than a million"));
  // 2^80 of them.
  EXPECT_THAT(refusal({.kind = "conv",
                       .dim_a = "1:65536,1:65536,1:65536,1:65536",
                       .dim_b = "1:65536,1:65536,1:65536,1:65536"}),
              HasSubstr("more than a million"));
  EXPECT_EQ(refusal({.dim_a = "4|2:6:2,4", .dim_b = "4,4"}), "dimA: '4|2:6:2' has 4 twice");
  EXPECT_THAT(refusal({.dim_a = "4,4", .dim_b = "4,4", .words = "relo"}), HasSubstr("'relo'"));
  EXPECT_THAT(refusal({.kind = "conv", .dim_a = "1,8,9|7,9", .dim_b = "4,8,3,3"}),
              HasSubstr("go in pairs"));
  EXPECT_THAT(refusal({.kind = "conv",
                       .dim_a = "2,8,9,9",
                       .dim_b = "4,8,3,3",
                       .words = "groups=2",
                       .permute = true}),
              HasSubstr("has 8 loops"));
}

TEST(Benchmarks, RoundTripThroughTheirText) {
  const auto all = generated({.dim_a = "8|9,4", .dim_b = "4,6", .permute = true});
  const std::string text = to_text(all);
  const auto back = parse_benchmarks(text, "list");
  ASSERT_TRUE(back) << back.error().message;
  ASSERT_EQ(back->size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ((*back)[i].name, all[i].name);
    EXPECT_EQ((*back)[i].computation.name, all[i].computation.name);
    EXPECT_EQ((*back)[i].start(), all[i].start());
  }
  EXPECT_EQ(to_text(*back), text);
}

TEST(Benchmarks, RefusalsNameTheLine) {
  const auto reason = [](std::string_view lines) {
    const auto parsed = parse_benchmarks(concat("# foretune benchmarks 1\n", lines), "my.txt");
    return parsed ? std::string() : parsed.error().message;
  };
  EXPECT_EQ(reason("\n# nothing\n"), "my.txt has no benchmark");
  EXPECT_THAT(reason("# yes\na mm m=4 n=4 k=4\na mm m=5 n=4 k=4\n"),
              HasSubstr("my.txt:4: 'a' is there twice"));
  EXPECT_THAT(reason("a\n"), HasSubstr("my.txt:2: 'a' is a name without a computation"));
  EXPECT_THAT(reason("a mm m=0 n=4\n"), HasSubstr("my.txt:2: "));
  EXPECT_THAT(reason("a mm m=4 n=4 k=4 ; split z9 4\n"), HasSubstr("my.txt:2: "));
  EXPECT_EQ(reason("a mm m=4 n=4 k=4 ; split m0 2\r\n"), "");
  EXPECT_EQ(reason("a\tmm \tm=4\tn=4 ;swap m0\n"), "");
  EXPECT_EQ(reason("a gemm\x1b[31m m=4\n"),
            "my.txt:2: a byte that is no printable ASCII in 'a gemm?[31m m=4'");
  EXPECT_EQ(parse_benchmarks("a mm m=4 n=4 k=4\n", "my.txt").error().message,
            "my.txt does not begin with '# foretune benchmarks 1'");
}

TEST(Benchmarks, DamagedTextsGiveBenchmarksOrOneSentence) {
  const std::string whole = to_text(generated({.dim_a = "8|9,4", .dim_b = "4,6", .permute = true}));
  Rng rng(8);
  for (int i = 0; i < 3000; ++i) {
    const std::string text = testing_support::damaged_text(whole, rng);
    if (const auto parsed = parse_benchmarks(text, "x"); parsed) {
      EXPECT_TRUE(parse_benchmarks(to_text(*parsed), "x"));
    } else {
      EXPECT_FALSE(parsed.error().message.empty());
    }
  }
}

TEST(TakeTestPart, IsDrawnByTheSeedAndKeepsPermutationsTogether) {
  const auto whole = generated({.dim_a = "4:23,4", .dim_b = "4,6", .permute = true});
  const auto names = [&](std::uint64_t seed) {
    std::vector<Benchmark> rest = whole;
    const std::vector<Benchmark> test = take_test_part(rest, 0.25, seed);
    EXPECT_EQ(test.size(), 30U);
    EXPECT_EQ(rest.size(), 90U);
    std::set<std::string> of_test;
    for (const Benchmark& benchmark : test) {
      of_test.insert(benchmark.computation.name);
    }
    for (const Benchmark& benchmark : rest) {
      EXPECT_FALSE(of_test.contains(benchmark.computation.name));
    }
    return of_test;
  };
  EXPECT_EQ(names(1), names(1));
  EXPECT_NE(names(1), names(2));
}

TEST(Datasets, AreWhatTheySay) {
  std::set<std::string> names;
  for (const DatasetInfo& info : benchmark_datasets()) {
    SCOPED_TRACE(info.name);
    names.insert(info.name);
    const auto all = load_benchmarks(info.name);
    ASSERT_TRUE(all) << all.error().message;
    EXPECT_EQ(all->size(), info.count);
    EXPECT_FALSE(info.what.empty());
  }
  EXPECT_TRUE(names.contains("mm64_256_16_test25"));
  const auto test25 = load_benchmarks("mm64_256_16_test25").value();
  const auto test = load_benchmarks("mm64_256_16_test").value();
  const auto train = load_benchmarks("mm64_256_16_train").value();
  EXPECT_EQ(test25.size(), 25U);
  EXPECT_EQ(test25.size() + test.size() + train.size(), 2197U);
  std::unordered_set<std::string> seen;
  for (const auto* list : {&test25, &test, &train}) {
    for (const Benchmark& benchmark : *list) {
      EXPECT_TRUE(seen.insert(benchmark.computation.name).second);
    }
  }
}

TEST(Datasets, AreShapeSetsOfTheSameComputations) {
  for (const DatasetInfo& info : benchmark_datasets()) {
    SCOPED_TRACE(info.name);
    const std::vector<Benchmark> benchmarks = load_benchmarks(info.name).value();
    const auto problems = named_shape_set(info.name);
    ASSERT_TRUE(problems) << problems.error().message;
    ASSERT_EQ(problems->size(), benchmarks.size());
    for (std::size_t i = 0; i < benchmarks.size(); ++i) {
      EXPECT_EQ(problems->at(i), loop::problem_of(benchmarks[i].computation.name).value());
      EXPECT_EQ(loop::computation_of(problems->at(i)).value(), benchmarks[i].computation);
      EXPECT_TRUE(benchmarks[i].schedule.empty());
    }
  }
}

TEST(LoadBenchmarks, FindsThemByNamePathAndText) {
  EXPECT_EQ(load_benchmarks("mm64_128_16/mm64_80_96")->front().computation.name,
            "mm m=64 n=80 k=96");
  EXPECT_EQ(load_benchmarks("mm256_240_96")->front().computation.name, "mm m=256 n=240 k=96");
  EXPECT_EQ(load_benchmarks("conv1").error().message,
            "'conv1' means two benchmarks: name mobilenet_v2/conv1 or resnet50/conv1");
  EXPECT_THAT(load_benchmarks("mm64_80_9O").error().message, HasSubstr("did you mean 'mm64_80_9"));
  EXPECT_EQ(load_benchmarks("mm m=7 n=8 k=9")->front().name, "mm m=7 n=8 k=9");
  const testing_support::TemporaryFolder folder;
  const std::string header = "# foretune benchmarks 1\n";
  std::ofstream(folder / "a.txt") << header << "one mm m=4 n=4 k=4\n";
  std::ofstream(folder / "b.txt") << header << "two mm m=4 n=4 k=8 ; swap m0\n";
  EXPECT_EQ(load_benchmarks((folder / "a.txt").string())->size(), 1U);
  EXPECT_EQ(load_benchmarks((folder / "").string())->size(), 2U);
  EXPECT_EQ(load_benchmarks((folder / "b.txt").string() + "/two")->front().name, "two");
  std::ofstream(folder / "c.txt") << header << "one mm m=4 n=4 k=4\n";
  EXPECT_THAT(load_benchmarks((folder / "").string()).error().message,
              HasSubstr("has a 'one', too"));
  EXPECT_THAT(load_benchmarks("mm64_256_16_tets").error().message,
              HasSubstr("did you mean 'mm64_256_16_test'?"));
  EXPECT_THAT(load_benchmarks("mm64_128_16/mm64_80_97").error().message,
              HasSubstr("has no benchmark 'mm64_80_97'; did you mean"));
  EXPECT_FALSE(load_benchmarks(""));
}

}  // namespace
}  // namespace foretune::loop::gym
