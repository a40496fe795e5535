#include "foretune/problem/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/testing/refusals.h"
#include "foretune/base/text.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/problem_type.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

Problem from_text(std::string_view text) { return Problem::parse(text).value(); }

Problem random_problem(Rng& rng) {
  GemmSizes sizes;
  sizes.m = 1 + static_cast<std::int64_t>(rng.next() % 0x7fffffffU >> rng.below(31));
  sizes.n = 1 + static_cast<std::int64_t>(rng.next() % 0x7fffffffU >> rng.below(31));
  sizes.k = 1 + static_cast<std::int64_t>(rng.next() % 0x7fffffffU >> rng.below(31));
  sizes.operation = static_cast<GemmOperation>(rng.below(3));
  sizes.batch = sizes.operation == GemmOperation::kBmm ? rng.between(1, 100) : 1;
  sizes.dtype = static_cast<DataType>(rng.below(8));
  sizes.layout = static_cast<GemmLayout>(rng.below(4));
  return GemmProblem::create(sizes).value().to_problem();
}

TEST(Problem, TextIsCanonical) {
  EXPECT_EQ(from_text("gemm k=7168 n=1536 m=128 layout=rcr").text(),
            "gemm op=mm m=128 n=1536 k=7168 batch=1 dtype=f32 layout=rcr");
  EXPECT_EQ(from_text("  gemm   m=1 n=2\tk=3 op=bmm batch=4 dtype=bf16").text(),
            "gemm op=bmm m=1 n=2 k=3 batch=4 dtype=bf16 layout=rrr");
}

TEST(Problem, RandomProblemsRoundTripThroughTextAndView) {
  constexpr std::uint64_t kSeed = 2;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  std::set<std::uint64_t> hashes;
  std::set<std::string> texts;
  for (int trial = 0; trial < 2000; ++trial) {
    const Problem problem = random_problem(rng);
    ASSERT_EQ(from_text(problem.text()), problem);
    ASSERT_EQ(GemmProblem::from(problem).value().to_problem(), problem);
    hashes.insert(problem.hash());
    texts.insert(problem.text());
  }
  EXPECT_EQ(hashes.size(), texts.size());
}

TEST(Problem, RefusalsNameTheFieldAndWhatItMayBe) {
  testing_support::expect_refusals(Problem::parse,
                                   {{"", "empty"},
                                    {"fft n=8", "'fft' is not a problem type"},
                                    {"gemm m=1 n=2", "k is missing"},
                                    {"gemm m=1 n=2 k=3 q=4", "'q' is not a field of gemm"},
                                    {"gemm m=1 n=2 k=3 m=4", "m is given twice"},
                                    {"gemm m=0 n=2 k=3", "m is 0; it must be an integer from 1"},
                                    {"gemm m=-5 n=2 k=3", "m is -5"},
                                    {"gemm m=2147483648 n=2 k=3", "m is 2147483648"},
                                    {"gemm m=big n=2 k=3", "m=big is not an integer"},
                                    {"gemm m=1 n=2 k=3 dtype=f31", "one of f32 f16"},
                                    {"gemm op=mm m=1 n=2 k=3 batch=2", "only op=bmm"},
                                    {"gemm m n=2 k=3", "field=value"},
                                    {"gemm m=1 n=2 k=3 payload=0", "32 hexadecimal digits"},
                                    {"gemm m=1 n=2 k=3 payload=@w.npy", "no folder of payloads"}});
  const std::string payload = concat(" payload=", Digest{1, 2}.hex());
  testing_support::expect_refusals(
      Problem::parse, {{"gemm m=1 n=2 k=3" + payload + payload, "payload is given twice"},
                       {"conv n=1 c=2 k=3 hi=8 wi=8 y=1 x=1" + payload, "not a field"}});
}

TEST(Problem, CreateChecksCountRangeAndPayload) {
  EXPECT_TRUE(Problem::create(kGemmProblem, {0, 1, 2, 3, 1, 0, 0}));
  EXPECT_FALSE(Problem::create(kGemmProblem, {0, 1, 2, 3, 1, 0}));
  EXPECT_FALSE(Problem::create(kGemmProblem, {0, 1, 2, 3, 1, 0, 4}));
  EXPECT_FALSE(Problem::create(kGemmProblem, {5, 1, 2, 3, 1, 0, 0}));
  EXPECT_TRUE(Problem::create(kGemmProblem, {0, 1, 2, 3, 1, 0, 0}, Digest{1, 2}));
  EXPECT_FALSE(Problem::create(kGemmProblem, {0, 1, 2, 3, 1, 2, 0}, Digest{1, 2}));
  const Problem conv = from_text("conv n=1 c=2 k=3 hi=8 wi=8 y=1 x=1");
  const auto with_payload =
      Problem::create(conv.type(), Problem::Fields(conv.fields()), Digest{1, 2});
  ASSERT_FALSE(with_payload);
  EXPECT_THAT(with_payload.error().message, HasSubstr("has no payload"));
  EXPECT_EQ(Problem::create(static_cast<ProblemType>(77), {}).error().code,
            ErrorCode::kUnsupported);
}

TEST(Problem, GroupLeavesOutOperationTypeAndLayout) {
  const std::uint64_t group = from_text("gemm m=8 n=16 k=32").group();
  for (const char* same : {"gemm m=8 n=16 k=32 dtype=bf16", "gemm m=8 n=16 k=32 layout=ccr",
                           "gemm m=8 n=16 k=32 op=addmm"}) {
    EXPECT_EQ(from_text(same).group(), group) << same;
  }
  for (const char* other :
       {"gemm m=16 n=8 k=32", "gemm m=8 n=16 k=33", "gemm m=8 n=16 k=32 op=bmm batch=2"}) {
    EXPECT_NE(from_text(other).group(), group) << other;
  }
}

// Otherwise products with the weights of one layer would be on both sides of a split.
TEST(Problem, PayloadIsPartOfTheValueAndNotOfTheGroup) {
  const Problem plain = from_text("gemm m=8 n=16 k=32");
  const std::string text = concat(plain.text(), " payload=", Digest{1, 2}.hex());
  const Problem one = from_text(text);
  const Problem other = from_text(concat(plain.text(), " payload=", Digest{1, 3}.hex()));
  EXPECT_EQ(one.text(), text);
  EXPECT_EQ(one.payload(), (Digest{1, 2}));
  EXPECT_TRUE(one.has_payload());
  EXPECT_FALSE(plain.has_payload());
  for (const Problem& different : {plain, other}) {
    EXPECT_NE(one, different);
    EXPECT_NE(one.hash(), different.hash());
    EXPECT_EQ(one.group(), different.group());
  }
  EXPECT_EQ(GemmProblem::from(one).value().to_problem(), one);
  EXPECT_EQ(from_text(concat(plain.text(), " payload=", Digest{}.hex())), plain);
}

TEST(Problem, PeopleSeeALaunchWithoutTheSizesThatItLacks) {
  const Problem launch = from_text("kernel variant=7 size_1=0 size_2=96");
  EXPECT_EQ(launch.text(),
            "kernel variant=7 size_1=0 size_2=96 size_3=0 size_4=0 size_5=0 size_6=0 size_7=0 "
            "size_8=0");
  EXPECT_EQ(launch.shown_text(), "kernel variant=7 size_1=0 size_2=96");
  EXPECT_EQ(from_text(launch.shown_text()), launch);
  EXPECT_EQ(shown_problem(launch.text()), launch.shown_text());
  EXPECT_EQ(from_text("kernel variant=7").shown_text(), "kernel variant=7");
  const Problem product = from_text("gemm m=8 n=16 k=32");
  EXPECT_EQ(product.shown_text(), product.text());
  EXPECT_EQ(shown_problem("gemm m=8 n=16 k=32"), "gemm m=8 n=16 k=32");
  EXPECT_EQ(shown_problem("no problem"), "no problem");
}

TEST(Problem, ComparesByValue) {
  EXPECT_EQ(from_text("gemm m=8 n=16 k=32"), from_text("gemm k=32 n=16 m=8 op=mm"));
  EXPECT_LT(from_text("gemm m=8 n=16 k=32"), from_text("gemm m=9 n=1 k=1"));
}

TEST(ProblemSchema, EveryTypeIsFoundByTypeAndName) {
  for (const ProblemTypeInfo* type : problem_types()) {
    const ProblemSchema& schema = type->schema;
    EXPECT_EQ(find_problem_schema(schema.type), &schema);
    EXPECT_EQ(find_problem_schema(schema.name), &schema);
    for (std::size_t i = 0; i < schema.fields.size(); ++i) {
      EXPECT_EQ(schema.find(schema.fields[i].name), i);
    }
    EXPECT_FALSE(schema.find("nonsense"));
  }
  EXPECT_EQ(find_problem_schema("nonsense"), nullptr);
}

// Data sets and models store these: a change needs a new version of the type.
TEST(ProblemSchema, IdsAndHashesAreGolden) {
  EXPECT_EQ(find_problem_schema("gemm")->id(), 5754518933885510102U);
  EXPECT_EQ(from_text("gemm m=128 n=1536 k=7168").hash(), 9884361013540301618U);
  EXPECT_EQ(from_text("gemm m=128 n=1536 k=7168").group(), 4925777260016357228U);
}

TEST(GemmProblem, CountsWorkAndTraffic) {
  const auto gemm =
      GemmProblem::create({.m = 2, .n = 3, .k = 5, .batch = 7, .operation = GemmOperation::kBmm});
  EXPECT_EQ(gemm.value().flops(), 2.0 * 2 * 3 * 5 * 7);
  EXPECT_EQ(gemm.value().bytes(), (2.0 * 5 + 5 * 3 + 2 * 3) * 7 * 4);
  EXPECT_EQ(bytes_per_element(DataType::kF64), 8);
  EXPECT_EQ(bytes_per_element(DataType::kBf16), 2);
  EXPECT_EQ(bytes_per_element(DataType::kI8), 1);
}

TEST(GemmProblem, RefusesWhatIsNotAProduct) {
  EXPECT_FALSE(GemmProblem::create({.m = 0}));
  EXPECT_FALSE(GemmProblem::create({.n = std::int64_t{1} << 31}));
  EXPECT_FALSE(GemmProblem::create({.batch = 2}));
  EXPECT_FALSE(GemmProblem::create({.batch = 0, .operation = GemmOperation::kBmm}));
  EXPECT_FALSE(GemmProblem::create({.dtype = static_cast<DataType>(99)}));
}

TEST(GemmProblem, GeluFollowsItsFormula) {
  EXPECT_EQ(gelu(0), 0);
  for (const double x : {-6.0, -2.5, -1.0, -0.1, 0.3, 1.0, 2.0, 7.5}) {
    const double z = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * std::pow(x, 3));
    EXPECT_NEAR(gelu(x), x / 2 * (1 + std::tanh(z)), 1e-14) << x;
  }
  EXPECT_EQ(gelu(1e4), 1e4);
  EXPECT_EQ(gelu(-1e4), 0);
  EXPECT_TRUE(std::isnan(gelu(std::nan(""))));
}

TEST(GemmLabels, ParseBack) {
  for (const std::string_view label : gemm_operation_labels()) {
    EXPECT_EQ(to_string(parse_gemm_operation(label).value()), label);
  }
  for (const std::string_view label : data_type_labels()) {
    EXPECT_EQ(to_string(parse_data_type(label).value()), label);
  }
  EXPECT_THAT(parse_data_type("f33").error().message, HasSubstr("f32, f16, bf16"));
}

}  // namespace
}  // namespace foretune
