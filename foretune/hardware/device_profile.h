// What a device can do according to its documents, as a text file: for devices that are not here.
//
//   # The accelerator that the times of this folder come from.
//   device: Some Accelerator 3000
//   names: sa3000 gfx1234
//   isa: gfx1234
//   source: data sheet of 2025
//   cores=256
//   shared_bytes_per_block=65536   # 64 KiB
//
// Lines are "key: value" or "value=number" (names as in HardwareValue); # begins a remark. The
// profiles of foretune/hardware/profiles are part of the library; a user's own file is read with
// load_device_profile(). A profile whose name begins with "ck-" holds the numbers that Composable
// Kernel's heuristics were trained with, right or wrong, for models that come from there.
// Thread safety: free functions; profiles are plain values.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/embedded_text.h"
#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"

namespace foretune {

struct DeviceProfile {
  Fingerprint fingerprint;
  std::vector<std::string> names;  // in lower case; what known_device() finds it by
  std::string source;              // where the numbers come from

  // Errors: kInvalidArgument with the line that makes no sense. Every line must be known: a
  // mistyped name would otherwise be a fact that is silently missing.
  static Result<DeviceProfile> parse(std::string_view text);
};

// The files of foretune/hardware/profiles.
std::span<const EmbeddedText> device_profile_texts();
// The same, parsed. Made at the first call.
const std::vector<DeviceProfile>& device_profiles();
// All names of all of them, for known_device().
std::vector<std::string> device_names();

Result<DeviceProfile> load_device_profile(const std::filesystem::path& path);

}  // namespace foretune
