// The feature engines of Composable Kernel's heuristics (dispatcher/heuristics), named as in its
// scripts, and the numbers that they assume for a device: those of its profiles (ck-gfx950), not of
// the device itself. Our tables that reproduce an engine use the same numbers.
//
//   const Fingerprint seen = engine_fingerprint(table, measured_on);   // 64 KiB, not 160
//   spec["feature_engine"] = ck_engine_name(table);                    // their class
//
// Thread safety: free functions without state.
#pragma once

#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/features/feature_table.h"
#include "foretune/hardware/hardware.h"

namespace foretune {

// Returns Composable Kernel's name of the operation of a config schema, "gemm_universal",
// "gemm_streamk" or "grouped_conv"; empty for other schemas.
std::string_view ck_operation(const ConfigSchema& schema);
// Returns the name of the engine whose features the table reproduces, as
// "GemmUniversalFeatureEngine"; empty for other tables.
std::string_view ck_engine_name(const FeatureTable& table);
// Returns the architecture of an AMD device without the features after the colon ("gfx950"); empty
// for others.
std::string ck_arch(const Fingerprint& device);
// Returns the profile of the device's architecture if the table has an engine and the device is not
// already such a profile; else the device.
Fingerprint engine_fingerprint(const FeatureTable& table, const Fingerprint& device);

// Returns the arguments of an engine's constructor as a JSON object: {"num_cus": 256, ...}.
std::string engine_hardware_json(const Hardware& hardware);
// Does the reverse: returns `hardware` with the arguments in `json`. Errors: kCorrupt for an
// argument that is not a non-negative number.
Result<Hardware> with_engine_hardware(const Hardware& hardware, std::string_view json);

}  // namespace foretune
