// Measures configs by the timing protocol (docs/explanation/measuring.md): warm-up, then windows of
// at least a millisecond. Keeps minimum, median and spread (the relative interquartile range) of
// the windows. A config that is clearly slower than the best of its problem is stopped early and
// recorded as censored. The output is poisoned before and verified after. Thread safety: one
// Measurer belongs to one thread. Nothing here prints or exits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/measurement.h"
#include "foretune/family/family.h"
#include "foretune/hardware/cpu.h"
#include "foretune/hardware/thread_waits.h"

namespace foretune {

struct Protocol {
  double window_ns = 1e6;  // a window holds as many runs as it takes to reach this
  // The length of a window where a device's own clock times the runs (DeviceClock): a device
  // neither preempts runs nor pauses between them.
  double device_window_ns = 5e4;
  int windows = 5;       // at least this many, unless the config is stopped early
  int max_windows = 15;  // more while the spread is above target_spread
  double target_spread = 0.02;
  double warmup_ns = 5e5;      // runs before the first window (warm caches only) ...
  int warmup_runs = 1;         // ... and at least this many, and one
  double max_total_ns = 3e8;   // of one config; one complete run always happens
  double censor_factor = 2.0;  // stop when clearly slower than this times the incumbent; 0: never
  CacheState cache = CacheState::kWarm;
  bool keep_samples = false;
  bool verify = true;
  double time_limit_s = 20;     // of one measurement in a worker, then it is killed
  std::uint64_t data_seed = 1;  // inputs

  // Shortens windows where the family's runs repeat well (FamilyInfo::search_window_ns).
  void look_briefly(const FamilyInfo& info);
  // Returns a protocol for a search that measures many configs and times the best again:
  // look_briefly(), and at most 3 windows.
  static Protocol brief(const FamilyInfo& info);
};

// One thing to measure. Values below zero: no incumbent known.
struct Request {
  Problem problem;
  Config config;
  double incumbent_ns = -1;
  // When not empty, nothing is timed; instead, these metrics of MetricStage::kEvaluation are
  // determined. The answer has Stage::kEvaluate, whatever its outcome.
  std::vector<std::string> evaluate = {};
};

// The source of measurements: this process, a worker, or a replay.
class Measurer {
 public:
  virtual ~Measurer() = default;
  // Always returns a measurement; a failure is its outcome.
  virtual Measurement measure(const Request& request) = 0;
  // Times the configs against each other, interleaved window by window, `rounds` rounds: for
  // comparing a pick with the oracle's winner. One measurement per config, same order.
  virtual std::vector<Measurement> compare(const Problem& problem, std::span<const Config> configs,
                                           int rounds) = 0;
  virtual const Context& context() const = 0;

 protected:
  // Returns a measurement without metrics in the context of this measurer.
  Measurement blank(const Problem& problem, const Config& config) const;
  // Turns a measurement into a failure, which has no metrics.
  static void refuse(Measurement& measurement, Outcome outcome, Stage stage, std::string reason);
};

// The surroundings of a local measurer. Empty members mean the system's own.
struct MeasureHooks {
  std::function<std::int64_t()> now_ns;  // monotonic; empty: std::chrono::steady_clock
  std::function<CpuLoad()> read_load;    // empty: a CpuLoadMeter's
  // Returns the waits since the last call. Empty: those of a ThreadWaits, or none when the clock is
  // not the system's.
  std::function<Waits()> read_waits;
  // Returns the joules that the machine has consumed since some fixed moment. Empty: those of an
  // EnergyMeter, opened when it is first needed.
  std::function<Result<double>()> read_energy_j;
  // Called before each stage of the config at position `config` (0 unless comparing).
  std::function<void(std::size_t config, Stage stage)> on_stage;
  // Called when the inputs of a new problem exist: from then on the time belongs to the config.
  std::function<void()> on_data_ready;
};

// Measures in this process: for families that need no worker, and inside the worker itself.
std::unique_ptr<Measurer> make_local_measurer(std::shared_ptr<const Family> family,
                                              const Protocol& protocol, const Context& context,
                                              const MeasureHooks& hooks = {});

// Measures in a worker process, which is exec'ed (never forked from a process with state) and
// replaced when it crashes or hangs. `worker_command` is the program and its first arguments, e.g.
// {"/usr/bin/foretune", "worker"}; all other data for the worker goes through its standard input.
// The first worker is started at once, so that a family that cannot be created is an error here.
// A worker that cannot be replaced later yields kCrashed at Stage::kNone, which no config causes.
// The worker dies with the thread that made the measurer.
struct WorkerSetup {
  std::vector<std::string> worker_command;
  std::string family;
  FamilyOptions family_options;
};
Result<std::unique_ptr<Measurer>> make_worker_measurer(const WorkerSetup& setup,
                                                       const Protocol& protocol,
                                                       const Context& context);
// Returns the fingerprint of a family's device, read by a worker that ends afterwards.
// FamilyOptions::fingerprint has to be this for a family with FamilyEntry::on_device. Errors: the
// device's.
Result<Fingerprint> describe_device(const WorkerSetup& setup);

// Creates a family by name; passed in, so that measure does not depend on the families.
using FamilyFactory = std::function<Result<std::unique_ptr<Family>>(std::string_view name,
                                                                    const FamilyOptions& options)>;
// The worker's main loop: reads requests from `input`, answers on `output`, until end of file.
// Returns the process's exit code. When `output` is standard output, all other output of the
// process there goes to standard error instead, so that a library that prints cannot damage the
// answers.
int run_worker(int input, int output, const FamilyFactory& factory);

}  // namespace foretune
