#include "foretune/approx/loss_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/approx/judge.h"
#include "foretune/approx/judgement.h"
#include "foretune/base/rng.h"
#include "foretune/graph/quality.h"

namespace foretune::approx {
namespace {

constexpr std::int64_t kClasses = 3;
constexpr std::size_t kImages = 400;

// Random outputs whose largest is right for most images, and layers with an exact knob and two that
// change them, the second twice as much.
Effects random_effects(std::size_t layers, std::uint64_t seed, std::int64_t classes = kClasses,
                       std::string_view quality = "accuracy") {
  Rng rng(seed);
  Effects effects;
  effects.metric = *graph::find_quality(quality);
  effects.shape = {1, classes};
  effects.classes = classes;
  for (std::size_t i = 0; i < kImages; ++i) {
    effects.labels.push_back(
        static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(classes))));
    for (std::int64_t c = 0; c < classes; ++c) {
      effects.exact.push_back(static_cast<float>(rng.normal()) +
                              (c == effects.labels.back() ? 2.0F : 0.0F));
    }
  }
  effects.weights = effects.metric->weights(effects.labels);
  effects.exact_scores = effects.scores(effects.exact);
  effects.exact_quality = effects.quality(effects.exact_scores);
  for (std::size_t l = 0; l < layers; ++l) {
    LayerEffects& layer = effects.layers.emplace_back();
    layer.knobs.push_back({.knob = 0, .changes = {}, .quality = effects.exact_quality});
    for (const float size : {0.2F, 0.4F}) {
      KnobEffect& effect = layer.knobs.emplace_back();
      std::vector<float> outputs;
      for (const float exact : effects.exact) {
        effect.changes.push_back(size * static_cast<float>(rng.normal()));
        outputs.push_back(exact + effect.changes.back());
      }
      effect.quality = effects.quality(effects.scores(outputs));
      effect.size = spread(effect.changes, classes) / spread(effects.exact, classes);
    }
  }
  return effects;
}

Choices random_choices(const Effects& effects, Rng& rng) {
  Choices choices;
  for (const LayerEffects& layer : effects.layers) {
    choices.push_back(static_cast<std::uint8_t>(rng.below(layer.knobs.size())));
  }
  return choices;
}

// Samples whose losses some function of the effects says.
std::vector<LossSample> samples_of(const Effects& effects, std::size_t count, std::uint64_t seed,
                                   const std::function<double(const ChangeSum&)>& loss) {
  Rng rng(seed);
  ChangeSum sum(effects);
  std::vector<LossSample> samples;
  for (std::size_t i = 0; i < count; ++i) {
    samples.push_back({.choices = random_choices(effects, rng)});
    sum.choose_all(samples.back().choices);
    samples.back().loss = loss(sum);
  }
  return samples;
}

TEST(LossModel, IsP1WithFewNetworksAndP2WhereLossesAddUp) {
  const Effects effects = random_effects(5, 1);
  ChangeSum sum(effects);
  sum.choose(2, 1);
  sum.choose(4, 2);
  EXPECT_EQ(LossModel().loss(sum), sum.loss());
  const auto added = [](const ChangeSum& each) { return each.losses({}).values[LossTerms::kP2]; };
  EXPECT_EQ(LossModel::learn(effects, samples_of(effects, 9, 2, added)).kind(),
            LossModel::Kind::kP1);
  const LossModel model = LossModel::learn(effects, samples_of(effects, 20, 2, added));
  EXPECT_EQ(model.kind(), LossModel::Kind::kP2);
  EXPECT_NEAR(model.error(), 0, 1e-9);
  EXPECT_NEAR(model.loss(sum), added(sum), 1e-9);
}

TEST(LossModel, FindsDampingAndNoise) {
  const Effects effects = random_effects(8, 3);
  const Interplay truth{.damping = 0.5, .noise = 0.2};
  const auto loss = [&](const ChangeSum& each) {
    return each.losses(truth).values[LossTerms::kJoint];
  };
  const LossModel model = LossModel::learn(effects, samples_of(effects, 40, 4, loss));
  EXPECT_EQ(model.kind(), LossModel::Kind::kJoint);
  EXPECT_EQ(model.interplay().damping, truth.damping);
  EXPECT_EQ(model.interplay().noise, truth.noise);
  // On networks that it never saw it is right, and P1 and P2 are not.
  const std::vector<LossSample> fresh = samples_of(effects, 30, 5, loss);
  const std::vector<double> ns(fresh.size(), 1.0);
  const std::vector<double> predicted(fresh.size(), 1.1);
  const ModelJudgement judgement = judge_models(effects, model, fresh, predicted, ns);
  EXPECT_EQ(judgement.networks, 30U);
  EXPECT_NEAR(judgement.fit_error, 0, 1e-9);
  EXPECT_GT(judgement.p1_error, 0.5);
  EXPECT_GT(judgement.p2_error, 0.5);
  EXPECT_NEAR(judgement.fit_spearman, 1, 1e-9);
  EXPECT_NEAR(judgement.time_error, 0.1, 1e-9);
}

TEST(LossModel, IsNoWorseThanP1AndP2OnWhatItDidNotSee) {
  const Effects effects = random_effects(6, 6);
  Rng noise(7);
  const auto loss = [&](const ChangeSum& each) {
    const LossTerms terms = each.losses({});
    return 0.5 * terms.values[LossTerms::kP1] + 0.9 * terms.values[LossTerms::kUnion] +
           0.2 * noise.normal();
  };
  const LossModel model = LossModel::learn(effects, samples_of(effects, 40, 8, loss));
  const std::vector<LossSample> fresh = samples_of(effects, 60, 9, loss);
  const std::vector<double> ns(fresh.size(), 1.0);
  const ModelJudgement judgement = judge_models(effects, model, fresh, ns, ns);
  EXPECT_LE(judgement.fit_error, std::min(judgement.p1_error, judgement.p2_error));
}

// A single layer is as it was measured, whatever the interplay.
void expect_single_layers_need_no_model(const Effects& effects) {
  const Interplay interplay{.damping = 1, .noise = 0.8};
  ChangeSum sum(effects);
  sum.choose(1, 2);
  const double measured = effects.loss(effects.layers[1].knobs[2].quality);
  const LossTerms single = sum.losses(interplay);
  EXPECT_NEAR(single.values[LossTerms::kJoint], measured, 1e-6);
  EXPECT_NEAR(single.values[LossTerms::kP1], measured, 1e-9);
  EXPECT_NEAR(single.values[LossTerms::kUnion], measured, 1e-9);
  sum.choose(3, 1);
  const LossTerms other = sum.losses_with(interplay, 3, 2);
  const LossTerms exact = sum.losses_with(interplay, 3, 0);
  EXPECT_NEAR(exact.values[LossTerms::kJoint], measured, 1e-6);
  sum.choose(3, 2);
  const LossTerms chosen = sum.losses(interplay);
  for (std::size_t t = 0; t < LossTerms::kCount; ++t) {
    EXPECT_NEAR(other.values[t], chosen.values[t], 1e-3) << t;
  }
  const double second = effects.loss(effects.layers[3].knobs[2].quality);
  EXPECT_NEAR(chosen.values[LossTerms::kP2], measured + second, 1e-9);
  EXPECT_NEAR(chosen.values[LossTerms::kP1], sum.loss(), 1e-9);
  EXPECT_GT(sum.compare().differing(), 0);
  sum.choose_all(Choices(4, 0));
  EXPECT_EQ(sum.compare().differing(), 0);
  EXPECT_NEAR(sum.losses(interplay).values[LossTerms::kJoint], 0, 1e-6);
}

TEST(ChangeSum, SingleLayersAndOtherChoicesNeedNoModel) {
  expect_single_layers_need_no_model(random_effects(4, 10));
  expect_single_layers_need_no_model(random_effects(4, 11, 9, "top5"));
  expect_single_layers_need_no_model(random_effects(4, 12, 4, "class-accuracy"));
}

TEST(LossModel, CountsRanksAndKnowsP1AndP2OfOtherQualities) {
  const Effects ranked = random_effects(8, 13, 9, "top5");
  const Interplay truth{.damping = 0.5, .noise = 0.2};
  const auto joint = [&](const ChangeSum& each) {
    return each.losses(truth).values[LossTerms::kJoint];
  };
  const LossModel counts = LossModel::learn(ranked, samples_of(ranked, 40, 14, joint));
  EXPECT_EQ(counts.kind(), LossModel::Kind::kJoint);
  EXPECT_EQ(counts.interplay().noise, truth.noise);

  const Effects graded = random_effects(5, 15, 6, "psnr");
  ChangeSum sum(graded);
  sum.choose_all({1, 2, 0, 1, 2});
  const LossTerms terms = sum.losses(truth);
  EXPECT_EQ(terms.values[LossTerms::kP1], sum.loss());
  EXPECT_GT(terms.values[LossTerms::kP2], terms.values[LossTerms::kP1]);
  EXPECT_EQ(terms.values[LossTerms::kJoint], 0);
  EXPECT_EQ(terms.values[LossTerms::kUnion], 0);
  const auto p1 = [](const ChangeSum& each) { return each.loss(); };
  EXPECT_EQ(LossModel::learn(graded, samples_of(graded, 20, 16, p1)).kind(), LossModel::Kind::kP1);
  const auto p2 = [](const ChangeSum& each) { return each.losses({}).values[LossTerms::kP2]; };
  EXPECT_EQ(LossModel::learn(graded, samples_of(graded, 20, 16, p2)).kind(), LossModel::Kind::kP2);
}

TEST(PairedScores, MarginFollowsTheImagesThatDiffer) {
  const graph::QualityMetric& accuracy = graph::accuracy_quality();
  const std::vector<std::int32_t> labels{0, 1, 0, 1};
  const std::vector<float> first{1, 0, 0, 1, 0, 1, 1, 0};   // right, right, wrong, wrong
  const std::vector<float> second{1, 0, 1, 0, 1, 0, 1, 0};  // right, wrong, right, wrong
  const PairedScores scores =
      compare_scores(accuracy, labels, scores_of(accuracy, {}, first, first, labels),
                     scores_of(accuracy, {}, second, first, labels));
  EXPECT_EQ(scores.images, 4);
  EXPECT_EQ(scores.lost, 1);
  EXPECT_EQ(scores.gained, 1);
  EXPECT_EQ(scores.loss(), 0);
  EXPECT_EQ(scores.differing(), 2);
  const auto counts = [](std::int64_t images, double lost, double gained) {
    return PairedScores{.images = images,
                        .lost = lost,
                        .gained = gained,
                        .lost_squares = lost,
                        .gained_squares = gained};
  };
  const PairedScores few = counts(10'000, 60, 40);
  const PairedScores many = counts(10'000, 310, 290);
  EXPECT_NEAR(few.loss(), 0.2, 1e-9);
  EXPECT_NEAR(few.margin(1.645, 10'000), 164.5 * std::sqrt(0.0102 * 2e-4), 1e-3);
  EXPECT_GT(many.margin(1.645, 10'000), 2 * few.margin(1.645, 10'000));
  EXPECT_GT(few.margin(1.645, 1'000), few.margin(1.645, 10'000));
  // Networks that agree everywhere are not certain to agree elsewhere.
  EXPECT_GT(counts(100, 0, 0).margin(1.645, 100), 0);
  EXPECT_EQ(few.scaled_to(20'000).lost, 100);
  EXPECT_EQ(few.scaled_to(20'000).gained, 100);
}

// The standard error of the mean difference, which is no smaller for a large mean.
TEST(PairedScores, MarginOfOtherScoresFollowsTheirSpread) {
  const graph::QualityMetric& psnr = **graph::find_quality("psnr");
  const std::vector<std::int32_t> labels(4, 0);
  const std::vector<double> exact(4, 100.0);
  const std::vector<double> scores{41, 39, 42, 38};
  const PairedScores pair = compare_scores(psnr, labels, exact, scores);
  EXPECT_NEAR(pair.loss(), 60, 1e-9);
  EXPECT_NEAR(pair.margin(2, 4), 2 * std::sqrt(2.5 * 0.5), 1e-9);
  EXPECT_NEAR(pair.scaled_to(400).loss(), 60, 1e-9);
  EXPECT_NEAR(pair.scaled_to(400).margin(2, 400), pair.margin(2, 4) / 10, 1e-9);
  EXPECT_NEAR(compare_scores(psnr, labels, exact, std::vector<double>(4, 47.3)).margin(2, 4), 0,
              1e-5);
}

}  // namespace
}  // namespace foretune::approx
