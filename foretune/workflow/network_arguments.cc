#include "foretune/workflow/network_arguments.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/workflow/trainer_program.h"

namespace foretune::workflow {
namespace {

constexpr std::string_view kProgram = "foretune-train-network";

Result<std::vector<std::uint32_t>> widths_of(const std::string& text) {
  constexpr std::uint64_t kWidest = 4096;
  std::vector<std::uint32_t> out;
  for (const std::string_view width : split(text, ',')) {
    const auto number = parse_uint(trim(width));
    if (!number || *number < 1 || *number > kWidest) {
      return fail(ErrorCode::kInvalidArgument, "--hidden-dims wants widths from 1 to ", kWidest,
                  " with commas, not ", quoted(std::string_view(text)));
    }
    out.push_back(static_cast<std::uint32_t>(*number));
  }
  return out;
}

// Returns true when any part of a loss ranks the configs of a problem together.
bool ranks(const std::string& loss) {
  const std::vector<std::string_view> parts = split(loss, ',');
  return std::any_of(parts.begin(), parts.end(),
                     [](std::string_view part) { return split(part, ':').front() != "mse"; });
}

}  // namespace

void NetworkArguments::visit(OptionList& list, const std::string& model_type) {
  list.section("Neural models", {"with --model-type standard, deep, two-tower or ensemble",
                                 [&model_type] { return model_type != "gbdt"; }});
  const auto trains = [this, &model_type](std::string_view network) {
    return (model_type == "ensemble" ? partner : model_type) == network;
  };
  const Condition is_standard{"for the network standard", [trains] { return trains("standard"); }};
  const Condition is_deep{"for the network deep", [trains] { return trains("deep"); }};
  const Condition is_two_tower{"for the network two-tower",
                               [trains] { return trains("two-tower"); }};
  const Condition has_width{"for the networks deep and two-tower",
                            [trains] { return trains("deep") || trains("two-tower"); }};
  const Condition has_chain{"for the networks standard and deep",
                            [trains] { return trains("standard") || trains("deep"); }};
  const Condition is_ranked{"for a network with a ranking --loss", [this] { return ranks(loss); }};
  list.add("batch-size", batch_size, "N", "rows per step (default: 1024)").at_least(1);
  list.add("num-epochs", num_epochs, "N", "maximum number of epochs; early stopping decides")
      .at_least(1);
  list.add("patience", patience, "N", "epochs without a lower loss before training stops")
      .at_least(1);
  list.add("loss", loss, "NAME",
           "mse, margin, lambdarank, listmle, or a mixture such as mse:1,lambdarank:0.5");
  list.add("group-size", group_size, "N",
           "number of configs of a problem that a ranking loss sees together")
      .at_least(2)
      .only(is_ranked);
  list.add("hidden-dims", hidden_dims, "LIST", "widths of the hidden layers").only(is_standard);
  list.add("hidden-dim", hidden_dim, "N", "width of every hidden layer")
      .at_least(1)
      .at_most(4096)
      .only(has_width);
  list.add("num-layers", num_layers, "N", "number of residual blocks")
      .at_least(1)
      .at_most(100)
      .only(is_deep);
  list.add("tower-layers", tower_layers, "N", "number of hidden layers of each tower")
      .at_least(1)
      .at_most(16)
      .only(is_two_tower);
  list.add("dot", dot, "N", "length of the towers' dot product")
      .at_least(1)
      .at_most(1024)
      .only(is_two_tower);
  list.add("interaction", interaction, "N", "units of the network between the towers")
      .at_least(0)
      .at_most(1024)
      .only(is_two_tower);
  list.add("dropout", dropout, "X", "dropout rate");
  list.add("optimizer", optimizer, "NAME", "optimizer").choose({"adam", "adamw"});
  list.add("clip", clip, "X", "largest norm of the gradient; longer ones are scaled down");
  list.add("stop-share", stop_share, "X",
           "share of the training problems held back to decide when to stop");
  list.add("networks", networks, "N", "number of networks whose scores are averaged").at_least(1);
  list.add("weights", weights, "TYPE", "number format of the layers between the first and the last")
      .choose({"f32", "int8"})
      .only(has_chain);
  list.add("device", device, "NAME", "device to train on").choose({"cpu", "cuda"});
  list.add("ensemble-with", partner, "TYPE", "network of the ensemble")
      .choose({"standard", "deep", "two-tower"})
      .only({"with --model-type ensemble", [&model_type] { return model_type == "ensemble"; }});
  list.add("standardise", standardise, "YES",
           "no leaves the inputs as they are, which costs accuracy")
      .choose({"yes", "no"});
  list.add("split", split, "BY",
           "sample holds out measurements instead of problems, which flatters the figures")
      .choose({"problem", "sample"});
  list.add("work-dir", work_dir, "DIR", "folder for checkpoints and trained networks");
  list.add_switch("resume", resume, "continue an interrupted training")
      .only({"with the --work-dir of that training", [this] { return !work_dir.empty(); }});
  list.add("trainer", trainer, "FILE",
           "program that trains networks (default: foretune-train-network beside this one)");
}

Result<NetworkOptions> NetworkArguments::options(const Invocation& invocation) const {
  if (!(dropout >= 0 && dropout < 1) || !(stop_share >= 0 && stop_share <= 0.9) || !(clip > 0)) {
    return fail(ErrorCode::kInvalidArgument,
                "--dropout must be from 0 and below 1, --stop-share from 0 to 0.9, --clip above 0");
  }
  NetworkOptions out;
  FORETUNE_TRY(out.hidden_dims, widths_of(hidden_dims));
  const auto small = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  out.program = trainer.empty() ? trainer_program(kProgram, invocation.worker_command.front())
                                : std::filesystem::path(trainer);
  out.batch_size = small(batch_size.value_or(0));
  out.num_epochs = small(num_epochs);
  out.patience = small(patience);
  out.hidden_dim = small(hidden_dim);
  out.num_layers = small(num_layers);
  out.dropout = dropout;
  out.tower_layers = small(tower_layers);
  out.dot = small(dot);
  out.interaction = small(interaction);
  out.loss = loss;
  out.group_size = small(group_size);
  out.optimizer = optimizer;
  out.clip = clip;
  out.stop_share = stop_share;
  out.networks = small(networks);
  out.int8_weights = weights == "int8";
  out.device = device;
  out.partner = partner;
  out.standardises = standardise == "yes";
  out.splits_by_sample = split == "sample";
  out.work_folder = work_dir;
  out.resumes = resume;
  return out;
}

}  // namespace foretune::workflow
