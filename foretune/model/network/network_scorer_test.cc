#include "foretune/model/network/network_scorer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "foretune/base/testing/allocation_count.h"
#include "foretune/model/ensemble/ensemble_body.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/network/network_body.h"
#include "foretune/model/network/network_int8.h"
#include "foretune/model/network/testing/network_samples.h"
#include "foretune/model/testing/model_samples.h"

namespace foretune {
namespace {

std::vector<Network> one_of_each(const FeatureTable& table, Rng& rng) {
  std::vector<Network> out;
  out.push_back(random_chain(table, {}, rng));
  out.push_back(random_chain(table, {33, 70, 5}, rng));
  out.push_back(random_deep(table, 24, 3, rng));
  out.push_back(*with_int8_weights(out[1]));
  out.push_back(*with_int8_weights(out[2]));
  out.push_back(random_towers(table, 20, 7, 9, rng));
  out.push_back(random_towers(table, 8, 16, 0, rng));
  out.back().layers[1] = random_int8_layer(8, 8, rng);
  out.back().config_layers[1] = random_int8_layer(8, 8, rng);
  out.back().has_least = true;
  out.back().least = 0.3F;
  return out;
}

// From the full feature row and the slow evaluation.
std::vector<double> slow_scores(const Model& model, const Network& network,
                                const Problem& problem) {
  const FeatureTable* table = *find_feature_table(model.feature_table);
  std::vector<double> row(table->columns().size());
  std::vector<double> out;
  for (const Config& config : model.pool) {
    feature_row(*table, problem, model.fingerprint.hardware, config, row);
    out.push_back(predict_reference(network, row, problem.fields()));
  }
  return out;
}

TEST(NetworkScorer, EqualsTheReferenceToTheLastBitOnEveryInstructionSet) {
  constexpr std::uint64_t kSeed = 7;
  Rng rng(kSeed);
  // One block, whole blocks, a chunk and a bit; vectors that are not full.
  for (const std::size_t candidates : {1U, 15U, 48U, 96U, 130U, 481U}) {
    const Model model = sample_model({.candidates = candidates}, rng);
    const FeatureTable& table = **find_feature_table(model.feature_table);
    for (const Network& network : one_of_each(table, rng)) {
      const Problem problem = sample_gemm(rng);
      const std::vector<double> expected = slow_scores(model, network, problem);
      for (const CpuIsa isa : {CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
        if (isa > best_cpu_isa()) {
          continue;
        }
        const auto scorer = network_scorer({network}, table, problem.fields().size(), 0.25, isa);
        ASSERT_TRUE(scorer) << scorer.error().message;
        const auto pool = (*scorer)->prepare(ConfigList(model.pool), model.fingerprint.hardware);
        ASSERT_TRUE(pool);
        std::vector<std::byte> workspace((*pool)->workspace_bytes(), std::byte{0xff});
        std::vector<double> scores(candidates);
        std::vector<double> uncertainty(candidates);
        const std::uint64_t before = allocation_count();
        (*pool)->score(problem, workspace, scores, uncertainty);
        EXPECT_EQ(allocation_count(), before);
        for (std::size_t i = 0; i < candidates; ++i) {
          ASSERT_EQ(scores[i], expected[i]) << network.architecture << " candidate " << i << " of "
                                            << candidates << ", " << to_string(isa);
          EXPECT_DOUBLE_EQ(uncertainty[i], 0.25);
        }
      }
    }
  }
}

TEST(NetworkScorer, AveragesAndSpreadsSeveralNetworks) {
  Rng rng(8);
  const Model model = sample_model({.candidates = 60}, rng);
  const FeatureTable& table = **find_feature_table(model.feature_table);
  std::vector<Network> networks;
  for (int i = 0; i < 3; ++i) {
    networks.push_back(random_chain(table, {16}, rng));
  }
  const Problem problem = sample_gemm(rng);
  const auto scorer = network_scorer(networks, table, problem.fields().size(), 0.5);
  ASSERT_TRUE(scorer);
  const auto pool = (*scorer)->prepare(ConfigList(model.pool), model.fingerprint.hardware);
  ASSERT_TRUE(pool);
  std::vector<std::byte> workspace((*pool)->workspace_bytes());
  std::vector<double> scores(60);
  std::vector<double> uncertainty(60);
  (*pool)->score(problem, workspace, scores, uncertainty);
  std::vector<std::vector<double>> each;
  for (const Network& network : networks) {
    each.push_back(slow_scores(model, network, problem));
  }
  for (std::size_t i = 0; i < 60; ++i) {
    const double mean = (each[0][i] + each[1][i] + each[2][i]) / 3;
    double squares = 0;
    for (const std::vector<double>& one : each) {
      squares += (one[i] - mean) * (one[i] - mean);
    }
    EXPECT_NEAR(scores[i], mean, 1e-12);
    EXPECT_NEAR(uncertainty[i], std::sqrt(0.25 + squares / 2), 1e-9);
  }
}

TEST(ModelScorer, AnEnsembleIsTheWeightedMeanOfItsParts) {
  Rng rng(9);
  Model forests = sample_model({.forests = 2, .candidates = 100}, rng);
  const FeatureTable& table = **find_feature_table(forests.feature_table);
  const std::vector<Network> nets{random_deep(table, 16, 1, rng),
                                  random_towers(table, 8, 4, 4, rng)};
  Model both = forests;
  set_ensemble(both, {forests_of(forests), nets, 0.25});
  Model networks = both;
  set_networks(networks, nets);
  for (const Model* model : {&forests, &both, &networks}) {
    ASSERT_TRUE(check_model(*model)) << check_model(*model).error().message;
  }
  const Problem problem = sample_gemm(rng);
  const auto a = score_configs(forests, problem, forests.pool);
  const auto b = score_configs(networks, problem, forests.pool);
  const auto mixed = score_configs(both, problem, forests.pool);
  ASSERT_TRUE(a && b && mixed);
  for (std::size_t i = 0; i < mixed->size(); ++i) {
    EXPECT_NEAR((*mixed)[i], 0.75 * (*a)[i] + 0.25 * (*b)[i], 1e-12);
    EXPECT_EQ((*mixed)[i], *score_config(both, problem, forests.pool[i]));
    EXPECT_EQ((*b)[i], *score_config(networks, problem, forests.pool[i]));
  }
  const auto scorer = make_scorer(both);
  ASSERT_TRUE(scorer);
  const auto pool = (*scorer)->prepare(ConfigList(both.pool), both.fingerprint.hardware);
  ASSERT_TRUE(pool);
  std::vector<std::byte> workspace((*pool)->workspace_bytes());
  std::vector<double> scores(100);
  std::vector<double> uncertainty(100);
  const std::uint64_t before = allocation_count();
  (*pool)->score(problem, workspace, scores, uncertainty);
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(scores, *mixed);
  for (const double sigma : uncertainty) {
    EXPECT_GE(sigma, both.residual_std);
  }
}

TEST(Network, FilesKeepEverythingAndRefuseDamage) {
  Rng rng(10);
  Model model = sample_model({.candidates = 20}, rng);
  const FeatureTable& table = **find_feature_table(model.feature_table);
  set_ensemble(model, {forests_of(model), one_of_each(table, rng), 0.75});
  const std::vector<std::byte> bytes = model_bytes(model);
  const auto again = parse_model(bytes);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, model);
  ByteWriter writer;
  put_network(writer, ensemble_of(model).networks.back());
  const std::vector<std::byte> one(writer.bytes().begin(), writer.bytes().end());
  // Without a checksum: what is read is valid, whatever was in the bytes.
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::vector<std::byte> damaged = one;
    damaged[i] ^= std::byte{static_cast<std::uint8_t>(1U << rng.below(8))};
    ByteReader reader(damaged);
    if (const auto network = get_network(reader)) {
      EXPECT_TRUE(network->validate());
    }
    ByteReader torn(std::span<const std::byte>(one).first(i));
    EXPECT_FALSE(get_network(torn));
  }
}

TEST(Network, WhatDoesNotFitIsRefusedWithItsReason) {
  Rng rng(11);
  const Model model = sample_model({.candidates = 4}, rng);
  const FeatureTable& table = **find_feature_table(model.feature_table);
  const std::size_t fields = sample_gemm(rng).fields().size();
  const auto reason = [&](const Network& network) {
    const Status status = network.validate(table, fields);
    return status ? std::string() : status.error().message;
  };
  const Network chain = random_chain(table, {8, 8}, rng);
  const Network towers = random_towers(table, 8, 4, 4, rng);
  EXPECT_EQ(reason(chain), "");
  EXPECT_EQ(reason(towers), "");
  Network broken = chain;
  broken.layers[1].weights[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(reason(broken).find("not finite"), std::string::npos);
  broken = *with_int8_weights(chain);
  broken.layers[1].int8_weights.pop_back();
  EXPECT_NE(reason(broken).find("another number of weights"), std::string::npos);
  broken = *with_int8_weights(chain);
  broken.layers[0] = random_int8_layer(chain.layers[0].inputs, 8, rng);
  EXPECT_NE(reason(broken).find("of 8 bits"), std::string::npos);
  broken = chain;
  broken.layers[1].adds_skip = true;
  EXPECT_NE(reason(broken).find("does not fit"), std::string::npos);
  broken = chain;
  broken.inputs[2].column = 1000;
  EXPECT_NE(reason(broken).find("1000"), std::string::npos);
  broken = chain;
  std::swap(broken.inputs.front(), broken.inputs.back());
  EXPECT_NE(reason(broken).find("another kind"), std::string::npos);
  broken = chain;
  broken.layers.pop_back();
  EXPECT_NE(reason(broken).find("one number"), std::string::npos);
  broken = towers;
  broken.config_layers.back() = random_layer(8, 8, rng);
  EXPECT_NE(reason(broken).find("same width"), std::string::npos);
  broken = towers;
  broken.field_inputs[0].feature.field = 200;
  EXPECT_NE(reason(broken), "");
  Model wrong = model;
  wrong.kind = "network";
  EXPECT_FALSE(check_model(wrong));
  set_networks(wrong, {towers, broken});
  EXPECT_FALSE(check_model(wrong));
  set_networks(wrong, {towers});
  EXPECT_TRUE(check_model(wrong));
  EXPECT_FALSE(network_scorer({}, table, fields, 0));
}

}  // namespace
}  // namespace foretune
