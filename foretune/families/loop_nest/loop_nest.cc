#include "foretune/families/loop_nest/loop_nest.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/base/thread_pool.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/cursor_space.h"
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
  // `pool` may be null.
  NestRun(std::shared_ptr<const loop::Kernel> kernel, loop::Kernel::Workspace workspace,
          loop::Operands& operands, ThreadPool* pool)
      : kernel_(std::move(kernel)),
        workspace_(std::move(workspace)),
        operands_(operands),
        pool_(pool) {}

  void run() override {
    kernel_->run(operands_.inputs(), operands_.output().view(), workspace_, pool_);
  }
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
  ThreadPool* pool_;
};

class NestArtifact final : public Artifact {
 public:
  NestArtifact(Problem problem, loop::Kernel kernel, std::shared_ptr<ThreadPool> pool)
      : problem_(std::move(problem)),
        kernel_(std::make_shared<const loop::Kernel>(std::move(kernel))),
        pool_(std::move(pool)) {}

  Result<std::unique_ptr<Run>> bind(const Problem& problem, ProblemData& data) override {
    auto* const nest = dynamic_cast<NestData*>(&data);
    if (nest == nullptr || problem != problem_) {
      return fail(ErrorCode::kMismatch, "the code was compiled for '", problem_.text(), "'");
    }
    FORETUNE_TRY(loop::Kernel::Workspace workspace,
                 kernel_->make_workspace(pool_ ? pool_->threads() : 1));
    return std::make_unique<NestRun>(kernel_, std::move(workspace), nest->operands(), pool_.get());
  }

 private:
  Problem problem_;
  std::shared_ptr<const loop::Kernel> kernel_;
  std::shared_ptr<ThreadPool> pool_;  // none for one thread
};

class LoopNestFamily final : public Family {
 public:
  // With `only`, every problem of the type stands for that computation.
  LoopNestFamily(FamilyInfo info, LoopNestOptions options, CpuIsa isa,
                 std::optional<loop::Computation> only)
      : info_(std::move(info)),
        options_(std::move(options)),
        only_(std::move(only)),
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

  // The textbook's, then the start: the plain nest leaves lanes and registers to the compiler.
  std::vector<Config> default_configs(const Problem& problem) const override {
    std::vector<Config> out;
    const auto space = schedules(problem);
    if (!space) {
      return out;
    }
    if (options_.has_textbook_defaults) {
      out = (*space)->proposals(kTextbookDefaults);
    }
    Config start = (*space)->start();
    if (std::find(out.begin(), out.end(), start) == out.end()) {
      out.push_back(std::move(start));
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
    return std::make_unique<NestArtifact>(problem, std::move(kernel), threads());
  }

  Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                 std::uint64_t seed) const override {
    FORETUNE_TRY(loop::Computation computation, computation_for(problem));
    FORETUNE_TRY(loop::Operands operands, loop::Operands::create(std::move(computation), seed));
    return std::unique_ptr<ProblemData>(std::make_unique<NestData>(std::move(operands), jit_));
  }

 private:
  [[nodiscard]] Result<loop::Computation> computation_for(const Problem& problem) const {
    if (only_ && problem.type() == info_.problem_type) {
      return *only_;
    }
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
    const loop::Limits limits{.max_loops = options_.max_loops};
    std::optional<loop::Nest> start;
    if (!options_.start.empty()) {
      FORETUNE_TRY(const std::vector<loop::Action> schedule,
                   loop::parse_schedule(computation, options_.start, limits));
      FORETUNE_TRY(start, loop::apply_all(computation, schedule, limits));
    }
    return options_.actions
               ? loop::cursor_space(computation, unit_, *options_.actions, std::move(start), limits)
               : loop::ScheduleSpace::of_loops(computation, unit_, std::move(start), limits);
  }
  // Made when first wanted: a family that only knows spaces needs none.
  [[nodiscard]] std::shared_ptr<ThreadPool> threads() const {
    const std::lock_guard lock(pool_mutex_);
    if (pool_ == nullptr && info_.max_threads > 1) {
      pool_ = std::make_shared<ThreadPool>(static_cast<std::size_t>(info_.max_threads));
    }
    return pool_;
  }

  FamilyInfo info_;
  LoopNestOptions options_;
  std::optional<loop::Computation> only_;
  loop::VectorUnit unit_;
  std::shared_ptr<const loop::Jit> jit_;
  mutable std::mutex pool_mutex_;
  mutable std::shared_ptr<ThreadPool> pool_;
};

FamilyInfo info_of(ProblemType type, const Fingerprint& fingerprint, const LoopNestOptions& options,
                   int threads) {
  FamilyInfo info;
  info.name = "loop-nest";
  info.description = "loop nests on this CPU, compiled as a schedule says";
  info.problem_type = type;
  info.config_schema = loop::schedule_schema();
  info.fingerprint = fingerprint;
  // Times of other instructions are not to be taken for those of the best.
  if (options.isa && *options.isa < best_cpu_isa() && !fingerprint.device.empty()) {
    const loop::VectorUnit unit = loop::VectorUnit::of(*options.isa);
    info.fingerprint.isa = to_string(*options.isa);
    info.fingerprint.hardware.set(HardwareValue::kVectorBytes, static_cast<double>(unit.lanes * 4));
    info.fingerprint.hardware.set(HardwareValue::kVectorRegisters,
                                  static_cast<double>(unit.registers));
  }
  info.feature_table = "loop-nest";
  info.max_threads = std::max(1, threads);
  info.search_window_ns = 2e5;
  info.metrics = {metric_info(kWorkspaceBytes), {.name = std::string(kCodeBytes), .unit = "B"}};
  return info;
}

Result<CpuIsa> isa_of(const LoopNestOptions& options) {
  // A detached family is asked for its space only, on a machine that may have less.
  const CpuIsa best = std::max(best_cpu_isa(), CpuIsa::kAvx2);
  if (options.isa.value_or(best) > best) {
    return fail(ErrorCode::kUnsupported, "this CPU runs ", to_string(best_cpu_isa()), ", not ",
                to_string(*options.isa));
  }
  return options.isa.value_or(best);
}

Result<bool> parse_defaults(std::string_view value) {
  if (value != "textbook" && value != "start") {
    return fail(ErrorCode::kInvalidArgument, "defaults is textbook or start, not ",
                quoted(value, 40));
  }
  return value == "textbook";
}

Result<ProblemType> parse_type(std::string_view value) {
  if (std::find(kTypes.begin(), kTypes.end(), value) == kTypes.end()) {
    return fail(ErrorCode::kInvalidArgument, "loop-nest computes no ", quoted(value, 40),
                "; type is one of ",
                join(std::vector<std::string>(kTypes.begin(), kTypes.end()), ", "));
  }
  return find_problem_type(value)->schema.type;
}

Result<std::optional<loop::ActionSet>> parse_action_option(std::string_view value) {
  if (value == "loops") {
    return std::optional<loop::ActionSet>();
  }
  if (value == "all") {
    return std::optional(loop::ActionSet::all());
  }
  FORETUNE_TRY(loop::ActionSet actions, loop::ActionSet::parse(value));
  return std::optional(std::move(actions));
}

Result<CpuIsa> parse_isa(std::string_view value) {
  const std::optional<CpuIsa> isa = parse_cpu_isa(value);
  if (!isa || *isa == CpuIsa::kGeneric) {
    return fail(ErrorCode::kInvalidArgument, "isa is avx2 or avx512, not ", quoted(value, 40));
  }
  return *isa;
}

}  // namespace

Support loop_nest_available(const FamilyOptions& /*options*/) {
  return best_cpu_isa() >= CpuIsa::kAvx2
             ? Support::yes()
             : Support::no("machine code for loop nests needs a CPU with AVX2");
}

Result<LoopNestOptions> parse_loop_nest_options(const FamilyOptions& options) {
  LoopNestOptions out;
  for (const auto& [key, value] : options.parameters) {
    if (key == "type") {
      FORETUNE_TRY(out.type, parse_type(value));
    } else if (key == "actions") {
      FORETUNE_TRY(out.actions, parse_action_option(value));
    } else if (key == "start") {
      out.start = value;
    } else if (key == "defaults") {
      FORETUNE_TRY(out.has_textbook_defaults, parse_defaults(value));
    } else if (key == "isa") {
      FORETUNE_TRY(out.isa, parse_isa(value));
    } else {
      return fail(ErrorCode::kInvalidArgument, "loop-nest has no option '", key,
                  "'; it has: type, actions, start, defaults, isa");
    }
  }
  return out;
}

Result<std::unique_ptr<Family>> make_loop_nest(const FamilyOptions& options) {
  FORETUNE_TRY(LoopNestOptions parsed, parse_loop_nest_options(options));
  FORETUNE_TRY(const CpuIsa isa, isa_of(parsed));
  FamilyInfo info = info_of(parsed.type, options.fingerprint, parsed, options.threads);
  return std::unique_ptr<Family>(
      std::make_unique<LoopNestFamily>(std::move(info), std::move(parsed), isa, std::nullopt));
}

Result<NestBench> make_nest_bench(loop::Computation computation, LoopNestOptions options,
                                  std::size_t threads, const Fingerprint& fingerprint) {
  FORETUNE_TRY_STATUS(computation.check());
  FORETUNE_TRY(const CpuIsa isa, isa_of(options));
  Result<Problem> exact = loop::problem_of(computation.name);
  const bool is_described = exact.has_value();
  FORETUNE_TRY(Problem problem,
               is_described ? std::move(exact) : loop::problem_of("map r=1 c=1 chain=relu"));
  FamilyInfo info = info_of(problem.type(), fingerprint, options, static_cast<int>(threads));
  auto family = std::make_shared<LoopNestFamily>(std::move(info), std::move(options), isa,
                                                 std::move(computation));
  return NestBench{
      .family = std::move(family), .problem = std::move(problem), .is_described = is_described};
}

const FamilyEntry& loop_nest_family() {
  static const FamilyEntry entry{
      .name = "loop-nest",
      .description = "loop nests on this CPU, compiled as a schedule says",
      .available = loop_nest_available,
      .create = make_loop_nest};
  return entry;
}

}  // namespace foretune
