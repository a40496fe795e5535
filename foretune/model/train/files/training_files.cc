#include "foretune/model/train/files/training_files.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/statistics.h"
#include "foretune/model/train/files/sealed_file.h"

namespace foretune {
namespace {

constexpr FileSeal kRowsSeal{.magic = {0x89, 'F', 'T', 'R', 0x0d, 0x0a, 0x1a, 0x0a},
                             .version = 1,
                             .name = "a file of training rows"};
constexpr FileSeal kNetworkSeal{.magic = {0x89, 'F', 'T', 'N', 0x0d, 0x0a, 0x1a, 0x0a},
                                .version = 1,
                                .name = "a file of a trained network"};

// Fits the inputs' tensors and their indices, with room to spare.
constexpr std::size_t kMaxRows = std::size_t{1} << 31U;

Status check_columns(const TrainingRows& rows) {
  if (rows.problem_columns > Network::kMaxInputs || rows.config_columns > Network::kMaxInputs ||
      rows.interaction_columns > Network::kMaxInputs || rows.columns() == 0 ||
      rows.columns() > Network::kMaxInputs) {
    return fail(ErrorCode::kCorrupt, "rows of ", rows.problem_columns, " + ", rows.config_columns,
                " + ", rows.interaction_columns, " columns are not possible");
  }
  for (std::size_t i = 0; i < rows.plain_columns.size(); ++i) {
    if (rows.plain_columns[i] >= rows.columns() ||
        (i > 0 && rows.plain_columns[i] <= rows.plain_columns[i - 1])) {
      return fail(ErrorCode::kCorrupt, "the plain column ", rows.plain_columns[i],
                  " is not ascending or not one of ", rows.columns());
    }
  }
  return {};
}

Status check_problems(const TrainingRows& rows) {
  if (!rows.group.empty() && rows.group.size() != rows.fold.size()) {
    return fail(ErrorCode::kCorrupt, rows.group.size(), " groups are given for ", rows.fold.size(),
                " problems");
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows.problem[i] >= rows.fold.size()) {
      return fail(ErrorCode::kCorrupt, "row ", i, " is of problem ", rows.problem[i], " of ",
                  rows.fold.size());
    }
    if (i > 0 && rows.problem[i] < rows.problem[i - 1]) {
      return fail(ErrorCode::kCorrupt, "row ", i, " is of problem ", rows.problem[i],
                  ", after one of problem ", rows.problem[i - 1]);
    }
    if (rows.censored[i] > 1) {
      return fail(ErrorCode::kCorrupt, "row ", i, " is neither censored nor not");
    }
    if (rows.weight[i] < 0) {
      return fail(ErrorCode::kCorrupt, "row ", i, " has the weight ", rows.weight[i]);
    }
  }
  return {};
}

Status check_rows(const TrainingRows& rows) {
  FORETUNE_TRY_STATUS(check_columns(rows));
  const std::size_t count = rows.size();
  if (count > kMaxRows) {
    return fail(ErrorCode::kCorrupt, count, " rows are too many");
  }
  if (rows.inputs.size() != count * rows.columns()) {
    return fail(ErrorCode::kCorrupt, count, " rows of ", rows.columns(), " columns have ",
                rows.inputs.size(), " inputs");
  }
  const auto check_length = [&](std::string_view name, std::size_t length) -> Status {
    if (length != count) {
      return fail(ErrorCode::kCorrupt, count, " rows have ", length, " values of ", name);
    }
    return {};
  };
  FORETUNE_TRY_STATUS(check_length("log time", rows.log_time.size()));
  FORETUNE_TRY_STATUS(check_length("relative time", rows.relative.size()));
  FORETUNE_TRY_STATUS(check_length("weight", rows.weight.size()));
  FORETUNE_TRY_STATUS(check_length("censored", rows.censored.size()));
  if (!all_finite(rows.inputs) || !all_finite(rows.log_time) || !all_finite(rows.relative) ||
      !all_finite(rows.weight)) {
    return fail(ErrorCode::kCorrupt, "a row holds something that is no number");
  }
  if (!std::isfinite(rows.tie) || rows.tie < 0) {
    return fail(ErrorCode::kCorrupt, "the tie ", rows.tie, " is none");
  }
  return check_problems(rows);
}

void put_rows(ByteWriter& writer, const TrainingRows& rows) {
  writer.put(rows.problem_columns, rows.config_columns, rows.interaction_columns);
  put_array(writer, rows.plain_columns);
  put_array(writer, rows.inputs);
  put_array(writer, rows.problem);
  put_array(writer, rows.log_time);
  put_array(writer, rows.relative);
  put_array(writer, rows.weight);
  put_array(writer, rows.censored);
  put_array(writer, rows.fold);
  put_array(writer, rows.group);
  writer.put(rows.tie);
}

Result<TrainingRows> get_rows(ByteReader& reader) {
  TrainingRows rows;
  rows.problem_columns = reader.get<std::uint32_t>();
  rows.config_columns = reader.get<std::uint32_t>();
  rows.interaction_columns = reader.get<std::uint32_t>();
  rows.plain_columns = get_array<std::uint32_t>(reader);
  rows.inputs = get_array<float>(reader);
  rows.problem = get_array<std::uint32_t>(reader);
  rows.log_time = get_array<float>(reader);
  rows.relative = get_array<float>(reader);
  rows.weight = get_array<float>(reader);
  rows.censored = get_array<std::uint8_t>(reader);
  rows.fold = get_array<std::uint32_t>(reader);
  rows.group = get_array<std::uint32_t>(reader);
  rows.tie = reader.get<float>();
  return rows;
}

Status check_towers(const TrainedNetwork& network, std::uint32_t outputs) {
  FORETUNE_TRY(const std::vector<DenseLayer> config, fold_layers(network.config_layers));
  if (config.back().outputs != outputs + 1 || outputs < network.interaction.size()) {
    return fail(ErrorCode::kCorrupt, "towers of ", outputs, " and ", config.back().outputs,
                " outputs do not meet in ", network.interaction.size(), " units of interaction");
  }
  return {};
}

Status check_layers(const TrainedNetwork& network) {
  FORETUNE_TRY(const std::vector<DenseLayer> layers, fold_layers(network.layers));
  const std::uint32_t outputs = layers.back().outputs;
  if (!network.config_layers.empty()) {
    return check_towers(network, outputs);
  }
  if (outputs != 1 || !network.interaction.empty()) {
    return fail(ErrorCode::kCorrupt, "a chain ends in ", outputs, " outputs and ",
                network.interaction.size(), " units of interaction");
  }
  return {};
}

Status check_epochs(const TrainedNetwork& network) {
  if (network.best_epoch == 0 || network.best_epoch > network.epochs.size()) {
    return fail(ErrorCode::kCorrupt, "epoch ", network.best_epoch, " cannot be the best of ",
                network.epochs.size());
  }
  for (const TrainedNetwork::Epoch& epoch : network.epochs) {
    if (!std::isfinite(epoch.train_loss) || std::isinf(epoch.stop_loss) ||
        std::isinf(epoch.stop_efficiency) || !std::isfinite(epoch.learning_rate) ||
        !std::isfinite(epoch.seconds)) {
      return fail(ErrorCode::kCorrupt, "an epoch holds something that is no number");
    }
  }
  return {};
}

Status check_network(const TrainedNetwork& network) {
  FORETUNE_TRY_STATUS(check_layers(network));
  FORETUNE_TRY_STATUS(check_epochs(network));
  if (network.mean.size() != network.inverse_std.size() ||
      network.roles.size() != network.predictions.size()) {
    return fail(ErrorCode::kCorrupt, "it has ", network.mean.size(), " means, ",
                network.inverse_std.size(), " deviations, ", network.predictions.size(),
                " predictions and ", network.roles.size(), " roles");
  }
  if (!all_finite(network.interaction) || !all_finite(network.mean) ||
      !all_finite(network.inverse_std) || !all_finite(network.predictions) ||
      !std::isfinite(network.scale) || !std::isfinite(network.offset) ||
      !std::isfinite(network.samples_per_second)) {
    return fail(ErrorCode::kCorrupt, "it holds something that is no number");
  }
  if (std::any_of(network.roles.begin(), network.roles.end(), [](std::uint8_t role) {
        return role > static_cast<std::uint8_t>(RowRole::kHeldOut);
      })) {
    return fail(ErrorCode::kCorrupt, "a row has a role that this version does not know");
  }
  return {};
}

void put_trained(ByteWriter& writer, const TrainedNetwork& network) {
  put_torch_layers(writer, network.layers);
  put_torch_layers(writer, network.config_layers);
  put_array(writer, network.interaction);
  writer.put(network.scale, network.offset);
  put_array(writer, network.mean);
  put_array(writer, network.inverse_std);
  put_array(writer, network.predictions);
  put_array(writer, network.roles);
  writer.put(network.best_epoch);
  put_epochs(writer, network.epochs);
  writer.put(network.samples_per_second);
  writer.put_string(network.libtorch);
}

Result<TrainedNetwork> get_trained(ByteReader& reader) {
  TrainedNetwork network;
  FORETUNE_TRY(network.layers, get_torch_layers(reader));
  FORETUNE_TRY(network.config_layers, get_torch_layers(reader));
  network.interaction = get_array<float>(reader);
  network.scale = reader.get<double>();
  network.offset = reader.get<double>();
  network.mean = get_array<double>(reader);
  network.inverse_std = get_array<double>(reader);
  network.predictions = get_array<float>(reader);
  network.roles = get_array<std::uint8_t>(reader);
  network.best_epoch = reader.get<std::uint32_t>();
  network.epochs = get_epochs(reader);
  network.samples_per_second = reader.get<double>();
  network.libtorch = reader.get_string();
  return network;
}

template <class T>
Status write_sealed(const T& value, const FileSeal& what, Status (*check)(const T&),
                    void (*put)(ByteWriter&, const T&), const std::filesystem::path& path) {
  if (const Status status = check(value); !status) {
    return fail_because(status.error(), path.string(), " is not written");
  }
  ByteWriter writer;
  put(writer, value);
  return write_file_atomically(path, seal(what, writer.bytes()));
}

template <class T>
Result<T> read_sealed(const FileSeal& what, Status (*check)(const T&),
                      Result<T> (*get)(ByteReader&), const std::filesystem::path& path) {
  FORETUNE_TRY(const MappedFile file, MappedFile::open(path));
  const auto read = [&]() -> Result<T> {
    FORETUNE_TRY(const std::span<const std::byte> body, unseal(what, file.bytes()));
    ByteReader reader(body);
    FORETUNE_TRY(T value, get(reader));
    if (!reader.ok() || !reader.at_end()) {
      return fail(ErrorCode::kCorrupt, "its parts have other lengths than it says");
    }
    FORETUNE_TRY_STATUS(check(value));
    return value;
  };
  Result<T> value = read();
  if (!value) {
    return fail_because(value.error(), path.string());
  }
  return value;
}

}  // namespace

void put_epochs(ByteWriter& writer, std::span<const TrainedNetwork::Epoch> epochs) {
  writer.put_varint(epochs.size());
  for (const TrainedNetwork::Epoch& epoch : epochs) {
    writer.put(epoch.train_loss, epoch.stop_loss, epoch.stop_efficiency, epoch.learning_rate,
               epoch.seconds);
  }
}

std::vector<TrainedNetwork::Epoch> get_epochs(ByteReader& reader) {
  std::vector<TrainedNetwork::Epoch> epochs(reader.get_count(5 * sizeof(double)));
  for (TrainedNetwork::Epoch& epoch : epochs) {
    epoch.train_loss = reader.get<double>();
    epoch.stop_loss = reader.get<double>();
    epoch.stop_efficiency = reader.get<double>();
    epoch.learning_rate = reader.get<double>();
    epoch.seconds = reader.get<double>();
  }
  return epochs;
}

Status write_training_rows(const TrainingRows& rows, const std::filesystem::path& path) {
  return write_sealed<TrainingRows>(rows, kRowsSeal, &check_rows, &put_rows, path);
}

Result<TrainingRows> read_training_rows(const std::filesystem::path& path) {
  return read_sealed<TrainingRows>(kRowsSeal, &check_rows, &get_rows, path);
}

Status write_trained_network(const TrainedNetwork& network, const std::filesystem::path& path) {
  return write_sealed<TrainedNetwork>(network, kNetworkSeal, &check_network, &put_trained, path);
}

Result<TrainedNetwork> read_trained_network(const std::filesystem::path& path) {
  return read_sealed<TrainedNetwork>(kNetworkSeal, &check_network, &get_trained, path);
}

}  // namespace foretune
