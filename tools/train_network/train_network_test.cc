// Runs the program as its parent does, on a small function that networks can learn.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/model/train/files/testing/neural_samples.h"
#include "foretune/model/train/files/training_files.h"

extern char** environ;  // NOLINT(readability-identifier-naming): POSIX's name

namespace foretune {
namespace {

using ::testing::HasSubstr;
using testing_support::TemporaryFolder;

constexpr std::size_t kConfigs = 40;
constexpr std::size_t kProblems = 40;
constexpr std::size_t kFolds = 4;
constexpr int kCloseOutput = -1;  // instead of a signal

// Seven columns: two of the problem and one that never changes, two of the config and one that is 0
// or 1, and an interaction. One row in ten is a lower bound.
TrainingRows synthetic_rows() {
  Rng rng(31);
  TrainingRows rows{
      .problem_columns = 3, .config_columns = 3, .interaction_columns = 1, .plain_columns = {5}};
  for (std::uint32_t problem = 0; problem < kProblems; ++problem) {
    const double size = 3 * rng.normal();
    const double shape = rng.uniform();
    std::vector<double> time;
    for (std::size_t i = 0; i < kConfigs; ++i) {
      const double tile = rng.uniform();
      const double depth = rng.normal();
      const double flag = rng.below(2) == 0 ? 0 : 1;
      for (const double x : {size, shape, 4.0, tile, depth, flag, (tile - shape) * 10}) {
        rows.inputs.push_back(static_cast<float>(x));
      }
      const double slowness = std::abs(tile - shape) + 0.3 * std::abs(depth) + 0.5 * flag;
      time.push_back(8 + size + slowness);
      rows.problem.push_back(problem);
      rows.weight.push_back(1);
      rows.censored.push_back(rng.below(10) == 0 && slowness > 1 ? 1 : 0);
    }
    const double best = *std::min_element(time.begin(), time.end());
    for (const double value : time) {
      const double bound = rows.censored[rows.log_time.size()] != 0 ? 0.1 : 0.0;
      rows.log_time.push_back(static_cast<float>(value - bound));
      rows.relative.push_back(static_cast<float>(value - bound - best));
    }
    rows.fold.push_back(problem % kFolds);
  }
  return rows;
}

struct Ended {
  int code = 0;  // or minus the signal
  std::string output;
  std::string errors;
};

class TrainNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(write_training_rows(rows_, folder_ / "rows")); }

  // Sends `signal` once the output holds `mark`.
  Ended run(std::vector<std::string> arguments, const std::string& mark = "",
            int signal = SIGKILL) {
    arguments.insert(arguments.begin(), FORETUNE_TRAIN_NETWORK);
    std::vector<char*> raw;
    for (std::string& argument : arguments) {
      raw.push_back(argument.data());
    }
    raw.push_back(nullptr);
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    const std::string errors = (folder_ / "errors").string();
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_addclose(&actions, ends[0]);
    ::posix_spawn_file_actions_addclose(&actions, ends[1]);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(),
                                       O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child = 0;
    EXPECT_EQ(::posix_spawn(&child, raw[0], &actions, nullptr, raw.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    Ended ended;
    std::array<char, 4096> buffer{};
    ssize_t count = 0;
    bool is_signalled = mark.empty();
    while ((count = ::read(ends[0], buffer.data(), buffer.size())) > 0) {
      ended.output.append(buffer.data(), static_cast<std::size_t>(count));
      if (!is_signalled && ended.output.find(mark) != std::string::npos) {
        is_signalled = true;
        if (signal == kCloseOutput) {
          break;
        }
        ::kill(child, signal);
      }
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    ended.errors = read_text_file(errors).value_or("");
    return ended;
  }

  std::vector<std::string> arguments(const std::vector<std::string>& more,
                                     const std::string& out = "out") const {
    std::vector<std::string> all{"--rows",          (folder_ / "rows").string(),
                                 "--out",           (folder_ / out).string(),
                                 "--hidden-dims",   "32,16",
                                 "--hidden-dim",    "24",
                                 "--num-layers",    "2",
                                 "--dropout",       "0.05",
                                 "--dot",           "8",
                                 "--interaction",   "8",
                                 "--group-size",    "16",
                                 "--learning-rate", "0.01"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  TrainedNetwork trained(const std::vector<std::string>& more, const std::string& out = "out") {
    const Ended ended = run(arguments(more, out));
    EXPECT_EQ(ended.code, 0) << ended.errors;
    auto network = read_trained_network(folder_ / out);
    EXPECT_TRUE(network) << network.error().message;
    return network.value_or(TrainedNetwork{});
  }

  // The outcome without what the clock says.
  std::vector<std::byte> timeless_bytes(const std::string& out) {
    auto network = read_trained_network(folder_ / out);
    EXPECT_TRUE(network);
    network->samples_per_second = 0;
    for (TrainedNetwork::Epoch& epoch : network->epochs) {
      epoch.seconds = 0;
    }
    EXPECT_TRUE(write_trained_network(*network, folder_ / "timeless"));
    return read_file(folder_ / "timeless").value_or(std::vector<std::byte>{});
  }

  // By the folded layers, as inference evaluates them.
  double prediction_of(const TrainedNetwork& network, std::size_t row) const {
    const std::size_t columns = rows_.columns();
    std::vector<double> input(columns);
    for (std::size_t c = 0; c < columns; ++c) {
      const auto x = static_cast<double>(rows_.inputs[row * columns + c]);
      input[c] = static_cast<float>((x - network.mean[c]) * network.inverse_std[c]);
    }
    const auto evaluate = [](const std::vector<TorchLayer>& layers, const double* begin,
                             std::size_t count) {
      return testing_support::evaluate_dense(*fold_layers(layers), {begin, begin + count});
    };
    if (network.config_layers.empty()) {
      return evaluate(network.layers, input.data(), columns)[0] * network.scale + network.offset;
    }
    const auto problem = evaluate(network.layers, input.data(), rows_.problem_columns);
    const auto config =
        evaluate(network.config_layers, input.data() + rows_.problem_columns, rows_.config_columns);
    const std::size_t dot = problem.size() - network.interaction.size();
    double score = config.back();
    for (std::size_t i = 0; i < problem.size(); ++i) {
      score += i < dot ? problem[i] * config[i]
                       : static_cast<double>(network.interaction[i - dot]) *
                             std::max(0.0, problem[i] + config[i]);
    }
    return score * network.scale + network.offset;
  }

  // The share of the variance of held-out rows within their problems that is explained.
  double explained(const TrainedNetwork& network) const {
    double residual = 0;
    double variance = 0;
    for (std::size_t begin = 0; begin < rows_.size(); begin += kConfigs) {
      double target_mean = 0;
      double prediction_mean = 0;
      for (std::size_t i = begin; i < begin + kConfigs; ++i) {
        target_mean += static_cast<double>(rows_.relative[i]) / kConfigs;
        prediction_mean += static_cast<double>(network.predictions[i]) / kConfigs;
      }
      for (std::size_t i = begin; i < begin + kConfigs; ++i) {
        if (network.roles[i] == static_cast<std::uint8_t>(RowRole::kHeldOut)) {
          const double target = static_cast<double>(rows_.relative[i]) - target_mean;
          const double prediction = static_cast<double>(network.predictions[i]) - prediction_mean;
          residual += (target - prediction) * (target - prediction);
          variance += target * target;
        }
      }
    }
    return 1 - residual / variance;
  }

  TemporaryFolder folder_;
  TrainingRows rows_ = synthetic_rows();
};

TEST_F(TrainNetworkTest, EveryArchitectureLearnsWithEveryLoss) {
  for (const std::string architecture : {"standard", "deep", "two-tower"}) {
    for (const std::string loss : {"mse", "margin", "lambdarank", "listmle", "mse:1,listmle:0.5"}) {
      const TrainedNetwork network =
          trained({"--architecture", architecture, "--loss", loss, "--num-epochs", "25",
                   "--held-out-fold", "1", "--target", "relative-log"});
      ASSERT_EQ(network.predictions.size(), rows_.size());
      EXPECT_GT(explained(network), 0.4) << architecture << " " << loss;
      EXPECT_GT(network.epochs.back().stop_efficiency, 0.75) << architecture << " " << loss;
      EXPECT_GT(network.samples_per_second, 0);
      for (std::size_t row = 0; row < rows_.size(); ++row) {
        const auto expected = static_cast<double>(network.predictions[row]);
        ASSERT_NEAR(prediction_of(network, row), expected, 1e-5 * std::max(1.0, std::abs(expected)))
            << architecture << " " << loss << " row " << row;
      }
    }
  }
}

TEST_F(TrainNetworkTest, LearnsTheLogOfTheTimeToo) {
  const TrainedNetwork network = trained({"--target", "log", "--num-epochs", "25"});
  EXPECT_GT(network.offset, 5);
  double error = 0;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    error += std::abs(static_cast<double>(network.predictions[row] - rows_.log_time[row]));
  }
  EXPECT_LT(error / static_cast<double>(rows_.size()), 0.8);
}

TEST_F(TrainNetworkTest, ReturnsTheBestEpochAndStopsEarly) {
  const TrainedNetwork network = trained({"--num-epochs", "300", "--patience", "4"});
  ASSERT_GT(network.best_epoch, 0U);
  EXPECT_EQ(network.epochs.size(), network.best_epoch + 4);
  double stop_loss = 0;
  double weight = 0;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (network.roles[row] == static_cast<std::uint8_t>(RowRole::kStop)) {
      const double error =
          static_cast<double>(network.predictions[row] - rows_.relative[row]) / network.scale;
      stop_loss += rows_.censored[row] != 0 && error > 0 ? 0 : error * error;
      ++weight;
    }
  }
  const auto best =
      std::min_element(network.epochs.begin(), network.epochs.end(),
                       [](const auto& a, const auto& b) { return a.stop_loss < b.stop_loss; });
  EXPECT_EQ(best - network.epochs.begin(), network.best_epoch - 1);
  EXPECT_NEAR(stop_loss / weight, best->stop_loss, 1e-5);
}

TEST_F(TrainNetworkTest, AResumedRunGivesTheSameBytes) {
  for (const std::string loss : {"mse", "lambdarank:1,mse:0.5"}) {
    const std::string name = concat("checkpoint of ", loss);
    const std::vector<std::string> options{
        "--loss",     loss, "--architecture",     "deep", "--num-epochs", "40",
        "--patience", "0",  "--plateau-patience", "0",    "--progress",   "yes"};
    const std::filesystem::path parts = folder_ / "parts";
    std::filesystem::remove(parts);
    static_cast<void>(trained(options, "whole"));
    std::vector<std::string> resumable = options;
    resumable.insert(resumable.end(), {"--checkpoint", (folder_ / name).string(), "--resume", "yes",
                                       "--log-dir", (folder_ / "log").string()});
    EXPECT_EQ(run(arguments(resumable, "parts"), "epoch 2 of").code, -SIGKILL);
    EXPECT_FALSE(std::filesystem::exists(parts));
    EXPECT_EQ(run(arguments(resumable, "parts"), "epoch 5 of", SIGTERM).code, 3);
    const TrainedNetwork network = trained(resumable, "parts");
    EXPECT_EQ(network.epochs.size(), 40U);
    EXPECT_EQ(timeless_bytes("parts"), timeless_bytes("whole")) << loss;
    // Also once all is done.
    static_cast<void>(trained(resumable, "again"));
    EXPECT_EQ(timeless_bytes("again"), timeless_bytes("whole")) << loss;
    const std::string table = read_text_file(folder_ / "log" / "epochs.csv").value_or("");
    EXPECT_EQ(static_cast<std::size_t>(std::count(table.begin(), table.end(), '\n')),
              network.epochs.size() + 1);
  }
}

TEST_F(TrainNetworkTest, RefusesACheckpointOfAnotherRun) {
  const std::string path = (folder_ / "checkpoint").string();
  static_cast<void>(trained({"--num-epochs", "1", "--checkpoint", path}));
  const Ended other =
      run(arguments({"--num-epochs", "2", "--checkpoint", path, "--resume", "yes", "--seed", "9"}));
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.errors, HasSubstr("other options or rows"));
  ASSERT_TRUE(write_text_file_atomically(path, "something else"));
  const Ended damaged = run(arguments({"--checkpoint", path, "--resume", "yes"}));
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.errors, HasSubstr("not a checkpoint"));
}

TEST_F(TrainNetworkTest, HoldsOutProblemsOrInTheTrapRows) {
  const auto mixed_problems = [&](const TrainedNetwork& network) {
    std::size_t count = 0;
    for (std::size_t row = 1; row < rows_.size(); ++row) {
      count += rows_.problem[row] == rows_.problem[row - 1] &&
                       network.roles[row] != network.roles[row - 1]
                   ? 1
                   : 0;
    }
    return count;
  };
  const auto held_out = [](const TrainedNetwork& network) {
    return std::count(network.roles.begin(), network.roles.end(),
                      static_cast<std::uint8_t>(RowRole::kHeldOut));
  };
  const TrainedNetwork problems = trained({"--num-epochs", "1", "--held-out-fold", "2"});
  EXPECT_EQ(mixed_problems(problems), 0U);
  EXPECT_EQ(held_out(problems), rows_.size() / kFolds);
  const TrainedNetwork samples =
      trained({"--num-epochs", "1", "--held-out-fold", "2", "--split", "sample"});
  EXPECT_GT(mixed_problems(samples), 100U);
  EXPECT_NEAR(static_cast<double>(held_out(samples)), static_cast<double>(rows_.size()) / kFolds,
              80);
  const TrainedNetwork other_seed =
      trained({"--num-epochs", "1", "--held-out-fold", "2", "--split", "sample", "--seed", "5"});
  EXPECT_EQ(held_out(other_seed), held_out(samples));
}

TEST_F(TrainNetworkTest, ProblemsOfOneGroupHaveOneRole) {
  for (std::uint32_t problem = 0; problem < rows_.fold.size(); ++problem) {
    rows_.group.push_back(static_cast<std::uint32_t>(problem / kFolds / 3));
  }
  ASSERT_TRUE(write_training_rows(rows_, folder_ / "rows"));
  const TrainedNetwork network =
      trained({"--num-epochs", "1", "--held-out-fold", "2", "--stop-share", "0.4"});
  constexpr auto kHeldOut = static_cast<std::uint8_t>(RowRole::kHeldOut);
  std::map<std::uint32_t, std::uint8_t> role_of_group;
  std::size_t stops = 0;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (network.roles[row] != kHeldOut) {
      const std::uint32_t group = rows_.group[rows_.problem[row]];
      EXPECT_EQ(role_of_group.emplace(group, network.roles[row]).first->second, network.roles[row]);
      stops += network.roles[row] == static_cast<std::uint8_t>(RowRole::kStop) ? 1 : 0;
    }
  }
  EXPECT_GT(stops, 0U);
}

TEST_F(TrainNetworkTest, StandardisesByTrainingRowsAlone) {
  const TrainedNetwork network = trained({"--num-epochs", "1", "--held-out-fold", "0"});
  double sum = 0;
  double count = 0;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (network.roles[row] == static_cast<std::uint8_t>(RowRole::kTraining)) {
      sum += static_cast<double>(rows_.inputs[row * rows_.columns()]);
      ++count;
    }
  }
  EXPECT_NEAR(network.mean[0], sum / count, 1e-9);
  EXPECT_EQ(network.inverse_std[2], 0);  // never changes
  EXPECT_EQ(network.mean[5], 0);         // stays as it is
  EXPECT_EQ(network.inverse_std[5], 1);
  const TrainedNetwork raw = trained({"--num-epochs", "1", "--standardise", "no"});
  EXPECT_EQ(raw.mean[0], 0);
  EXPECT_EQ(raw.inverse_std[2], 1);
}

TEST_F(TrainNetworkTest, WithoutStopProblemsTheLastEpochIsTheBest) {
  const TrainedNetwork network = trained({"--num-epochs", "3", "--stop-share", "0"});
  EXPECT_EQ(network.best_epoch, 3U);
  EXPECT_TRUE(std::isnan(network.epochs[0].stop_loss));
  EXPECT_TRUE(std::isnan(network.epochs[0].stop_efficiency));
}

TEST_F(TrainNetworkTest, OneSentenceForWhatMakesNoSense) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"--hiden-dim", "8"}, "did you mean --hidden-dim?"},
      {{"--hidden-dim"}, "--hidden-dim needs a value"},
      {{"--hidden-dim", "0"}, "--hidden-dim: '0' is no whole number from 1"},
      {{"--hidden-dims", "8,,8"}, "--hidden-dims: ''"},
      {{"--loss", "mse:0.5,huber"}, "'huber' is none of mse|margin"},
      {{"--loss", "mse,mse"}, "'mse' is named twice"},
      {{"--dropout", "nan"}, "--dropout"},
      {{"--architecture", "wide"}, "standard|deep|two-tower"},
      {{"--resume", "yes"}, "needs a --checkpoint"},
      {{"--held-out-fold", "-2"}, "neither a fold nor -1"},
      {{"--architecture", "two-tower", "--dot", "0", "--interaction", "0"}, "two towers"}};
  for (const auto& [more, sentence] : cases) {
    const Ended ended = run(arguments(more));
    EXPECT_EQ(ended.code, 2) << sentence;
    EXPECT_THAT(ended.errors, HasSubstr(sentence));
    EXPECT_EQ(std::count(ended.errors.begin(), ended.errors.end(), '\n'), 1) << ended.errors;
  }
  EXPECT_THAT(run({}).errors, HasSubstr("--rows and --out are needed"));
  const Ended missing = run({"--rows", (folder_ / "none").string(), "--out", "x"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(std::count(missing.errors.begin(), missing.errors.end(), '\n'), 1) << missing.errors;
  const Ended help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.output, HasSubstr("--stop-share X"));
}

TEST_F(TrainNetworkTest, SaysThatItDiverged) {
  for (float& input : rows_.inputs) {
    input = input > 0 ? 3e38F : -3e38F;
  }
  ASSERT_TRUE(write_training_rows(rows_, folder_ / "rows"));
  const Ended ended = run(arguments({"--standardise", "no"}));
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.errors, HasSubstr("the loss of epoch 1 is no number"));
}

TEST_F(TrainNetworkTest, StopsWhenNobodyReadsItsProgress) {
  const Ended ended =
      run(arguments({"--progress", "yes", "--num-epochs", "100000", "--patience", "0"}),
          "epoch 2 of", kCloseOutput);
  EXPECT_EQ(ended.code, 3);
  EXPECT_THAT(ended.errors, HasSubstr("nobody reads the progress"));
}

}  // namespace
}  // namespace foretune
