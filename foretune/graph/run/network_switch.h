// Runs a network by one of several plans, call by call, so that calls take a wanted time.
//
//   FORETUNE_TRY(const auto network, NetworkSwitch::create({{.plan = exact, .quality = 91.9},
//                                                           {.plan = integers, .quality = 91.6}},
//                                                          {.target_ns = 2e5}));
//   FORETUNE_TRY_STATUS(network->run({&images, 1}, {&logits, 1}));
//
// latency_controller.h says how it chooses. Plans are made before, and each keeps its weights and
// its memory, so that a change costs no more than cold caches.
//
// Thread safety: any number of threads; runs take turns, and waiting for a turn does not count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/run/latency_controller.h"
#include "foretune/graph/run/plan.h"

namespace foretune::graph {

struct SwitchedPlan {
  std::shared_ptr<const NetworkPlan> plan;
  double quality = 0;      // more is better
  double expected_ns = 0;  // of a run while nothing else runs; 0: it is measured
};

class NetworkSwitch {
 public:
  // Measures plans whose time is not given, by turns, for nine runs each of images of zeros.
  // Errors: kInvalidArgument without plans, for plans whose arrays have other sizes, and as
  // LatencyController::create().
  static Result<std::unique_ptr<NetworkSwitch>> create(std::vector<SwitchedPlan> plans,
                                                       const LatencyOptions& options);

  // Runs the plan whose turn it is, and times it. `spent_ns` is what the caller has spent on this
  // call before, which counts. Errors: as NetworkPlan::run().
  Status run(std::span<const float* const> inputs, std::span<float* const> outputs,
             double spent_ns = 0);

  // Errors: as LatencyController::set_target().
  Status set_target(double ns);
  [[nodiscard]] double target_ns() const;
  // Returns the time that runs take now over the expected one.
  [[nodiscard]] double slowdown() const;
  // Returns the position of the plan that ran last; nothing before the first run.
  [[nodiscard]] std::optional<std::size_t> last() const;

  [[nodiscard]] const NetworkPlan& plan() const { return *plans_.front().plan; }
  // Returns the time of each plan that the choice reckons with, in ns.
  [[nodiscard]] std::vector<double> expected_ns() const;
  // Returns how often each plan has run.
  [[nodiscard]] std::vector<std::int64_t> counts() const;
  // Returns the positions of the plans that can be chosen, as LatencyController::front().
  [[nodiscard]] std::vector<std::size_t> front() const;

 private:
  NetworkSwitch(std::vector<SwitchedPlan> plans, LatencyController controller);

  std::vector<SwitchedPlan> plans_;
  mutable std::mutex mutex_;  // guards what follows
  LatencyController controller_;
  std::optional<std::size_t> last_;
  std::vector<std::int64_t> counts_;
};

}  // namespace foretune::graph
