// Random but valid distilled models and applicability domains for tests. Not part of the library.
#pragma once

#include <utility>
#include <vector>

#include "foretune/model/applicability_domain.h"
#include "foretune/model/distilled/distilled_model.h"
#include "foretune/model/testing/model_samples.h"

namespace foretune {

inline DistilledLayer random_distilled_layer(std::uint32_t inputs, std::uint32_t outputs,
                                             Rng& rng) {
  DistilledLayer layer{.inputs = inputs, .outputs = outputs, .shift = 6};
  for (std::uint32_t i = 0; i < inputs * outputs; ++i) {
    layer.weights.push_back(static_cast<std::int16_t>(rng.between(-1500, 1500)));
  }
  for (std::uint32_t i = 0; i < outputs; ++i) {
    layer.bias.push_back(static_cast<std::int32_t>(rng.between(-100000, 100000)));
  }
  return layer;
}

// Returns a distilled model for gemm problems with features of every kind.
inline DistilledModel sample_distilled_model(std::uint32_t candidates, std::size_t pool, Rng& rng) {
  DistilledModel fast;
  for (std::uint32_t i = 0; i < candidates; ++i) {
    fast.portfolio.push_back(static_cast<std::uint32_t>((i * std::size_t{7}) % pool));
  }
  const auto add = [&](DistilledFeature feature, std::int32_t mean, std::int32_t scale) {
    feature.mean = mean;
    feature.scale = scale;
    fast.features.push_back(feature);
  };
  for (std::uint8_t field = 1; field <= 3; ++field) {
    add({.kind = DistilledFeatureKind::kLog2, .field = field}, 30000, 500);
    add({.kind = DistilledFeatureKind::kUse, .field = field, .block = 48}, 3000, 5000);
  }
  add({.kind = DistilledFeatureKind::kLabel, .field = 6, .block = 1}, 2000, 4000);
  for (const DistilledFeatureKind kind :
       {DistilledFeatureKind::kWaveUse, DistilledFeatureKind::kWaves}) {
    add({.kind = kind,
         .field = 1,
         .block = 64,
         .other = 2,
         .other_block = 128,
         .repeat = 4,
         .places = 132},
        3000, 1500);
  }
  const auto width = static_cast<std::uint32_t>(fast.features.size());
  fast.layers = {random_distilled_layer(width, 12, rng),
                 random_distilled_layer(12, candidates, rng)};
  fast.score_unit = 1e-6;
  // Small k is well known, large k is not.
  fast.regions = {{.feature = 4, .threshold = 1500, .left = 1}, {.bound = 0.02F}, {.bound = 0.4F}};
  fast.mean_regret = 0.01;
  fast.p90_regret = 0.03;
  return fast;
}

inline Model sample_model_with_distilled(const ModelShape& shape, Rng& rng) {
  Model model = sample_model(shape, rng);
  std::vector<Problem> problems;
  for (int i = 0; i < 300; ++i) {
    problems.push_back(sample_gemm(rng));
  }
  model.domain = ApplicabilityDomain::fit(problems);
  model.distilled = sample_distilled_model(20, model.pool.size(), rng);
  return model;
}

}  // namespace foretune
