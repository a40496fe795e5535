#include "foretune/graph/run/network_switch.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "foretune/base/statistics.h"

namespace foretune::graph {

namespace {

constexpr int kMeasuredRuns = 9;

// Returns the ns that a run takes.
Result<double> timed_run(const NetworkPlan& plan, std::span<const float* const> inputs,
                         std::span<float* const> outputs) {
  const auto begin = std::chrono::steady_clock::now();
  FORETUNE_TRY_STATUS(plan.run(inputs, outputs));
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

// Gives each plan without an expected time its median.
Status measure(std::vector<SwitchedPlan>& plans) {
  std::vector<std::vector<float>> arrays;
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
  for (const std::int64_t elements : plans.front().plan->input_elements()) {
    arrays.emplace_back(static_cast<std::size_t>(elements));
    inputs.push_back(arrays.back().data());
  }
  for (const std::int64_t elements : plans.front().plan->output_elements()) {
    arrays.emplace_back(static_cast<std::size_t>(elements));
    outputs.push_back(arrays.back().data());
  }
  std::vector<std::vector<double>> times(plans.size());
  // The first run of each warms its memory.
  for (int run = 0; run <= kMeasuredRuns; ++run) {
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (plans[i].expected_ns != 0) {
        continue;
      }
      FORETUNE_TRY(const double ns, timed_run(*plans[i].plan, inputs, outputs));
      if (run > 0) {
        times[i].push_back(ns);
      }
    }
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!times[i].empty()) {
      plans[i].expected_ns = median(times[i]);
    }
  }
  return {};
}

}  // namespace

NetworkSwitch::NetworkSwitch(std::vector<SwitchedPlan> plans, LatencyController controller)
    : plans_(std::move(plans)), controller_(std::move(controller)), counts_(plans_.size(), 0) {}

Result<std::unique_ptr<NetworkSwitch>> NetworkSwitch::create(std::vector<SwitchedPlan> plans,
                                                             const LatencyOptions& options) {
  const auto is_missing = [](const SwitchedPlan& each) { return each.plan == nullptr; };
  if (plans.empty() || std::any_of(plans.begin(), plans.end(), is_missing)) {
    return fail(ErrorCode::kInvalidArgument, "a switch of networks lacks a plan");
  }
  const NetworkPlan& first = *plans.front().plan;
  for (const SwitchedPlan& each : plans) {
    if (!std::ranges::equal(each.plan->input_elements(), first.input_elements()) ||
        !std::ranges::equal(each.plan->output_elements(), first.output_elements())) {
      return fail(ErrorCode::kInvalidArgument,
                  "a switch of networks takes plans with the same arrays");
    }
  }
  FORETUNE_TRY_STATUS(measure(plans));
  std::vector<TimedAlternative> alternatives;
  for (const SwitchedPlan& each : plans) {
    alternatives.push_back({each.expected_ns, each.quality});
  }
  FORETUNE_TRY(LatencyController controller, LatencyController::create(alternatives, options));
  return std::unique_ptr<NetworkSwitch>(new NetworkSwitch(std::move(plans), std::move(controller)));
}

Status NetworkSwitch::run(std::span<const float* const> inputs, std::span<float* const> outputs,
                          double spent_ns) {
  const std::scoped_lock lock(mutex_);
  const std::size_t chosen = controller_.next();
  FORETUNE_TRY(const double ns, timed_run(*plans_[chosen].plan, inputs, outputs));
  controller_.finished(spent_ns + ns);
  last_ = chosen;
  ++counts_[chosen];
  return {};
}

Status NetworkSwitch::set_target(double ns) {
  const std::scoped_lock lock(mutex_);
  return controller_.set_target(ns);
}

double NetworkSwitch::target_ns() const {
  const std::scoped_lock lock(mutex_);
  return controller_.target_ns();
}

double NetworkSwitch::slowdown() const {
  const std::scoped_lock lock(mutex_);
  return controller_.slowdown();
}

std::optional<std::size_t> NetworkSwitch::last() const {
  const std::scoped_lock lock(mutex_);
  return last_;
}

std::vector<double> NetworkSwitch::expected_ns() const {
  std::vector<double> times;
  for (const SwitchedPlan& each : plans_) {
    times.push_back(each.expected_ns);
  }
  return times;
}

std::vector<std::int64_t> NetworkSwitch::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

std::vector<std::size_t> NetworkSwitch::front() const { return controller_.front(); }

}  // namespace foretune::graph
