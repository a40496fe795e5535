// A family: interchangeable kernels for one operation on one kind of device. Measuring walks
//
//   space(problem) -> config -> artifact_key -> prepare (once per key) -> bind(problem data)
//   -> run -> verify
//
// A template kernel has nothing to prepare, a Triton kernel is compiled once per config, a jitted
// one once per (problem, config) pair. Functions that may crash or hang are called in a worker
// process only. A family whose times come from elsewhere (recorded, simulated) overrides
// Run::simulated_ns.
// Thread safety: Family const members may be called from several threads; the rest belongs to one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/hardware/hardware.h"
#include "foretune/metrics/metric.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"
#include "foretune/space/parametric_space.h"
#include "foretune/space/space.h"

namespace foretune {

struct FamilyInfo {
  std::string name;         // "cpu-gemm"
  std::string description;  // one sentence
  ProblemType problem_type{};
  ConfigSchema config_schema;
  // The space as data, when it is parametric: stored in data sets and models. Else nullptr.
  std::shared_ptr<const CompiledSpace> space;
  Fingerprint fingerprint;    // of the device it runs on
  std::string feature_table;  // default table of this family: "gemm-cpu"
  bool needs_worker = true;   // false: cannot crash or hang, may be measured in the process
  int max_threads = 1;        // that a kernel may use; its configs use no more
  bool simulated = false;     // nothing is executed: times come from elsewhere and cost none
  // A sentence without its full stop that users should read before they measure; empty for none.
  std::string note = {};
  // The length of a window, in ns, in a search that measures many configs briefly; 0: the usual
  // length. For runs that repeat well and are prepared in microseconds.
  double search_window_ns = 0;
  // The metrics that its runs yield besides the time.
  std::vector<MetricInfo> metrics = {};
};

// The clock of a device. A host that waits for one kernel also measures its own delays; the device
// times many kernels in a row, as one submission.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  // Warms up with one run, then times a second one. Returns an upper bound of a run's time in ns, a
  // few microseconds too high. Errors: kUnsupported when the kernel cannot be launched.
  virtual Result<double> first_run() = 0;
  // Times `windows` windows of `runs` runs each and appends the time of one run in each window, in
  // ns. With `cold` no run finds its operands in the device's cache. Errors: as first_run().
  virtual Status time(std::int64_t runs, std::int32_t windows, bool cold,
                      std::vector<double>& windows_ns) = 0;
};

// The reason why a run failed, for families whose runs are processes of their own.
struct RunFailure {
  enum class Kind : std::uint8_t { kCrashed, kTimedOut, kWrongResult };
  Kind kind = Kind::kCrashed;
  std::string reason;
};

// One way to run one problem with one config.
class Run {
 public:
  virtual ~Run() = default;
  // The timed call. Must be callable again and again, and write the whole output each time.
  virtual void run() = 0;
  // Returns the failure of a run that could be contained; nothing as long as all went well. A
  // failure stays, and nobody calls run() again after it. A run that ends its whole process needs
  // no RunFailure: the end of the worker reports it.
  virtual std::optional<RunFailure> failure() const { return std::nullopt; }
  // Returns the clock of the device that times this run; nullptr when the host's clock can time it.
  virtual DeviceClock* device_clock() { return nullptr; }
  // Returns the nanoseconds of one run in families that execute nothing: the measuring protocol
  // then takes this instead of the clock. Negative: use the clock.
  virtual double simulated_ns() { return -1; }
  // Returns true when simulated_ns is only a lower bound (a replayed measurement that was stopped
  // early).
  virtual bool simulated_is_bound() { return false; }
  // Returns the relative interquartile range that was stored with simulated_ns, when simulated_ns
  // is not a fresh sample in each window.
  virtual double simulated_spread() { return 0; }
  // Returns true when bind() copied operands into another form: the time of a bind is then measured
  // as pack_ns.
  virtual bool packs_operands() const { return false; }
  // Returns the metrics of MetricStage::kRun, except pack_ns of a run that packs. Called after the
  // run was timed and its result verified. The caller drops values that are not finite.
  virtual std::vector<MetricValue> metrics() { return {}; }
  // Determines metrics of MetricStage::kEvaluation, in a stage of its own: like a run, it may take
  // long, crash or hang. `names` are metrics that the family declares; the result has to contain
  // all of them and may contain others. Errors: kUnsupported for a metric that cannot be determined
  // here; other errors are failures of the config.
  virtual Result<std::vector<MetricValue>> evaluate(std::span<const std::string> names) {
    return fail(ErrorCode::kUnsupported, "the family has no stage that finds out ",
                names.empty() ? "metrics" : names.front());
  }
};

// Inputs, output and reference of one problem.
class ProblemData {
 public:
  virtual ~ProblemData() = default;
  // Fills the output with a pattern that no correct run leaves behind.
  virtual void poison() = 0;
  // Compares the output with the reference (computed once, kept). Returns no when the output is
  // wrong, with the place of the error.
  virtual Support verify() = 0;
  // Returns the bytes of all buffers: a cold-cache run has to evict them, and a limit counts them.
  virtual std::int64_t bytes() const = 0;
};

class Artifact {
 public:
  virtual ~Artifact() = default;
  virtual Result<std::unique_ptr<Run>> bind(const Problem& problem, ProblemData& data) = 0;
};

// The state that a device reports while it works.
struct DeviceConditions {
  bool is_throttled = false;  // since the last call of Family::conditions()
};

class Family {
 public:
  virtual ~Family() = default;
  virtual const FamilyInfo& info() const = 0;
  // Returns no, with the reason, when the family cannot compute this problem at all.
  virtual Support supports(const Problem& problem) const = 0;
  virtual Result<std::unique_ptr<Space>> space(const Problem& problem) const = 0;
  // Returns the configs that a user without tuning would run: a fixed textbook choice, legal for
  // the problem, best first. They are measured before all others, so that slow configs are stopped
  // early from the start, and a model has to beat them. May be empty.
  virtual std::vector<Config> default_configs(const Problem& /*problem*/) const { return {}; }
  // Configs with the same key share one prepared artifact.
  virtual std::string artifact_key(const Problem& problem, const Config& config) const = 0;
  virtual Result<std::unique_ptr<Artifact>> prepare(const Problem& problem,
                                                    const Config& config) const = 0;
  // Makes random inputs from `seed` and allocates the output.
  virtual Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                         std::uint64_t seed) const = 0;
  // Returns the fingerprint of the device, for families on a device and only in a worker. Other
  // families return info().fingerprint.
  virtual Result<Fingerprint> read_device() const { return info().fingerprint; }
  // Returns the conditions of the device, for families on a device; for other families the host's
  // load and clock count.
  virtual std::optional<DeviceConditions> conditions() const { return std::nullopt; }
  // Returns the joules that the device has consumed since some fixed moment, for families whose
  // runs have a DeviceClock; energy_j is measured with it. Errors: kUnsupported where nothing
  // counts the energy.
  virtual Result<double> read_energy_j() const {
    return fail(ErrorCode::kUnsupported, "nothing counts the energy of the family's device");
  }
};

// The input of a family's constructor: everything that it may read is passed in.
struct FamilyOptions {
  Fingerprint fingerprint;  // of this machine, or of the device that a worker read
  std::string data_path;    // `recorded`: the data set it replays
  std::vector<std::pair<std::string, std::string>> parameters;  // `--family-option key=value`
  // How many kernels a family that compiles may compile at once; 0 leaves it to the family.
  int build_jobs = 0;
  // How many threads a kernel may use; 0 leaves it to the family. FamilyInfo::max_threads is the
  // number then in force.
  int threads = 0;
  // The folders with the payloads of problems (problem/payload_store.h). A family that reads no
  // payloads refuses problems that have one.
  std::vector<std::string> payload_folders;
};

struct FamilyEntry {
  std::string name;
  std::string description;
  // Says why the family cannot run here; called before `create`.
  std::function<Support(const FamilyOptions& options)> available;
  std::function<Result<std::unique_ptr<Family>>(const FamilyOptions& options)> create;
  // True when the family compiles kernels; one that does not refuses FamilyOptions::build_jobs.
  bool builds = false;
  // True when the family reads FamilyOptions::data_path; one that does not refuses it.
  bool replays = false;
  // True when the family runs on a device that only a worker may open: FamilyOptions::fingerprint
  // has to be read there (describe_device()).
  bool on_device = false;
};

}  // namespace foretune
