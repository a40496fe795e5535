#include "foretune/graph/run/plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/graph/run/internal/lowering.h"
#include "foretune/graph/run/internal/pass.h"
#include "foretune/graph/simplify.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/kernels/shared_cpu.h"

namespace foretune::graph {

namespace {

// Returns the most bytes of one image's tensors that an operation reads and writes.
double working_bytes(const Network& network) {
  double most = 1;
  for (const Node& node : network.nodes()) {
    auto elements = static_cast<double>(element_count(network.tensor(node.output).shape));
    for (const TensorId id : node.inputs) {
      if (!network.tensor(id).is_constant()) {
        elements += static_cast<double>(element_count(network.tensor(id).shape));
      }
    }
    most = std::max(most, elements * static_cast<double>(sizeof(float)));
  }
  return most;
}

// Returns how many images a pass has: a divisor of all, unless it would be much too small.
std::int64_t choose_pass(const Network& network, const Executor& executor,
                         const PlanOptions& options) {
  if (options.pass_images > 0) {
    return std::min(options.pass_images, options.images);
  }
  const double room = static_cast<double>(executor.cache_bytes()) / 2;
  const auto fit = static_cast<std::int64_t>(room / working_bytes(network));
  const std::int64_t share = (options.images + executor.threads() - 1) / executor.threads();
  const std::int64_t target = std::clamp<std::int64_t>(fit, 1, share);
  for (std::int64_t size = target; size > target / 2; --size) {
    if (options.images % size == 0) {
      return size;
    }
  }
  return target;
}

}  // namespace

struct NetworkPlan::State {
  std::shared_ptr<Executor> executor;
  std::int64_t images = 1;
  std::vector<std::int64_t> input_elements;  // of all images
  std::vector<std::int64_t> output_elements;
  Pass pass;                                 // of most images
  std::unique_ptr<Pass> rest;                // of those that are left; null when there are none
  mutable Workspaces workspaces;             // blocks of passes
  mutable std::unique_ptr<SharedPool> pool;  // null with one thread

  [[nodiscard]] std::int64_t passes() const { return (images + pass.images - 1) / pass.images; }
  [[nodiscard]] const Pass& pass_at(std::int64_t number) const {
    return rest != nullptr && number + 1 == passes() ? *rest : pass;
  }

  Status check(std::span<const float* const> inputs, std::span<float* const> outputs) const {
    if (inputs.size() != input_elements.size() || outputs.size() != output_elements.size()) {
      return fail(ErrorCode::kInvalidArgument, "a network of ", input_elements.size(),
                  " inputs and ", output_elements.size(), " outputs got ", inputs.size(), " and ",
                  outputs.size());
    }
    if (std::find(inputs.begin(), inputs.end(), nullptr) != inputs.end() ||
        std::find(outputs.begin(), outputs.end(), nullptr) != outputs.end()) {
      return fail(ErrorCode::kInvalidArgument, "an array of a network's run is missing");
    }
    return {};
  }

  // Runs the passes on zeros as often as the dispatcher's trials need.
  [[nodiscard]] Status settle() const {
    if (executor->measure_top() < 2) {
      return {};
    }
    std::vector<AlignedBuffer> buffers;
    std::vector<const float*> inputs;
    std::vector<float*> outputs;
    for (const auto* const counts : {&input_elements, &output_elements}) {
      for (const std::int64_t elements : *counts) {
        FORETUNE_TRY(AlignedBuffer buffer,
                     AlignedBuffer::create(static_cast<std::size_t>(elements)));
        std::fill(buffer.view().begin(), buffer.view().end(), 0.0F);
        counts == &input_elements ? inputs.push_back(buffer.data())
                                  : outputs.push_back(buffer.data());
        buffers.push_back(std::move(buffer));
      }
    }
    const auto run = [](const Pass& now, auto from, auto to, std::span<float> block) {
      return now.run(from, to, block);
    };
    // Layers that other plans have settled need no run; the limit is for trials that are given up.
    const int limit = executor->measure_top() * DispatchOptions{}.measure_rounds + 1;
    for (const std::int64_t number : {std::int64_t{0}, passes() - 1}) {
      for (int round = 0; round < limit && !pass_at(number).is_settled(); ++round) {
        FORETUNE_TRY_STATUS(run_pass(number, inputs, outputs, run));
      }
    }
    return {};
  }

  // Calls `run(pass, inputs, outputs, block)` for one pass.
  template <class Run>
  Status run_pass(std::int64_t number, std::span<const float* const> inputs,
                  std::span<float* const> outputs, const Run& run) const {
    const Pass& now = pass_at(number);
    std::vector<const float*> from(inputs.begin(), inputs.end());
    std::vector<float*> to(outputs.begin(), outputs.end());
    for (std::size_t i = 0; i < from.size(); ++i) {
      from[i] += input_elements[i] / images * pass.images * number;
    }
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i] += output_elements[i] / images * pass.images * number;
    }
    FORETUNE_TRY(AlignedBuffer block, workspaces.borrow(now.block_size));
    const Status status = run(now, from, to, block.view());
    workspaces.give_back(std::move(block));
    return status;
  }
};

NetworkPlan::NetworkPlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
NetworkPlan::~NetworkPlan() = default;

Result<std::unique_ptr<NetworkPlan>> NetworkPlan::create(const Network& network,
                                                         std::shared_ptr<Executor> executor,
                                                         const PlanOptions& options) {
  if (options.images < 1 || options.pass_images < 0 || options.images > kMaxElements) {
    return fail(ErrorCode::kInvalidArgument, "a plan cannot have ", options.images, " images");
  }
  FORETUNE_TRY(const Network simple, simplify(network));
  auto state = std::make_unique<State>();
  state->executor = std::move(executor);
  state->images = options.images;
  for (const TensorId id : simple.inputs()) {
    state->input_elements.push_back(element_count(simple.tensor(id).shape) * options.images);
  }
  for (const TensorId id : simple.outputs()) {
    state->output_elements.push_back(element_count(simple.tensor(id).shape) * options.images);
  }
  const std::int64_t size = choose_pass(simple, *state->executor, options);
  const auto lowered = [&](std::int64_t images) {
    return lower(simple, *state->executor,
                 {.images = images,
                  .variants = options.variants.empty() ? nullptr : &options.variants,
                  .calibration = &options.calibration});
  };
  FORETUNE_TRY(state->pass, lowered(size));
  if (options.images % size != 0) {
    FORETUNE_TRY(Pass rest, lowered(options.images % size));
    state->rest = std::make_unique<Pass>(std::move(rest));
  }
  if (state->executor->threads() > 1 && state->passes() > 1) {
    state->pool =
        std::make_unique<SharedPool>(static_cast<std::size_t>(state->executor->threads()));
  }
  FORETUNE_TRY_STATUS(state->settle());
  return std::unique_ptr<NetworkPlan>(new NetworkPlan(std::move(state)));
}

Status NetworkPlan::run(std::span<const float* const> inputs,
                        std::span<float* const> outputs) const {
  FORETUNE_TRY_STATUS(state_->check(inputs, outputs));
  const std::int64_t passes = state_->passes();
  const auto run_all = [](const Pass& pass, auto from, auto to, std::span<float> block) {
    return pass.run(from, to, block);
  };
  if (state_->pool == nullptr) {
    for (std::int64_t i = 0; i < passes; ++i) {
      FORETUNE_TRY_STATUS(state_->run_pass(i, inputs, outputs, run_all));
    }
    return {};
  }
  const std::lock_guard turn(state_->pool->turn());
  std::vector<Status> statuses(static_cast<std::size_t>(passes));
  state_->pool->pool().run(statuses.size(), [&](std::size_t i) {
    statuses[i] = state_->run_pass(static_cast<std::int64_t>(i), inputs, outputs, run_all);
  });
  for (const Status& status : statuses) {
    FORETUNE_TRY_STATUS(status);
  }
  return {};
}

std::int64_t NetworkPlan::images() const { return state_->images; }
std::span<const std::int64_t> NetworkPlan::input_elements() const { return state_->input_elements; }
std::span<const std::int64_t> NetworkPlan::output_elements() const {
  return state_->output_elements;
}
std::int64_t NetworkPlan::memory_bytes() const {
  return static_cast<std::int64_t>(state_->pass.block_size * sizeof(float));
}

Status NetworkPlan::observe(std::span<const float* const> inputs, std::span<float* const> outputs,
                            Calibration& ranges) const {
  FORETUNE_TRY_STATUS(state_->check(inputs, outputs));
  const auto widen = [&](const std::string& name, const float* values, std::size_t count) {
    Range& range = ranges[name];
    const auto [low, high] = std::minmax_element(values, values + count);
    range.low = std::min(range.low, *low);
    range.high = std::max(range.high, *high);
  };
  const auto observed = [&](const Pass& pass, auto from, auto to, std::span<float> block) {
    // Several steps may write parts of a value; the last one completes it.
    std::vector<std::size_t> completed(pass.values.size(), pass.steps.size());
    for (std::size_t i = 0; i < pass.steps.size(); ++i) {
      completed[static_cast<std::size_t>(pass.root_of(pass.steps[i]->write))] = i;
    }
    const auto look = [&](std::size_t step, const Frame& frame) {
      for (const auto& [id, name] : pass.names) {
        const auto root = static_cast<std::size_t>(pass.root_of(id));
        // A value that no step writes is an input, which is there from the first step on.
        if (completed[root] == step || (step == 0 && completed[root] == pass.steps.size())) {
          widen(name, frame.in(id), pass.values[root].elements());
        }
      }
    };
    return pass.run_observed(from, to, block, look);
  };
  for (std::int64_t i = 0; i < state_->passes(); ++i) {
    FORETUNE_TRY_STATUS(state_->run_pass(i, inputs, outputs, observed));
  }
  return {};
}

Result<std::vector<StepProfile>> NetworkPlan::profile(std::span<const float* const> inputs,
                                                      std::span<float* const> outputs) const {
  FORETUNE_TRY_STATUS(state_->check(inputs, outputs));
  // The steps of the passes correspond, so that the last pass's times join those of the others.
  std::vector<double> times(state_->pass.steps.size(), 0.0);
  for (std::int64_t i = 0; i < state_->passes(); ++i) {
    FORETUNE_TRY_STATUS(state_->run_pass(
        i, inputs, outputs, [&](const Pass& pass, auto from, auto to, std::span<float> block) {
          return pass.run_timed(from, to, block, times);
        }));
  }
  std::vector<StepProfile> profiles;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Step& step = *state_->pass.steps[i];
    profiles.push_back({step.name, step.describe(), times[i]});
  }
  return profiles;
}

}  // namespace foretune::graph
