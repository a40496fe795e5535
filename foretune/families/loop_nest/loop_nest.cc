#include "foretune/families/loop_nest/loop_nest.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/lowering.h"
#include "foretune/loop/machine/jit.h"
#include "foretune/loop/machine/operands.h"
#include "foretune/loop/nest.h"
#include "foretune/loop/problem_computation.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/problem/problem_type.h"

namespace foretune {
namespace {

constexpr std::array<std::string_view, 4> kTypes{"nest_mm", "nest_conv", "nest_reduce", "nest_map"};
constexpr std::string_view kCodeBytes = "code_bytes";
// So many of the default configs are the textbook's. All are measured wherever a problem is: they
// teach a model more than schedules at random, most of which are slow.
constexpr std::size_t kTextbookDefaults = 16;

class NestData final : public ProblemData {
 public:
  NestData(loop::Operands operands, std::shared_ptr<const loop::Jit> jit)
      : operands_(std::move(operands)), jit_(std::move(jit)) {}
  [[nodiscard]] loop::Operands& operands() { return operands_; }

  void poison() override { operands_.poison(); }
  Support verify() override {
    const std::string wrong = operands_.wrong_output(*jit_);
    return wrong.empty() ? Support::yes() : Support::no(wrong);
  }
  std::int64_t bytes() const override { return operands_.bytes(); }

 private:
  loop::Operands operands_;
  std::shared_ptr<const loop::Jit> jit_;
};

class NestRun final : public Run {
 public:
  NestRun(std::shared_ptr<const loop::Kernel> kernel, loop::Kernel::Workspace workspace,
          loop::Operands& operands)
      : kernel_(std::move(kernel)), workspace_(std::move(workspace)), operands_(operands) {}

  void run() override { kernel_->run(operands_.inputs(), operands_.output().view(), workspace_); }
  std::vector<MetricValue> metrics() override {
    std::size_t floats = 0;
    for (const auto* buffers : {&workspace_.packs, &workspace_.padded}) {
      for (const AlignedBuffer& buffer : *buffers) {
        floats += buffer.size();
      }
    }
    return {{kWorkspaceBytes, static_cast<double>(floats * sizeof(float)), 0, 1},
            {std::string(kCodeBytes), static_cast<double>(kernel_->code_bytes()), 0, 1}};
  }

 private:
  std::shared_ptr<const loop::Kernel> kernel_;
  loop::Kernel::Workspace workspace_;
  loop::Operands& operands_;
};

class NestArtifact final : public Artifact {
 public:
  NestArtifact(Problem problem, loop::Kernel kernel)
      : problem_(std::move(problem)),
        kernel_(std::make_shared<const loop::Kernel>(std::move(kernel))) {}

  Result<std::unique_ptr<Run>> bind(const Problem& problem, ProblemData& data) override {
    auto* const nest = dynamic_cast<NestData*>(&data);
    if (nest == nullptr || problem != problem_) {
      return fail(ErrorCode::kMismatch, "the code was compiled for '", problem_.text(), "'");
    }
    FORETUNE_TRY(loop::Kernel::Workspace workspace, kernel_->make_workspace(1));
    return std::make_unique<NestRun>(kernel_, std::move(workspace), nest->operands());
  }

 private:
  Problem problem_;
  std::shared_ptr<const loop::Kernel> kernel_;
};

class LoopNestFamily final : public Family {
 public:
  LoopNestFamily(FamilyInfo info, CpuIsa isa)
      : info_(std::move(info)),
        unit_(loop::VectorUnit::of(isa)),
        jit_(std::make_shared<const loop::Jit>(unit_)) {}

  const FamilyInfo& info() const override { return info_; }

  Support supports(const Problem& problem) const override {
    const auto computation = computation_for(problem);
    return computation ? Support::yes() : Support::no(computation.error().message);
  }

  Result<std::unique_ptr<Space>> space(const Problem& problem) const override {
    FORETUNE_TRY(std::unique_ptr<loop::ScheduleSpace> space, schedules(problem));
    return std::unique_ptr<Space>(std::move(space));
  }

  // The textbook's, then the plain nest, which leaves lanes and registers to the compiler.
  std::vector<Config> default_configs(const Problem& problem) const override {
    std::vector<Config> out;
    const auto space = schedules(problem);
    if (!space) {
      return out;
    }
    out = (*space)->proposals(kTextbookDefaults);
    Config plain = (*space)->start();
    if (std::find(out.begin(), out.end(), plain) == out.end()) {
      out.push_back(std::move(plain));
    }
    return out;
  }

  std::string artifact_key(const Problem& problem, const Config& config) const override {
    return concat(problem.text(), " ", to_text(info_.config_schema, config));
  }

  Result<std::unique_ptr<Artifact>> prepare(const Problem& problem,
                                            const Config& config) const override {
    FORETUNE_TRY(const std::unique_ptr<loop::ScheduleSpace> space, schedules(problem));
    const auto nest = space->nest(config);
    if (!nest) {
      return fail(ErrorCode::kUnsupported, nest.error().message);
    }
    FORETUNE_TRY(loop::Kernel kernel, jit_->compile(space->computation(), *nest));
    return std::make_unique<NestArtifact>(problem, std::move(kernel));
  }

  Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                 std::uint64_t seed) const override {
    FORETUNE_TRY(loop::Computation computation, computation_for(problem));
    FORETUNE_TRY(loop::Operands operands, loop::Operands::create(std::move(computation), seed));
    return std::unique_ptr<ProblemData>(std::make_unique<NestData>(std::move(operands), jit_));
  }

 private:
  [[nodiscard]] Result<loop::Computation> computation_for(const Problem& problem) const {
    if (problem.type() != info_.problem_type) {
      return fail(ErrorCode::kMismatch, "the family computes ",
                  find_problem_type(info_.problem_type)->schema.name, " problems; --family-option ",
                  "type=", problem.schema().name, " makes one that computes this");
    }
    return loop::computation_of(problem);
  }
  [[nodiscard]] Result<std::unique_ptr<loop::ScheduleSpace>> schedules(
      const Problem& problem) const {
    FORETUNE_TRY(const loop::Computation computation, computation_for(problem));
    return loop::ScheduleSpace::of_loops(computation, unit_);
  }

  FamilyInfo info_;
  loop::VectorUnit unit_;
  std::shared_ptr<const loop::Jit> jit_;
};

}  // namespace

Support loop_nest_available(const FamilyOptions& /*options*/) {
  return best_cpu_isa() >= CpuIsa::kAvx2
             ? Support::yes()
             : Support::no("machine code for loop nests needs a CPU with AVX2");
}

Result<std::unique_ptr<Family>> make_loop_nest(const FamilyOptions& options) {
  std::string_view type = kTypes.front();
  for (const auto& [key, value] : options.parameters) {
    if (key != "type") {
      return fail(ErrorCode::kInvalidArgument, "loop-nest has no option '", key, "'; it has: type");
    }
    const auto* const known = std::find(kTypes.begin(), kTypes.end(), value);
    if (known == kTypes.end()) {
      return fail(ErrorCode::kInvalidArgument, "loop-nest computes no ", quoted(value, 40),
                  "; type is one of ",
                  join(std::vector<std::string>(kTypes.begin(), kTypes.end()), ", "));
    }
    type = *known;
  }
  FamilyInfo info;
  info.name = "loop-nest";
  info.description = "loop nests on this CPU, compiled as a schedule says";
  info.problem_type = find_problem_type(type)->schema.type;
  info.config_schema = loop::schedule_schema();
  info.fingerprint = options.fingerprint;
  info.feature_table = "loop-nest";
  info.search_window_ns = 2e5;
  info.metrics = {metric_info(kWorkspaceBytes), {.name = std::string(kCodeBytes), .unit = "B"}};
  // A detached family is asked for its space only, on a machine that may have less.
  const CpuIsa isa = std::max(best_cpu_isa(), CpuIsa::kAvx2);
  return std::unique_ptr<Family>(std::make_unique<LoopNestFamily>(std::move(info), isa));
}

}  // namespace foretune
