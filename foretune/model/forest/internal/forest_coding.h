// The bytes of a forest in a model file: distinct splits in a table, trees as the order in which
// their leaves were split, leaf values without their common exponents. Less than an eighth of
// LightGBM's text, and exact. Internal to
// the module; docs/reference/file-formats/model.md has the layout.
// Thread safety: free functions without state.
#pragma once

#include "foretune/base/byte_io.h"
#include "foretune/base/result.h"
#include "foretune/model/forest/forest.h"

namespace foretune {

// `forest` must be valid.
void put_forest(ByteWriter& writer, const Forest& forest);
// Whatever the bytes, the forest returned is valid.
Result<Forest> get_forest(ByteReader& reader);

}  // namespace foretune
