// A network that predicts how fast a schedule is from the feature table `loop-nest`, learned from
// all that was measured while the policy played.
//
// Thread safety: one thread at a time. Errors: libtorch's exceptions.
#pragma once

#include <cstdint>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/features/feature_table.h"
#include "foretune/hardware/hardware.h"
#include "foretune/model/network/network.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune::policy_training {

// Schedules with ln of their share of the peak.
class TimeRows {
 public:
  TimeRows(const FeatureTable& table, const Hardware& hardware, std::size_t capacity,
           std::uint64_t seed);
  // Keeps a random sample of all that was added once there are more than the capacity.
  void add(std::size_t task, const Problem& problem, const Config& config, double log_share);
  [[nodiscard]] std::size_t size() const { return tasks_.size(); }

 private:
  friend class TimeTrainer;
  const FeatureTable& table_;
  const Hardware& hardware_;
  std::size_t capacity_;
  std::size_t offered_ = 0;
  Rng rng_;
  std::vector<double> row_;
  std::vector<float> values_;  // [row][column]
  std::vector<float> log_shares_;
  std::vector<std::uint32_t> tasks_;
};

struct TimeNetwork {
  Network network;
  double residual_std = 0;  // of ln(time) on computations that it did not learn from
};
// A network that predicts 0 for every schedule.
Network unknown_times(const FeatureTable& table);
// Errors: kInvalidArgument for fewer rows than a batch has.
Result<TimeNetwork> train_time_network(const TimeRows& rows, double seconds, std::uint64_t seed);

}  // namespace foretune::policy_training
