// Reads the facts of a device, taken from its documents, from a text file: for devices that are not
// present.
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
// profiles of foretune/hardware/profiles are part of the library. A profile whose name begins with
// "ck-" holds the numbers that Composable Kernel's heuristics were trained with, right or wrong,
// for models that come from there. Thread safety: free functions; profiles are plain values.
#pragma once

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
  std::vector<std::string> names;  // in lower case; known_device() looks them up
  std::string source;              // where the numbers come from

  // Errors: kInvalidArgument with the line that makes no sense. Every key must be known: a fact
  // under a mistyped name would otherwise be missing silently.
  static Result<DeviceProfile> parse(std::string_view text);
};

// The files of foretune/hardware/profiles.
std::span<const EmbeddedText> device_profile_texts();
// Returns those files parsed; they are parsed at the first call.
const std::vector<DeviceProfile>& device_profiles();
// Returns all names of all built-in profiles, for known_device().
std::vector<std::string> device_names();

}  // namespace foretune
