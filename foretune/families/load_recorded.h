// Reads a data set file into the table that the recorded family replays.
// Thread safety: free functions without state.
#pragma once

#include <filesystem>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/families/recorded/recorded.h"

namespace foretune {

// Any format that import_dataset knows. A CSV file with the columns of the recorded Triton configs
// gets their schema, space and the fingerprint of the GPU they were measured on; the parameters of
// any other are its columns.
Result<RecordedTable> load_recorded_table(const std::filesystem::path& path);
// The same from memory: rows that were re-measured interleaved replace ordinary ones.
Result<RecordedTable> recorded_table(const Dataset& dataset);

}  // namespace foretune
