#include "checkpoint.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <span>
#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/file.h"
#include "foretune/loop/loop_actions.h"
#include "foretune/loop/policy_observation.h"
#include "foretune/model/train/files/sealed_file.h"

namespace foretune::policy_training {
namespace {

using loop::LoopActions;
using loop::PolicyObserver;

constexpr FileSeal kSeal{.magic = {0x89, 'F', 'T', 'Y', 0x0d, 0x0a, 0x1a, 0x0a},
                         .version = 1,
                         .name = "a checkpoint of a policy in training"};

void put_floats(ByteWriter& writer, const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous();
  put_array(writer, std::span(flat.data_ptr<float>(), static_cast<std::size_t>(flat.numel())));
}

Status get_floats(ByteReader& reader, const at::Tensor& tensor) {
  const std::vector<float> values = get_array<float>(reader);
  if (values.size() != static_cast<std::size_t>(tensor.numel())) {
    return fail(ErrorCode::kCorrupt, "it has ", values.size(), " numbers where ", tensor.numel(),
                " are wanted");
  }
  const at::NoGradGuard no_grad;
  std::copy(values.begin(), values.end(), tensor.data_ptr<float>());
  return {};
}

void put_episode(ByteWriter& writer, const Elites::Episode& episode) {
  writer.put(episode.log_share);
  put_array(writer, std::span(episode.states.loops));
  put_array(writer, std::span(episode.states.whole));
  put_array(writer, std::span(episode.states.masks));
  put_array(writer, std::span(episode.states.counts));
  put_array(writer, std::span(episode.actions));
}

Result<Elites::Episode> get_episode(ByteReader& reader) {
  Elites::Episode out;
  out.log_share = reader.get<double>();
  out.states.loops = get_array<float>(reader);
  out.states.whole = get_array<float>(reader);
  out.states.masks = get_array<std::uint8_t>(reader);
  out.states.counts = get_array<std::uint8_t>(reader);
  out.actions = get_array<std::uint32_t>(reader);
  const std::size_t steps = out.actions.size();
  const bool fits =
      out.states.counts.size() == steps && out.states.masks.size() == steps * LoopActions::kCount &&
      out.states.whole.size() == steps * PolicyObserver::kWholeColumns &&
      out.states.loops.size() == steps * LoopActions::kLevels * PolicyObserver::kLoopColumns &&
      std::all_of(out.actions.begin(), out.actions.end(),
                  [](std::uint32_t action) { return action < LoopActions::kCount; }) &&
      std::all_of(out.states.counts.begin(), out.states.counts.end(),
                  [](std::uint8_t count) { return count <= LoopActions::kLevels; });
  if (!fits) {
    return fail(ErrorCode::kCorrupt, "an episode's parts have other lengths than its steps");
  }
  return out;
}

}  // namespace

Status write_checkpoint(const std::filesystem::path& path, const RunState& state,
                        const TorchPolicy& policy, const FlatAdam& adam, const Elites& elites) {
  ByteWriter writer;
  writer.put(state.identity, state.round, state.seconds, state.steps, adam.steps);
  put_floats(writer, policy.parameters());
  put_floats(writer, adam.mean);
  put_floats(writer, adam.square);
  const std::vector<Elites::Episode> episodes = elites.all();
  writer.put_varint(episodes.size());
  for (const Elites::Episode& episode : episodes) {
    put_episode(writer, episode);
  }
  return write_file_atomically(path, seal(kSeal, writer.bytes()));
}

Status read_checkpoint(const std::filesystem::path& path, RunState& state, TorchPolicy& policy,
                       FlatAdam& adam, Elites& elites) {
  FORETUNE_TRY(const MappedFile file, MappedFile::open(path));
  const auto body = unseal(kSeal, file.bytes());
  if (!body) {
    return fail_because(body.error(), path.string());
  }
  ByteReader reader(*body);
  if (reader.get<std::uint64_t>() != state.identity) {
    return fail(ErrorCode::kMismatch, path.string(), " is of a run with other options");
  }
  state.round = reader.get<std::uint64_t>();
  state.seconds = reader.get<double>();
  state.steps = reader.get<std::uint64_t>();
  adam.steps = reader.get<std::int64_t>();
  FORETUNE_TRY_STATUS(get_floats(reader, policy.parameters()));
  FORETUNE_TRY_STATUS(get_floats(reader, adam.mean));
  FORETUNE_TRY_STATUS(get_floats(reader, adam.square));
  const std::uint64_t count = reader.get_varint();
  if (count != elites.all().size()) {
    return fail(ErrorCode::kCorrupt, path.string(), " has episodes of ", count, " computations");
  }
  for (std::size_t task = 0; task < count; ++task) {
    FORETUNE_TRY(Elites::Episode episode, get_episode(reader));
    elites.set(task, std::move(episode));
  }
  if (!reader.ok() || !reader.at_end()) {
    return fail(ErrorCode::kCorrupt, path.string(), " is damaged");
  }
  return {};
}

}  // namespace foretune::policy_training
