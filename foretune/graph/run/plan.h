// A network made ready for a number of images: kernels chosen, weights packed, memory planned.
//
//   FORETUNE_TRY(const auto executor, Executor::create({}));
//   FORETUNE_TRY(const auto plan, NetworkPlan::create(network, executor, {.images = 64}));
//   FORETUNE_TRY_STATUS(plan->run({&images, 1}, {&logits, 1}));
//
// Inputs and outputs are f32, dense, with channels first, and have the images one after the other.
// A run takes the images in passes of as many as fit the second cache; with several threads, passes
// run side by side, and a single image is run by all threads.
//
// Thread safety: any number of threads may run a plan at once; runs of several threads take turns.
// Cost: a run allocates a list of pointers and, when it is the first beside others, its memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"
#include "foretune/graph/run/executor.h"
#include "foretune/graph/run/variant.h"

namespace foretune::graph {

struct PlanOptions {
  std::int64_t images = 1;
  // How many images a pass has; 0: as many as fit the cache.
  std::int64_t pass_images = 0;
  Variants variants;
  Calibration calibration;  // the ranges that layers of integers need
};

// One step of a plan, for reports.
struct StepProfile {
  std::string name;      // of the operation
  std::string describe;  // what runs, and why
  double ns = 0;         // the time of all images
};

class NetworkPlan {
 public:
  // Errors: kInvalidArgument for less than one image, a variant that its layer cannot have and
  // integers without a calibration; kUnsupported when a kernel is missing or
  // memory is short.
  static Result<std::unique_ptr<NetworkPlan>> create(const Network& network,
                                                     std::shared_ptr<Executor> executor,
                                                     const PlanOptions& options);
  ~NetworkPlan();
  NetworkPlan(const NetworkPlan&) = delete;
  NetworkPlan& operator=(const NetworkPlan&) = delete;

  // Reads one array for each input of the network and writes one for each output. Errors:
  // kInvalidArgument for another number of arrays or a missing one.
  Status run(std::span<const float* const> inputs, std::span<float* const> outputs) const;

  [[nodiscard]] std::int64_t images() const;
  // Return the elements of an array of run().
  [[nodiscard]] std::span<const std::int64_t> input_elements() const;
  [[nodiscard]] std::span<const std::int64_t> output_elements() const;
  // Returns the bytes of memory that one pass computes in.
  [[nodiscard]] std::int64_t memory_bytes() const;

  // Runs the images in one thread and widens the ranges of all tensors by their values. The plan
  // has no variants. Errors: as run().
  Status observe(std::span<const float* const> inputs, std::span<float* const> outputs,
                 Calibration& ranges) const;

  // Runs the images once in one thread and returns the time of every step. Errors: as run().
  Result<std::vector<StepProfile>> profile(std::span<const float* const> inputs,
                                           std::span<float* const> outputs) const;

 private:
  struct State;
  explicit NetworkPlan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace foretune::graph
