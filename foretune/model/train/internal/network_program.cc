#include "foretune/model/train/internal/network_program.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/child_process.h"
#include "foretune/base/hash.h"
#include "foretune/base/text.h"

namespace foretune::train_internal {
namespace {

using Arguments = std::vector<std::string>;

std::string list_text(const std::vector<std::uint32_t>& values) {
  std::string out;
  for (const std::uint32_t value : values) {
    out += concat(out.empty() ? "" : ",", value);
  }
  return out;
}

// Returns the arguments that determine the result: with the same ones, the same rows give the same
// network.
Arguments deciding_arguments(const NetworkRun& run, const NetworkOptions& options) {
  constexpr std::uint32_t kBatch = 1024;
  Arguments out;
  const auto add = [&](std::string_view name, const auto& value) {
    out.push_back(concat("--", name));
    out.push_back(concat(value));
  };
  add("architecture", run.architecture);
  if (run.architecture == "standard") {
    add("hidden-dims", list_text(options.hidden_dims));
  } else {
    add("hidden-dim", options.hidden_dim);
  }
  if (run.architecture == "deep") {
    add("num-layers", options.num_layers);
  }
  if (run.architecture == "two-tower") {
    add("tower-layers", options.tower_layers);
    add("dot", options.dot);
    add("interaction", options.interaction);
  }
  add("dropout", options.dropout);
  add("loss", options.loss);
  add("target", run.target);
  add("batch-size", options.batch_size == 0 ? kBatch : options.batch_size);
  add("group-size", options.group_size);
  add("num-epochs", options.num_epochs);
  add("learning-rate", options.learning_rate);
  add("weight-decay", options.weight_decay);
  add("patience", options.patience);
  add("clip", options.clip);
  add("optimizer", options.optimizer);
  add("seed", run.seed);
  add("threads", options.threads);
  add("device", options.device);
  add("held-out-fold", run.held_out_fold);
  add("stop-share", options.stop_share);
  add("split", options.splits_by_sample ? "sample" : "problem");
  add("standardise", options.standardises ? "yes" : "no");
  return out;
}

// Returns the number after a word of a progress line.
double number_after(const std::vector<std::string_view>& words, std::string_view word) {
  const auto found = std::find(words.begin(), words.end(), word);
  return found == words.end() || found + 1 == words.end() ? 0
                                                          : parse_double(*(found + 1)).value_or(0);
}

// "epoch 3 of 100 train 0.0123 stop 0.0140 efficiency 0.93 lr 0.001 seconds 1.2"
std::optional<TrainProgress> progress_of(std::string_view line, const std::string& stage) {
  const std::vector<std::string_view> words = split(line, ' ');
  if (words.size() < 6 || words[0] != "epoch" || words[2] != "of") {
    return std::nullopt;
  }
  const double stop = number_after(words, "stop");
  TrainProgress out;
  out.stage = stage;
  out.tree = static_cast<std::uint32_t>(parse_uint(words[1]).value_or(0));
  out.trees = static_cast<std::uint32_t>(parse_uint(words[3]).value_or(0));
  out.step = "epoch";
  out.loss = stop > 0 ? stop : number_after(words, "train");
  out.efficiency = number_after(words, "efficiency");
  out.seconds_left = number_after(words, "seconds") * (out.trees - out.tree);
  return out;
}

// Reads lines until the child has closed its output. Returns false when the hook cancels.
bool follow(ChildProcess& child, const std::string& stage, const ProgressHook& progress) {
  constexpr std::chrono::milliseconds kPatience{200};
  std::vector<std::byte> buffer;
  TrainProgress last{.stage = stage};
  while (true) {
    const auto read = child.receive(buffer, std::chrono::steady_clock::now() + kPatience);
    auto end = std::find(buffer.begin(), buffer.end(), std::byte{'\n'});
    while (end != buffer.end()) {
      const std::string line(reinterpret_cast<const char*>(buffer.data()),
                             static_cast<std::size_t>(end - buffer.begin()));
      buffer.erase(buffer.begin(), end + 1);
      last = progress_of(line, stage).value_or(last);
      if (progress && !progress(last)) {
        return false;
      }
      end = std::find(buffer.begin(), buffer.end(), std::byte{'\n'});
    }
    if (read == ChildProcess::Read::kEnded) {
      return true;
    }
    // The hook may also cancel during a long first epoch.
    if (read == ChildProcess::Read::kTimedOut && progress && last.trees == 0 && !progress(last)) {
      return false;
    }
  }
}

}  // namespace

Result<TrainedNetwork> run_network_program(const NetworkRun& run, const NetworkOptions& options,
                                           const ProgressHook& progress) {
  Arguments command{options.program.string()};
  const Arguments deciding = deciding_arguments(run, options);
  command.insert(command.end(), deciding.begin(), deciding.end());
  std::string name = run.rows_digest;
  for (const std::string& argument : deciding) {
    name += concat(" ", argument);
  }
  name = concat("network-", Digest::of(bytes_of(name)).hex());
  const std::filesystem::path out = run.folder / concat(name, ".trained");
  if (options.resumes) {
    // A missing or truncated file means that the network is still to be trained.
    if (Result<TrainedNetwork> done = read_trained_network(out)) {
      return done;
    }
  }
  std::error_code ignored;
  std::filesystem::remove(out, ignored);
  const auto add = [&](std::string_view key, const std::string& value) {
    command.push_back(concat("--", key));
    command.push_back(value);
  };
  add("rows", run.rows.string());
  add("out", out.string());
  add("progress", "yes");
  if (!options.work_folder.empty()) {
    add("checkpoint", (run.folder / concat(name, ".checkpoint")).string());
    add("resume", options.resumes ? "yes" : "no");
  }
  if (!run.log_folder.empty()) {
    add("log-dir", run.log_folder.string());
  }
  FORETUNE_TRY(const std::unique_ptr<ChildProcess> child, ChildProcess::start(command));
  if (!follow(*child, run.stage, progress)) {
    child->kill();
    return fail(ErrorCode::kCancelled, "the training was stopped");
  }
  const std::string end = child->obituary();
  Result<TrainedNetwork> trained = read_trained_network(out);
  if (!trained) {
    return fail(ErrorCode::kInternal, "the program that trains networks ", end);
  }
  return trained;
}

}  // namespace foretune::train_internal
