#include "foretune/families/null/null_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/families/null/null.h"
#include "foretune/families/null/testing/null_samples.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/problem_type.h"
#include "foretune/problem/sampler.h"

namespace foretune {
namespace {

using testing::HasSubstr;

std::unique_ptr<Family> make(std::vector<std::pair<std::string, std::string>> parameters = {}) {
  parameters.emplace_back("sequence", "yes");
  return testing_support::null_with(std::move(parameters));
}

Problem gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  return GemmProblem::create({.m = m, .n = n, .k = k})->to_problem();
}

Config uniform(const NullLayersSpace& space, std::int32_t knob) {
  return {.schema = space.schema().id(), .words = Config::Words(space.layers(), knob)};
}

// The fastest config, layer by layer: the best way to each knob of a layer extends the best ways to
// the knobs of the layer before.
Config fastest(const Problem& problem) {
  const NullLayersSpace space(problem);
  std::vector<std::pair<double, Config>> ways(kNullKnobs, {0, space.start()});
  for (std::size_t layer = 0; layer < space.layers(); ++layer) {
    const std::vector<std::pair<double, Config>> before = ways;
    for (std::int32_t knob = 0; knob < kNullKnobs; ++knob) {
      std::optional<std::pair<double, Config>> best;
      for (std::int32_t last = 0; last < kNullKnobs; ++last) {
        std::pair<double, Config> way = before[static_cast<std::size_t>(last)];
        way.first += null_layer_weight(problem, layer) * null_layer_cost(layer, knob) *
                     (layer > 0 && last != knob ? kNullConversion : 1);
        way.second.words[layer] = knob;
        best = !best || way.first < best->first ? way : best;
      }
      ways[static_cast<std::size_t>(knob)] = *best;
    }
  }
  return std::min_element(ways.begin(), ways.end())->second;
}

TEST(NullLayers, SamplersOfEveryTypeGiveFiveToThreeHundredLayers) {
  for (const ProblemTypeInfo* type : problem_types()) {
    if (type->drawn_sizes.empty()) {
      continue;
    }
    const auto family = make({{"type", std::string(type->schema.name)}});
    EXPECT_EQ(family->info().config_schema.kind, SchemaKind::kSequence);
    EXPECT_EQ(family->info().space, nullptr);
    Rng rng(4);
    const auto drawn = sample_log_normal(*type, 60, {}, {}, rng);
    ASSERT_TRUE(drawn) << drawn.error().message;
    std::set<std::size_t> counts;
    for (const Problem& problem : drawn->problems) {
      const std::size_t layers = null_layers(problem);
      EXPECT_GE(layers, 5U);
      EXPECT_LE(layers, 300U);
      counts.insert(layers);
      const auto space = family->space(problem);
      ASSERT_TRUE(space);
      const Config config = (*space)->sample(rng).value();
      EXPECT_EQ(config.words.size(), layers);
      EXPECT_TRUE((*space)->why_not(config));
      EXPECT_GT(null_layers_time_ns(problem, config), 0);
    }
    EXPECT_GT(counts.size(), 10U) << type->schema.name;
  }
}

TEST(NullLayers, OnlySmallSpacesAreListed) {
  const NullLayersSpace small(gemm(2, 1, 2));
  ASSERT_NE(small.enumerable(), nullptr);
  EXPECT_EQ(small.layers(), 7U);
  EXPECT_EQ(small.count(), 279936U);
  std::set<Config> seen;
  for (std::uint64_t i = 0; i < small.count(); i += 101) {
    const Config config = small.unrank(i);
    EXPECT_TRUE(small.why_not(config));
    EXPECT_TRUE(seen.insert(config).second);
  }
  EXPECT_EQ(small.unrank(0), small.start());
  EXPECT_EQ(small.unrank(small.count() - 1), uniform(small, kNullKnobs - 1));
  EXPECT_NE(NullLayersSpace(gemm(3, 3, 3)).enumerable(), nullptr);
  EXPECT_EQ(NullLayersSpace(gemm(4, 1, 1)).enumerable(), nullptr);
}

TEST(NullLayers, RefusalsSayTheNumbers) {
  const NullLayersSpace space(gemm(64, 64, 64));
  ASSERT_EQ(space.layers(), 69U);
  Config config = space.start();
  EXPECT_TRUE(space.why_not(config));
  config.words[17] = 6;
  EXPECT_EQ(space.why_not(config).reason(), "layer 17 has knob 6, which is not one of 0 to 5");
  EXPECT_TRUE(space.neighbours(config).empty());
  config.words[17] = -1;
  EXPECT_THAT(space.why_not(config).reason(), HasSubstr("knob -1"));
  config.words[17] = 0;
  config.words.push_back(0);
  EXPECT_EQ(space.why_not(config).reason(),
            "the config has 70 words, but the problem has 69 layers");
  config.schema = 1;
  EXPECT_THAT(space.why_not(config).reason(), HasSubstr("not of schema null-layers v1"));
}

TEST(NullLayers, NeighboursAndActionsChangeOneLayer) {
  const NullLayersSpace space(gemm(5, 5, 5));
  Rng rng(1);
  const Config here = space.sample(rng).value();
  const std::vector<Config> around = space.neighbours(here);
  EXPECT_EQ(around.size(), 5 * space.layers());
  EXPECT_EQ(std::set<Config>(around.begin(), around.end()).size(), around.size());
  const std::vector<bool> legal = space.legal_actions(here);
  ASSERT_EQ(legal.size(), space.action_count());
  std::vector<Config> reached;
  for (std::size_t action = 0; action < legal.size(); ++action) {
    const Result<Config> next = space.apply(here, action);
    ASSERT_EQ(static_cast<bool>(next), legal[action]) << space.action_text(action);
    if (next) {
      EXPECT_TRUE(space.why_not(*next));
      reached.push_back(*next);
    }
  }
  EXPECT_EQ(reached, around);
  EXPECT_EQ(space.action_text(20), "layer 3 to knob 2");
  EXPECT_THAT(space.apply(space.start(), 18).error().message,
              HasSubstr("layer 3 has knob 0 already"));
  EXPECT_FALSE(space.apply(here, space.action_count()));
}

TEST(NullLayers, TheOptimumIsNotOneKnobAndTheOrderMatters) {
  for (const std::int64_t size : {3, 60, 128, 512}) {
    const Problem problem = gemm(size, size, size);
    const NullLayersSpace space(problem);
    const Config best = fastest(problem);
    const double best_ns = null_layers_time_ns(problem, best);
    for (std::int32_t knob = 0; knob < kNullKnobs; ++knob) {
      EXPECT_GT(null_layers_time_ns(problem, uniform(space, knob)), 1.03 * best_ns) << size;
    }
    for (const Config& config : space.neighbours(best)) {
      EXPECT_GE(null_layers_time_ns(problem, config), best_ns);
    }
    Config reversed = best;
    std::reverse(reversed.words.begin(), reversed.words.end());
    EXPECT_GT(null_layers_time_ns(problem, reversed), best_ns);
    // Conversions have to be paid for: each layer's own best knob is not the best of all.
    Config greedy = space.start();
    for (std::size_t layer = 0; layer < space.layers(); ++layer) {
      for (std::int32_t knob = 0; knob < kNullKnobs; ++knob) {
        if (null_layer_cost(layer, knob) < null_layer_cost(layer, greedy.words[layer])) {
          greedy.words[layer] = knob;
        }
      }
    }
    EXPECT_GE(null_layers_time_ns(problem, greedy), best_ns);
  }
  const NullLayersSpace listed(gemm(1, 1, 1));
  double least = std::numeric_limits<double>::infinity();
  for (std::uint64_t i = 0; i < listed.count(); ++i) {
    least = std::min(least, null_layers_time_ns(gemm(1, 1, 1), listed.unrank(i)));
  }
  EXPECT_DOUBLE_EQ(least, null_layers_time_ns(gemm(1, 1, 1), fastest(gemm(1, 1, 1))));
}

TEST(NullLayers, AccuracyFallsWithEveryKnobMostAtTheEnds) {
  const Problem problem = gemm(64, 64, 64);
  const NullLayersSpace space(problem);
  EXPECT_DOUBLE_EQ(null_layers_accuracy(problem, space.start()), 99);
  double last = 99;
  for (std::int32_t knob = 1; knob < kNullKnobs; ++knob) {
    const double accuracy = null_layers_accuracy(problem, uniform(space, knob));
    EXPECT_LT(accuracy, last);
    last = accuracy;
  }
  EXPECT_GT(last, 50);
  Config first = space.start();
  Config middle = first;
  first.words[0] = 3;
  middle.words[34] = 3;
  EXPECT_LT(null_layers_accuracy(problem, first), null_layers_accuracy(problem, middle));
}

TEST(NullLayers, TheFamilyRunsThemWithMetricsAndFaults) {
  const Problem problem = gemm(64, 64, 64);
  const auto family = make({{"noise", "0"}, {"metrics", "1"}});
  const auto space = *family->space(problem);
  ASSERT_EQ(family->default_configs(problem).size(), 1U);
  EXPECT_TRUE(space->why_not(family->default_configs(problem)[0]));
  Rng rng(9);
  const Config config = space->sample(rng).value();
  auto data = *family->make_data(problem, 1);
  auto artifact = *family->prepare(problem, config);
  auto run = *artifact->bind(problem, *data);
  EXPECT_DOUBLE_EQ(run->simulated_ns(), null_layers_time_ns(problem, config));
  run->run();
  EXPECT_TRUE(data->verify());
  EXPECT_THAT(run->metrics(),
              testing::ElementsAre(MetricValue{kPackNs, null_layers_pack_ns(config), 0, 1},
                                   MetricValue{kWorkspaceBytes, null_layers_bytes(config), 0, 1}));
  const std::string name(kNullAccuracy);
  const auto found = run->evaluate(std::span(&name, 1));
  ASSERT_TRUE(found);
  EXPECT_THAT(*found, testing::ElementsAre(
                          MetricValue{kNullAccuracy, null_layers_accuracy(problem, config), 0, 1}));
  EXPECT_FALSE(make({{"prepare_fail", "1"}})->prepare(problem, config));
  EXPECT_TRUE(make({{"crash", "0.1"}})->info().needs_worker);
  FamilyOptions bad;
  bad.parameters = {{"sequence", "1"}};
  EXPECT_THAT(make_null(bad).error().message, HasSubstr("wants yes or no, not '1'"));
}

}  // namespace
}  // namespace foretune
