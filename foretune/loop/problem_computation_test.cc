#include "foretune/loop/problem_computation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/loop/chains.h"
#include "foretune/loop/computation_text.h"
#include "foretune/loop/machine/testing/loop_samples.h"
#include "foretune/problem/problem_type.h"
#include "foretune/problem/sampler.h"

namespace foretune::loop {
namespace {

using testing::HasSubstr;

constexpr std::array<std::string_view, 4> kTypes{"nest_mm", "nest_conv", "nest_map", "nest_reduce"};

// Every label of every field may be drawn.
std::vector<Problem> drawn_problems(const ProblemTypeInfo& type, std::size_t count,
                                    std::uint64_t seed) {
  ProblemSampling sampling;
  for (const ProblemField& field : type.schema.fields) {
    for (const std::string_view label : field.labels) {
      sampling.labels[std::string(field.name)].emplace_back(label);
    }
  }
  Rng rng(seed);
  std::vector<Problem> out = sample_log_normal(type, count, {}, sampling, rng).value().problems;
  const SampledProblems small =
      sample_uniform(type, count, {.min_size = 1, .max_size = 40}, sampling, rng).value();
  out.insert(out.end(), small.problems.begin(), small.problems.end());
  return out;
}

TEST(ProblemComputation, DrawnProblemsAreComputationsAndComeBack) {
  for (const std::string_view name : kTypes) {
    for (const Problem& problem : drawn_problems(*find_problem_type(name), 1000, 11)) {
      const auto computation = computation_of(problem);
      ASSERT_TRUE(computation) << problem.text() << ": " << computation.error().message;
      ASSERT_TRUE(computation->check()) << problem.text();
      const auto again = problem_of(computation->name);
      ASSERT_TRUE(again) << computation->name << ": " << again.error().message;
      ASSERT_EQ(*again, problem);
    }
  }
}

TEST(ProblemComputation, WorkIsThatOfTheComputation) {
  for (const std::string_view name : kTypes) {
    for (const Problem& problem : drawn_problems(*find_problem_type(name), 1000, 12)) {
      const Computation computation = computation_of(problem).value();
      auto elements = static_cast<double>(computation.output.elements());
      for (const Tensor& input : computation.inputs) {
        elements += static_cast<double>(input.elements());
      }
      const ProblemWork work = problem_work(problem).value();
      ASSERT_EQ(work.flops, computation.flops()) << problem.text();
      ASSERT_EQ(work.bytes, 4 * elements) << problem.text();
    }
  }
}

TEST(ProblemComputation, ComputationsAreProblemsAndComeBack) {
  int made = 0;
  for (std::uint64_t i = 0; i < 900; ++i) {
    Rng rng(i + 500);
    const auto computation = i % 3 == 0   ? samples_internal::random_matmul(rng)
                             : i % 3 == 1 ? samples_internal::random_conv(rng)
                                          : samples_internal::random_reduction(rng);
    if (!computation) {
      continue;
    }
    const auto problem = problem_of(computation->name);
    ASSERT_TRUE(problem) << computation->name << ": " << problem.error().message;
    ASSERT_EQ(computation_of(*problem).value(), *computation);
    ++made;
  }
  EXPECT_GT(made, 600);
}

// Sizes of any magnitude, most of them beside a limit.
Problem::Fields wild_fields(const ProblemSchema& schema, Rng& rng) {
  Problem::Fields fields;
  const std::uint64_t bits = 1 + rng.below(18);
  for (const ProblemField& field : schema.fields) {
    const std::int64_t highest =
        std::min<std::int64_t>(field.maximum, std::int64_t{1} << rng.below(bits));
    const bool is_plain = field.default_value && samples_internal::one_in(rng, 3);
    fields.push_back(is_plain ? *field.default_value
                              : rng.between(field.minimum, std::max(highest, field.minimum)));
  }
  return fields;
}

// A type's rules are those of the computation: neither takes what the other refuses.
TEST(ProblemComputation, TypesRefuseWhatComputationsRefuse) {
  for (const std::string_view name : kTypes) {
    const ProblemSchema& schema = *find_problem_schema(name);
    Rng rng(13);
    int taken = 0;
    int refused = 0;
    for (int i = 0; i < 20000; ++i) {
      const Problem::Fields fields = wild_fields(schema, rng);
      const auto problem = Problem::create(schema.type, fields);
      // The text of what may be no problem.
      std::string text(schema.name.substr(schema.name.find('_') + 1));
      for (std::size_t f = 0; f < schema.fields.size(); ++f) {
        const ProblemField& field = schema.fields[f];
        if (field.labels.empty()) {
          text += concat(" ", field.name, "=", fields[f]);
        } else if (field.name == "op" || field.name == "chain") {
          text += concat(" ", field.name, "=", field.labels[static_cast<std::size_t>(fields[f])]);
        } else if (fields[f] != 0) {
          text += concat(" ", field.name == "layout" ? "nhwc" : field.name);
        }
      }
      const auto computation = parse_computation(text);
      ASSERT_EQ(problem.has_value(), computation.has_value())
          << text << ": " << (problem ? computation.error().message : problem.error().message);
      (problem ? taken : refused) += 1;
    }
    EXPECT_GT(taken, 1000) << name;
    EXPECT_GT(refused, 20) << name;
  }
}

TEST(ProblemComputation, OtherProblemsAndWordsAreRefused) {
  EXPECT_EQ(computation_of(*Problem::parse("gemm m=3 n=5 k=7")).error().message,
            "a gemm problem is no loop nest");
  EXPECT_THAT(problem_of("gemm m=3").error().message, HasSubstr("'gemm' is no kind"));
  EXPECT_THAT(problem_of("conv c=4 o=3 groups=2").error().message,
              HasSubstr("nest_conv: 2 groups do not divide 4 channels and 3 output channels"));
  EXPECT_THAT(problem_of("elementwise r=3 c=5 multiply=2").error().message,
              HasSubstr("no chain with a name; there are relu, relu6, bias_relu"));
}

TEST(ProblemComputation, SizesThatATextLeavesOutAreOne) {
  EXPECT_EQ(problem_of("mm m=192 n=96 k=64 relu")->text(),
            "nest_mm m=192 n=96 k=64 batch=1 ta=no tb=no bias=no relu=yes");
  EXPECT_EQ(*problem_of("conv h=5"), *Problem::parse("nest_conv c=1 h=5 w=1 o=1 r=1 s=1"));
  EXPECT_EQ(*problem_of("elementwise r=2 c=3 add=in1 max=0"),
            *Problem::parse("nest_map r=2 c=3 chain=bias_relu"));
}

TEST(Chains, AreNamedByTheirSteps) {
  for (std::size_t i = 0; i < kNestChains.size(); ++i) {
    const auto chain = static_cast<NestChain>(i);
    const Computation computation = elementwise(2, 3, chain_steps(chain)).value();
    EXPECT_EQ(computation.name, concat("map r=2 c=3 chain=", kNestChains[i].label));
    EXPECT_EQ(find_chain(computation.steps), chain);
    EXPECT_EQ(computation.steps.size(), static_cast<std::size_t>(kNestChains[i].steps));
    EXPECT_EQ(computation.inputs.size(), static_cast<std::size_t>(kNestChains[i].inputs));
  }
  EXPECT_FALSE(find_chain({}));
}

float value_of(NestChain chain, const std::vector<float>& inputs) {
  float value = inputs[0];
  for (const Step& step : chain_steps(chain)) {
    value = apply(step.op, value,
                  step.input < 0 ? step.constant : inputs[static_cast<std::size_t>(step.input)]);
  }
  return value;
}

TEST(Chains, ComputeWhatTheirNamesSay) {
  EXPECT_EQ(value_of(NestChain::kRelu, {-2}), 0);
  EXPECT_EQ(value_of(NestChain::kRelu, {7}), 7);
  EXPECT_EQ(value_of(NestChain::kRelu6, {-2}), 0);
  EXPECT_EQ(value_of(NestChain::kRelu6, {7}), 6);
  EXPECT_EQ(value_of(NestChain::kBiasRelu, {-2, 5}), 3);
  EXPECT_EQ(value_of(NestChain::kBiasRelu, {-5, 2}), 0);
  EXPECT_EQ(value_of(NestChain::kResidual, {-5, 2}), -3);
  EXPECT_EQ(value_of(NestChain::kScale, {-5, 2}), -10);
  EXPECT_EQ(value_of(NestChain::kScaleShift, {-5, 2, 3}), -7);
  EXPECT_EQ(value_of(NestChain::kScaleShiftRelu, {-5, 2, 3}), 0);
  EXPECT_EQ(value_of(NestChain::kScaleShiftRelu, {5, 2, 3}), 13);
  EXPECT_EQ(value_of(NestChain::kScaleShiftResidualRelu, {-5, 2, 3, 9}), 2);
  EXPECT_EQ(value_of(NestChain::kScaleShiftResidualRelu, {-5, 2, 3, 4}), 0);
}

}  // namespace
}  // namespace foretune::loop
