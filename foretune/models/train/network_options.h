// How a neural cost model is trained. The names and defaults of the standard and the deep network
// are torch-diode's (github.com/exclamaforte/diode).
// Thread safety: plain data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace foretune {

struct NetworkOptions {
  // The program that trains, foretune-train-network. Empty: there is none.
  std::filesystem::path program;

  // Widths of the standard network's hidden layers.
  std::vector<std::uint32_t> hidden_dims{256, 512, 256, 128, 64};
  // Of the deep network: width and residual blocks. The width is the towers' too.
  std::uint32_t hidden_dim = 128;
  std::uint32_t num_layers = 10;
  double dropout = 0.2;
  // Of two towers: hidden layers of each, length of the dot product, units of the network between.
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
  std::uint32_t patience = 10;  // epochs without a lower loss before it stops
  double clip = 1;              // norm of the gradient
  std::string optimizer = "adam";
  // Share of the training problems that do not train but decide when to stop.
  double stop_share = 0.1;
  std::uint32_t networks = 1;  // that differ in their seed; scores are averaged
  // Weights of 8 bits between the first layer and the last, of the standard and the deep network:
  // what is held out is judged with them.
  bool int8_weights = false;
  std::string device = "cpu";    // or "cuda"
  std::string partner = "deep";  // the network of an ensemble with trees
  std::uint32_t threads = 2;

  // Two ways to fool oneself, for showing what they do: inputs as they are (neither logarithms nor
  // standardised), and a split by
  // measurement, so that every held-out problem was trained on.
  bool standardises = true;
  bool splits_by_sample = false;

  // Where rows, checkpoints and trained networks stay; empty: nowhere. With `resumes`, what is
  // there of an interrupted training with the same data and options is gone on with.
  std::filesystem::path work_folder;
  bool resumes = false;
};

}  // namespace foretune
