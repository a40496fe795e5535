#include "options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "foretune/base/text.h"

namespace foretune::network_training {
namespace {

constexpr std::uint32_t kMaxWidth = 4096;
constexpr std::uint32_t kMaxLayers = 64;
constexpr std::uint32_t kMaxCount = 1U << 30U;

struct LossName {
  std::string_view name;
  LossKind kind;
};
constexpr std::array kLosses{
    LossName{"mse", LossKind::kSquaredError}, LossName{"margin", LossKind::kMargin},
    LossName{"lambdarank", LossKind::kLambdaRank}, LossName{"listmle", LossKind::kListMle}};

Result<std::uint32_t> count_of(std::string_view text, std::uint32_t low, std::uint32_t high) {
  const std::optional<std::uint64_t> value = parse_uint(text);
  if (!value || *value < low || *value > high) {
    return fail(ErrorCode::kInvalidArgument, quoted(text), " is no whole number from ", low, " to ",
                high);
  }
  return static_cast<std::uint32_t>(*value);
}

Result<double> number_of(std::string_view text, double low, double high) {
  const std::optional<double> value = parse_double(text);
  if (!value || !(*value >= low) || !(*value <= high)) {
    return fail(ErrorCode::kInvalidArgument, quoted(text), " is no number from ", low, " to ",
                high);
  }
  return *value;
}

// The position of `text` among `words`, which are separated by bars.
Result<std::size_t> choice_of(std::string_view text, std::string_view words) {
  const std::vector<std::string_view> choices = split(words, '|');
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found == choices.end()) {
    return fail(ErrorCode::kInvalidArgument, quoted(text), " is none of ", words);
  }
  return static_cast<std::size_t>(found - choices.begin());
}

template <auto Member, std::uint32_t Low, std::uint32_t High>
Status set_count(TrainOptions& options, std::string_view text) {
  FORETUNE_TRY(options.*Member, count_of(text, Low, High));
  return {};
}

template <auto Member>
Status set_yes_or_no(TrainOptions& options, std::string_view text) {
  FORETUNE_TRY(const std::size_t choice, choice_of(text, "no|yes"));
  options.*Member = choice == 1;
  return {};
}

template <auto Member>
Status set_path(TrainOptions& options, std::string_view text) {
  if (text.empty()) {
    return fail(ErrorCode::kInvalidArgument, "the path is empty");
  }
  options.*Member = text;
  return {};
}

Status set_architecture(TrainOptions& options, std::string_view text) {
  FORETUNE_TRY(const std::size_t choice, choice_of(text, "standard|deep|two-tower"));
  options.architecture = static_cast<Architecture>(choice);
  return {};
}

Status set_hidden_dims(TrainOptions& options, std::string_view text) {
  options.hidden_dims.clear();
  for (const std::string_view piece : split(text, ',')) {
    FORETUNE_TRY(const std::uint32_t width, count_of(piece, 1, kMaxWidth));
    options.hidden_dims.push_back(width);
  }
  if (options.hidden_dims.size() > kMaxLayers) {
    return fail(ErrorCode::kInvalidArgument, options.hidden_dims.size(), " are more than ",
                kMaxLayers, " layers");
  }
  return {};
}

Status set_loss(TrainOptions& options, std::string_view text) {
  options.loss.clear();
  for (const std::string_view piece : split(text, ',')) {
    const std::size_t colon = piece.find(':');
    const std::string_view name = piece.substr(0, colon);
    FORETUNE_TRY(const std::size_t choice, choice_of(name, "mse|margin|lambdarank|listmle"));
    LossTerm term{.kind = kLosses[choice].kind};
    if (colon != std::string_view::npos) {
      FORETUNE_TRY(term.weight, number_of(piece.substr(colon + 1), 1e-9, 1e9));
    }
    if (std::any_of(options.loss.begin(), options.loss.end(),
                    [&](const LossTerm& other) { return other.kind == term.kind; })) {
      return fail(ErrorCode::kInvalidArgument, quoted(name), " is named twice");
    }
    options.loss.push_back(term);
  }
  return {};
}

Status set_seed(TrainOptions& options, std::string_view text) {
  const std::optional<std::uint64_t> value = parse_uint(text);
  if (!value) {
    return fail(ErrorCode::kInvalidArgument, quoted(text), " is no whole number");
  }
  options.seed = *value;
  return {};
}

Status set_held_out_fold(TrainOptions& options, std::string_view text) {
  const std::optional<std::int64_t> value = parse_int(text);
  if (!value || *value < -1 || *value > kMaxCount) {
    return fail(ErrorCode::kInvalidArgument, quoted(text), " is neither a fold nor -1");
  }
  options.held_out_fold = static_cast<std::int32_t>(*value);
  return {};
}

struct Key {
  std::string_view name;
  std::string_view value;
  std::string_view help;
  Status (*set)(TrainOptions& options, std::string_view text);
};

using Options = TrainOptions;

constexpr std::array kKeys{
    Key{"rows", "FILE", "what to learn from", &set_path<&Options::rows>},
    Key{"out", "FILE", "where the trained network goes", &set_path<&Options::out>},
    Key{"architecture", "standard|deep|two-tower", "the network's shape (standard)",
        &set_architecture},
    Key{"hidden-dims", "LIST", "standard: widths (256,512,256,128,64)", &set_hidden_dims},
    Key{"hidden-dim", "N", "deep, two-tower: width (128)",
        &set_count<&Options::hidden_dim, 1, kMaxWidth>},
    Key{"num-layers", "N", "deep: residual blocks (10)",
        &set_count<&Options::num_layers, 0, kMaxLayers>},
    Key{"tower-layers", "N", "two-tower: hidden layers of each tower (2)",
        &set_count<&Options::tower_layers, 0, kMaxLayers>},
    Key{"dot", "N", "two-tower: length of the dot product (32)",
        &set_count<&Options::dot, 0, kMaxWidth / 4>},
    Key{"interaction", "N", "two-tower: units of interaction (32)",
        &set_count<&Options::interaction, 0, kMaxWidth / 4>},
    Key{"dropout", "P", "share of units left out in training (0.2)",
        [](Options& options, std::string_view text) -> Status {
          FORETUNE_TRY(options.dropout, number_of(text, 0, 0.95));
          return {};
        }},
    Key{"loss", "LIST", "mse, margin, lambdarank, listmle, or weighted: mse:1,listmle:0.5 (mse)",
        &set_loss},
    Key{"target", "relative-log|log", "what is predicted (relative-log)",
        [](Options& options, std::string_view text) -> Status {
          FORETUNE_TRY(const std::size_t choice, choice_of(text, "relative-log|log"));
          options.is_relative_target = choice == 0;
          return {};
        }},
    Key{"batch-size", "N", "rows per step, 0: by their number, 64 to 1024 (0)",
        &set_count<&Options::batch_size, 0, kMaxCount>},
    Key{"group-size", "N", "ranking losses: configs of one problem that are compared (64)",
        &set_count<&Options::group_size, 2, kMaxWidth>},
    Key{"num-epochs", "N", "at most (100)", &set_count<&Options::num_epochs, 1, kMaxCount>},
    Key{"learning-rate", "X", "at first (0.001)",
        [](Options& options, std::string_view text) -> Status {
          FORETUNE_TRY(options.learning_rate, number_of(text, 1e-12, 100));
          return {};
        }},
    Key{"weight-decay", "X", "(0.00001)",
        [](Options& options, std::string_view text) -> Status {
          FORETUNE_TRY(options.weight_decay, number_of(text, 0, 100));
          return {};
        }},
    Key{"patience", "N", "epochs without a better one before the end, 0: never (10)",
        &set_count<&Options::patience, 0, kMaxCount>},
    Key{"plateau-patience", "N", "epochs without progress before the learning rate halves (5)",
        &set_count<&Options::plateau_patience, 0, kMaxCount>},
    Key{"clip", "X", "largest norm of a gradient, 0: any (1)",
        [](Options& options, std::string_view text) -> Status {
          FORETUNE_TRY(options.clip, number_of(text, 0, 1e9));
          return {};
        }},
    Key{"optimizer", "adam|adamw", "with weight decay as L2, or apart from the gradient (adam)",
        [](Options& options, std::string_view text) -> Status {
          FORETUNE_TRY(const std::size_t choice, choice_of(text, "adam|adamw"));
          options.optimizer = static_cast<Optimizer>(choice);
          return {};
        }},
    Key{"seed", "N", "of all that is random (1)", &set_seed},
    Key{"threads", "N", "of the processor (1)", &set_count<&Options::threads, 1, 1024>},
    Key{"device", "cpu|cuda", "where it is trained (cpu)",
        [](Options& options, std::string_view text) -> Status {
          FORETUNE_TRY(const std::size_t choice, choice_of(text, "cpu|cuda"));
          options.is_cuda = choice == 1;
          return {};
        }},
    Key{"held-out-fold", "N", "problems of this fold are not learned from, -1: all are (-1)",
        &set_held_out_fold},
    Key{"stop-share", "X", "share of the other problems that decide when to stop (0.1)",
        [](Options& options, std::string_view text) -> Status {
          FORETUNE_TRY(options.stop_share, number_of(text, 0, 0.9));
          return {};
        }},
    Key{"split", "problem|sample", "sample: by row, which leaks; for comparison (problem)",
        [](Options& options, std::string_view text) -> Status {
          FORETUNE_TRY(const std::size_t choice, choice_of(text, "problem|sample"));
          options.splits_rows = choice == 1;
          return {};
        }},
    Key{"standardise", "yes|no", "no: inputs stay as they are; for comparison (yes)",
        &set_yes_or_no<&Options::standardises>},
    Key{"checkpoint", "FILE", "replaced after every epoch", &set_path<&Options::checkpoint>},
    Key{"resume", "yes|no", "go on from the checkpoint where there is one (no)",
        &set_yes_or_no<&Options::resumes>},
    Key{"log-dir", "DIR", "epochs as CSV and for TensorBoard", &set_path<&Options::log_dir>},
    Key{"progress", "yes|no", "a line per epoch on standard output (no)",
        &set_yes_or_no<&Options::shows_progress>},
};

const Key* find_key(std::string_view name) {
  const auto* const found =
      std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& key) { return key.name == name; });
  return found == kKeys.end() ? nullptr : found;
}

tl::unexpected<Error> unknown_key(std::string_view argument) {
  std::vector<std::string> names;
  for (const Key& key : kKeys) {
    names.push_back(concat("--", key.name));
  }
  const std::string nearest = nearest_word(argument, names);
  return fail(ErrorCode::kInvalidArgument, "there is no option ", quoted(argument),
              nearest.empty() ? std::string() : concat("; did you mean ", nearest, "?"));
}

Status check_options(const TrainOptions& options) {
  if (options.rows.empty() || options.out.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--rows and --out are needed");
  }
  if (options.resumes && options.checkpoint.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--resume yes needs a --checkpoint");
  }
  if (options.architecture == Architecture::kTwoTower && options.dot + options.interaction == 0) {
    return fail(ErrorCode::kInvalidArgument, "two towers need a --dot or an --interaction");
  }
  return {};
}

}  // namespace

bool TrainOptions::is_ranking() const {
  return std::any_of(loss.begin(), loss.end(),
                     [](const LossTerm& term) { return term.kind != LossKind::kSquaredError; });
}

bool TrainOptions::has_squared_error() const {
  return std::any_of(loss.begin(), loss.end(),
                     [](const LossTerm& term) { return term.kind == LossKind::kSquaredError; });
}

std::string TrainOptions::identity() const {
  std::string text = concat(static_cast<int>(architecture), " ", hidden_dim, " ", num_layers, " ",
                            tower_layers, " ", dot, " ", interaction, " ", dropout);
  for (const std::uint32_t width : hidden_dims) {
    text += concat(" ", width);
  }
  for (const LossTerm& term : loss) {
    text += concat(" loss ", static_cast<int>(term.kind), " ", term.weight);
  }
  return concat(text, " ", is_relative_target, " ", batch_size, " ", group_size, " ", learning_rate,
                " ", weight_decay, " ", plateau_patience, " ", clip, " ",
                static_cast<int>(optimizer), " ", seed, " ", held_out_fold, " ", stop_share, " ",
                splits_rows, " ", standardises);
}

Result<TrainOptions> parse_options(std::span<const char* const> arguments) {
  TrainOptions options;
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    const std::string_view argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      options.wants_help = true;
      return options;
    }
    const Key* key = argument.starts_with("--") ? find_key(argument.substr(2)) : nullptr;
    if (key == nullptr) {
      return unknown_key(argument);
    }
    if (i + 1 == arguments.size()) {
      return fail(ErrorCode::kInvalidArgument, "--", key->name, " needs a value: ", key->value);
    }
    if (const Status status = key->set(options, arguments[i + 1]); !status) {
      return fail_because(status.error(), "--", key->name);
    }
  }
  FORETUNE_TRY_STATUS(check_options(options));
  return options;
}

std::string help_text() {
  std::string out =
      "foretune-train-network --rows FILE --out FILE [--key value ...]\n\n"
      "Trains a neural cost model with libtorch; started by `foretune train`.\n\n";
  for (const Key& key : kKeys) {
    std::string line = concat("  --", key.name, " ", key.value);
    line.resize(std::max(line.size() + 2, std::size_t{42}), ' ');
    out += concat(line, key.help, "\n");
  }
  return out;
}

}  // namespace foretune::network_training
