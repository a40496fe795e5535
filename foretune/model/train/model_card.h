// The model card describes as JSON the kind of a model, its training and its held-out quality.
// Internal.
// Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/dataset/dataset.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/forest/forest.h"
#include "foretune/model/train/files/training_files.h"
#include "foretune/model/train/trainer.h"

namespace foretune::train_internal {

// Returns the part that the cards of all models begin with.
nlohmann::ordered_json begin_card(std::string_view kind, std::string_view family,
                                  const Fingerprint& fingerprint, std::string_view features);

// Adds to the part of a card about the data "identifiers": by the name of each field that is one
// (ProblemField::is_identifier) its numbers in the data, ascending.
void add_identifiers(const Dataset& dataset, nlohmann::ordered_json& data);

struct CardFacts {
  TrainOptions options;
  std::uint32_t folds = 0;
  std::size_t examples = 0;
  std::uint64_t failed_rows = 0;
  Target target = Target::kRelativeLog;
  bool log1p = false;
  double score_factor = 1;
  std::uint32_t trees = 0;  // of each forest; split counts are of the first
  double residual_std = 0;
  // The mean efficiency of each target, when both were tried.
  std::vector<std::pair<Target, double>> compared;
  std::vector<std::pair<std::string, double>> metrics;
};

// The training of one network.
struct NetworkCurve {
  std::int32_t held_out_fold = -1;  // from 0; -1: none, all data
  std::uint32_t network = 0;        // from 0
  std::uint32_t best_epoch = 0;     // from 1
  std::vector<TrainedNetwork::Epoch> epochs;
};

struct NetworkCardFacts {
  TrainOptions options;
  std::string kind = "network";
  std::string architecture;
  std::uint32_t folds = 0;
  std::size_t examples = 0;
  std::uint64_t failed_rows = 0;
  std::size_t weights = 0;  // of each network
  bool has_epochs = true;   // else it was fitted by others, who know of none of the options
  std::string libtorch;
  std::vector<std::pair<std::string, double>> metrics;
  std::vector<NetworkCurve> curves;
};
// Keeps about a hundred epochs of a long curve, the first, the best and the last among them.
std::string network_card(const Dataset& dataset, const FeatureTable& table,
                         const NetworkCardFacts& facts);

std::string model_card(const Dataset& dataset, const FeatureTable& table, const Forest& forest,
                       const CardFacts& facts);

}  // namespace foretune::train_internal
