#include "foretune/interop/diode/import_diode.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/network/network_body.h"
#include "foretune/model/network/torch_layers.h"
#include "foretune/model/train/assemble.h"
#include "foretune/model/train/model_card.h"
#include "foretune/model/train/training_set.h"

namespace foretune {

using train_internal::begin_card;
using train_internal::check_role;
using train_internal::make_model;
using train_internal::make_training_set;
using train_internal::table_for;
using train_internal::TrainingSet;

namespace {

// Converts ln(ms) to ln(ns) by addition.
const double kLogNsPerMs = std::log(1e6);

// Diode's candidates are those of Inductor's template "mm", whose loads go through pointers.
constexpr std::int32_t kDiodesTemplate = 1;

// V1's inputs in the order of gemm-diode-v1, with the mean and deviation of their logarithms. The
// checkpoint does not hold these; they are in Diode's wrapper for it (ModelWrapper in
// matmul_model_v1.py).
struct V1Input {
  std::string_view raw_column;  // of gemm-diode, which counts bits as Diode does
  double mean;
  double std;
};
constexpr std::array<V1Input, 12> kV1Inputs{{{"dtype_bits", 2.78275084, 0.08322756},
                                             {"m", 8.23996746, 2.31893439},
                                             {"n", 7.27791873, 1.65605574},
                                             {"k", 7.92035942, 2.15447078},
                                             {"gigabytes", -2.39558163, 2.19682881},
                                             {"gflop", 3.40679233, 2.99600806},
                                             {"flops_per_byte", 5.80237395, 1.24328795},
                                             {"block_k", 3.95781827, 0.92352521},
                                             {"block_m", 4.19478321, 0.93849802},
                                             {"block_n", 4.19098234, 0.93872011},
                                             {"num_stages", 0.9045909, 0.57455891},
                                             {"num_warps", 1.28331208, 0.5837217}}};

std::string_view table_name(const DiodeCheckpoint& checkpoint, bool raw) {
  return raw ? "gemm-diode" : std::string_view(checkpoint.feature_table);
}

// Returns the inputs in the order of the checkpoint's first layer, which is that of the columns'
// kinds in both tables.
Result<std::vector<NetworkInput>> inputs_of(const DiodeCheckpoint& checkpoint,
                                            const FeatureTable& table, bool raw) {
  std::vector<NetworkInput> inputs;
  if (checkpoint.kind == DiodeKind::kV1 && raw) {
    std::array<std::string_view, kV1Inputs.size()> names;
    std::transform(kV1Inputs.begin(), kV1Inputs.end(), names.begin(),
                   [](const V1Input& input) { return input.raw_column; });
    FORETUNE_TRY(const std::vector<std::uint16_t> columns, find_columns(table, names));
    for (const std::uint16_t column : columns) {
      inputs.push_back({.column = column});
    }
    return inputs;
  }
  for (std::uint16_t column = 0; column < table.columns().size(); ++column) {
    NetworkInput input{.column = column};
    if (checkpoint.kind == DiodeKind::kV1) {
      input.transform = InputTransform::kLog;
      input.mean = kV1Inputs[column].mean;
      input.inverse_std = 1 / kV1Inputs[column].std;
    }
    inputs.push_back(input);
  }
  return inputs;
}

Result<Network> network_of(const DiodeCheckpoint& checkpoint, const FeatureTable& table, bool raw) {
  Network network;
  network.architecture = concat("diode-", to_string(checkpoint.kind), raw ? " raw" : "");
  FORETUNE_TRY(network.inputs, inputs_of(checkpoint, table, raw));
  for (const NetworkInput& input : network.inputs) {
    const FeatureKind kind = table.columns()[input.column].kind;
    ++(kind == FeatureKind::kProblem ? network.problem_inputs : network.config_inputs);
  }
  std::vector<TorchLayer> layers = checkpoint.layers;
  if (layers.empty() || layers.back().bias.size() != 1) {
    return fail(ErrorCode::kCorrupt, "the checkpoint's layers do not end in one number");
  }
  float& bias = layers.back().bias.front();
  bias = static_cast<float>(static_cast<double>(bias) + kLogNsPerMs);
  FORETUNE_TRY(network.layers, fold_layers(layers));
  network.has_least = checkpoint.has_least;
  if (network.has_least) {
    network.least = static_cast<float>(static_cast<double>(checkpoint.least) + kLogNsPerMs);
  }
  return network;
}

bool has_templates(const ConfigSchema& schema) {
  return !schema.parameters.empty() && schema.parameters.front().name == "template";
}

// Returns the rows of configs that Diode ranks.
Dataset ranked_rows(const Dataset& dataset) {
  Dataset out = dataset;
  if (has_templates(dataset.header().config_schema)) {
    out.drop_rows();
    for (const Dataset::Row& row : dataset.rows()) {
      if (dataset.configs()[row.config].words[0] == kDiodesTemplate) {
        out.add_row(row);
      }
    }
  }
  return out;
}

// Drops candidates that Diode does not rank. The rules of the space may have added them.
void keep_ranked(Model& model) {
  if (!has_templates(model.config_schema)) {
    return;
  }
  std::vector<Config> pool;
  std::unordered_map<std::uint32_t, std::uint32_t> moved;
  for (std::uint32_t i = 0; i < model.pool.size(); ++i) {
    if (model.pool[i].words[0] == kDiodesTemplate) {
      moved.emplace(i, static_cast<std::uint32_t>(pool.size()));
      pool.push_back(model.pool[i]);
    }
  }
  model.pool = std::move(pool);
  for (std::uint32_t& position : model.portfolio) {
    position = moved.at(position);  // made from measured rows, which Diode ranks
  }
}

std::string card_of(const DiodeCheckpoint& checkpoint, const Model& model, bool raw,
                    const Dataset& dataset) {
  const Network& network = networks_of(model).front();
  std::size_t weights = 0;
  for (const TorchLayer& layer : checkpoint.layers) {
    weights += layer.weight.size() + layer.bias.size();
  }
  nlohmann::ordered_json card =
      begin_card(model.kind, model.family, model.fingerprint, model.feature_table);
  card["target"] = model.target;
  card["imported"] = {{"from", "torch-diode"},
                      {"model", to_string(checkpoint.kind)},
                      {"raw", raw},
                      {"inputs", network.inputs.size()}};
  card["pool_data"] = dataset.fingerprint().hex();
  card["architecture"] = network.architecture;
  card["parameters"] = weights;
  return card.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

Result<Model> import_diode(const DiodeCheckpoint& checkpoint, const Dataset& dataset,
                           const DiodeImportOptions& options) {
  FORETUNE_TRY_STATUS(check_role(dataset));
  const bool raw = options.raw && checkpoint.kind == DiodeKind::kV1;
  FORETUNE_TRY(const FeatureTable* const table,
               table_for(dataset, std::string(table_name(checkpoint, raw))));
  const Dataset ranked = ranked_rows(dataset);
  FORETUNE_TRY(const TrainingSet set, make_training_set(ranked, *table, 0));
  TrainOptions training;
  training.portfolio_size = options.portfolio_size;
  FORETUNE_TRY(Model model, make_model(ranked, *table, set, training));
  keep_ranked(model);
  // The network was not trained on the data.
  model.data_fingerprint = {};
  model.target = to_string(Target::kLog);
  FORETUNE_TRY(Network network, network_of(checkpoint, *table, raw));
  set_networks(model, {std::move(network)});
  model.card_json = card_of(checkpoint, model, raw, dataset);
  FORETUNE_TRY_STATUS(check_model(model));
  return model;
}

}  // namespace foretune
