#include "foretune/hardware/cpu.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/hardware/peak_probes.h"

namespace foretune {
namespace {

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Returns the kernel's own list, without features whose registers it does not save for us.
std::set<std::string> kernel_flags() {
  const Result<std::string> text = read_text_file("/proc/cpuinfo");
  std::set<std::string> flags;
  if (text) {
    for (const std::string_view line : split(*text, '\n')) {
      if (line.rfind("flags", 0) == 0) {
        for (const std::string_view word : split_words(line.substr(line.find(':') + 1))) {
          flags.emplace(word);
        }
        break;
      }
    }
  }
  return flags;
}

TEST(CpuFacts, FeaturesAgreeWithTheKernel) {
  const std::set<std::string> flags = kernel_flags();
  if (flags.empty()) {
    GTEST_SKIP() << "the kernel lists no CPU flags here";
  }
  const CpuFacts facts = read_cpu_facts();
  for (const char* name : {"sse4_2", "avx", "f16c", "fma", "avx2", "bmi1", "bmi2", "avx512f",
                           "avx512dq", "avx512bw", "avx512vl", "avx512_vnni"}) {
    EXPECT_EQ(contains(facts.features, name), flags.count(name) == 1) << name;
  }
  // Older kernels do not know the names of these.
  for (const char* name : {"avx_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_int8"}) {
    EXPECT_TRUE(flags.count(name) == 0 || contains(facts.features, name)) << name;
  }
}

TEST(CpuFacts, TheInstructionSetNeedsAllThatItsFilesMayUse) {
  const CpuFacts facts = read_cpu_facts();
  EXPECT_EQ(facts.isa, best_cpu_isa());
  const auto all = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(),
                       [&](const char* name) { return contains(facts.features, name); });
  };
  const bool avx2 = all({"avx2", "fma", "bmi1", "bmi2"});
  const bool avx512 = avx2 && all({"avx512f", "avx512dq", "avx512bw", "avx512vl"});
  EXPECT_EQ(facts.isa, avx512 ? CpuIsa::kAvx512 : avx2 ? CpuIsa::kAvx2 : CpuIsa::kGeneric);
}

TEST(CpuFacts, AreComplete) {
  const CpuFacts facts = read_cpu_facts();
  EXPECT_FALSE(facts.model.empty());
  EXPECT_GE(facts.cores, 1);
  EXPECT_GE(facts.l1d_bytes, 0);
  EXPECT_LT(facts.l1d_bytes, 1 << 24);
  if (facts.l2_bytes > 0) {
    EXPECT_LE(facts.l1d_bytes, facts.l2_bytes);
  }
  EXPECT_EQ(read_cpu_facts().features, facts.features);
}

TEST(CpuIsa, HasNames) {
  EXPECT_EQ(to_string(CpuIsa::kGeneric), "generic");
  EXPECT_EQ(to_string(CpuIsa::kAvx2), "avx2");
  EXPECT_EQ(to_string(CpuIsa::kAvx512), "avx512");
}

TEST(CpuFingerprint, CarriesFactsAndPeaks) {
  CpuFacts facts;
  facts.model = "Test CPU";
  facts.isa = CpuIsa::kAvx2;
  facts.features = {"avx2", "fma"};
  facts.cores = 3;
  facts.l1d_bytes = 32768;
  facts.l2_bytes = 1 << 20;
  facts.l3_bytes = 8 << 20;
  const CpuPeaks peaks{
      .fma_gflops = 100, .bandwidth_gbs = 10, .bandwidth_all_gbs = 20, .clock_mhz = 3000};
  const Fingerprint fingerprint = cpu_fingerprint(facts, peaks);
  EXPECT_EQ(fingerprint.device, "Test CPU");
  EXPECT_EQ(fingerprint.isa, "avx2 fma");
  EXPECT_EQ(fingerprint.hardware.get(HardwareValue::kCores), 3);
  EXPECT_EQ(fingerprint.hardware.get(HardwareValue::kVectorBytes), 32);
  EXPECT_EQ(fingerprint.hardware.get(HardwareValue::kL1Bytes), 32768);
  EXPECT_EQ(fingerprint.hardware.get(HardwareValue::kL2Bytes), 1 << 20);
  EXPECT_EQ(fingerprint.hardware.get(HardwareValue::kL3Bytes), 8 << 20);
  EXPECT_EQ(fingerprint.hardware.get(HardwareValue::kFmaPeakGflops), 100);
  EXPECT_EQ(fingerprint.hardware.get(HardwareValue::kBandwidthAllGbs), 20);
  EXPECT_EQ(fingerprint.hardware.get(HardwareValue::kClockMhz), 3000);
  EXPECT_GT(fingerprint.hardware.get(HardwareValue::kMemoryBytes), 0);
  EXPECT_EQ(Fingerprint::parse(fingerprint.text()).value(), fingerprint);
  EXPECT_EQ(cpu_fingerprint(facts, {}).digest(), fingerprint.digest());
  facts.isa = CpuIsa::kAvx512;
  EXPECT_EQ(cpu_fingerprint(facts, {}).hardware.get(HardwareValue::kVectorBytes), 64);
  EXPECT_EQ(cpu_fingerprint(facts, {}).hardware.get(HardwareValue::kVectorRegisters), 32);
}

// sum' = sum * 0.999 + 0.001 has the fixed point 1 in every lane of every sum.
TEST(PeakProbes, ComputeWhatTheyClaim) {
  namespace probes = hardware_internal;
  constexpr std::size_t kRounds = 40000;
  constexpr double kTolerance = 1e-2;
  EXPECT_NEAR(
      probes::fma_probe_generic(kRounds) / (probes::kGenericLanes * probes::kGenericAccumulators),
      1, kTolerance);
  if (best_cpu_isa() >= CpuIsa::kAvx2) {
    EXPECT_NEAR(probes::fma_probe_avx2(kRounds) / (probes::kAvx2Lanes * probes::kAvx2Accumulators),
                1, kTolerance);
  }
  if (best_cpu_isa() >= CpuIsa::kAvx512) {
    EXPECT_NEAR(
        probes::fma_probe_avx512(kRounds) / (probes::kAvx512Lanes * probes::kAvx512Accumulators), 1,
        kTolerance);
  }
  const std::vector<float> ones(3200, 1.0F);
  EXPECT_EQ(probes::read_probe(ones.data(), ones.size()), 3200);
}

TEST(CpuPeaks, ArePlausibleAndInProportion) {
  const CpuPeaks peaks = measure_cpu_peaks(0.1);
  EXPECT_GT(peaks.clock_mhz, 100);
  EXPECT_LT(peaks.clock_mhz, 10000);
  EXPECT_GT(peaks.bandwidth_gbs, 0.1);
  EXPECT_LT(peaks.bandwidth_gbs, 2000);
  EXPECT_GE(peaks.bandwidth_all_gbs, peaks.bandwidth_gbs);
  // One to four vector multiply-adds a cycle; sanitizers and busy machines make it less.
  const int lanes = best_cpu_isa() == CpuIsa::kAvx512 ? 16
                    : best_cpu_isa() == CpuIsa::kAvx2 ? 8
                                                      : 4;
  const double per_cycle = peaks.fma_gflops * 1e3 / peaks.clock_mhz / (2 * lanes);
  EXPECT_GT(per_cycle, 0.01);
  EXPECT_LT(per_cycle, 4.5);
}

TEST(CpuPeaks, AreMeasuredOfEveryInstructionSetThatThisCpuRuns) {
  EXPECT_GT(measure_fma_gflops(1e-3, CpuIsa::kGeneric), 0.01);
  if (best_cpu_isa() >= CpuIsa::kAvx2) {
    EXPECT_GT(measure_fma_gflops(1e-3, CpuIsa::kAvx2), 0.01);
  }
}

TEST(CpuLoadMeter, TellsOthersFromThisProcess) {
  CpuLoadMeter meter;
  const auto until = [](double seconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  until(0.3);
  const CpuLoad alone = meter.read();
  EXPECT_GE(alone.load_average, 0);
  EXPECT_GT(alone.frequency_mhz, 100);
  EXPECT_LT(alone.frequency_mhz, 10000);
  const pid_t child = ::fork();
  if (child == 0) {
    until(0.4);
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const CpuLoad beside = meter.read();
  // The child had a core, or the free part of one; own work never counts as that of others.
  EXPECT_GT(beside.other_cores, 0.2);
  EXPECT_TRUE((CpuLoad{.other_cores = 0.3}).is_disturbed(2));
  EXPECT_FALSE((CpuLoad{.other_cores = 0.2}).is_disturbed(2));
  EXPECT_FALSE((CpuLoad{.other_cores = 2}).is_disturbed(64));
}

}  // namespace
}  // namespace foretune
