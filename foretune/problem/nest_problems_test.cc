#include "foretune/problem/nest_problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/problem/nest_conv/nest_conv.h"
#include "foretune/problem/nest_map/nest_map.h"
#include "foretune/problem/nest_mm/nest_mm.h"
#include "foretune/problem/nest_reduce/nest_reduce.h"
#include "foretune/problem/network_layers.h"
#include "foretune/problem/sampler.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

constexpr std::array<std::string_view, 4> kTypes{"nest_mm", "nest_conv", "nest_map", "nest_reduce"};

Problem parsed(std::string_view text) { return Problem::parse(text).value(); }

std::string refusal(std::string_view text) {
  const Result<Problem> problem = Problem::parse(text);
  EXPECT_FALSE(problem) << text;
  return problem ? std::string() : problem.error().message;
}

std::int64_t value(const Problem& problem, std::string_view field) {
  return problem.field(problem.schema().find(field).value());
}

// Allows every label of every field to be drawn.
ProblemSampling all_labels(const ProblemSchema& schema) {
  ProblemSampling sampling;
  for (const ProblemField& field : schema.fields) {
    for (const std::string_view label : field.labels) {
      sampling.labels[std::string(field.name)].emplace_back(label);
    }
  }
  return sampling;
}

TEST(NestProblems, TextsAreCanonicalAndSayTheDefaults) {
  EXPECT_EQ(parsed("nest_mm k=96 n=80 m=64").text(),
            "nest_mm m=64 n=80 k=96 batch=1 ta=no tb=no bias=no relu=no");
  EXPECT_EQ(parsed("nest_mm m=1 n=2 k=3 batch=4 ta=yes tb=yes bias=yes relu=yes").text(),
            "nest_mm m=1 n=2 k=3 batch=4 ta=yes tb=yes bias=yes relu=yes");
  EXPECT_EQ(parsed("nest_conv c=64 h=56 w=28 o=32 r=3 s=1").text(),
            "nest_conv b=1 c=64 h=56 w=28 o=32 r=3 s=1 stride=1 dilation=1 pad=0 groups=1 "
            "layout=nchw bias=no relu=no");
  EXPECT_EQ(parsed("nest_map c=5 r=3 chain=scale_shift").text(),
            "nest_map r=3 c=5 chain=scale_shift");
  EXPECT_EQ(parsed("nest_reduce r=3 c=5").text(), "nest_reduce r=3 c=5 op=add of_columns=no");
}

TEST(NestProblems, NumbersInFilesAndIdsAreGolden) {
  const std::map<std::string_view, ProblemType> numbers{{"nest_mm", kNestMmProblem},
                                                        {"nest_conv", kNestConvProblem},
                                                        {"nest_map", kNestMapProblem},
                                                        {"nest_reduce", kNestReduceProblem}};
  std::string ids;
  for (const std::string_view name : kTypes) {
    const ProblemSchema& schema = *find_problem_schema(name);
    EXPECT_EQ(schema.type, numbers.at(name));
    ids += concat(static_cast<int>(schema.type), " ", schema.id(), "\n");
  }
  EXPECT_EQ(ids,
            "6 3107616423344423902\n7 5516560084338573460\n9 14708875275846753272\n"
            "8 433765438958567846\n");
}

TEST(NestProblems, DrawnOnesParseBack) {
  for (const std::string_view name : kTypes) {
    const ProblemTypeInfo& type = *find_problem_type(name);
    Rng rng(3);
    const SampledProblems drawn =
        sample_log_normal(type, 500, {}, all_labels(type.schema), rng).value();
    for (const Problem& problem : drawn.problems) {
      ASSERT_EQ(parsed(problem.text()), problem);
    }
  }
}

TEST(NestProblems, RefusalsSayWhy) {
  EXPECT_THAT(refusal("nest_mm m=1 n=2"), HasSubstr("nest_mm: k is missing"));
  EXPECT_THAT(refusal("nest_mm m=1 n=2 k=3 ta=1"), HasSubstr("ta=1 is not one of no yes"));
  EXPECT_EQ(refusal("nest_mm m=65536 n=8 k=4097"),
            "nest_mm: the tensor a has more than 268435456 elements");
  EXPECT_EQ(refusal("nest_mm m=8 n=65536 k=4097"),
            "nest_mm: the tensor b has more than 268435456 elements");
  EXPECT_EQ(refusal("nest_mm m=65536 n=4096 k=8 batch=2"),
            "nest_mm: the tensor c has more than 268435456 elements");
  const std::string conv = "nest_conv c=64 h=8 w=8 o=64 r=3 s=3";
  EXPECT_THAT(refusal("nest_conv c=64 h=8 w=8 o=64 r=3"), HasSubstr("nest_conv: s is missing"));
  EXPECT_THAT(refusal(conv + " stride=0"), HasSubstr("stride is 0; it must be an integer from 1"));
  EXPECT_THAT(refusal(conv + " layout=oihw"), HasSubstr("is not one of nchw nhwc"));
  EXPECT_EQ(refusal(conv + " groups=3"),
            "nest_conv: 3 groups do not divide 64 channels and 64 output channels");
  EXPECT_EQ(refusal("nest_conv c=64 h=8 w=8 o=60 r=3 s=3 groups=8"),
            "nest_conv: 8 groups do not divide 64 channels and 60 output channels");
  EXPECT_EQ(refusal("nest_conv c=64 h=8 w=2 o=64 r=3 s=3"),
            "nest_conv: the kernel does not fit into the padded input");
  EXPECT_EQ(refusal(conv + " dilation=4"),
            "nest_conv: the kernel does not fit into the padded input");
  EXPECT_TRUE(Problem::parse(conv + " dilation=4 pad=1"));
  EXPECT_EQ(refusal("nest_conv b=9 c=1024 h=256 w=128 o=1 r=1 s=1"),
            "nest_conv: the tensor in has more than 268435456 elements");
  EXPECT_EQ(refusal("nest_conv c=65536 h=1 w=1 o=4097 r=1 s=1"),
            "nest_conv: the tensor weight has more than 268435456 elements");
  EXPECT_EQ(refusal("nest_conv c=1 h=4096 w=4096 o=17 r=1 s=1"),
            "nest_conv: the tensor out has more than 268435456 elements");
  EXPECT_EQ(refusal("nest_conv c=64 h=2048 w=2048 o=1 r=3 s=3 pad=1"),
            "nest_conv: the tensor in reaches further than 268435456 elements with its padding");
  EXPECT_EQ(refusal("nest_conv c=1 h=8192 w=8192 o=1 r=16384 s=16384 pad=8192"),
            "nest_conv: there are more than 1e+15 points");
  EXPECT_EQ(refusal("nest_map r=3 c=5"), "nest_map: chain is missing");
  EXPECT_THAT(refusal("nest_map r=3 c=5 chain=gelu"), HasSubstr("one of relu relu6 bias_relu"));
  EXPECT_EQ(refusal("nest_map r=65536 c=4097 chain=relu"),
            "nest_map: the tensor in has more than 268435456 elements");
  EXPECT_THAT(refusal("nest_reduce r=3 c=5 op=multiply"), HasSubstr("is not one of add max min"));
  EXPECT_EQ(refusal("nest_reduce r=65536 c=4097"),
            "nest_reduce: the tensor in has more than 268435456 elements");
}

TEST(NestProblems, WorkIsOneOperationEachAndEveryOperandOnce) {
  const auto work = [](std::string_view text) { return problem_work(parsed(text)).value(); };
  EXPECT_EQ(work("nest_mm m=3 n=5 k=7 batch=2").flops, 2.0 * 3 * 5 * 7 * 2);
  EXPECT_EQ(work("nest_mm m=3 n=5 k=7 bias=yes relu=yes").flops, 3.0 * 5 * (2 * 7 + 2));
  EXPECT_EQ(work("nest_mm m=3 n=5 k=7 bias=yes").bytes, 4.0 * (3 * 7 + 7 * 5 + 3 * 5 + 5));
  EXPECT_EQ(work("nest_conv c=4 h=8 w=8 o=6 r=3 s=3 groups=2").flops, 2.0 * 6 * 6 * 6 * 2 * 9);
  EXPECT_EQ(work("nest_conv c=4 h=8 w=8 o=6 r=3 s=3 groups=2").bytes,
            4.0 * (4 * 64 + 6 * 2 * 9 + 6 * 36));
  // A single product takes no addition.
  EXPECT_EQ(work("nest_conv c=4 h=8 w=8 o=4 r=1 s=1 groups=4 relu=yes").flops, 2.0 * 4 * 64);
  EXPECT_EQ(work("nest_map r=3 c=5 chain=scale_shift_residual_relu").flops, 4.0 * 15);
  EXPECT_EQ(work("nest_map r=3 c=5 chain=scale_shift_residual_relu").bytes, 4.0 * 15 * 5);
  EXPECT_EQ(work("nest_reduce r=3 c=5 op=max").flops, 15.0);
  EXPECT_EQ(work("nest_reduce r=3 c=5").bytes, 4.0 * (15 + 3));
  EXPECT_EQ(work("nest_reduce r=3 c=5 of_columns=yes").bytes, 4.0 * (15 + 5));
}

TEST(NestProblems, GroupsAreTheSizes) {
  const auto group = [](std::string_view text) { return parsed(text).group(); };
  EXPECT_EQ(group("nest_mm m=3 n=5 k=7"), group("nest_mm m=3 n=5 k=7 ta=yes bias=yes relu=yes"));
  EXPECT_NE(group("nest_mm m=3 n=5 k=7"), group("nest_mm m=3 n=5 k=7 batch=2"));
  const std::string conv = "nest_conv c=4 h=8 w=8 o=4 r=3 s=3";
  EXPECT_EQ(group(conv), group(conv + " layout=nhwc relu=yes"));
  for (const char* other : {" b=2", " stride=2", " dilation=2", " pad=1", " groups=2"}) {
    EXPECT_NE(group(conv), group(conv + other)) << other;
  }
  EXPECT_EQ(group("nest_map r=3 c=5 chain=relu"), group("nest_map r=3 c=5 chain=scale"));
  EXPECT_NE(group("nest_map r=3 c=5 chain=relu"), group("nest_map r=5 c=3 chain=relu"));
  EXPECT_EQ(group("nest_reduce r=3 c=5"), group("nest_reduce r=3 c=5 op=min of_columns=yes"));
  EXPECT_NE(group("nest_reduce r=3 c=5"), group("nest_reduce r=3 c=6"));
}

// Draws reach every value of a completed field, and stay legal for all arguments.
TEST(NestProblems, DrawsAreOfEveryKind) {
  const ProblemTypeInfo& type = *find_problem_type("nest_conv");
  Rng rng(5);
  std::map<std::string, int> counts;
  const SampledProblems drawn =
      sample_log_normal(type, 1000, {}, all_labels(type.schema), rng).value();
  for (const Problem& problem : drawn.problems) {
    EXPECT_EQ(value(problem, "w"), value(problem, "h"));
    for (const char* field : {"r", "stride", "dilation", "layout", "bias", "relu"}) {
      ++counts[concat(field, "=", value(problem, field))];
    }
    ++counts[value(problem, "groups") == 1                     ? "dense"
             : value(problem, "groups") == value(problem, "c") ? "depthwise"
                                                               : "in groups"];
    ++counts[value(problem, "pad") > 0 ? "padded" : "not padded"];
  }
  for (const char* kind :
       {"r=1", "r=3", "r=5", "r=7", "stride=1", "stride=2", "dilation=2", "layout=0", "layout=1",
        "bias=1", "relu=1", "dense", "depthwise", "in groups", "padded", "not padded"}) {
    EXPECT_GE(counts[kind], 20) << kind;
  }
  const ProblemTypeInfo& products = *find_problem_type("nest_mm");
  int batches = 0;
  const SampledProblems uniform = sample_uniform(products, 400, {}, {}, rng).value();
  for (const Problem& problem : uniform.problems) {
    batches += value(problem, "batch") > 1 ? 1 : 0;
  }
  EXPECT_GT(batches, 20);
  EXPECT_LT(batches, 100);
}

TEST(NestProblems, HugeDrawsAreCutToWhatATensorMayHave) {
  for (const std::string_view name : kTypes) {
    const ProblemTypeInfo& type = *find_problem_type(name);
    Rng rng(7);
    const auto uniform = sample_uniform(type, 200, {.min_size = 1000000, .max_size = 0x7fffffff},
                                        all_labels(type.schema), rng);
    ASSERT_TRUE(uniform) << name << ": " << uniform.error().message;
    LogNormalSizes sizes;
    for (const DrawnSize& drawn : type.drawn_sizes) {
      sizes[std::string(type.schema.fields[drawn.field].name)] = {15, 4};
    }
    const auto huge = sample_log_normal(type, 200, sizes, all_labels(type.schema), rng);
    EXPECT_TRUE(huge) << name << ": " << huge.error().message;
  }
}

TEST(NestProblems, ShapeSetsAreLoopTunesDataSets) {
  const std::map<std::string_view, std::pair<std::size_t, std::string_view>> sets{
      {"mm64_128_16", {125, "nest_mm"}},      {"mm64_256_16_train", {1955, "nest_mm"}},
      {"mm64_256_16_test", {217, "nest_mm"}}, {"mm64_256_16_test25", {25, "nest_mm"}},
      {"conv_train", {62, "nest_conv"}},      {"conv_test", {19, "nest_conv"}},
      {"resnet50", {23, "nest_conv"}},        {"mobilenet_v2", {30, "nest_conv"}}};
  EXPECT_EQ(nest_benchmark_texts().size(), sets.size());
  for (const auto& [name, what] : sets) {
    const auto problems = named_shape_set(name);
    ASSERT_TRUE(problems) << problems.error().message;
    EXPECT_EQ(problems->size(), what.first) << name;
    for (const Problem& problem : *problems) {
      EXPECT_EQ(problem.schema().name, what.second);
    }
  }
  EXPECT_EQ(named_shape_set("mm64_128_16")->front(), parsed("nest_mm m=64 n=64 k=64"));
  EXPECT_EQ(named_shape_set("mobilenet_v2")->at(4),
            parsed("nest_conv c=96 h=112 w=112 o=96 r=3 s=3 stride=2 pad=1 groups=96 layout=nhwc"));
  // The sets of the type conv keep their names.
  EXPECT_EQ(named_shape_set("conv-resnet50")->front().schema().name, "conv");
  for (const NamedShapeSet& set : find_problem_type("nest_conv")->shape_sets()) {
    EXPECT_THAT(set.summary, HasSubstr("convolutions of"));
  }
}

TEST(NestProblems, AComputationsWordsAreFields) {
  EXPECT_EQ(*parse_nest_problem("mm m=3 n=5 k=7 ta relu"),
            parsed("nest_mm m=3 n=5 k=7 ta=yes relu=yes"));
  EXPECT_EQ(*parse_nest_problem("conv c=3 h=5 w=7 o=2 r=1 s=1 nhwc bias"),
            parsed("nest_conv c=3 h=5 w=7 o=2 r=1 s=1 layout=nhwc bias=yes"));
  EXPECT_EQ(*parse_nest_problem("reduce r=3 c=5 of_columns"),
            parsed("nest_reduce r=3 c=5 of_columns=yes"));
  EXPECT_THAT(parse_nest_problem("sort n=3").error().message,
              HasSubstr("'nest_sort' is not a problem type"));
}

}  // namespace
}  // namespace foretune
