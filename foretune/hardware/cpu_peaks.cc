// Measures peaks: the highest of several interleaved probes, because other work on the machine only
// ever makes a probe slower.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/hardware/cpu.h"
#include "foretune/hardware/peak_probes.h"

namespace foretune {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Keeps a value alive without storing it.
void keep(double value) { __asm__ volatile("" : : "m"(value)); }

// Times a chain of dependent additions, of which every core of the last decades does one per cycle.
// The addend is in a register, because recent cores fold additions of small constants into the next
// instruction.
double clock_mhz_once(std::uint64_t steps) {
  std::uint64_t value = 1;
  std::uint64_t addend = 3;
  __asm__ volatile("" : "+r"(addend));
  const double start_s = now_s();
  for (std::uint64_t i = 0; i < steps; i += 8) {
#pragma GCC unroll 8
    for (int step = 0; step < 8; ++step) {
      value += addend;
      __asm__ volatile("" : "+r"(value), "+r"(addend));
    }
  }
  return static_cast<double>(steps) / (now_s() - start_s) * 1e-6;
}

double read_gbs_once(const float* data, std::size_t count) {
  const double start_s = now_s();
  keep(hardware_internal::read_probe(data, count));
  return static_cast<double>(count * sizeof(float)) / (now_s() - start_s) * 1e-9;
}

double read_all_gbs_once(const std::vector<float>& buffer, std::size_t threads) {
  const std::size_t share = buffer.size() / threads;
  const double start_s = now_s();
  {
    std::vector<std::jthread> workers;
    for (std::size_t t = 1; t < threads; ++t) {
      workers.emplace_back([&buffer, share, t] {
        keep(hardware_internal::read_probe(buffer.data() + t * share, share));
      });
    }
    keep(hardware_internal::read_probe(buffer.data(), share));
  }
  return static_cast<double>(share * threads * sizeof(float)) / (now_s() - start_s) * 1e-9;
}

// Returns a size beyond the caches where possible. A virtual machine may report the whole host's
// L3, but one guest never gets that much, so the buffer ends at 256 MiB.
std::size_t probe_floats(const CpuFacts& facts) {
  const std::int64_t wanted = std::max<std::int64_t>(4 * facts.l3_bytes, std::int64_t{64} << 20);
  return static_cast<std::size_t>(std::min<std::int64_t>(wanted, std::int64_t{256} << 20)) /
         sizeof(float);
}

}  // namespace

hardware_internal::FmaProbe hardware_internal::fma_probe_of(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kAvx512:
      return {&fma_probe_avx512, 2 * kAvx512Lanes * kAvx512Accumulators};
    case CpuIsa::kAvx2:
      return {&fma_probe_avx2, 2 * kAvx2Lanes * kAvx2Accumulators};
    case CpuIsa::kGeneric:
      break;
  }
  return {&fma_probe_generic, 2 * kGenericLanes * kGenericAccumulators};
}

double measure_clock_mhz() {
  double highest = 0;
  // An interrupt makes a measurement slow, never fast.
  for (int i = 0; i < 3; ++i) {
    highest = std::max(highest, clock_mhz_once(60000));
  }
  return highest;
}

double measure_fma_gflops(double seconds) { return measure_fma_gflops(seconds, best_cpu_isa()); }

double measure_fma_gflops(double seconds, CpuIsa isa) {
  constexpr std::size_t kRounds = 20'000;
  FORETUNE_CHECK(isa <= best_cpu_isa());
  const hardware_internal::FmaProbe probe = hardware_internal::fma_probe_of(isa);
  const double flops = static_cast<double>(kRounds) * probe.flops_per_round;
  // The fastest probe counts: each is short enough that some run without being interrupted.
  double best = 0;
  double last_s = now_s();
  const double end_s = last_s + seconds;
  do {
    keep(probe.run(kRounds));
    const double begin_s = std::exchange(last_s, now_s());
    best = std::max(best, flops / (last_s - begin_s) * 1e-9);
  } while (last_s < end_s);
  return best;
}

CpuPeaks measure_cpu_peaks(double seconds) {
  constexpr double kProbeSeconds = 5e-4;
  const CpuFacts facts = read_cpu_facts();
  const std::vector<float> buffer(probe_floats(facts), 1.0F);
  CpuPeaks peaks;
  const double end_s = now_s() + seconds;
  do {
    // Each is short enough that some run without being interrupted.
    for (int repeat = 0; repeat < 8; ++repeat) {
      peaks.clock_mhz = std::max(peaks.clock_mhz, clock_mhz_once(2000000));
      peaks.fma_gflops = std::max(peaks.fma_gflops, measure_fma_gflops(kProbeSeconds));
    }
    peaks.bandwidth_gbs =
        std::max(peaks.bandwidth_gbs, read_gbs_once(buffer.data(), buffer.size()));
    peaks.bandwidth_all_gbs = std::max(
        peaks.bandwidth_all_gbs, read_all_gbs_once(buffer, static_cast<std::size_t>(facts.cores)));
  } while (now_s() < end_s);
  peaks.bandwidth_all_gbs = std::max(peaks.bandwidth_all_gbs, peaks.bandwidth_gbs);
  return peaks;
}

}  // namespace foretune
