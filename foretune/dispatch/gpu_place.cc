#include "foretune/dispatch/internal/gpu_place.h"

#include "foretune/base/text.h"

namespace foretune::dispatch_internal {
namespace {

constexpr std::string_view kDevicePrefix = "sm_";

// Returns the word of a fingerprint's isa that begins with `prefix`, without it where `is_cut`.
std::string word_of(std::string_view isa, std::string_view prefix, bool is_cut) {
  for (const std::string_view word : split_words(isa)) {
    if (word.starts_with(prefix)) {
      return std::string(is_cut ? word.substr(prefix.size()) : word);
    }
  }
  return {};
}

}  // namespace

std::string library_version(std::size_t version) {
  return concat(version / 10000, ".", version % 10000 / 100);
}

std::string GpuPlace::text() const {
  const std::string here = word_of(isa, kDevicePrefix, false);
  return concat(here.empty() ? "an unknown device" : here, " with ", library, " ", version);
}

std::optional<std::size_t> model_for(const GpuPlace& place, const std::vector<Model>& models,
                                     std::string& reason) {
  const std::string here = word_of(place.isa, kDevicePrefix, false);
  for (std::size_t i = 0; i < models.size(); ++i) {
    const std::string& isa = models[i].fingerprint.isa;
    if (!here.empty() && word_of(isa, kDevicePrefix, false) == here &&
        word_of(isa, place.prefix, true) == place.version) {
      return i;
    }
  }
  if (models.empty()) {
    reason = concat("there is no model for ", place.text());
  } else {
    const std::string& isa = models.front().fingerprint.isa;
    const std::string device = word_of(isa, kDevicePrefix, false);
    const std::string version = word_of(isa, place.prefix, true);
    reason = concat("the model is for ", device.empty() ? "an unknown device" : device, " with ",
                    place.library, " ", version.empty() ? "of unknown version" : version,
                    ", and this is ", place.text());
  }
  return std::nullopt;
}

std::vector<int> devices_of(const cuda::DriverApi& driver) {
  std::vector<int> devices;
  int count = 0;
  if (driver.init(0) != cuda::kDriverSuccess ||
      driver.device_count(&count) != cuda::kDriverSuccess) {
    return devices;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0;
    if (driver.device_get(&device, ordinal) == cuda::kDriverSuccess) {
      devices.push_back(device);
    }
  }
  return devices;
}

}  // namespace foretune::dispatch_internal
