#include "training_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "row_roles.h"

namespace foretune::network_training {
namespace {

constexpr std::size_t kMinBatch = 64;
constexpr std::size_t kLargestBatch = 1024;
// Steps per epoch below which a batch is made smaller.
constexpr std::size_t kStepsPerEpoch = 64;

// Returns a power of two, so that runs over similar data sets have similar batches.
std::size_t default_batch_size(std::size_t rows) {
  std::size_t size = kLargestBatch;
  while (size > kMinBatch && rows / size < kStepsPerEpoch) {
    size /= 2;
  }
  return size;
}

template <class T>
at::Tensor tensor_of(const std::vector<T>& values, at::ScalarType type, at::Device device) {
  at::Tensor out = at::empty({static_cast<std::int64_t>(values.size())}, type);
  if (!values.empty()) {
    std::memcpy(out.data_ptr(), values.data(), values.size() * sizeof(T));
  }
  return out.to(device);
}

std::int64_t signed_of(std::size_t value) { return static_cast<std::int64_t>(value); }

}  // namespace

Result<TrainingData> TrainingData::create(TrainingRows rows, const TrainOptions& options,
                                          at::Device device) {
  if (options.architecture == Architecture::kTwoTower &&
      (rows.problem_columns == 0 || rows.config_columns == 0)) {
    return fail(ErrorCode::kInvalidArgument,
                "two towers need columns of the problem and of the config");
  }
  TrainingData data;
  data.rows_ = std::move(rows);
  data.is_relative_ = options.is_relative_target;
  data.roles_ = row_roles(data.rows_, options);
  data.group_rows();
  if (data.training_rows_.size() < 2) {
    return fail(ErrorCode::kInvalidArgument, "of ", data.rows_.size(), " rows ",
                data.training_rows_.size(),
                " are left to learn from, and a batch normalisation needs two");
  }
  data.batch_size_ = options.batch_size > 0 ? std::max<std::size_t>(options.batch_size, 2)
                                            : default_batch_size(data.training_rows_.size());
  data.standardise(options);
  data.standardise_target();
  data.upload(device);
  return data;
}

void TrainingData::group_rows() {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const auto role = static_cast<RowRole>(roles_[i]);
    if (role == RowRole::kHeldOut) {
      continue;
    }
    std::vector<std::int64_t>& list = role == RowRole::kStop ? stop_rows_ : training_rows_;
    ProblemRows& problems = role == RowRole::kStop ? stop_problems_ : training_problems_;
    const bool is_same =
        !list.empty() && rows_.problem[static_cast<std::size_t>(list.back())] == rows_.problem[i];
    if (!is_same) {
      problems.emplace_back();
    }
    problems.back().push_back(signed_of(i));
    list.push_back(signed_of(i));
  }
}

void TrainingData::standardise(const TrainOptions& options) {
  const std::size_t columns = rows_.columns();
  mean_.assign(columns, 0);
  inverse_std_.assign(columns, 1);
  if (!options.standardises) {
    return;
  }
  const auto count = static_cast<double>(training_rows_.size());
  std::vector<double> sum(columns);
  std::vector<double> squares(columns);
  const auto each_training_row = [&](const auto& visit) {
    for (const std::int64_t row : training_rows_) {
      const float* inputs = rows_.inputs.data() + static_cast<std::size_t>(row) * columns;
      for (std::size_t c = 0; c < columns; ++c) {
        visit(c, static_cast<double>(inputs[c]));
      }
    }
  };
  each_training_row([&](std::size_t c, double x) { sum[c] += x; });
  each_training_row(
      [&](std::size_t c, double x) { squares[c] += (x - sum[c] / count) * (x - sum[c] / count); });
  for (std::size_t c = 0; c < columns; ++c) {
    mean_[c] = sum[c] / count;
    const double deviation = std::sqrt(squares[c] / count);
    // An input that is the same in all rows, up to rounding, carries no information, and must not
    // influence predictions on other data.
    inverse_std_[c] = deviation > 1e-7 * std::abs(mean_[c]) ? 1 / deviation : 0;
  }
  for (const std::uint32_t c : rows_.plain_columns) {
    mean_[c] = 0;
    inverse_std_[c] = 1;
  }
  for (std::size_t i = 0; i < rows_.inputs.size(); ++i) {
    float& x = rows_.inputs[i];
    x = static_cast<float>((static_cast<double>(x) - mean_[i % columns]) *
                           inverse_std_[i % columns]);
  }
}

double TrainingData::target_of(std::size_t row) const {
  return static_cast<double>(is_relative_ ? rows_.relative[row] : rows_.log_time[row]);
}

void TrainingData::standardise_target() {
  // Uses the rows with known times, unless there are none.
  const bool all_censored = std::all_of(
      training_rows_.begin(), training_rows_.end(),
      [&](std::int64_t row) { return rows_.censored[static_cast<std::size_t>(row)] != 0; });
  double count = 0;
  double sum = 0;
  double squares = 0;
  const auto each_time = [&](const auto& visit) {
    for (const std::int64_t row : training_rows_) {
      if (all_censored || rows_.censored[static_cast<std::size_t>(row)] == 0) {
        visit(target_of(static_cast<std::size_t>(row)));
      }
    }
  };
  each_time([&](double target) {
    sum += target;
    ++count;
  });
  count = std::max(count, 1.0);
  offset_ = sum / count;
  each_time([&](double target) { squares += (target - offset_) * (target - offset_); });
  scale_ = std::sqrt(squares / count);
  if (!(scale_ > 1e-12)) {
    scale_ = 1;
  }
}

void TrainingData::upload(at::Device device) {
  std::vector<float> target(rows_.size());
  for (std::size_t i = 0; i < target.size(); ++i) {
    target[i] = static_cast<float>((target_of(i) - offset_) / scale_);
  }
  target_ = tensor_of(target, at::kFloat, device);
  weight_ = tensor_of(rows_.weight, at::kFloat, device);
  relative_ = tensor_of(rows_.relative, at::kFloat, device);
  censored_ = tensor_of(rows_.censored, at::kByte, device).to(at::kBool);
  inputs_ = tensor_of(rows_.inputs, at::kFloat, device)
                .view({signed_of(rows_.size()), signed_of(rows_.columns())});
  rows_.inputs = {};
}

TrainingData::Plan TrainingData::plan(RowRole rows_of, const TrainOptions& options, Rng rng) const {
  const bool is_stop = rows_of == RowRole::kStop;
  Plan out;
  if (options.is_ranking()) {
    out.host = plan_groups(rows_, is_stop ? stop_problems_ : training_problems_, batch_size_,
                           options.group_size, rng);
  } else {
    out.host = plan_rows(is_stop ? stop_rows_ : training_rows_, batch_size_, rng);
  }
  const at::Device device = inputs_.device();
  out.rows = tensor_of(out.host.rows, at::kLong, device);
  out.position = tensor_of(out.host.position, at::kLong, device);
  out.present = tensor_of(out.host.present, at::kByte, device).to(at::kBool);
  return out;
}

at::Tensor TrainingData::batch_rows(const Plan& plan, const EpochPlan::Batch& batch) const {
  return plan.rows.narrow(0, signed_of(batch.begin_row),
                          signed_of(batch.end_row - batch.begin_row));
}

LossBatch TrainingData::loss_batch(const Plan& plan, const EpochPlan::Batch& batch,
                                   const at::Tensor& output) const {
  const at::Tensor rows = batch_rows(plan, batch);
  LossBatch out{.output = output,
                .target = target_.index_select(0, rows),
                .weight = weight_.index_select(0, rows),
                .censored = censored_.index_select(0, rows),
                .tie = static_cast<double>(rows_.tie)};
  if (plan.host.places == 0) {
    return out;
  }
  const std::int64_t groups = signed_of(batch.end_group - batch.begin_group);
  const std::int64_t places = signed_of(plan.host.places);
  const std::int64_t begin = signed_of(batch.begin_group) * places;
  const at::Tensor position = plan.position.narrow(0, begin, groups * places);
  const at::Tensor row = rows.index_select(0, position);
  out.score = output.index_select(0, position).view({groups, places});
  out.relative = relative_.index_select(0, row).view({groups, places});
  out.exact = censored_.index_select(0, row).logical_not().view({groups, places});
  out.present = plan.present.narrow(0, begin, groups * places).view({groups, places});
  out.find_pairs();
  return out;
}

double TrainingData::stop_efficiency(const float* output) const {
  double sum = 0;
  std::size_t count = 0;
  for (const std::vector<std::int64_t>& problem : stop_problems_) {
    float best = std::numeric_limits<float>::infinity();
    std::int64_t pick = problem.front();
    for (const std::int64_t row : problem) {
      if (rows_.censored[static_cast<std::size_t>(row)] == 0) {
        best = std::min(best, rows_.relative[static_cast<std::size_t>(row)]);
      }
      pick = output[row] < output[pick] ? row : pick;
    }
    if (std::isfinite(best)) {
      const float picked = rows_.relative[static_cast<std::size_t>(pick)];
      sum += std::min(1.0, std::exp(static_cast<double>(best) - static_cast<double>(picked)));
      ++count;
    }
  }
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace foretune::network_training
