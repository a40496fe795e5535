// The facts of an AMD GPU from what the tool rocminfo prints on the machine that has it.
//
//   FORETUNE_TRY(const Fingerprint gpu, parse_rocminfo(text, "gfx942"));
//
// Thread safety: free functions without state. Cost: linear in the text.
#pragma once

#include <string_view>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"

namespace foretune {

// The first GPU in `text` that is called `arch` ("gfx950"), or the first GPU when `arch` is empty.
// Compute units are cores; the local data share is both l1_bytes and shared_bytes_per_block. Facts
// that the text does not have stay unknown. Errors: kNotFound when no such GPU is in it, with the
// names of those that are.
Result<Fingerprint> parse_rocminfo(std::string_view text, std::string_view arch = {});

}  // namespace foretune
