#include "foretune/cuda/energy_meter.h"

#include <utility>

namespace foretune::cuda {

EnergyMeter::EnergyMeter(std::shared_ptr<const NvmlApi> api) : api_(std::move(api)) {}

EnergyMeter::~EnergyMeter() { api_->shutdown(); }

Result<std::unique_ptr<EnergyMeter>> EnergyMeter::open(const std::string& library,
                                                       const std::string& bus_id) {
  FORETUNE_TRY(auto api, NvmlApi::load(library));
  return open(std::move(api), bus_id);
}

Result<std::unique_ptr<EnergyMeter>> EnergyMeter::open(std::shared_ptr<const NvmlApi> api,
                                                       const std::string& bus_id) {
  if (api->total_energy_millijoule == nullptr) {
    return fail(ErrorCode::kUnsupported, "the NVML of this driver counts no energy");
  }
  if (const int code = api->init(); code != 0) {
    return fail(ErrorCode::kUnsupported, "nvmlInit fails (", code, ")");
  }
  // From here on its end shuts NVML down.
  std::unique_ptr<EnergyMeter> meter(new EnergyMeter(std::move(api)));
  if (const int code = meter->api_->device_by_bus_id(bus_id.c_str(), &meter->device_); code != 0) {
    return fail(ErrorCode::kUnsupported, "NVML does not know the GPU ", bus_id, " (", code, ")");
  }
  meter->bus_id_ = bus_id;
  FORETUNE_TRY(meter->first_millijoule_, meter->read_millijoule());
  return meter;
}

Result<unsigned long long> EnergyMeter::read_millijoule() const {
  unsigned long long millijoule = 0;
  const int code = api_->total_energy_millijoule(device_, &millijoule);
  if (code == kNvmlNotSupported) {
    return fail(ErrorCode::kUnsupported, "the GPU ", bus_id_,
                " counts no energy, which Volta and newer devices do");
  }
  if (code != 0) {
    return fail(ErrorCode::kIo, "nvmlDeviceGetTotalEnergyConsumption fails for the GPU ", bus_id_,
                " (", code, ")");
  }
  return millijoule;
}

Result<double> EnergyMeter::read_j() const {
  FORETUNE_TRY(const unsigned long long millijoule, read_millijoule());
  if (millijoule < first_millijoule_) {
    return fail(ErrorCode::kCorrupt, "the energy of the GPU ", bus_id_, " went back from ",
                first_millijoule_, " mJ to ", millijoule, " mJ: the driver was loaded again");
  }
  return static_cast<double>(millijoule - first_millijoule_) * 1e-3;
}

}  // namespace foretune::cuda
