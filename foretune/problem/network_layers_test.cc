#include "foretune/problem/network_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/problem_type.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

std::vector<Problem> shapes(std::string_view name) {
  auto found = named_shape_set(name);
  EXPECT_TRUE(found) << name;
  return found.value_or(std::vector<Problem>());
}

bool has_gemm(const std::vector<Problem>& set, const std::string& sizes) {
  const auto problem = Problem::parse("gemm dtype=f16 layout=rcr " + sizes);
  EXPECT_TRUE(problem) << sizes;
  return std::find(set.begin(), set.end(), *problem) != set.end();
}

std::vector<NamedShapeSet> all_sets() {
  std::vector<NamedShapeSet> out;
  for (const ProblemTypeInfo* type : problem_types()) {
    if (type->shape_sets != nullptr) {
      const std::span<const NamedShapeSet> sets = type->shape_sets();
      out.insert(out.end(), sets.begin(), sets.end());
    }
  }
  return out;
}

TEST(CkShapes, SetsHaveTheirSizesWithoutRepeats) {
  for (const auto& [name, size] : {std::pair<std::string_view, std::size_t>{"ck-25", 25},
                                   {"ck-wide", 706},
                                   {"ck-edge", 546},
                                   {"ck-conv", 190},
                                   {"ck-conv-backward-data", 190},
                                   {"ck-conv-backward-weight", 190}}) {
    EXPECT_EQ(shapes(name).size(), size) << name;
  }
}

TEST(NamedShapeSets, HaveNamesOfTheirOwnAndDistinctProblemsInAFixedOrder) {
  std::set<std::string> names;
  for (const NamedShapeSet& set : all_sets()) {
    EXPECT_TRUE(names.insert(set.name).second) << set.name;
    EXPECT_TRUE(is_named_shape_set(set.name));
    const std::vector<Problem> problems = set.make();
    EXPECT_FALSE(problems.empty()) << set.name;
    EXPECT_EQ(std::set<Problem>(problems.begin(), problems.end()).size(), problems.size())
        << set.name;
    EXPECT_EQ(problems, set.make()) << set.name;
  }
}

TEST(NamedShapeSets, EachTypeHasTrainingAndValidationOfNetworks) {
  EXPECT_GE(shapes("conv-networks-train").size(), 3U * 600);
  EXPECT_GE(shapes("conv-networks-validation").size(), 3U * 400);
  EXPECT_GE(shapes("gemm-networks-train").size(), 8U * 80);
  EXPECT_GE(shapes("gemm-networks-validation").size(), 8U * 80);
  EXPECT_EQ(shapes("gemm-diode_operations").size(), 1402U);
  for (const auto& [suffix, operation] :
       {std::pair{"-backward-data", ConvOperation::kBackwardData},
        std::pair{"-backward-weight", ConvOperation::kBackwardWeight}}) {
    std::size_t in_direction = 0;
    const std::vector<Problem> set = shapes(std::string("conv-resnet50") + suffix);
    for (const Problem& problem : set) {
      in_direction += ConvProblem::from(problem)->operation() == operation ? 1U : 0U;
    }
    EXPECT_EQ(in_direction, set.size()) << suffix;
  }
}

TEST(NetworkLayers, RefusalsNameTheFileAndTheLine) {
  const auto message = [](std::string_view text) {
    const auto parsed = parse_network_layers({.name = "net", .text = text});
    return parsed ? std::string("none") : parsed.error().message;
  };
  const std::string head = "# foretune networks 1\n# A network\n# role: training\n";
  EXPECT_EQ(message(head + "a gemm m=1 n=2 k=3\n"), "none");
  EXPECT_THAT(message("# A network\n"), HasSubstr("net does not begin with"));
  EXPECT_THAT(message("# foretune networks 1\n# A network\n# role: other\n"), HasSubstr("no role"));
  EXPECT_THAT(message(head + "a gemm m=1 n=2\n"), HasSubstr("net, line 4: gemm: k is missing"));
  EXPECT_THAT(message(head + "alone\n"), HasSubstr("a name and a problem were expected"));
}

TEST(CkShapes, WideCoverageHasEveryGroup) {
  const std::vector<Problem> set = shapes("ck-wide");
  for (const char* sizes :
       {"m=1 n=28672 k=256", "m=2 n=1024 k=512", "m=48 n=8192 k=8192", "m=20480 n=8192 k=512",
        "m=32 n=32 k=32", "m=8192 n=8192 k=8192", "m=16 n=28672 k=1024", "m=16384 n=32 k=512",
        "m=16 n=64 k=32768", "m=256 n=512 k=16", "m=17 n=17 k=17", "m=4093 n=4093 k=4093",
        "m=1024 n=4608 k=7168", "m=128 n=11008 k=4096", "m=512 n=12288 k=49152", "m=48 n=48 k=48",
        "m=1280 n=5120 k=6144"}) {
    EXPECT_TRUE(has_gemm(set, sizes)) << sizes;
  }
}

TEST(CkShapes, EdgesAreThin) {
  for (const Problem& problem : shapes("ck-edge")) {
    const GemmProblem gemm = *GemmProblem::from(problem);
    EXPECT_LE(std::min(gemm.n(), gemm.k()), 32) << problem.text();
  }
  EXPECT_TRUE(has_gemm(shapes("ck-edge"), "m=1 n=1 k=2"));
  EXPECT_TRUE(has_gemm(shapes("ck-edge"), "m=8192 n=8192 k=1"));
}

TEST(CkShapes, ConvolutionsAreGroupedDepthwiseAndStrided) {
  bool grouped = false;
  bool depthwise = false;
  bool halved = false;
  for (const Problem& problem : shapes("ck-conv")) {
    const ConvProblem conv = *ConvProblem::from(problem);
    grouped = grouped || (conv.sizes().g > 1 && conv.sizes().g < conv.sizes().c);
    depthwise = depthwise || conv.sizes().g == conv.sizes().c;
    halved = halved || (conv.sizes().hi == 56 && conv.ho() == 28);
  }
  EXPECT_TRUE(grouped && depthwise && halved);
}

TEST(CkShapes, UnknownNamesAreAnsweredWithThoseThereAre) {
  EXPECT_FALSE(is_named_shape_set("ck-26"));
  EXPECT_THAT(named_shape_set("ck-26").error().message, HasSubstr("ck-25, ck-wide, ck-edge"));
}

}  // namespace
}  // namespace foretune
