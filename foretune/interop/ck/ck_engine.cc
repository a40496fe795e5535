#include "foretune/interop/ck/ck_engine.h"

#include <array>
#include <cmath>
#include <optional>

#include "foretune/base/text.h"
#include "foretune/formats/json.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

struct EngineArgument {
  const char* name;
  HardwareValue value;
  double unit = 1;
};
constexpr std::array kArguments{
    EngineArgument{"num_cus", HardwareValue::kCores},
    EngineArgument{"lds_capacity", HardwareValue::kSharedBytesPerBlock},
    EngineArgument{"max_clock_mhz", HardwareValue::kClockMhz},
    EngineArgument{"simds_per_cu", HardwareValue::kSimdsPerCore},
    EngineArgument{"shader_engines", HardwareValue::kShaderEngines},
    EngineArgument{"wavefront_size", HardwareValue::kWarpSize},
    EngineArgument{"l1_cache_kb", HardwareValue::kVectorCacheBytes, 1024},
    EngineArgument{"l2_cache_kb", HardwareValue::kL2Bytes, 1024},
    EngineArgument{"l3_cache_kb", HardwareValue::kL3Bytes, 1024},
    EngineArgument{"num_xcd", HardwareValue::kDies}};
// Waves, where we have threads.
constexpr const char* kWaves = "max_waves_per_cu";

Result<std::optional<double>> number_at(const formats::Json& object, const char* key) {
  const formats::Json* value = formats::member(object, key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_number() || !(value->get<double>() >= 0 && value->get<double>() < 1e15)) {
    return fail(ErrorCode::kCorrupt, "the hardware's ", key, " is no number of things");
  }
  return std::optional(value->get<double>());
}

}  // namespace

std::string_view ck_operation(const ConfigSchema& schema) {
  if (schema == ck_gemm_schema()) {
    return "gemm_universal";
  }
  if (schema == ck_gemm_streamk_schema()) {
    return "gemm_streamk";
  }
  return schema == ck_grouped_conv_schema() ? "grouped_conv" : "";
}

std::string_view ck_engine_name(const FeatureTable& table) {
  if (foreign_order(table).empty()) {
    return "";
  }
  if (table.supports(kGemmProblem, ck_gemm_schema())) {
    return "GemmUniversalFeatureEngine";
  }
  return table.supports(kConvProblem, ck_grouped_conv_schema()) ? "GroupedConvFeatureEngine" : "";
}

std::string ck_arch(const Fingerprint& device) {
  const auto known = known_device(device.device);
  const std::string& isa = device.isa.empty() && known ? known->isa : device.isa;
  return isa.starts_with("gfx") ? isa.substr(0, isa.find(':')) : std::string();
}

Fingerprint engine_fingerprint(const FeatureTable& table, const Fingerprint& device) {
  if (ck_engine_name(table).empty()) {
    return device;
  }
  const auto engine = known_device(concat("ck-", ck_arch(device)));
  return engine && engine->device != device.device ? *engine : device;
}

std::string engine_hardware_json(const Hardware& hardware) {
  formats::Json out;
  const auto put = [&out](const char* name, double number) { out[name] = std::llround(number); };
  for (const EngineArgument& argument : kArguments) {
    put(argument.name, hardware.get(argument.value) / argument.unit);
  }
  const double lanes = hardware.get(HardwareValue::kWarpSize);
  put(kWaves, lanes > 0 ? hardware.get(HardwareValue::kThreadsPerCore) / lanes : 0);
  return out.dump();
}

Result<Hardware> with_engine_hardware(const Hardware& hardware, std::string_view json) {
  FORETUNE_TRY(const formats::Json given, formats::parse_json(json));
  Hardware out = hardware;
  for (const EngineArgument& argument : kArguments) {
    FORETUNE_TRY(const std::optional<double> number, number_at(given, argument.name));
    if (number) {
      out.set(argument.value, *number * argument.unit);
    }
  }
  FORETUNE_TRY(const std::optional<double> waves, number_at(given, kWaves));
  if (waves) {
    out.set(HardwareValue::kThreadsPerCore, *waves * out.get(HardwareValue::kWarpSize));
  }
  return out;
}

}  // namespace foretune
