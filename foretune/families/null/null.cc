#include "foretune/families/null/null.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "foretune/base/hash.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/families/null/null_layers.h"
#include "foretune/problem/problem_type.h"
#include "foretune/space/parametric_space.h"
#include "foretune/space/schemas/simulated.h"

namespace foretune {
namespace {

constexpr std::size_t kBlockM = 0;
constexpr std::size_t kBlockN = 1;
constexpr std::size_t kBlockK = 2;
constexpr std::size_t kUnroll = 3;
constexpr std::size_t kOutputs = 64;

// The three sizes of a problem that the formula looks at: the first that samplers draw.
std::array<std::size_t, 3> main_sizes(const ProblemTypeInfo& type) {
  std::array<std::size_t, 3> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = type.drawn_sizes[std::min(i, type.drawn_sizes.size() - 1)].field;
  }
  return out;
}

SpaceDefinition null_space(const ProblemTypeInfo& type) {
  const std::array<std::size_t, 3> sizes = main_sizes(type);
  const std::string_view rows = type.schema.fields[sizes[0]].name;
  const std::string_view columns = type.schema.fields[sizes[1]].name;
  SpaceDefinition definition;
  definition.schema = null_schema();
  definition.problem_type = type.schema.type;
  definition.domains = {
      {8, 16, 32, 64, 128, 256}, {8, 16, 32, 64, 128, 256}, {16, 32, 64, 128}, {1, 2, 4, 8}};
  definition.constraints = {
      {"block_m * block_n <= 16384", "the accumulators do not fit"},
      {"4 * unroll <= block_k", "fewer than four steps would be left in the inner loop"},
      {concat("block_m < 2 * max(", rows, ", 8)"),
       "the block is at least twice as high as the matrix"},
      {concat("block_n < 2 * max(", columns, ", 8)"),
       "the block is at least twice as wide as the matrix"},
  };
  return definition;
}

// Times by formula belong to no machine. The values give features something to divide by.
Fingerprint null_fingerprint() {
  Fingerprint fingerprint;
  fingerprint.device = "null (times by formula)";
  fingerprint.isa = "none";
  fingerprint.hardware.set(HardwareValue::kCores, 1);
  fingerprint.hardware.set(HardwareValue::kL1Bytes, 32768);
  fingerprint.hardware.set(HardwareValue::kL2Bytes, 1048576);
  fingerprint.hardware.set(HardwareValue::kFmaPeakGflops, 100);
  fingerprint.hardware.set(HardwareValue::kBandwidthGbs, 10);
  return fingerprint;
}

// The middle of the quadratic: larger problems want larger blocks.
double best_log2(double size, double low, double high) {
  return std::clamp(2 + 0.45 * std::log2(size), low, high);
}

std::uint64_t pair_hash(std::uint64_t seed, const Problem& problem, const Config& config) {
  return hash_combine(hash_combine(mix64(seed), problem.hash()), config.hash());
}

double share_of(std::uint64_t hash) { return static_cast<double>(hash >> 11U) * 0x1.0p-53; }

// The fault whose share of all the hash falls into.
NullFault drawn_fault(const std::array<std::pair<NullFault, double>, 4>& faults,
                      std::uint64_t hash) {
  double rest = share_of(hash);
  for (const auto& [fault, share] : faults) {
    if (rest < share) {
      return fault;
    }
    rest -= share;
  }
  return NullFault::kNone;
}

// The real buffer that faulty kernels get wrong.
class NullData final : public ProblemData {
 public:
  explicit NullData(std::uint64_t seed) {
    Rng rng(seed);
    for (double& value : expected) {
      value = rng.normal();
    }
    output.fill(0);
  }
  void poison() override { output.fill(std::numeric_limits<double>::quiet_NaN()); }
  Support verify() override {
    for (std::size_t i = 0; i < kOutputs; ++i) {
      if (output[i] != expected[i]) {  // also for NaN
        return Support::no("output ", i, " is ", output[i], " instead of ", expected[i]);
      }
    }
    return Support::yes();
  }
  std::int64_t bytes() const override {
    return static_cast<std::int64_t>(2 * kOutputs * sizeof(double));
  }

  std::array<double, kOutputs> expected{};
  std::array<double, kOutputs> output{};
};

enum class Where : std::uint8_t { kPrepare, kBind, kRun };

struct Behaviour {
  NullFault fault = NullFault::kNone;
  Where where = Where::kRun;  // of a crash or hang
  bool segfault = false;      // instead of abort()
};

Behaviour behaviour(const NullParameters& parameters, const Problem& problem,
                    const Config& config) {
  Behaviour result;
  result.fault = null_fault(parameters, problem, config);
  const std::uint64_t hash = pair_hash(parameters.seed + 1, problem, config);
  // Half of the crashes and hangs happen where most of a kernel's time is spent.
  constexpr std::array<Where, 4> kPlaces{Where::kPrepare, Where::kBind, Where::kRun, Where::kRun};
  result.where = kPlaces[hash % kPlaces.size()];
  result.segfault = ((hash >> 8U) & 1U) != 0;
  return result;
}

void misbehave(const Behaviour& behaviour, Where where) {
  if (behaviour.where != where) {
    return;
  }
  if (behaviour.fault == NullFault::kCrash) {
    if (behaviour.segfault) {
      // The default action, also where a sanitizer has put a handler of its own.
      std::signal(SIGSEGV, SIG_DFL);
      std::raise(SIGSEGV);
    }
    std::abort();
  }
  if (behaviour.fault == NullFault::kHang) {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }
}

class NullRun final : public Run {
 public:
  NullRun(const NullParameters& parameters, const Problem& problem, Config config, NullData& data)
      : parameters_(parameters),
        behaviour_(behaviour(parameters, problem, config)),
        problem_(problem),
        config_(std::move(config)),
        time_ns_(parameters.sequence ? null_layers_time_ns(problem_, config_)
                                     : null_time_ns(problem_, config_)),
        rng_(pair_hash(parameters.seed + 2, problem_, config_)),
        data_(data) {}

  void run() override {
    misbehave(behaviour_, Where::kRun);
    data_.output = data_.expected;
    if (behaviour_.fault == NullFault::kWrong) {
      data_.output[kOutputs / 2] += 1;
    }
    if (parameters_.real_time) {
      const auto end = std::chrono::steady_clock::now() +
                       std::chrono::nanoseconds(static_cast<std::int64_t>(noisy_ns()));
      while (std::chrono::steady_clock::now() < end) {
      }
    }
  }
  double simulated_ns() override { return parameters_.real_time ? -1 : noisy_ns(); }
  std::vector<MetricValue> metrics() override {
    if (!parameters_.metrics) {
      return {};
    }
    const bool layers = parameters_.sequence;
    return {
        {kPackNs, layers ? null_layers_pack_ns(config_) : null_pack_ns(problem_, config_), 0, 1},
        {kWorkspaceBytes, layers ? null_layers_bytes(config_) : null_bytes(config_), 0, 1}};
  }
  Result<std::vector<MetricValue>> evaluate(std::span<const std::string> names) override {
    for (const std::string& name : names) {
      if (!parameters_.metrics || name != kNullAccuracy) {
        return Run::evaluate(std::span(&name, 1));
      }
    }
    const NullFault fault = null_evaluation_fault(parameters_, problem_, config_);
    misbehave({.fault = fault, .where = Where::kRun}, Where::kRun);
    if (fault == NullFault::kPrepareFail) {
      return fail(ErrorCode::kInvalidArgument, "this config was asked to fail to be evaluated");
    }
    const double accuracy =
        parameters_.sequence ? null_layers_accuracy(problem_, config_) : null_accuracy(config_);
    return std::vector<MetricValue>{{kNullAccuracy, accuracy, 0, 1}};
  }

 private:
  // Noise only ever delays, as on a real machine: the minimum of many runs is the formula.
  double noisy_ns() { return time_ns_ * std::exp(parameters_.noise * std::abs(rng_.normal())); }

  NullParameters parameters_;
  Behaviour behaviour_;
  Problem problem_;
  Config config_;
  double time_ns_;
  Rng rng_;
  NullData& data_;
};

class NullArtifact final : public Artifact {
 public:
  NullArtifact(const NullParameters& parameters, Config config)
      : parameters_(parameters), config_(std::move(config)) {}
  Result<std::unique_ptr<Run>> bind(const Problem& problem, ProblemData& data) override {
    misbehave(behaviour(parameters_, problem, config_), Where::kBind);
    return std::unique_ptr<Run>(
        std::make_unique<NullRun>(parameters_, problem, config_, static_cast<NullData&>(data)));
  }

 private:
  NullParameters parameters_;
  Config config_;
};

class NullFamily final : public Family {
 public:
  // `space` of blocks, nullptr for sequences.
  NullFamily(const NullParameters& parameters, const ProblemTypeInfo& type,
             std::shared_ptr<const CompiledSpace> space)
      : parameters_(parameters) {
    info_.name = "null";
    info_.description = "times by formula, faults on request: for tests without hardware";
    info_.problem_type = type.schema.type;
    info_.config_schema = space != nullptr ? space->definition().schema : null_layers_schema();
    info_.space = std::move(space);
    info_.fingerprint = null_fingerprint();
    info_.feature_table =
        parameters.sequence ? std::string("sequence-words") : concat(type.schema.name, "-null");
    info_.needs_worker = parameters.crash > 0 || parameters.hang > 0 ||
                         parameters.evaluate_crash > 0 || parameters.evaluate_hang > 0;
    info_.simulated = !parameters.real_time;
    if (parameters.metrics) {
      info_.metrics = {metric_info(kPackNs),
                       metric_info(kWorkspaceBytes),
                       {.name = std::string(kNullAccuracy),
                        .unit = "%",
                        .direction = Direction::kMaximise,
                        .stage = MetricStage::kEvaluation}};
    }
  }

  const FamilyInfo& info() const override { return info_; }
  Support supports(const Problem& problem) const override {
    return problem.type() == info_.problem_type
               ? Support::yes()
               : Support::no("null was asked for ", parameters_.type, " problems, not ",
                             problem.schema().name);
  }
  Result<std::unique_ptr<Space>> space(const Problem& problem) const override {
    if (parameters_.sequence) {
      return std::unique_ptr<Space>(std::make_unique<NullLayersSpace>(problem));
    }
    FORETUNE_TRY(std::unique_ptr<ParametricSpace> bound,
                 ParametricSpace::bind(info_.space, problem, info_.fingerprint.hardware));
    return std::unique_ptr<Space>(std::move(bound));
  }
  // All layers exact.
  std::vector<Config> default_configs(const Problem& problem) const override {
    return parameters_.sequence ? std::vector<Config>{NullLayersSpace(problem).start()}
                                : std::vector<Config>{};
  }
  // A fault may be one of preparing, and that depends on the problem too.
  std::string artifact_key(const Problem& problem, const Config& config) const override {
    return concat(problem.text(), "|", to_text(info_.config_schema, config));
  }
  Result<std::unique_ptr<Artifact>> prepare(const Problem& problem,
                                            const Config& config) const override {
    const Behaviour how = behaviour(parameters_, problem, config);
    misbehave(how, Where::kPrepare);
    if (how.fault == NullFault::kPrepareFail) {
      return fail(ErrorCode::kInvalidArgument, "this config was asked to fail to prepare");
    }
    return std::unique_ptr<Artifact>(std::make_unique<NullArtifact>(parameters_, config));
  }
  Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                 std::uint64_t seed) const override {
    return std::unique_ptr<ProblemData>(
        std::make_unique<NullData>(hash_combine(seed, problem.hash())));
  }

 private:
  NullParameters parameters_;
  FamilyInfo info_;
};

Status set_share(double& target, std::string_view key, std::string_view value) {
  const std::optional<double> number = parse_double(value);
  if (!number || !(*number >= 0 && *number <= 1)) {
    return fail(ErrorCode::kInvalidArgument, "family option ", key,
                " of null wants a number from 0 to 1, not '", value, "'");
  }
  target = *number;
  return {};
}

}  // namespace

Result<NullParameters> parse_null_parameters(const FamilyOptions& options) {
  NullParameters parameters;
  const std::vector<std::pair<std::string, double*>> shares{
      {"noise", &parameters.noise},
      {"crash", &parameters.crash},
      {"hang", &parameters.hang},
      {"wrong", &parameters.wrong},
      {"prepare_fail", &parameters.prepare_fail},
      {"evaluate_crash", &parameters.evaluate_crash},
      {"evaluate_hang", &parameters.evaluate_hang},
      {"evaluate_fail", &parameters.evaluate_fail}};
  const std::vector<std::pair<std::string, bool*>> switches{{"real_time", &parameters.real_time},
                                                            {"metrics", &parameters.metrics}};
  for (const auto& [key, value] : options.parameters) {
    const auto share = std::find_if(shares.begin(), shares.end(), [&name = key](const auto& entry) {
      return entry.first == name;
    });
    if (share != shares.end()) {
      FORETUNE_TRY_STATUS(set_share(*share->second, key, value));
    } else if (key == "seed") {
      const std::optional<std::uint64_t> seed = parse_uint(value);
      if (!seed) {
        return fail(ErrorCode::kInvalidArgument, "family option seed of null wants a number, not '",
                    value, "'");
      }
      parameters.seed = *seed;
    } else if (const auto turned =
                   std::find_if(switches.begin(), switches.end(),
                                [&name = key](const auto& entry) { return entry.first == name; });
               turned != switches.end()) {
      if (value != "0" && value != "1") {
        return fail(ErrorCode::kInvalidArgument, "family option ", key,
                    " of null wants 0 or 1, not '", value, "'");
      }
      *turned->second = value == "1";
    } else if (key == "sequence") {
      if (value != "yes" && value != "no") {
        return fail(ErrorCode::kInvalidArgument,
                    "family option sequence of null wants yes or no, not ", quoted(value, 40));
      }
      parameters.sequence = value == "yes";
    } else if (key == "type") {
      const ProblemTypeInfo* type = find_problem_type(value);
      if (type == nullptr || type->drawn_sizes.empty()) {
        return fail(ErrorCode::kInvalidArgument,
                    "family option type of null wants a type of problem "
                    "that can be drawn, not ",
                    quoted(value, 40));
      }
      parameters.type = value;
    } else {
      return fail(ErrorCode::kInvalidArgument, "null has no option '", key,
                  "'; it has type, seed, noise, crash, hang, wrong, prepare_fail, real_time, "
                  "metrics, evaluate_crash, evaluate_hang, evaluate_fail, sequence");
    }
  }
  if (parameters.crash + parameters.hang + parameters.wrong + parameters.prepare_fail > 1 ||
      parameters.evaluate_crash + parameters.evaluate_hang + parameters.evaluate_fail > 1) {
    return fail(ErrorCode::kInvalidArgument, "the faults of null add up to more than 1");
  }
  return parameters;
}

NullFault null_fault(const NullParameters& parameters, const Problem& problem,
                     const Config& config) {
  return drawn_fault({{{NullFault::kCrash, parameters.crash},
                       {NullFault::kHang, parameters.hang},
                       {NullFault::kWrong, parameters.wrong},
                       {NullFault::kPrepareFail, parameters.prepare_fail}}},
                     pair_hash(parameters.seed, problem, config));
}

NullFault null_evaluation_fault(const NullParameters& parameters, const Problem& problem,
                                const Config& config) {
  return drawn_fault({{{NullFault::kCrash, parameters.evaluate_crash},
                       {NullFault::kHang, parameters.evaluate_hang},
                       {NullFault::kPrepareFail, parameters.evaluate_fail},
                       {NullFault::kNone, 1}}},
                     pair_hash(parameters.seed + 3, problem, config));
}

double null_time_ns(const Problem& problem, const Config& config) {
  constexpr double kLaunchNs = 1000;
  constexpr double kFlopsPerNs = 50;
  const ProblemTypeInfo& type = *find_problem_type(problem.type());
  const std::array<std::size_t, 3> sizes = main_sizes(type);
  const auto log2_of = [&](std::size_t parameter) {
    return std::log2(static_cast<double>(std::max(1, config.words[parameter])));
  };
  const auto m = static_cast<double>(problem.field(sizes[0]));
  const auto n = static_cast<double>(problem.field(sizes[1]));
  const auto k = static_cast<double>(problem.field(sizes[2]));
  const std::optional<ProblemWork> work = problem_work(problem);
  const double flops = work ? work->flops : 2 * m * n * k;
  const double off_m = log2_of(kBlockM) - best_log2(m, 3, 8);
  const double off_n = log2_of(kBlockN) - best_log2(n, 3, 8);
  const double off_k = log2_of(kBlockK) - best_log2(k, 4, 7);
  // Deep problems like long inner loops.
  const double off_unroll = log2_of(kUnroll) - std::clamp(0.3 * std::log2(k), 0.0, 3.0);
  const double slowdown = 1 + 0.20 * off_m * off_m + 0.15 * off_n * off_n + 0.08 * off_k * off_k +
                          0.05 * off_unroll * off_unroll + 0.04 * std::abs(off_m * off_n);
  return (kLaunchNs + flops / kFlopsPerNs) * slowdown;
}

double null_pack_ns(const Problem& problem, const Config& config) {
  const ProblemTypeInfo& type = *find_problem_type(problem.type());
  const auto depth = static_cast<double>(problem.field(main_sizes(type)[2]));
  // Small unrolled blocks are packed in place.
  const double block = static_cast<double>(config.words[kBlockN]) * config.words[kBlockK];
  return block <= 256 ? 0 : 20 * std::sqrt(block) * (1 + depth / 64);
}

double null_bytes(const Config& config) {
  return 4.0 * config.words[kBlockK] * (config.words[kBlockM] + config.words[kBlockN]);
}

double null_accuracy(const Config& config) {
  return 99 - 1.5 * std::log2(static_cast<double>(std::max(1, config.words[kUnroll]))) -
         0.25 * std::log2(static_cast<double>(std::max(1, config.words[kBlockM])));
}

Result<std::unique_ptr<Family>> make_null(const FamilyOptions& options) {
  FORETUNE_TRY(const NullParameters parameters, parse_null_parameters(options));
  const ProblemTypeInfo& type = *find_problem_type(parameters.type);
  std::shared_ptr<const CompiledSpace> space;
  if (!parameters.sequence) {
    FORETUNE_TRY(space, CompiledSpace::create(null_space(type)));
  }
  return std::unique_ptr<Family>(std::make_unique<NullFamily>(parameters, type, std::move(space)));
}

Support null_available(const FamilyOptions&) { return Support::yes(); }

const FamilyEntry& null_family() {
  static const FamilyEntry entry{
      .name = "null",
      .description = "times by formula, faults on request: for tests without hardware",
      .available = null_available,
      .create = make_null};
  return entry;
}

}  // namespace foretune
