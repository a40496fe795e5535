// Reads facts from CPUID and the system's files.
#include <sched.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/hardware/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace foretune {
namespace {

std::string first_line(const std::string& path) {
  const auto text = read_text_file(path);
  return text ? std::string(trim(split(*text, '\n').front())) : std::string();
}

#if defined(__x86_64__)

struct CpuId {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
};

CpuId cpuid(unsigned leaf, unsigned subleaf = 0) {
  CpuId out;
  if (__get_cpuid_count(leaf, subleaf, &out.eax, &out.ebx, &out.ecx, &out.edx) == 0) {
    return {};
  }
  return out;
}

// Returns the register states that the operating system saves (XCR0). A feature whose registers it
// does not save cannot be used, although the CPU reports the feature.
std::uint64_t saved_states() {
  if (((cpuid(1).ecx >> 27U) & 1U) == 0) {
    return 0;
  }
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32U) | low;
}

std::vector<std::string> read_features() {
  const CpuId one = cpuid(1);
  const CpuId seven = cpuid(7);
  const CpuId seven_one = seven.eax >= 1 ? cpuid(7, 1) : CpuId{};
  const std::uint64_t states = saved_states();
  const bool ymm = (states & 0x6U) == 0x6U;
  const bool zmm = (states & 0xe6U) == 0xe6U;
  const bool tiles = (states & 0x60000U) == 0x60000U;
  struct Feature {
    const char* name;
    bool present;
  };
  const auto bit = [](unsigned word, unsigned position) { return ((word >> position) & 1U) != 0; };
  const std::array<Feature, 17> features{{
      {"sse4_2", bit(one.ecx, 20)},
      {"avx", ymm && bit(one.ecx, 28)},
      {"f16c", ymm && bit(one.ecx, 29)},
      {"fma", ymm && bit(one.ecx, 12)},
      {"avx2", ymm && bit(seven.ebx, 5)},
      {"bmi1", bit(seven.ebx, 3)},
      {"bmi2", bit(seven.ebx, 8)},
      {"avx_vnni", ymm && bit(seven_one.eax, 4)},
      {"avx512f", zmm && bit(seven.ebx, 16)},
      {"avx512dq", zmm && bit(seven.ebx, 17)},
      {"avx512bw", zmm && bit(seven.ebx, 30)},
      {"avx512vl", zmm && bit(seven.ebx, 31)},
      {"avx512_vnni", zmm && bit(seven.ecx, 11)},
      {"avx512_bf16", zmm && bit(seven_one.eax, 5)},
      {"avx512_fp16", zmm && bit(seven.edx, 23)},
      {"amx_bf16", tiles && bit(seven.edx, 22)},
      {"amx_int8", tiles && bit(seven.edx, 25)},
  }};
  std::vector<std::string> out;
  for (const Feature& feature : features) {
    if (feature.present) {
      out.emplace_back(feature.name);
    }
  }
  return out;
}

std::string read_hypervisor() {
  if (((cpuid(1).ecx >> 31U) & 1U) == 0) {
    return {};
  }
  unsigned eax = 0;
  std::array<unsigned, 3> words{};
  __cpuid(0x40000000, eax, words[0], words[1], words[2]);
  std::array<char, 13> name{};
  std::memcpy(name.data(), words.data(), 12);
  return std::string(trim(name.data()));
}

constexpr int kGenericVectorRegisters = 16;

#else

std::vector<std::string> read_features() { return {}; }
std::string read_hypervisor() { return {}; }
constexpr int kGenericVectorRegisters = 32;  // aarch64

#endif

std::string read_model() {
  const auto text = read_text_file("/proc/cpuinfo");
  if (text) {
    for (const std::string_view line : split(*text, '\n')) {
      if (line.rfind("model name", 0) == 0 && line.find(':') != std::string_view::npos) {
        return std::string(trim(line.substr(line.find(':') + 1)));
      }
    }
  }
  utsname names{};
  return ::uname(&names) == 0 ? concat(names.machine, " processor") : std::string("processor");
}

// Parses "32K", "2048K", "480M".
std::int64_t parse_cache_size(std::string_view text) {
  if (text.empty()) {
    return 0;
  }
  const char unit = text.back();
  const std::int64_t factor = unit == 'K' ? 1024 : unit == 'M' ? 1024 * 1024 : 1;
  const std::string_view digits = factor == 1 ? text : text.substr(0, text.size() - 1);
  return parse_int(digits).value_or(0) * factor;
}

// Returns the first core that this process may use: cores need not be alike.
int first_usable_core() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(static_cast<unsigned>(core), &set)) {
        return core;
      }
    }
  }
  return 0;
}

void read_caches(CpuFacts& facts) {
  const std::string folder =
      concat("/sys/devices/system/cpu/cpu", first_usable_core(), "/cache/index");
  for (int index = 0; index < 8; ++index) {
    const std::string base = concat(folder, index, "/");
    const std::string level = first_line(base + "level");
    const std::string type = first_line(base + "type");
    const std::int64_t bytes = parse_cache_size(first_line(base + "size"));
    if (level == "1" && type != "Instruction") {
      facts.l1d_bytes = bytes;
    } else if (level == "2") {
      facts.l2_bytes = bytes;
    } else if (level == "3") {
      facts.l3_bytes = bytes;
    }
  }
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  // Some containers hide /sys.
  const auto fallback = [](std::int64_t value, int name) {
    return value > 0 ? value : std::max<std::int64_t>(0, ::sysconf(name));
  };
  facts.l1d_bytes = fallback(facts.l1d_bytes, _SC_LEVEL1_DCACHE_SIZE);
  facts.l2_bytes = fallback(facts.l2_bytes, _SC_LEVEL2_CACHE_SIZE);
  facts.l3_bytes = fallback(facts.l3_bytes, _SC_LEVEL3_CACHE_SIZE);
#endif
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    return std::max(1, CPU_COUNT(&set));
  }
  return static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

constexpr std::array<std::pair<CpuIsa, std::string_view>, 3> kIsaNames{
    {{CpuIsa::kGeneric, "generic"}, {CpuIsa::kAvx2, "avx2"}, {CpuIsa::kAvx512, "avx512"}}};

bool has(const std::vector<std::string>& features, std::initializer_list<const char*> wanted) {
  for (const char* name : wanted) {
    if (std::find(features.begin(), features.end(), name) == features.end()) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string_view to_string(CpuIsa isa) {
  for (const auto& [known, name] : kIsaNames) {
    if (known == isa) {
      return name;
    }
  }
  return "generic";
}

std::optional<CpuIsa> parse_cpu_isa(std::string_view text) {
  for (const auto& [isa, name] : kIsaNames) {
    if (text == name) {
      return isa;
    }
  }
  return std::nullopt;
}

CpuIsa best_cpu_isa() {
  static const CpuIsa isa = [] {
    const std::vector<std::string> features = read_features();
    // These are all features that the compiler may use in files for these sets
    // (foretune_isa_source).
    if (!has(features, {"avx2", "fma", "bmi1", "bmi2"})) {
      return CpuIsa::kGeneric;
    }
    return has(features, {"avx512f", "avx512dq", "avx512bw", "avx512vl"}) ? CpuIsa::kAvx512
                                                                          : CpuIsa::kAvx2;
  }();
  return isa;
}

CpuFacts read_cpu_facts() {
  CpuFacts facts;
  facts.model = read_model();
  facts.features = read_features();
  facts.isa = best_cpu_isa();
  facts.cores = usable_cores();
  facts.hypervisor = read_hypervisor();
  read_caches(facts);
  return facts;
}

Fingerprint cpu_fingerprint(const CpuFacts& facts, const CpuPeaks& peaks) {
  Fingerprint fingerprint;
  fingerprint.device = facts.model;
  fingerprint.isa =
      facts.features.empty() ? std::string(to_string(facts.isa)) : join(facts.features, " ");
  utsname names{};
  fingerprint.system = concat(::uname(&names) == 0 ? names.release : "unknown",
                              facts.hypervisor.empty() ? "" : ", ", facts.hypervisor);
  Hardware& hardware = fingerprint.hardware;
  const bool wide = facts.isa == CpuIsa::kAvx512;
  hardware.set(HardwareValue::kCores, facts.cores);
  hardware.set(HardwareValue::kVectorBytes, wide ? 64 : facts.isa == CpuIsa::kAvx2 ? 32 : 16);
  hardware.set(HardwareValue::kVectorRegisters, wide ? 32 : kGenericVectorRegisters);
  hardware.set(HardwareValue::kL1Bytes, static_cast<double>(facts.l1d_bytes));
  hardware.set(HardwareValue::kL2Bytes, static_cast<double>(facts.l2_bytes));
  hardware.set(HardwareValue::kL3Bytes, static_cast<double>(facts.l3_bytes));
  hardware.set(HardwareValue::kFmaPeakGflops, peaks.fma_gflops);
  hardware.set(HardwareValue::kBandwidthGbs, peaks.bandwidth_gbs);
  hardware.set(HardwareValue::kBandwidthAllGbs, peaks.bandwidth_all_gbs);
  hardware.set(HardwareValue::kClockMhz, peaks.clock_mhz);
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) {
    hardware.set(HardwareValue::kMemoryBytes,
                 static_cast<double>(pages) * static_cast<double>(page_bytes));
  }
  return fingerprint;
}

CpuLoadMeter::Times CpuLoadMeter::now() {
  Times times;
  timespec clock{};
  ::clock_gettime(CLOCK_MONOTONIC, &clock);
  times.wall_s = static_cast<double>(clock.tv_sec) + static_cast<double>(clock.tv_nsec) * 1e-9;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &clock);
  times.own_s = static_cast<double>(clock.tv_sec) + static_cast<double>(clock.tv_nsec) * 1e-9;
  // "cpu" user nice system idle iowait irq softirq steal ..., in ticks; guests are within user.
  const std::string line = first_line("/proc/stat");
  const std::vector<std::string_view> words = split_words(line);
  const long ticks = ::sysconf(_SC_CLK_TCK);
  if (words.size() < 9 || words[0] != "cpu" || ticks <= 0) {
    return times;
  }
  double sum = 0;
  for (const std::size_t word : {1U, 2U, 3U, 6U, 7U, 8U}) {
    sum += parse_double(words[word]).value_or(0);
  }
  times.busy_s = sum / static_cast<double>(ticks);
  times.withheld_s = parse_double(words[8]).value_or(0) / static_cast<double>(ticks);
  return times;
}

CpuLoadMeter::CpuLoadMeter() : last_(now()) {}

CpuLoad CpuLoadMeter::read() {
  CpuLoad load;
  const Times times = now();
  const double elapsed_s = times.wall_s - last_.wall_s;
  if (times.busy_s >= 0 && last_.busy_s >= 0 && elapsed_s > 0) {
    const double others_s = (times.busy_s - last_.busy_s) - (times.own_s - last_.own_s);
    load.other_cores = std::max(0.0, others_s / elapsed_s);
    load.withheld_cores = (times.withheld_s - last_.withheld_s) / elapsed_s;
  }
  last_ = times;
  const std::string averages = first_line("/proc/loadavg");
  load.load_average = parse_double(split(averages, ' ').front()).value_or(0);
  // Virtual machines report a nominal frequency elsewhere, so only this source is used.
  const std::string khz = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq");
  const std::optional<double> reported = parse_double(khz);
  load.frequency_mhz = reported ? *reported / 1e3 : measure_clock_mhz();
  return load;
}

}  // namespace foretune
