#include "foretune/model/joint_model.h"

#include <algorithm>
#include <array>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "foretune/hardware/cpu.h"
#include "foretune/model/metrics/metrics_body.h"

namespace foretune {
namespace {

constexpr std::array kPeaks{HardwareValue::kFmaPeakGflops, HardwareValue::kBandwidthGbs,
                            HardwareValue::kBandwidthAllGbs, HardwareValue::kClockMhz};

// Returns what tells two machines apart, most important first; lower is more alike.
auto distance(const Fingerprint& a, const Fingerprint& b) {
  const auto differ = [&](HardwareValue value) {
    return a.hardware.get(value) != b.hardware.get(value);
  };
  return std::tuple(a.digest() != b.digest(), differ(HardwareValue::kVectorBytes),
                    a.device != b.device, differ(HardwareValue::kCores));
}

}  // namespace

bool learned_from(const Model& model, std::uint64_t machine) {
  return std::any_of(model.machines.begin(), model.machines.end(),
                     [&](const Fingerprint& known) { return known.digest() == machine; });
}

void adapt_to_machine(Model& model, const Fingerprint& machine) {
  if (model.distilled && !(model.fingerprint.hardware == machine.hardware)) {
    model.distilled.reset();
  }
  model.fingerprint = machine;
  std::vector<MetricModel> metrics = metrics_of(model);
  if (metrics.empty()) {
    return;
  }
  for (MetricModel& metric : metrics) {
    Model part = *metric.model;
    part.fingerprint = machine;
    metric.model = std::make_shared<const Model>(std::move(part));
  }
  set_metrics(model, std::move(metrics));
}

Fingerprint this_machine_for(const Model& model) {
  if (model.fingerprint.hardware.get(HardwareValue::kVectorBytes) == 0) {
    return model.fingerprint;
  }
  Fingerprint out = cpu_fingerprint(read_cpu_facts(), CpuPeaks{});
  const auto nearest = std::min_element(model.machines.begin(), model.machines.end(),
                                        [&](const Fingerprint& a, const Fingerprint& b) {
                                          return distance(a, out) < distance(b, out);
                                        });
  for (const HardwareValue peak : kPeaks) {
    if (nearest != model.machines.end()) {
      out.hardware.set(peak, nearest->hardware.get(peak));
    }
  }
  return out;
}

}  // namespace foretune
