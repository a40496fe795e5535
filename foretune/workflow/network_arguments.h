// Options of `train` for neural cost models.
// Thread safety: used by the main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "foretune/base/result.h"
#include "foretune/model/train/trainer.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/options.h"

namespace foretune::workflow {

struct NetworkArguments {
  NetworkOptions defaults;
  std::optional<std::int64_t> batch_size;
  std::int64_t num_epochs = defaults.num_epochs;
  std::int64_t patience = defaults.patience;
  std::string hidden_dims = "256,512,256,128,64";
  std::int64_t hidden_dim = defaults.hidden_dim;
  std::int64_t num_layers = defaults.num_layers;
  double dropout = defaults.dropout;
  std::int64_t tower_layers = defaults.tower_layers;
  std::int64_t dot = defaults.dot;
  std::int64_t interaction = defaults.interaction;
  std::string loss = defaults.loss;
  std::int64_t group_size = defaults.group_size;
  std::string optimizer = defaults.optimizer;
  double clip = defaults.clip;
  double stop_share = defaults.stop_share;
  std::int64_t networks = defaults.networks;
  std::string weights = "f32";
  std::string device = defaults.device;
  std::string partner = defaults.partner;
  std::string standardise = "yes";
  std::string split = "problem";
  std::string work_dir;
  bool resume = false;
  std::string trainer;

  // `model_type` is the type of the trained model; it must outlive `list`.
  void visit(OptionList& list, const std::string& model_type);
  // Errors: kInvalidArgument for numbers that make no sense.
  [[nodiscard]] Result<NetworkOptions> options(const Invocation& invocation) const;
};

}  // namespace foretune::workflow
