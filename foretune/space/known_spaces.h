// Spaces that are known without a family: what may run on a device that is not here, as text files
// (foretune/space/definitions) in the form that data sets and model files carry, too.
//
//   FORETUNE_TRY(const SpaceDefinition definition, known_space("ck-gemm-gfx942"));
//
// "ck-gemm-gfx90a", "ck-gemm-gfx942" and "ck-gemm-gfx950" say which of Composable Kernel's GEMM
// kernels a device can run: how its waves are arranged, which matrix instructions there are for a
// data type, what local memory holds, what must be padded. They have no domains: which kernels
// there are is for a pool of measured or built ones to say.
// Thread safety: free functions.
#pragma once

#include <span>
#include <string_view>

#include "foretune/base/embedded_text.h"
#include "foretune/base/result.h"
#include "foretune/space/parametric_space.h"

namespace foretune {

// The files of foretune/space/definitions.
std::span<const EmbeddedText> known_space_texts();

// Errors: kNotFound with the names there are.
Result<SpaceDefinition> known_space(std::string_view name);

}  // namespace foretune
