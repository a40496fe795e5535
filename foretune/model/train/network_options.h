// Options for training a neural cost model. The names and defaults of the standard and the deep
// network are torch-diode's (github.com/exclamaforte/diode).
// Thread safety: plain data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace foretune {

struct NetworkOptions {
  // The training program, foretune-train-network. Empty: there is none.
  std::filesystem::path program;

  // Widths of the standard network's hidden layers.
  std::vector<std::uint32_t> hidden_dims{256, 512, 256, 128, 64};
  // Width and number of residual blocks of the deep network. The towers have the same width.
  std::uint32_t hidden_dim = 128;
  std::uint32_t num_layers = 10;
  double dropout = 0.2;
  // Two towers: hidden layers of each, length of the dot product, hidden units between the towers.
  std::uint32_t tower_layers = 2;
  std::uint32_t dot = 32;
  std::uint32_t interaction = 32;

  // "mse", "margin", "lambdarank", "listmle", or a mixture as "mse:1,lambdarank:0.5".
  std::string loss = "mse";
  std::uint32_t batch_size = 0;   // rows; 0: 1,024
  std::uint32_t group_size = 64;  // configs of a problem that a ranking loss sees together
  std::uint32_t num_epochs = 100;
  double learning_rate = 1e-3;
  double weight_decay = 1e-5;
  std::uint32_t patience = 10;  // epochs without a lower loss before training stops
  double clip = 1;              // norm of the gradient
  std::string optimizer = "adam";
  // Share of the training problems that do not train but decide when to stop.
  double stop_share = 0.1;
  std::uint32_t networks = 1;  // with different seeds; scores are averaged
  // Quantises the layers between the first and the last to 8 bits, for the standard and the deep
  // network. Held-out figures are measured with these weights.
  bool int8_weights = false;
  std::string device = "cpu";    // or "cuda"
  std::string partner = "deep";  // the network of an ensemble with trees
  std::uint32_t threads = 2;

  // Two mistakes, for demonstrating their effect: raw inputs (neither logarithms nor standardised),
  // and a split by measurement, so that every held-out problem was trained on.
  bool standardises = true;
  bool splits_by_sample = false;

  // The folder where rows, checkpoints and trained networks stay; empty: they are not kept. With
  // `resumes`, an interrupted training with the same data and options continues from these files.
  std::filesystem::path work_folder;
  bool resumes = false;
};

}  // namespace foretune
