// The two files between foretune and the program that trains networks (tools/train_network), the
// only one that links PyTorch's libtorch. One has the rows, the other the trained network and its
// predictions. Both have magic, version, length and checksum.
// Thread safety: plain data and free functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/result.h"
#include "foretune/model/network/torch_layers.h"

namespace foretune {

// The rows to learn from. Rows of one problem are adjacent.
struct TrainingRows {
  // Inputs: columns of the problem, of the config, of both, in this order; transformed, not yet
  // standardised.
  std::uint32_t problem_columns = 0;
  std::uint32_t config_columns = 0;
  std::uint32_t interaction_columns = 0;
  // Columns (of 0 and 1) that are not standardised; ascending.
  std::vector<std::uint32_t> plain_columns;
  std::vector<float> inputs;           // row by row
  std::vector<std::uint32_t> problem;  // per row; ascending
  std::vector<float> log_time;         // per row: ln ns; for a censored row the ln of its bound
  std::vector<float> relative;         // per row: ln(time / best of the problem)
  std::vector<float> weight;           // per row: of the squared error
  std::vector<std::uint8_t> censored;  // per row: 1 where the time is a lower bound
  std::vector<std::uint32_t> fold;     // per problem
  std::vector<std::uint32_t> group;    // per problem: groups are not split; empty: each its own
  float tie = 0.01F;                   // ln time: closer rows of a problem form no pair

  [[nodiscard]] std::size_t columns() const {
    return std::size_t{problem_columns} + config_columns + interaction_columns;
  }
  [[nodiscard]] std::size_t size() const { return problem.size(); }
};

// The role of a row in the training. Stored in files: never renumber.
enum class RowRole : std::uint8_t {
  kTraining = 0,
  kStop = 1,     // of a problem that decides when to stop
  kHeldOut = 2,  // neither trained on nor used to stop
};

struct TrainedNetwork {
  std::vector<TorchLayer> layers;         // of the chain, or of the problem's tower
  std::vector<TorchLayer> config_layers;  // of the config's tower; empty for a chain
  std::vector<float> interaction;         // network.h
  // The network's output times `scale` plus `offset` is the prediction of the target.
  double scale = 1;
  double offset = 0;
  std::vector<double> mean;         // per column, including those that two towers ignore
  std::vector<double> inverse_std;  // per column
  std::vector<float> predictions;   // libtorch's, per row: ln time, relative or not as the target
  std::vector<std::uint8_t> roles;  // RowRole of every row
  std::uint32_t best_epoch = 0;     // from 1
  struct Epoch {
    double train_loss = 0;
    double stop_loss = 0;        // of the problems that decide when to stop; NaN without
    double stop_efficiency = 0;  // mean over them of best time / time of the pick; NaN without
    double learning_rate = 0;
    double seconds = 0;
    bool operator==(const Epoch&) const = default;
  };
  std::vector<Epoch> epochs;
  double samples_per_second = 0;  // of training alone
  std::string libtorch;           // its version, and the device
};

// Errors: kCorrupt with the reason; those of reading and writing files. Both writing and reading
// check the contents: lengths agree, rows of a problem are adjacent, all numbers are finite (or NaN
// where allowed), and the layers can be folded.
Status write_training_rows(const TrainingRows& rows, const std::filesystem::path& path);
Result<TrainingRows> read_training_rows(const std::filesystem::path& path);
Status write_trained_network(const TrainedNetwork& network, const std::filesystem::path& path);
Result<TrainedNetwork> read_trained_network(const std::filesystem::path& path);

// Write and read epochs as parts of files. A reader whose bytes do not hold them becomes bad.
void put_epochs(ByteWriter& writer, std::span<const TrainedNetwork::Epoch> epochs);
std::vector<TrainedNetwork::Epoch> get_epochs(ByteReader& reader);

}  // namespace foretune
