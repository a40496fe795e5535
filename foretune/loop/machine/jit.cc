#include "foretune/loop/machine/jit.h"

#include <asmjit/x86.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/fork.h"
#include "foretune/loop/machine/emitter.h"

namespace foretune::loop {

namespace {

asmjit::JitAllocator::CreateParams dual_mapping() {
  asmjit::JitAllocator::CreateParams params;
  params.options = asmjit::JitAllocatorOptions::kUseDualMapping;
  return params;
}

// One dimension after the other, the contiguous one as rows.
void copy_inside(const Tensor& from, const Tensor& to, std::span<const float> source, float* target,
                 std::size_t dimension, std::int64_t source_place, std::int64_t target_place) {
  if (dimension == from.dimensions.size()) {
    target[target_place] = source[static_cast<std::size_t>(source_place)];
    return;
  }
  const Dimension& a = from.dimensions[dimension];
  const Dimension& b = to.dimensions[dimension];
  const std::int64_t before = b.offset - a.offset;
  if (dimension + 1 == from.dimensions.size() && a.stride == 1 && b.stride == 1) {
    std::memcpy(target + target_place + before, source.data() + source_place,
                static_cast<std::size_t>(a.size) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < a.size; ++i) {
    copy_inside(from, to, source, target, dimension + 1, source_place + i * a.stride,
                target_place + (i + before) * b.stride);
  }
}

// Another thread may have been changing it at the fork, so that it cannot even be destroyed.
void leave_to_parent(std::shared_ptr<Jit::Memory> memory) {
  static_cast<void>(new std::shared_ptr<Jit::Memory>(std::move(memory)));
}

}  // namespace

struct Jit::Memory {
  asmjit::JitAllocator::CreateParams params = dual_mapping();
  asmjit::JitRuntime runtime{&params};
  std::uint32_t generation = fork_generation();
};

struct Jit::State {
  ForkSafeMutex mutex;
  std::shared_ptr<Memory> memory = std::make_shared<Memory>();
};

struct Kernel::State {
  using Function = void (*)(const KernelArguments*);

  // clang's sanitizer of function calls looks for a mark before the code, where there may be no
  // memory.
#if defined(__clang__)
  __attribute__((no_sanitize("function")))
#endif
  void
  call(const KernelArguments& arguments) const {
    function(&arguments);
  }

  std::shared_ptr<Jit::Memory> memory;
  Function function = nullptr;
  std::size_t code_bytes = 0;
  Lowered plan;
  std::vector<Tensor> inputs;  // as they come
  std::array<std::int64_t, kMaxTensors> origins{};
  std::int64_t rounds = 1;  // of a parallel loop, the shorter last one not counted
  bool has_remainder = false;
  bool is_parallel = false;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (function == nullptr) {
      return;
    }
    if (memory->generation == fork_generation()) {
      memory->runtime.release(function);
    } else {
      leave_to_parent(std::move(memory));
    }
  }
};

Kernel::Kernel() : state_(std::make_unique<State>()) {}
Kernel::~Kernel() = default;
Kernel::Kernel(Kernel&&) noexcept = default;
Kernel& Kernel::operator=(Kernel&&) noexcept = default;

std::size_t Kernel::code_bytes() const { return state_->code_bytes; }
const void* Kernel::code() const { return reinterpret_cast<const void*>(state_->function); }
const Lowered& Kernel::plan() const { return state_->plan; }

Result<Kernel::Workspace> Kernel::make_workspace(std::size_t threads) const {
  const Lowered& plan = state_->plan;
  Workspace workspace;
  for (std::size_t thread = 0; thread < std::max<std::size_t>(1, threads); ++thread) {
    FORETUNE_TRY(AlignedBuffer buffer,
                 AlignedBuffer::create(static_cast<std::size_t>(plan.pack_floats)));
    workspace.packs.push_back(std::move(buffer));
  }
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    AlignedBuffer buffer;
    if (plan.is_padded[t]) {
      FORETUNE_TRY(buffer,
                   AlignedBuffer::create(static_cast<std::size_t>(plan.tensors[t].elements())));
      std::fill(buffer.view().begin(), buffer.view().end(), 0.0F);
    }
    workspace.padded.push_back(std::move(buffer));
  }
  return workspace;
}

void Kernel::run(std::span<const std::span<const float>> inputs, std::span<float> output,
                 Workspace& workspace, ThreadPool* pool) const {
  const State& state = *state_;
  FORETUNE_CHECK(inputs.size() == state.inputs.size());
  KernelArguments shared;
  shared.tensors[0] = output.data() + state.origins[0];
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const float* data = inputs[i].data();
    if (state.plan.is_padded[i + 1]) {
      float* const padded = workspace.padded[i + 1].data();
      copy_inside(state.inputs[i], state.plan.tensors[i + 1], inputs[i], padded, 0, 0, 0);
      data = padded;
    }
    shared.tensors[i + 1] = data + state.origins[i + 1];
  }
  shared.packs = workspace.packs[0].data();
  shared.rounds = state.rounds;
  shared.does_remainder = 1;
  if (pool == nullptr || !state.is_parallel) {
    state.call(shared);
    return;
  }
  const std::size_t threads =
      std::min({pool->threads(), workspace.packs.size(),
                static_cast<std::size_t>(state.rounds + (state.has_remainder ? 1 : 0))});
  pool->run(threads, [&](std::size_t thread) {
    const auto edge = [&](std::size_t t) {
      return state.rounds * static_cast<std::int64_t>(t) / static_cast<std::int64_t>(threads);
    };
    KernelArguments arguments = shared;
    arguments.packs = workspace.packs[thread].data();
    arguments.first_round = edge(thread);
    arguments.rounds = edge(thread + 1) - edge(thread);
    arguments.does_remainder = thread + 1 == threads ? 1 : 0;
    state.call(arguments);
  });
}

Jit::Jit(const VectorUnit& unit) : unit_(unit), state_(std::make_unique<State>()) {}

Jit::~Jit() {
  if (state_->memory->generation != fork_generation()) {
    leave_to_parent(std::move(state_->memory));
  }
}

std::shared_ptr<Jit::Memory> Jit::memory() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->memory->generation != fork_generation()) {
    leave_to_parent(std::exchange(state_->memory, std::make_shared<Memory>()));
  }
  return state_->memory;
}

Result<Kernel> Jit::compile(const Computation& computation, const Nest& nest) const {
  Kernel kernel;
  Kernel::State& state = *kernel.state_;
  FORETUNE_TRY(state.plan, lower(computation, nest, unit_));
  state.inputs = computation.inputs;
  state.memory = memory();
  for (std::size_t t = 0; t < state.plan.tensors.size(); ++t) {
    state.origins.at(t) = state.plan.tensors[t].origin();
  }
  if (!state.plan.nest.loops.empty() && state.plan.nest.loops[0].mark == Mark::kParallel) {
    const Loop& loop = state.plan.nest.loops[0];
    const std::int64_t extent = computation.vars[loop.var].extent;
    state.is_parallel = true;
    state.rounds = extent / loop.step;
    state.has_remainder = extent % loop.step != 0;
  }
  asmjit::CodeHolder code;
  code.init(state.memory->runtime.environment());
  Emitter emitter(computation, state.plan, code);
  FORETUNE_TRY_STATUS(emitter.emit());
  const asmjit::Error error = state.memory->runtime.add(&state.function, &code);
  if (error != asmjit::kErrorOk) {
    return fail(ErrorCode::kUnsupported,
                "no memory for code: ", asmjit::DebugUtils::errorAsString(error));
  }
  state.code_bytes = code.codeSize();
  return kernel;
}

}  // namespace foretune::loop
