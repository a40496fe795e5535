// Spaces that are known without a family: the configs that may run on a device that is not present,
// as text files (foretune/space/definitions) in the form that data sets and model files use, too.
//
//   FORETUNE_TRY(const SpaceDefinition definition, known_space("ck-gemm-gfx942"));
//
// "ck-gemm-gfx90a", "ck-gemm-gfx942" and "ck-gemm-gfx950" say which of Composable Kernel's GEMM
// kernels a device can run: the arrangement of waves, the matrix instructions for each data type,
// the size of local memory, the sizes that must be padded. "ck-conv-..." say the same of its
// grouped convolutions: ten tiles, thirty variants of the pipelines, whole vectors of channels.
// Their value lists are for searching. Data sets and models carry the rules alone, because a pool
// of measured or built kernels says which kernels exist.
// Thread safety: free functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "foretune/base/embedded_text.h"
#include "foretune/base/result.h"
#include "foretune/space/config.h"
#include "foretune/space/parametric_space.h"

namespace foretune {

// Returns the files of foretune/space/definitions.
std::span<const EmbeddedText> known_space_texts();

// Errors: kNotFound with the names that exist.
Result<SpaceDefinition> known_space(std::string_view name);

// Returns the space of the schema's configs on an architecture: "gfx950", also with flags as in
// "gfx950:xnack-". Errors: kNotFound.
Result<SpaceDefinition> known_space_of(const ConfigSchema& schema, std::string_view isa);

// Returns the rules of that space without its value lists, as text(); empty when none is known.
std::string known_rules_of(const ConfigSchema& schema, std::string_view isa);

}  // namespace foretune
