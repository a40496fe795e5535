#include "foretune/model/train/files/training_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/model/train/files/testing/neural_samples.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;
using testing_support::sample_deep;
using testing_support::sample_floats;
using testing_support::sample_standard;
using testing_support::TemporaryFolder;

TrainingRows sample_rows() {
  Rng rng(11);
  TrainingRows rows{.problem_columns = 2,
                    .config_columns = 1,
                    .interaction_columns = 1,
                    .plain_columns = {1, 3},
                    .fold = {0, 1, 0}};
  rows.problem = {0, 0, 1, 2, 2, 2};
  rows.inputs = sample_floats(rows.size() * rows.columns(), 1, rng);
  rows.log_time = sample_floats(rows.size(), 1, rng);
  rows.relative = sample_floats(rows.size(), 1, rng);
  rows.weight.assign(rows.size(), 0.5F);
  rows.censored = {0, 1, 0, 0, 0, 1};
  return rows;
}

TrainedNetwork sample_network() {
  Rng rng(12);
  TrainedNetwork network{.layers = sample_deep(4, 3, 1, rng),
                         .scale = 2,
                         .offset = -1,
                         .mean = {0, 1, 2, 3},
                         .inverse_std = {1, 1, 0, 1},
                         .predictions = sample_floats(6, 1, rng),
                         .roles = {0, 0, 1, 2, 2, 2},
                         .best_epoch = 2,
                         .samples_per_second = 100,
                         .libtorch = "1.13.1, cpu"};
  network.epochs.resize(3);
  network.epochs[1] = {.train_loss = 0.5, .stop_loss = std::nan(""), .stop_efficiency = 0.75};
  return network;
}

TrainedNetwork sample_towers() {
  Rng rng(13);
  TrainedNetwork network = sample_network();
  network.layers = sample_standard(2, {3}, 5, rng);
  network.config_layers = sample_standard(2, {3}, 6, rng);
  network.interaction = {0.5F, -1};
  return network;
}

class TrainingFilesTest : public ::testing::Test {
 protected:
  // Expects that no byte can change and none be missing.
  void expect_damage_is_seen(const std::function<bool()>& reads) {
    const auto bytes = read_file(path_);
    ASSERT_TRUE(bytes);
    ASSERT_TRUE(reads());
    std::vector<std::byte> damaged = *bytes;
    for (std::size_t i = 0; i < damaged.size(); ++i) {
      damaged[i] ^= static_cast<std::byte>(1U << (i % 8));
      ASSERT_TRUE(write_file_atomically(path_, damaged));
      EXPECT_FALSE(reads()) << "byte " << i;
      damaged[i] = (*bytes)[i];
    }
    for (std::size_t length = 0; length < damaged.size(); ++length) {
      ASSERT_TRUE(write_file_atomically(path_, std::span(damaged).first(length)));
      EXPECT_FALSE(reads()) << length << " bytes";
    }
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "file";
};

TEST_F(TrainingFilesTest, ReadsBackRows) {
  const TrainingRows rows = sample_rows();
  ASSERT_TRUE(write_training_rows(rows, path_));
  const auto read = read_training_rows(path_);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->problem_columns, 2U);
  EXPECT_EQ(read->config_columns, 1U);
  EXPECT_EQ(read->interaction_columns, 1U);
  EXPECT_EQ(read->plain_columns, rows.plain_columns);
  EXPECT_EQ(read->inputs, rows.inputs);
  EXPECT_EQ(read->problem, rows.problem);
  EXPECT_EQ(read->log_time, rows.log_time);
  EXPECT_EQ(read->relative, rows.relative);
  EXPECT_EQ(read->weight, rows.weight);
  EXPECT_EQ(read->censored, rows.censored);
  EXPECT_EQ(read->fold, rows.fold);
  EXPECT_EQ(read->tie, rows.tie);
}

TEST_F(TrainingFilesTest, ReadsBackNetworks) {
  for (const TrainedNetwork& network : {sample_network(), sample_towers()}) {
    ASSERT_TRUE(write_trained_network(network, path_));
    const auto read = read_trained_network(path_);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->layers, network.layers);
    EXPECT_EQ(read->config_layers, network.config_layers);
    EXPECT_EQ(read->interaction, network.interaction);
    EXPECT_EQ(read->scale, network.scale);
    EXPECT_EQ(read->offset, network.offset);
    EXPECT_EQ(read->mean, network.mean);
    EXPECT_EQ(read->inverse_std, network.inverse_std);
    EXPECT_EQ(read->predictions, network.predictions);
    EXPECT_EQ(read->roles, network.roles);
    EXPECT_EQ(read->best_epoch, network.best_epoch);
    ASSERT_EQ(read->epochs.size(), network.epochs.size());
    EXPECT_EQ(read->epochs[2], network.epochs[2]);
    EXPECT_EQ(read->epochs[1].train_loss, 0.5);
    EXPECT_TRUE(std::isnan(read->epochs[1].stop_loss));
    EXPECT_EQ(read->samples_per_second, network.samples_per_second);
    EXPECT_EQ(read->libtorch, network.libtorch);
  }
}

TEST_F(TrainingFilesTest, SeesDamagedRows) {
  ASSERT_TRUE(write_training_rows(sample_rows(), path_));
  expect_damage_is_seen([&] { return read_training_rows(path_).has_value(); });
}

TEST_F(TrainingFilesTest, SeesDamagedNetworks) {
  ASSERT_TRUE(write_trained_network(sample_network(), path_));
  expect_damage_is_seen([&] { return read_trained_network(path_).has_value(); });
}

TEST_F(TrainingFilesTest, TellsTheFilesApart) {
  ASSERT_TRUE(write_training_rows(sample_rows(), path_));
  const auto read = read_trained_network(path_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(read.error().message, HasSubstr("not a file of a trained network"));
}

TEST_F(TrainingFilesTest, RefusesInconsistentRows) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::pair<std::string, std::function<void(TrainingRows&)>>> cases{
      {"no columns", [](TrainingRows& r) { r = TrainingRows{}; }},
      {"too many columns", [](TrainingRows& r) { r.config_columns = 100000; }},
      {"a missing input", [](TrainingRows& r) { r.inputs.pop_back(); }},
      {"an input that is no number", [=](TrainingRows& r) { r.inputs[3] = nan; }},
      {"a missing time", [](TrainingRows& r) { r.log_time.pop_back(); }},
      {"a missing relative time", [](TrainingRows& r) { r.relative.pop_back(); }},
      {"a relative time that is no number", [=](TrainingRows& r) { r.relative[0] = nan; }},
      {"a missing weight", [](TrainingRows& r) { r.weight.pop_back(); }},
      {"a negative weight", [](TrainingRows& r) { r.weight[2] = -1; }},
      {"a missing mark", [](TrainingRows& r) { r.censored.pop_back(); }},
      {"an odd mark", [](TrainingRows& r) { r.censored[2] = 2; }},
      {"a problem without fold", [](TrainingRows& r) { r.fold.pop_back(); }},
      {"problems that alternate", [](TrainingRows& r) { r.problem[4] = 0; }},
      {"a plain column beyond", [](TrainingRows& r) { r.plain_columns = {1, 4}; }},
      {"plain columns out of order", [](TrainingRows& r) { r.plain_columns = {3, 1}; }},
      {"an odd tie", [=](TrainingRows& r) { r.tie = nan; }}};
  for (const auto& [what, spoil] : cases) {
    TrainingRows rows = sample_rows();
    spoil(rows);
    const Status status = write_training_rows(rows, path_);
    ASSERT_FALSE(status) << what;
    EXPECT_EQ(status.error().code, ErrorCode::kCorrupt) << what;
  }
}

TEST_F(TrainingFilesTest, RefusesInconsistentNetworks) {
  const std::vector<std::pair<std::string, std::function<void(TrainedNetwork&)>>> cases{
      {"no layers", [](TrainedNetwork& n) { n.layers.clear(); }},
      {"layers that cannot be folded", [](TrainedNetwork& n) { n.layers.pop_back(); }},
      {"no config's own term", [](TrainedNetwork& n) { n.config_layers = n.layers; }},
      {"too much interaction", [](TrainedNetwork& n) { n.interaction.assign(6, 1); }},
      {"interaction of a chain", [](TrainedNetwork& n) { n.config_layers.clear(); }},
      {"an infinite scale", [](TrainedNetwork& n) { n.scale = HUGE_VAL; }},
      {"a missing mean", [](TrainedNetwork& n) { n.mean.pop_back(); }},
      {"a missing role", [](TrainedNetwork& n) { n.roles.pop_back(); }},
      {"an unknown role", [](TrainedNetwork& n) { n.roles[0] = 3; }},
      {"a prediction that is no number", [](TrainedNetwork& n) { n.predictions[1] = NAN; }},
      {"no best epoch", [](TrainedNetwork& n) { n.best_epoch = 0; }},
      {"a best epoch to come", [](TrainedNetwork& n) { n.best_epoch = 4; }},
      {"a loss that is no number",
       [](TrainedNetwork& n) { n.epochs[0].train_loss = std::nan(""); }}};
  for (const auto& [what, spoil] : cases) {
    TrainedNetwork network = sample_towers();
    spoil(network);
    EXPECT_FALSE(write_trained_network(network, path_)) << what;
  }
}

}  // namespace
}  // namespace foretune
