// Facts of the CPU this program runs on, and peaks measured on it.
// Thread safety: free functions; the measuring ones keep the cores busy for a while.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/hardware/hardware.h"

namespace foretune {

// Ordered: a higher one includes the lower. Stored in configs: never renumber.
enum class CpuIsa : std::uint8_t { kGeneric = 0, kAvx2 = 1, kAvx512 = 2 };
std::string_view to_string(CpuIsa isa);
std::optional<CpuIsa> parse_cpu_isa(std::string_view text);

// Returns the best instruction set that this CPU and operating system can run.
CpuIsa best_cpu_isa();

struct CpuFacts {
  std::string model;
  std::vector<std::string> features;  // the relevant ones, in a fixed order
  CpuIsa isa = CpuIsa::kGeneric;
  int cores = 1;  // usable by this process (affinity, not the machine's total)
  std::int64_t l1d_bytes = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t l3_bytes = 0;
  std::string hypervisor;
};
CpuFacts read_cpu_facts();

struct CpuPeaks {
  double fma_gflops = 0;         // one core, f32
  double bandwidth_gbs = 0;      // one core, reading memory
  double bandwidth_all_gbs = 0;  // all cores
  double clock_mhz = 0;          // from a chain of dependent additions
};
// Returns the highest results of several interleaved probes, each with as many independent sums as
// the registers hold (24 with AVX-512, else 12). Memory is read in a buffer four times the L3
// cache, at most 256 MiB: where a virtual machine reports a larger L3 than that, some of the reads
// may hit it. Takes about `seconds`, and at least one round of all probes.
CpuPeaks measure_cpu_peaks(double seconds = 0.5);

// Returns facts and peaks together, as data sets store them.
Fingerprint cpu_fingerprint(const CpuFacts& facts, const CpuPeaks& peaks);

struct CpuLoad {
  double load_average = 0;   // of the last minute, this process included; 0 when not known
  double frequency_mhz = 0;  // now: as the system reports it, else by a probe of 50 us
  // Cores that other processes kept busy, or the hypervisor gave to other machines, since the last
  // reading of the meter; negative when the system does not say.
  double other_cores = -1;
  double withheld_cores = -1;  // the part of them that the hypervisor gave to other machines
  // True above a quarter of a core, or on large machines one core in twenty: this disturbs times.
  static bool disturbs(double busy, double cores) { return busy > std::max(0.25, 0.05 * cores); }
  [[nodiscard]] bool is_disturbed(double cores) const { return disturbs(other_cores, cores); }
  [[nodiscard]] bool is_withheld(double cores) const { return disturbs(withheld_cores, cores); }
};

// Measures the processor time that other processes and other machines take. Resolution: 10 ms of
// processor time, so readings should be tenths of a second apart. Thread safety: none.
class CpuLoadMeter {
 public:
  CpuLoadMeter();
  CpuLoad read();

 private:
  struct Times {
    double wall_s = 0;
    double busy_s = -1;  // of all cores, withheld time included; negative: unknown
    double withheld_s = 0;
    double own_s = 0;
  };
  static Times now();
  Times last_;
};

// Return the GFLOP/s of the fastest of many short probes within `seconds`: vector multiply-adds in
// registers on this core, with the best instruction set or with a given one that this CPU can run.
double measure_fma_gflops(double seconds);
double measure_fma_gflops(double seconds, CpuIsa isa);

// Returns the clock of the core this runs on, from a chain of dependent additions of about 50 us.
double measure_clock_mhz();

}  // namespace foretune
