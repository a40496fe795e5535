// Processors that no machine code is written for: the interpreter and the C emitter remain.
#include "foretune/loop/machine/jit.h"

namespace foretune::loop {

struct Jit::Memory {};
struct Jit::State {};
struct Kernel::State {
  Lowered plan;
};

Kernel::Kernel() : state_(std::make_unique<State>()) {}
Kernel::~Kernel() = default;
Kernel::Kernel(Kernel&&) noexcept = default;
Kernel& Kernel::operator=(Kernel&&) noexcept = default;

Result<Kernel::Workspace> Kernel::make_workspace(std::size_t) const { return Workspace{}; }
void Kernel::run(std::span<const std::span<const float>>, std::span<float>, Workspace&,
                 ThreadPool*) const {}
std::size_t Kernel::code_bytes() const { return 0; }
const void* Kernel::code() const { return nullptr; }
const Lowered& Kernel::plan() const { return state_->plan; }

Jit::Jit(const VectorUnit& unit) : unit_(unit) {}
Jit::~Jit() = default;
Result<Kernel> Jit::compile(const Computation&, const Nest&) const {
  return fail(ErrorCode::kUnsupported, "loop nests are compiled for x86-64 only");
}

}  // namespace foretune::loop
