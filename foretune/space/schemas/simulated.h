// The config schema of the simulated family null: block_m block_n block_k unroll.
// Thread safety: constant.
#pragma once

#include "foretune/space/config.h"

namespace foretune {

const ConfigSchema& null_schema();

}  // namespace foretune
