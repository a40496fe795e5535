// Reads what the driver and the profile of a known device say about a GPU. Opens no context.
// Thread safety: free functions.
#pragma once

#include "foretune/base/result.h"
#include "foretune/cuda/driver_api.h"
#include "foretune/hardware/hardware.h"

namespace foretune::cuda {

// `device` is the driver's handle (cuDeviceGet). `isa` is "sm_90". Errors: kIo.
Result<Fingerprint> read_device_facts(const DriverApi& api, int device);

}  // namespace foretune::cuda
