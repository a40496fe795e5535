// The rows on the device that trains: the role of each row, the numbers by which inputs and target
// are standardised, and one tensor per column of labels, from which indices select batches.
// Thread safety: immutable once made. Cost: the inputs are held once, standardised in place.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/model/train/files/training_files.h"
#include "losses.h"
#include "options.h"
#include "sampler.h"

namespace foretune::network_training {

class TrainingData {
 public:
  // Errors: kInvalidArgument where too few rows are left to learn from.
  static Result<TrainingData> create(TrainingRows rows, const TrainOptions& options,
                                     at::Device device);

  // A plan with its indices on the device.
  struct Plan {
    EpochPlan host;
    at::Tensor rows;
    at::Tensor position;
    at::Tensor present;
  };
  // `rows_of` is kTraining or kStop.
  [[nodiscard]] Plan plan(RowRole rows_of, const TrainOptions& options, Rng rng) const;

  [[nodiscard]] at::Tensor batch_rows(const Plan& plan, const EpochPlan::Batch& batch) const;
  // Returns the input of the losses for a batch on whose rows the network gave `output`.
  [[nodiscard]] LossBatch loss_batch(const Plan& plan, const EpochPlan::Batch& batch,
                                     const at::Tensor& output) const;

  [[nodiscard]] const TrainingRows& rows() const { return rows_; }
  [[nodiscard]] const at::Tensor& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<std::uint8_t>& roles() const { return roles_; }
  [[nodiscard]] const std::vector<std::int64_t>& rows_of(RowRole role) const {
    return role == RowRole::kStop ? stop_rows_ : training_rows_;
  }
  [[nodiscard]] const std::vector<double>& mean() const { return mean_; }
  [[nodiscard]] const std::vector<double>& inverse_std() const { return inverse_std_; }
  // The target is output * scale + offset.
  [[nodiscard]] double scale() const { return scale_; }
  [[nodiscard]] double offset() const { return offset_; }
  // Returns the target of a row before it was standardised.
  [[nodiscard]] double target_of(std::size_t row) const;
  [[nodiscard]] std::size_t batch_size() const { return batch_size_; }
  // Returns the mean of best time / time of the pick over the problems of the stop rows; NaN
  // without stop rows. `output` has the outputs of all rows, on the host. A censored pick counts by
  // its bound.
  [[nodiscard]] double stop_efficiency(const float* output) const;

 private:
  TrainingData() = default;
  void standardise(const TrainOptions& options);
  void standardise_target();
  void group_rows();
  void upload(at::Device device);

  TrainingRows rows_;
  bool is_relative_ = true;
  std::vector<std::uint8_t> roles_;
  std::vector<std::int64_t> training_rows_;
  std::vector<std::int64_t> stop_rows_;
  ProblemRows training_problems_;
  ProblemRows stop_problems_;
  std::vector<double> mean_;
  std::vector<double> inverse_std_;
  double scale_ = 1;
  double offset_ = 0;
  std::size_t batch_size_ = 0;
  at::Tensor inputs_;
  at::Tensor target_;
  at::Tensor weight_;
  at::Tensor censored_;
  at::Tensor relative_;
};

}  // namespace foretune::network_training
