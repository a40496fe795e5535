// Facts of the CPU this program runs on, and peaks measured on it.
// Thread safety: free functions; the measuring ones keep the cores busy for a while.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/hardware/hardware.h"

namespace foretune {

// Ordered: a higher one includes the lower. Stored in configs: never renumber.
enum class CpuIsa : std::uint8_t { kGeneric = 0, kAvx2 = 1, kAvx512 = 2 };
std::string_view to_string(CpuIsa isa);

// The best instruction set that this CPU and operating system can run.
CpuIsa best_cpu_isa();

struct CpuFacts {
  std::string model;
  std::vector<std::string> features;  // of those that matter here, in a fixed order
  CpuIsa isa = CpuIsa::kGeneric;
  int cores = 1;  // that this process may use (affinity, not the machine's total)
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
// The highest of several interleaved probes, each with as many independent sums as the registers
// hold (24 with AVX-512, else 12). Memory is read in a buffer four times the L3 cache, at most
// 256 MiB: where a virtual machine reports a larger L3 than that, some of the reads may hit it.
// Takes about `seconds`, and at least one round of all probes.
CpuPeaks measure_cpu_peaks(double seconds = 0.5);

// Facts and peaks together, as stored in data sets.
Fingerprint cpu_fingerprint(const CpuFacts& facts, const CpuPeaks& peaks);

// 1-minute load average, current frequency of core 0 in MHz; 0 when the system does not say.
struct CpuLoad {
  double load_average = 0;
  double frequency_mhz = 0;
};
CpuLoad read_cpu_load();

}  // namespace foretune
