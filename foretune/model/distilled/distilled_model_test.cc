#include "foretune/model/distilled/distilled_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "foretune/model/distilled/testing/distilled_samples.h"
#include "foretune/model/model_file.h"

namespace foretune {
namespace {

constexpr std::size_t kGemmFields = 8;

class DistilledModelTest : public testing::Test {
 protected:
  Rng rng_{17};
  DistilledModel model_ = sample_distilled_model(20, 400, rng_);
};

TEST_F(DistilledModelTest, FeaturesAreWhatTheirKindsSay) {
  const Problem problem = *Problem::parse("gemm m=100 n=256 k=7 dtype=bf16 layout=rrr");
  const auto value = [&](const DistilledFeature& feature) {
    return static_cast<double>(distilled_feature_value(feature, problem.fields())) / 4096;
  };
  EXPECT_NEAR(value({.kind = DistilledFeatureKind::kLog2, .field = 1}), std::log2(100), 0.011);
  EXPECT_EQ(value({.kind = DistilledFeatureKind::kLog2, .field = 2}), 8);
  EXPECT_NEAR(value({.kind = DistilledFeatureKind::kUse, .field = 1, .block = 64}), 100.0 / 128,
              1e-3);
  EXPECT_EQ(value({.kind = DistilledFeatureKind::kUse, .field = 2, .block = 64}), 1);
  EXPECT_EQ(value({.kind = DistilledFeatureKind::kLabel, .field = 6, .block = 1}), 1);
  EXPECT_EQ(value({.kind = DistilledFeatureKind::kLabel, .field = 6, .block = 0}), 0);
  // Two by four tiles on three places: eight of the nine places of three waves.
  DistilledFeature waves{.kind = DistilledFeatureKind::kWaveUse,
                         .field = 1,
                         .block = 64,
                         .other = 2,
                         .other_block = 64,
                         .repeat = 4,
                         .places = 3};
  EXPECT_NEAR(value(waves), 8.0 / 9, 1e-3);
  waves.kind = DistilledFeatureKind::kWaves;
  EXPECT_NEAR(value(waves), std::log2(3), 0.011);
}

TEST_F(DistilledModelTest, TheLogarithmIncreases) {
  std::int64_t last = -1;
  for (std::int64_t size = 1; size < 5000; ++size) {
    const std::vector<std::int64_t> fields{size};
    const std::int64_t value =
        distilled_feature_value({.kind = DistilledFeatureKind::kLog2}, fields);
    EXPECT_GT(value, last - (size > 4096 ? 1 : 0)) << size;
    last = value;
  }
}

TEST_F(DistilledModelTest, TheLargestSizesDoNotOverflow) {
  const std::int64_t most = (std::int64_t{1} << 31) - 1;
  const std::vector<std::int64_t> fields{2, most, most, most, most, 0, 0};
  std::vector<std::int16_t> inputs(model_.features.size());
  model_.inputs(fields, inputs);
  for (const std::int16_t input : inputs) {
    EXPECT_LE(std::abs(input), DistilledModel::kUnit);
  }
}

// Straightforward, in 64 bits.
std::vector<std::int64_t> slow_scores(const DistilledModel& model,
                                      std::span<const std::int16_t> inputs) {
  std::vector<std::int64_t> values(inputs.begin(), inputs.end());
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const DistilledLayer& layer = model.layers[l];
    std::vector<std::int64_t> next;
    for (std::size_t i = 0; i < layer.outputs; ++i) {
      std::int64_t sum = layer.bias[i];
      for (std::size_t k = 0; k < layer.inputs; ++k) {
        sum += layer.weights[i * layer.inputs + k] * values[k];
      }
      const bool last = l + 1 == model.layers.size();
      next.push_back(
          last ? sum
               : std::clamp<std::int64_t>(sum >> layer.shift, 0, DistilledModel::kMaxHiddenValue));
    }
    values = next;
  }
  return values;
}

TEST_F(DistilledModelTest, ScoresEqualTheSlowOnes) {
  ASSERT_TRUE(model_.validate(kGemmFields, 400));
  std::vector<std::int16_t> inputs(model_.features.size());
  std::vector<std::int32_t> scores(model_.portfolio.size());
  for (int i = 0; i < 500; ++i) {
    model_.inputs(sample_gemm(rng_).fields(), inputs);
    model_.scores(inputs, scores);
    const std::vector<std::int64_t> expected = slow_scores(model_, inputs);
    for (std::size_t k = 0; k < scores.size(); ++k) {
      ASSERT_EQ(scores[k], expected[k]);
    }
    EXPECT_EQ(model_.bound(inputs), inputs[4] <= 1500 ? 0.02F : 0.4F);
  }
}

TEST_F(DistilledModelTest, ModelsWithItReadBackEqual) {
  const Model model = sample_model_with_distilled({}, rng_);
  ASSERT_TRUE(check_model(model));
  const auto back = parse_model(model_bytes(model));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(*back, model);
}

TEST_F(DistilledModelTest, DamagedBytesAreRefusedOrAtLeastValidated) {
  ByteWriter writer;
  put_distilled_model(writer, model_);
  std::vector<std::byte> bytes = writer.take();
  for (std::size_t length = 0; length < bytes.size(); length += 13) {
    ByteReader reader(std::span<const std::byte>(bytes).first(length));
    EXPECT_FALSE(get_distilled_model(reader).has_value()) << length;
  }
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::byte> changed = bytes;
    changed[rng_.below(changed.size())] = static_cast<std::byte>(rng_.below(256));
    ByteReader reader(changed);
    const auto model = get_distilled_model(reader);
    if (model && model->validate(kGemmFields, 400)) {
      std::vector<std::int16_t> inputs(model->features.size());
      std::vector<std::int32_t> scores(model->portfolio.size());
      model->inputs(sample_gemm(rng_).fields(), inputs);
      model->scores(inputs, scores);
      EXPECT_GE(model->bound(inputs), 0);
    }
  }
}

TEST_F(DistilledModelTest, ValidationNamesWhatDoesNotFit) {
  const auto message = [&](const std::function<void(DistilledModel&)>& damage) {
    DistilledModel changed = model_;
    damage(changed);
    const Status status = changed.validate(kGemmFields, 400);
    return status ? std::string("valid") : status.error().message;
  };
  EXPECT_EQ(message([](DistilledModel&) {}), "valid");
  EXPECT_NE(message([](DistilledModel& m) { m.portfolio[1] = m.portfolio[0]; }).find("twice"),
            std::string::npos);
  EXPECT_NE(message([](DistilledModel& m) { m.portfolio[1] = 400; }).find("does not exist"),
            std::string::npos);
  EXPECT_NE(message([](DistilledModel& m) { m.features[1].block = 0; }).find("no sense"),
            std::string::npos);
  EXPECT_NE(message([](DistilledModel& m) { m.features[0].field = kGemmFields; }).find("no sense"),
            std::string::npos);
  EXPECT_NE(message([](DistilledModel& m) { m.layers[0].bias[0] = INT32_MAX; }).find("overflows"),
            std::string::npos);
  EXPECT_NE(message([](DistilledModel& m) { m.layers[1].inputs = 11; }).find("fit"),
            std::string::npos);
  EXPECT_NE(message([](DistilledModel& m) { m.regions[0].left = 0; }).find("region"),
            std::string::npos);
  EXPECT_NE(message([](DistilledModel& m) { m.score_unit = 0; }).find("unit"), std::string::npos);
}

// ---- the domain
// -----------------------------------------------------------------------------------

std::vector<Problem> problems_along_a_line() {
  std::vector<Problem> out;
  for (std::int64_t size = 64; size <= 8192; size = size * 5 / 4) {
    out.push_back(GemmProblem::create({.m = size, .n = size, .k = size, .dtype = DataType::kBf16})
                      ->to_problem());
  }
  return out;
}

TEST(ApplicabilityDomain, HoldsItsProblemsAndNotTheCornersOfTheirBox) {
  const std::vector<Problem> problems = problems_along_a_line();
  const ApplicabilityDomain domain = ApplicabilityDomain::fit(problems);
  for (const Problem& problem : problems) {
    EXPECT_TRUE(domain.is_inside(problem.fields()));
    EXPECT_TRUE(domain.distance(problem.fields()).inside);
    EXPECT_EQ(domain.explain(problem.schema(), problem.fields()), "");
  }
  const Problem corner = *Problem::parse("gemm m=64 n=8000 k=64 dtype=bf16 layout=rrr");
  EXPECT_FALSE(domain.is_inside(corner.fields()));
  const DomainDistance far = domain.distance(corner.fields());
  EXPECT_FALSE(far.inside);
  EXPECT_GT(far.distance, static_cast<double>(domain.limit));
  EXPECT_NE(domain.explain(corner.schema(), corner.fields()).find("n=8000"), std::string::npos)
      << domain.explain(corner.schema(), corner.fields());
}

TEST(ApplicabilityDomain, LabelsNeverSeenAreOutside) {
  const ApplicabilityDomain domain = ApplicabilityDomain::fit(problems_along_a_line());
  const Problem other = *Problem::parse("gemm m=64 n=64 k=64 dtype=f32 layout=rrr");
  EXPECT_FALSE(domain.is_inside(other.fields()));
  EXPECT_NE(domain.explain(other.schema(), other.fields()).find("dtype=f32"), std::string::npos);
}

TEST(ApplicabilityDomain, OneProblemIsItsOwnHull) {
  const Problem problem = *Problem::parse("gemm m=64 n=64 k=64 dtype=bf16");
  const ApplicabilityDomain domain = ApplicabilityDomain::fit(std::vector{problem});
  EXPECT_TRUE(domain.validate(kGemmFields));
  EXPECT_TRUE(domain.is_inside(problem.fields()));
  EXPECT_FALSE(domain.is_inside(Problem::parse("gemm m=65 n=64 k=64 dtype=bf16")->fields()));
}

TEST(ApplicabilityDomain, KeepsAtMostSoManyPoints) {
  Rng rng(3);
  std::vector<Problem> problems;
  for (int i = 0; i < 3000; ++i) {
    problems.push_back(
        GemmProblem::create(
            {.m = rng.between(1, 5000), .n = rng.between(1, 5000), .k = rng.between(1, 5000)})
            ->to_problem());
  }
  const ApplicabilityDomain domain = ApplicabilityDomain::fit(problems);
  EXPECT_LE(domain.points.size() / domain.sizes.size(), ApplicabilityDomain::kMaxPoints);
  EXPECT_TRUE(domain.validate(kGemmFields));
}

TEST(ApplicabilityDomain, DamageIsRefused) {
  const ApplicabilityDomain domain = ApplicabilityDomain::fit(problems_along_a_line());
  ApplicabilityDomain changed = domain;
  changed.sizes[0].field = kGemmFields;
  EXPECT_FALSE(changed.validate(kGemmFields));
  changed = domain;
  changed.points.pop_back();
  EXPECT_FALSE(changed.validate(kGemmFields));
  changed = domain;
  changed.limit = std::nanf("");
  EXPECT_FALSE(changed.validate(kGemmFields));
}

}  // namespace
}  // namespace foretune
