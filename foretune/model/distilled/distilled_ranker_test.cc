#include "foretune/model/distilled/distilled_ranker.h"

#include <gtest/gtest.h>

#include <vector>

#include "foretune/model/distilled/testing/distilled_samples.h"

namespace foretune {
namespace {

constexpr std::size_t kFields = 8;

// Draws a model with inputs of every kind and layers of any width.
DistilledModel draw_model(Rng& rng) {
  DistilledModel out = sample_distilled_model(
      static_cast<std::uint32_t>(rng.between(1, DistilledModel::kMaxPortfolio)), 401, rng);
  const auto count = static_cast<std::size_t>(rng.between(1, 60));
  out.features.clear();
  const auto draw_block = [&] {
    return static_cast<std::int32_t>(rng.below(8) == 0   ? INT32_MAX
                                     : rng.below(4) == 0 ? 1
                                                         : rng.between(2, 300));
  };
  while (out.features.size() < count) {
    out.features.push_back({.kind = static_cast<DistilledFeatureKind>(rng.below(5)),
                            .field = static_cast<std::uint8_t>(rng.below(kFields)),
                            .block = draw_block(),
                            .other = static_cast<std::uint8_t>(rng.below(kFields)),
                            .other_block = draw_block(),
                            .repeat = static_cast<std::uint8_t>(rng.below(kFields)),
                            .places = draw_block(),
                            .mean = static_cast<std::int32_t>(rng.between(-5000, 50000)),
                            .scale = static_cast<std::int32_t>(rng.between(-3000, 20000))});
  }
  std::vector<DistilledLayer> layers;
  auto width = static_cast<std::uint32_t>(count);
  for (std::uint64_t i = rng.below(DistilledModel::kMaxLayers); i > 0; --i) {
    const auto outputs = static_cast<std::uint32_t>(rng.between(1, DistilledModel::kMaxHidden));
    layers.push_back(random_distilled_layer(width, outputs, rng));
    width = outputs;
  }
  layers.push_back(
      random_distilled_layer(width, static_cast<std::uint32_t>(out.portfolio.size()), rng));
  out.layers = std::move(layers);
  out.regions = {{.bound = 0.1F}};
  return out;
}

TEST(DistilledRanker, AgreesWithTheModel) {
  Rng rng(23);
  for (int i = 0; i < 300; ++i) {
    const DistilledModel model = draw_model(rng);
    ASSERT_TRUE(model.validate(kFields, 401)) << i;
    const DistilledRanker ranker(model);
    for (int k = 0; k < 20; ++k) {
      std::vector<std::int64_t> fields;
      for (std::size_t f = 0; f < kFields; ++f) {
        fields.push_back(rng.below(8) == 0 ? static_cast<std::int64_t>(rng.next())
                                           : rng.between(0, rng.below(2) == 0 ? 2 : 5000));
      }
      std::vector<std::int16_t> inputs(model.features.size());
      std::vector<std::int32_t> scores(model.portfolio.size());
      model.inputs(fields, inputs);
      model.scores(inputs, scores);
      DistilledRanker::Inputs own_inputs;
      DistilledRanker::Scores own_scores;
      own_inputs.fill(77);
      ranker.inputs(fields, own_inputs);
      ASSERT_TRUE(std::equal(inputs.begin(), inputs.end(), own_inputs.begin()));
      ranker.scores(own_inputs, own_scores);
      ASSERT_TRUE(std::equal(scores.begin(), scores.end(), own_scores.begin()));
    }
  }
}

}  // namespace
}  // namespace foretune
