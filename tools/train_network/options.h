// The options of foretune-train-network: one struct, and one table of its keys (options.cc) from
// which both the parser and the help are made. Thread safety: plain data and free functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::network_training {

enum class Architecture : std::uint8_t { kStandard, kDeep, kTwoTower };
enum class LossKind : std::uint8_t { kSquaredError, kMargin, kLambdaRank, kListMle };
enum class Optimizer : std::uint8_t { kAdam, kAdamW };

struct LossTerm {
  LossKind kind = LossKind::kSquaredError;
  double weight = 1;
};

struct TrainOptions {
  std::filesystem::path rows;
  std::filesystem::path out;
  Architecture architecture = Architecture::kStandard;
  std::vector<std::uint32_t> hidden_dims{256, 512, 256, 128, 64};
  std::uint32_t hidden_dim = 128;
  std::uint32_t num_layers = 10;
  std::uint32_t tower_layers = 2;
  std::uint32_t dot = 32;
  std::uint32_t interaction = 32;
  double dropout = 0.2;
  std::vector<LossTerm> loss{LossTerm{}};
  bool is_relative_target = true;
  std::uint32_t batch_size = 0;  // 0: by the number of rows
  std::uint32_t group_size = 64;
  std::uint32_t num_epochs = 100;
  double learning_rate = 1e-3;
  double weight_decay = 1e-5;
  std::uint32_t patience = 10;  // 0: never stop early
  std::uint32_t plateau_patience = 5;
  double clip = 1;  // 0: gradients stay as they are
  Optimizer optimizer = Optimizer::kAdam;
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
  bool is_cuda = false;
  std::int32_t held_out_fold = -1;
  double stop_share = 0.1;
  bool splits_rows = false;
  bool standardises = true;
  std::filesystem::path checkpoint;
  bool resumes = false;
  std::filesystem::path log_dir;
  bool shows_progress = false;
  bool wants_help = false;

  // Returns true when some loss compares rows of one problem, so that batches consist of groups of
  // such rows.
  [[nodiscard]] bool is_ranking() const;
  [[nodiscard]] bool has_squared_error() const;
  // Returns all options that decide the result of an epoch, without the number of epochs. A
  // checkpoint belongs to one such text.
  [[nodiscard]] std::string identity() const;
};

// Errors: kInvalidArgument with one sentence.
Result<TrainOptions> parse_options(std::span<const char* const> arguments);
std::string help_text();

}  // namespace foretune::network_training
