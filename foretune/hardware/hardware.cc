#include "foretune/hardware/hardware.h"

#include <vector>

#include "foretune/base/hash.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr std::array<std::string_view, kHardwareValueCount> kNames{
    "cores",
    "vector_bytes",
    "vector_registers",
    "l1_bytes",
    "l2_bytes",
    "l3_bytes",
    "fma_peak_gflops",
    "bandwidth_gbs",
    "bandwidth_all_gbs",
    "clock_mhz",
    "memory_bytes",
    "register_file_bytes",
    "threads_per_core",
    "warp_size",
    "tensor_peak_gflops",
    "shared_bytes_per_block",
    "vector_cache_bytes",
    "simds_per_core",
    "shader_engines",
    "dies",
};

constexpr double kLargest = 1e18;

}  // namespace

std::string_view to_string(HardwareValue value) { return kNames[static_cast<std::size_t>(value)]; }

std::optional<HardwareValue> parse_hardware_value(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) {
      return static_cast<HardwareValue>(i);
    }
  }
  return std::nullopt;
}

std::string Hardware::text() const {
  std::string out;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (values_[i] != 0) {
      out += concat(out.empty() ? "" : " ", kNames[i], "=", values_[i]);
    }
  }
  return out;
}

Result<Hardware> Hardware::parse(std::string_view text) {
  Hardware hardware;
  for (const std::string_view word : split_words(text)) {
    const std::size_t equals = word.find('=');
    const std::optional<double> number =
        equals == std::string_view::npos ? std::nullopt : parse_double(word.substr(equals + 1));
    if (!number || !(*number >= 0 && *number <= kLargest)) {
      return fail(ErrorCode::kCorrupt, "'", word.substr(0, 60),
                  "' is not a hardware value (name=number)");
    }
    if (const auto value = parse_hardware_value(word.substr(0, equals))) {
      hardware.set(*value, *number);
    }
  }
  return hardware;
}

std::uint64_t Fingerprint::digest() const {
  if (device.empty()) {
    return 0;
  }
  std::uint64_t hash = hash64(device);
  hash = hash64(isa, hash);
  for (const HardwareValue value :
       {HardwareValue::kCores, HardwareValue::kVectorBytes, HardwareValue::kL1Bytes,
        HardwareValue::kL2Bytes, HardwareValue::kL3Bytes}) {
    hash = hash_combine(hash, static_cast<std::uint64_t>(hardware.get(value)));
  }
  return hash == 0 ? 1 : hash;
}

std::string Fingerprint::text() const {
  return concat("device: ", device, "\nisa: ", isa, "\nsystem: ", system,
                "\nhardware: ", hardware.text(), "\n");
}

Result<Fingerprint> Fingerprint::parse(std::string_view text) {
  Fingerprint fingerprint;
  for (const std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) {
      continue;
    }
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos && (line.empty() || line.back() != ':')) {
      return fail(ErrorCode::kCorrupt, "'", line.substr(0, 60),
                  "' is not a line of a fingerprint (key: value)");
    }
    const std::string_view key = line.substr(0, line.find(':'));
    const std::string_view value =
        colon == std::string_view::npos ? std::string_view() : line.substr(colon + 2);
    if (key == "device") {
      fingerprint.device = value;
    } else if (key == "isa") {
      fingerprint.isa = value;
    } else if (key == "system") {
      fingerprint.system = value;
    } else if (key == "hardware") {
      FORETUNE_TRY(fingerprint.hardware, Hardware::parse(value));
    }
  }
  return fingerprint;
}

}  // namespace foretune
