#include "foretune/features/tables/ck_columns.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace foretune::features_internal {

std::span<const FeatureInfo> ck_hardware_columns() {
  static constexpr std::array kColumns{
      of_problem("hw_num_cus", "compute units of the device"),
      of_problem("hw_simds_per_cu", "vector units of a compute unit"),
      of_problem("hw_total_simds", "vector units of the device"),
      of_problem("hw_shader_engines", "shader engines of the device"),
      of_problem("hw_max_clock_mhz", "clock in MHz"),
      of_problem("hw_max_waves_per_cu", "waves that a compute unit holds"),
      of_problem("hw_wavefront_size", "lanes of a wave"),
      of_problem("hw_lds_capacity", "local memory of a block in bytes"),
      of_problem("hw_l1_cache_kb", "vector cache of a compute unit in KiB"),
      of_problem("hw_l2_cache_kb", "L2 cache in KiB"),
      of_problem("hw_l3_cache_kb", "L3 cache in KiB"),
      of_problem("hw_num_xcd", "compute dies of the device"),
  };
  return kColumns;
}

void put_ck_hardware(const Hardware& hardware, ColumnWriter& writer) {
  const double units = hardware.get(HardwareValue::kCores);
  const double simds = hardware.get(HardwareValue::kSimdsPerCore);
  const double lanes = hardware.get(HardwareValue::kWarpSize);
  writer.put(units);
  writer.put(simds);
  writer.put(units * simds);
  writer.put(hardware.get(HardwareValue::kShaderEngines));
  writer.put(hardware.get(HardwareValue::kClockMhz));
  writer.put(lanes > 0 ? hardware.get(HardwareValue::kThreadsPerCore) / lanes : 0);
  writer.put(lanes);
  writer.put(hardware.get(HardwareValue::kSharedBytesPerBlock));
  writer.put(hardware.get(HardwareValue::kVectorCacheBytes) / 1024);
  writer.put(hardware.get(HardwareValue::kL2Bytes) / 1024);
  writer.put(hardware.get(HardwareValue::kL3Bytes) / 1024);
  writer.put(hardware.get(HardwareValue::kDies));
}

std::vector<FeatureInfo> by_kind(std::span<const std::span<const FeatureInfo>> parts) {
  std::vector<FeatureInfo> out;
  for (const std::span<const FeatureInfo> part : parts) {
    for (FeatureInfo info : part) {
      info.foreign_position = static_cast<std::int16_t>(out.size());
      out.push_back(info);
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const FeatureInfo& left, const FeatureInfo& right) {
    return left.kind < right.kind;
  });
  return out;
}

double ck_element_bytes(DataType type, double unknown) {
  return type == DataType::kF64 || type == DataType::kTf32 ? unknown : bytes_per_element(type);
}

void put_ck_tiles(const std::array<double, 3>& sizes, const std::array<double, 3>& tiles,
                  const Hardware& hardware, ColumnWriter& writer) {
  std::array<double, 3> counts{};
  for (std::size_t d = 0; d < 3; ++d) {
    counts[d] = ceil_div(sizes[d], tiles[d]);
    writer.put(counts[d]);
  }
  writer.put(counts[0] * counts[1]);
  double product = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    const double rest = std::fmod(sizes[d], tiles[d]);
    const double fill = rest > 0 ? rest / tiles[d] : 1;
    writer.put(fill);
    product *= fill;
  }
  writer.put(product);
  writer.put(counts[0] * counts[1] / std::max(1.0, hardware.get(HardwareValue::kCores)));
}

double ck_memory_cap(const Hardware& hardware, std::int32_t pipeline) {
  constexpr double kCompV4Cap = 32768;
  return pipeline == static_cast<std::int32_t>(CkPipeline::kCompV4)
             ? kCompV4Cap
             : std::max(1.0, hardware.get(HardwareValue::kSharedBytesPerBlock));
}

// Labels must agree, too: their numbers are the codes that models know.
Support CkTable::supports(ProblemType type, const ConfigSchema& schema) const {
  if (type != problem_type_) {
    return Support::no(name_, " describes ", find_problem_schema(problem_type_)->name,
                       " problems only");
  }
  if (schema.kind != schema_.kind || schema.parameters != schema_.parameters) {
    return Support::no(name_, " describes configs of the parameters of ", schema_.name,
                       ", not those of ", schema.name);
  }
  return Support::yes();
}

}  // namespace foretune::features_internal
