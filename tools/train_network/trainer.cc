#include "trainer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/api/include/torch/version.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "checkpoint.h"
#include "epoch_log.h"
#include "foretune/base/hash.h"
#include "losses.h"
#include "optimizer.h"
#include "trainable_network.h"
#include "training_data.h"

namespace foretune::network_training {
namespace {

// Names of independent streams of random numbers.
constexpr std::uint64_t kStopPlanStream = 2;
constexpr std::uint64_t kEpochStream = 1000;
constexpr std::int64_t kPredictedAtOnce = 16384;

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class T>
std::uint64_t hash_of(const std::vector<T>& values, std::uint64_t seed) {
  return hash64(std::as_bytes(std::span(values)), seed);
}

std::uint64_t identity_of(const TrainOptions& options, const TrainingRows& rows) {
  std::uint64_t hash = hash64(options.identity());
  hash = hash_combine(hash, rows.problem_columns);
  hash = hash_combine(hash, rows.config_columns);
  for (const std::uint64_t part :
       {hash_of(rows.inputs, 1), hash_of(rows.problem, 2), hash_of(rows.log_time, 3),
        hash_of(rows.relative, 4), hash_of(rows.weight, 5), hash_of(rows.censored, 6),
        hash_of(rows.fold, 7), hash_of(rows.plain_columns, 8), hash_of(rows.group, 9)}) {
    hash = hash_combine(hash, part);
  }
  return hash_combine(hash, static_cast<std::uint64_t>(std::lround(rows.tie * 1e6F)));
}

class Trainer {
 public:
  Trainer(const TrainOptions& options, const TrainingData& data, at::Device device,
          const volatile std::sig_atomic_t& stop_flag)
      : options_(options),
        data_(data),
        device_(device),
        stop_flag_(stop_flag),
        network_(options, data.rows(), device),
        optimizer_(options, network_.parameters()),
        outputs_(at::zeros({static_cast<std::int64_t>(data.rows().size())},
                           at::TensorOptions(at::kFloat).device(device))) {
    if (has_stop_rows()) {
      stop_plan_ = data.plan(RowRole::kStop, options, Rng(options.seed).split(kStopPlanStream));
    }
    state_.schedule.learning_rate = options.learning_rate;
    state_.tensors = {network_.parameters(),         network_.statistics(),
                      optimizer_.state().mean,       optimizer_.state().square,
                      network_.parameters().clone(), network_.statistics().clone()};
  }

  Result<TrainedNetwork> run(std::uint64_t identity) {
    state_.identity = identity;
    FORETUNE_TRY_STATUS(resume());
    FORETUNE_TRY(EpochLog log, EpochLog::create(options_));
    while (!is_finished()) {
      FORETUNE_TRY_STATUS(run_epoch());
      if (!options_.checkpoint.empty()) {
        FORETUNE_TRY_STATUS(write_checkpoint(state_, options_.checkpoint));
      }
      FORETUNE_TRY_STATUS(log.add(state_.epochs, samples_per_second()));
    }
    return finish();
  }

 private:
  enum : std::size_t { kBestParameters = 4, kBestStatistics = 5 };

  [[nodiscard]] bool has_stop_rows() const { return !data_.rows_of(RowRole::kStop).empty(); }
  [[nodiscard]] double samples_per_second() const {
    return state_.seconds > 0 ? static_cast<double>(state_.rows_seen) / state_.seconds : 0;
  }

  Status resume() {
    if (!options_.resumes || !std::filesystem::exists(options_.checkpoint)) {
      return {};
    }
    FORETUNE_TRY_STATUS(read_checkpoint(options_.checkpoint, state_));
    optimizer_.state().steps = state_.steps;
    return {};
  }

  [[nodiscard]] bool is_finished() const {
    const std::size_t done = state_.epochs.size();
    const bool is_patient =
        options_.patience == 0 || !has_stop_rows() || done < state_.best_epoch + options_.patience;
    return done >= options_.num_epochs || (done > 0 && !is_patient);
  }

  Status run_epoch() {
    const double begin_s = monotonic_s();
    TrainedNetwork::Epoch epoch{.learning_rate = state_.schedule.learning_rate};
    FORETUNE_TRY(epoch.train_loss, train_epoch());
    state_.seconds += monotonic_s() - begin_s;
    epoch.stop_loss = std::numeric_limits<double>::quiet_NaN();
    epoch.stop_efficiency = epoch.stop_loss;
    if (has_stop_rows()) {
      evaluate_stop_rows(epoch);
    }
    const double loss = has_stop_rows() ? epoch.stop_loss : epoch.train_loss;
    if (!std::isfinite(epoch.train_loss) || !std::isfinite(loss)) {
      return fail(ErrorCode::kInvalidArgument, "the loss of epoch ", state_.epochs.size() + 1,
                  " is no number: a smaller learning rate may help");
    }
    epoch.seconds = monotonic_s() - begin_s;
    state_.epochs.push_back(epoch);
    state_.schedule.after_epoch(loss, options_.plateau_patience);
    keep_if_best(loss);
    return {};
  }

  void keep_if_best(double loss) {
    if (state_.best_epoch > 0 && has_stop_rows() && !(loss < state_.best_loss)) {
      return;
    }
    state_.best_epoch = static_cast<std::uint32_t>(state_.epochs.size());
    state_.best_loss = loss;
    state_.tensors[kBestParameters].copy_(network_.parameters());
    state_.tensors[kBestStatistics].copy_(network_.statistics());
  }

  // The mean loss over its rows.
  Result<double> train_epoch() {
    Rng rng = Rng(options_.seed).split(kEpochStream + state_.epochs.size());
    at::manual_seed(rng.next());
    const TrainingData::Plan plan = data_.plan(RowRole::kTraining, options_, rng.split(0));
    at::Tensor sum = at::zeros({}, outputs_.options().dtype(at::kDouble));
    for (const EpochPlan::Batch& batch : plan.host.batches) {
      if (stop_flag_ != 0) {
        return fail(ErrorCode::kCancelled, "stopped on request in epoch ", state_.epochs.size() + 1,
                    options_.checkpoint.empty() ? "" : "; the checkpoint has those before it");
      }
      const at::Tensor inputs = data_.inputs().index_select(0, data_.batch_rows(plan, batch));
      network_.gradients().zero_();
      const at::Tensor output = network_.forward(inputs, true, rng);
      const at::Tensor loss = mixture_loss(options_.loss, data_.loss_batch(plan, batch, output));
      loss.backward();
      optimizer_.step(network_.parameters(), network_.gradients(), state_.schedule.learning_rate);
      sum += loss.detach().to(at::kDouble) * static_cast<double>(batch.end_row - batch.begin_row);
    }
    state_.steps = optimizer_.state().steps;
    state_.rows_seen += plan.host.rows.size();
    return sum.item<double>() / static_cast<double>(plan.host.rows.size());
  }

  // Into outputs_.
  void predict(const at::Tensor& rows) {
    const at::NoGradGuard no_grad;
    Rng unused(0);
    for (std::int64_t begin = 0; begin < rows.size(0); begin += kPredictedAtOnce) {
      const at::Tensor some =
          rows.narrow(0, begin, std::min(kPredictedAtOnce, rows.size(0) - begin));
      outputs_.index_copy_(0, some,
                           network_.forward(data_.inputs().index_select(0, some), false, unused));
    }
  }

  void evaluate_stop_rows(TrainedNetwork::Epoch& epoch) {
    const at::NoGradGuard no_grad;
    const std::vector<std::int64_t>& rows = data_.rows_of(RowRole::kStop);
    predict(at::from_blob(const_cast<std::int64_t*>(rows.data()),  // only read
                          {static_cast<std::int64_t>(rows.size())}, at::kLong)
                .to(device_));
    double sum = 0;
    for (const EpochPlan::Batch& batch : stop_plan_.host.batches) {
      const at::Tensor output = outputs_.index_select(0, data_.batch_rows(stop_plan_, batch));
      const at::Tensor loss =
          mixture_loss(options_.loss, data_.loss_batch(stop_plan_, batch, output));
      sum += loss.item<double>() * static_cast<double>(batch.end_row - batch.begin_row);
    }
    epoch.stop_loss = sum / static_cast<double>(stop_plan_.host.rows.size());
    const at::Tensor host = outputs_.to(at::kCPU);
    epoch.stop_efficiency = data_.stop_efficiency(host.data_ptr<float>());
  }

  TrainedNetwork finish() {
    {
      const at::NoGradGuard no_grad;
      network_.parameters().copy_(state_.tensors[kBestParameters]);
      network_.statistics().copy_(state_.tensors[kBestStatistics]);
    }
    TrainedNetwork out{.scale = data_.scale(),
                       .offset = data_.offset(),
                       .mean = data_.mean(),
                       .inverse_std = data_.inverse_std(),
                       .roles = data_.roles(),
                       .best_epoch = state_.best_epoch,
                       .epochs = state_.epochs,
                       .samples_per_second = samples_per_second(),
                       .libtorch = concat(TORCH_VERSION, ", ", options_.is_cuda ? "cuda" : "cpu")};
    network_.export_to(out);
    predict(at::arange(outputs_.size(0), outputs_.options().dtype(at::kLong)));
    const at::Tensor host = outputs_.to(at::kCPU);
    const float* output = host.data_ptr<float>();
    if (!options_.has_squared_error()) {
      calibrate(output, out);
    }
    for (std::int64_t i = 0; i < host.numel(); ++i) {
      out.predictions.push_back(
          static_cast<float>(static_cast<double>(output[i]) * out.scale + out.offset));
    }
    return out;
  }

  // A ranking loss alone leaves open what the outputs' units are: the line through the training
  // rows whose times are known says.
  void calibrate(const float* output, TrainedNetwork& out) const {
    double count = 0;
    double x = 0;
    double y = 0;
    double xx = 0;
    double xy = 0;
    for (const std::int64_t row : data_.rows_of(RowRole::kTraining)) {
      if (data_.rows().censored[static_cast<std::size_t>(row)] == 0) {
        const auto value = static_cast<double>(output[row]);
        const double target = data_.target_of(static_cast<std::size_t>(row));
        ++count;
        x += value;
        y += target;
        xx += value * value;
        xy += value * target;
      }
    }
    const double slope = (count * xy - x * y) / (count * xx - x * x);
    // A network that learned nothing must still not turn its order around.
    if (std::isfinite(slope) && slope > 0) {
      out.scale = slope;
      out.offset = (y - slope * x) / count;
    }
  }

  const TrainOptions& options_;
  const TrainingData& data_;
  at::Device device_;
  const volatile std::sig_atomic_t& stop_flag_;
  TrainableNetwork network_;
  Adam optimizer_;
  at::Tensor outputs_;  // of every row, as far as they were asked
  TrainingData::Plan stop_plan_;
  TrainingState state_;
};

}  // namespace

Result<TrainedNetwork> train_network(const TrainOptions& options,
                                     const volatile std::sig_atomic_t& stop_flag) {
  if (options.is_cuda && !at::hasCUDA()) {
    return fail(ErrorCode::kUnsupported,
                "--device cuda: this libtorch, or this machine, has no CUDA device");
  }
  FORETUNE_TRY(TrainingRows rows, read_training_rows(options.rows));
  const std::uint64_t identity = identity_of(options, rows);
  const at::Device device(options.is_cuda ? at::kCUDA : at::kCPU);
  at::manual_seed(options.seed);
  FORETUNE_TRY(const TrainingData data, TrainingData::create(std::move(rows), options, device));
  Trainer trainer(options, data, device, stop_flag);
  return trainer.run(identity);
}

}  // namespace foretune::network_training
