// The feature engines of Composable Kernel's heuristics (dispatcher/heuristics), as its scripts
// name them, and the numbers that they take for a device: those of its profiles (ck-gfx950), not of
// the device. What one of our tables reproduces is computed with the same.
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

// "gemm_universal", "grouped_conv": their kernels of our config schemas; empty for other schemas.
std::string_view ck_operation(const ConfigSchema& schema);
// "GemmUniversalFeatureEngine": whose features the table reproduces; empty for other tables.
std::string_view ck_engine_name(const FeatureTable& table);
// "gfx950" of a device of AMD's, without what follows a colon; empty for others.
std::string ck_arch(const Fingerprint& device);
// The profile of the device's architecture for a table that has an engine, with a device that is
// none of these profiles already; else the device.
Fingerprint engine_fingerprint(const FeatureTable& table, const Fingerprint& device);

// The arguments of an engine's constructor as a JSON object: {"num_cus": 256, ...}.
std::string engine_hardware_json(const Hardware& hardware);
// The other way round: `hardware` with the arguments that `json` has. Errors: kCorrupt for one that
// is no number from 0.
Result<Hardware> with_engine_hardware(const Hardware& hardware, std::string_view json);

}  // namespace foretune
