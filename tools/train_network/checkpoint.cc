#include "checkpoint.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <span>
#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/file.h"
#include "foretune/model/train/files/sealed_file.h"

namespace foretune::network_training {
namespace {

constexpr FileSeal kSeal{.magic = {0x89, 'F', 'T', 'K', 0x0d, 0x0a, 0x1a, 0x0a},
                         .version = 1,
                         .name = "a checkpoint of a network in training"};

void put_tensor(ByteWriter& writer, const at::Tensor& tensor) {
  const at::Tensor host = tensor.to(at::kCPU).contiguous();
  put_array(writer, std::span(host.data_ptr<float>(), static_cast<std::size_t>(host.numel())));
}

Status get_tensor(ByteReader& reader, const at::Tensor& tensor) {
  const std::vector<float> values = get_array<float>(reader);
  if (values.size() != static_cast<std::size_t>(tensor.numel())) {
    return fail(ErrorCode::kCorrupt, "it has ", values.size(), " numbers where ", tensor.numel(),
                " are wanted");
  }
  const at::Tensor host = at::empty({tensor.numel()}, at::kFloat);
  std::copy(values.begin(), values.end(), host.data_ptr<float>());
  const at::NoGradGuard no_grad;
  tensor.copy_(host);
  return {};
}

Status get_state(ByteReader& reader, TrainingState& state) {
  if (reader.get<std::uint64_t>() != state.identity) {
    return fail(ErrorCode::kMismatch, "it is of a run with other options or rows");
  }
  state.epochs = get_epochs(reader);
  state.best_epoch = reader.get<std::uint32_t>();
  state.best_loss = reader.get<double>();
  state.schedule.learning_rate = reader.get<double>();
  state.schedule.best = reader.get<double>();
  state.schedule.has_best = reader.get<std::uint8_t>() != 0;
  state.schedule.bad_epochs = reader.get<std::uint32_t>();
  state.steps = reader.get<std::int64_t>();
  state.rows_seen = reader.get<std::uint64_t>();
  state.seconds = reader.get<double>();
  for (const at::Tensor& tensor : state.tensors) {
    FORETUNE_TRY_STATUS(get_tensor(reader, tensor));
  }
  if (!reader.ok() || !reader.at_end() || state.best_epoch > state.epochs.size()) {
    return fail(ErrorCode::kCorrupt, "its parts have other lengths than it says");
  }
  return {};
}

}  // namespace

Status write_checkpoint(const TrainingState& state, const std::filesystem::path& path) {
  ByteWriter writer;
  writer.put(state.identity);
  put_epochs(writer, state.epochs);
  writer.put(state.best_epoch, state.best_loss, state.schedule.learning_rate, state.schedule.best,
             static_cast<std::uint8_t>(state.schedule.has_best ? 1 : 0), state.schedule.bad_epochs,
             state.steps, state.rows_seen, state.seconds);
  for (const at::Tensor& tensor : state.tensors) {
    put_tensor(writer, tensor);
  }
  return write_file_atomically(path, seal(kSeal, writer.bytes()));
}

Status read_checkpoint(const std::filesystem::path& path, TrainingState& state) {
  FORETUNE_TRY(const MappedFile file, MappedFile::open(path));
  const auto read = [&]() -> Status {
    FORETUNE_TRY(const std::span<const std::byte> body, unseal(kSeal, file.bytes()));
    ByteReader reader(body);
    return get_state(reader, state);
  };
  if (const Status status = read(); !status) {
    return fail_because(status.error(), path.string());
  }
  return {};
}

}  // namespace foretune::network_training
