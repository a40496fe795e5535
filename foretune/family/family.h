// A family: interchangeable kernels for one operation on one kind of device. Measuring walks
//
//   space(problem) -> config -> artifact_key -> prepare (once per key) -> bind(problem data)
//   -> run -> verify
//
// A template kernel has nothing to prepare, a Triton kernel is compiled once per config, a jitted
// one once per (problem, config) pair. Whatever may crash or hang is called in a worker process
// only. A family whose times come from elsewhere (recorded, simulated) overrides
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
  int max_threads = 1;        // that a kernel may use; its configs ask for no more
  bool simulated = false;     // nothing is executed: times come from elsewhere and cost none
  // How long a window has to be for a search that looks at many configs briefly, in ns; 0: as long
  // as everywhere. For runs that repeat well and are prepared in microseconds.
  double search_window_ns = 0;
  // The metrics that its runs yield beside the time.
  std::vector<MetricInfo> metrics = {};
};

// The clock of a device. A host that waits for one kernel sees its own delays; the device times
// many in a row, as one submission.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  // Warms up with one run, then times a second: an upper bound of a run's time in ns, a few
  // microseconds too high. Errors: kUnsupported when the kernel cannot be launched.
  virtual Result<double> first_run() = 0;
  // `windows` windows of `runs` runs each: appends the time of one run in each window, in ns. With
  // `cold` no run finds its operands in the device's cache. Errors: as first_run().
  virtual Status time(std::int64_t runs, std::int32_t windows, bool cold,
                      std::vector<double>& windows_ns) = 0;
};

// Why a run did not come to a good end, of a family whose runs are processes of their own.
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
  // Returns the fault of a run that could be contained; nothing as long as all went well. Once it
  // is there it stays, and nobody calls run() again. A run that takes its process along needs none:
  // the worker's end says it.
  virtual std::optional<RunFailure> failure() const { return std::nullopt; }
  // How a device times this run; nullptr for what the host's clock can see.
  virtual DeviceClock* device_clock() { return nullptr; }
  // Nanoseconds of one run for families that do not execute anything: the protocol then takes this
  // instead of the clock. Negative: use the clock.
  virtual double simulated_ns() { return -1; }
  // Whether simulated_ns is only a lower bound (a replayed measurement that was stopped early).
  virtual bool simulated_is_bound() { return false; }
  // The spread that was stored with simulated_ns, when that is not a fresh sample of each window.
  virtual double simulated_spread() { return 0; }
  // Returns true where bind() copied operands into a form of their own: how long a bind takes is
  // then measured as pack_ns.
  virtual bool packs_operands() const { return false; }
  // The metrics of MetricStage::kRun, but for pack_ns of a run that packs. Asked for when the run
  // was timed and its result was found right. Values that are not finite are left out.
  virtual std::vector<MetricValue> metrics() { return {}; }
  // Finds out metrics of MetricStage::kEvaluation, in a stage of its own: may take long, crash or
  // hang as a run may. `names` are some that the family declares; all of them are to be in the
  // answer, others may be. Errors: kUnsupported for what cannot be found out here; others are
  // failures of the config.
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
  // Compares the output with the reference (computed once, kept): no when it is wrong, with where.
  virtual Support verify() = 0;
  // Bytes of all buffers: what a cold-cache run has to evict, and a limit has to count.
  virtual std::int64_t bytes() const = 0;
};

class Artifact {
 public:
  virtual ~Artifact() = default;
  virtual Result<std::unique_ptr<Run>> bind(const Problem& problem, ProblemData& data) = 0;
};

// What a device says of itself while it works.
struct DeviceConditions {
  bool is_throttled = false;  // since they were last asked for
};

class Family {
 public:
  virtual ~Family() = default;
  virtual const FamilyInfo& info() const = 0;
  // Whether the family knows this problem at all.
  virtual Support supports(const Problem& problem) const = 0;
  virtual Result<std::unique_ptr<Space>> space(const Problem& problem) const = 0;
  // What one would run who does not tune: a fixed choice by the textbook, legal for the problem,
  // best first. Measured before all others, so that slow configs are stopped early from the first
  // on, and what a model has to beat. May be empty.
  virtual std::vector<Config> default_configs(const Problem& /*problem*/) const { return {}; }
  // Configs with the same key share one prepared artifact.
  virtual std::string artifact_key(const Problem& problem, const Config& config) const = 0;
  virtual Result<std::unique_ptr<Artifact>> prepare(const Problem& problem,
                                                    const Config& config) const = 0;
  // Random inputs from `seed`, output allocated.
  virtual Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                         std::uint64_t seed) const = 0;
  // For families on a device, and only in a worker: what the device is. Others: info().fingerprint.
  virtual Result<Fingerprint> read_device() const { return info().fingerprint; }
  // For families on a device; others leave it to the host's load and clock.
  virtual std::optional<DeviceConditions> conditions() const { return std::nullopt; }
  // Joules that the device has taken since any moment, for families whose runs have a device's
  // clock: what energy_j is measured by. Errors: kUnsupported where nothing counts them.
  virtual Result<double> read_energy_j() const {
    return fail(ErrorCode::kUnsupported, "nothing counts the energy of the family's device");
  }
};

// What a family needs to exist: everything it may read is passed in.
struct FamilyOptions {
  Fingerprint fingerprint;  // of this machine, or of the device that a worker read
  std::string data_path;    // `recorded`: the data set it replays
  std::vector<std::pair<std::string, std::string>> parameters;  // `--family-option key=value`
  // How many kernels a family that builds may compile at once; 0 leaves it to the family.
  int build_jobs = 0;
  // How many threads a kernel may use; 0 leaves it to the family. What is then in force is
  // FamilyInfo::max_threads.
  int threads = 0;
  // Where the payloads of problems are (problem/payload_store.h). A family that reads none refuses
  // problems that have one.
  std::vector<std::string> payload_folders;
};

struct FamilyEntry {
  std::string name;
  std::string description;
  // Why it cannot run here; checked before create.
  std::function<Support(const FamilyOptions& options)> available;
  std::function<Result<std::unique_ptr<Family>>(const FamilyOptions& options)> create;
  // Whether it compiles kernels; one that does not refuses FamilyOptions::build_jobs.
  bool builds = false;
  // Whether it reads FamilyOptions::data_path; one that does not refuses it.
  bool replays = false;
  // Whether it runs on a device that only a worker may open: FamilyOptions::fingerprint is to be
  // read there (describe_device()).
  bool on_device = false;
};

}  // namespace foretune
