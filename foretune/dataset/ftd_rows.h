// The payloads of blocks: one appended row, a segment of many rows by columns, baselines. Internal
// to the data set module: use journal.h.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/ftd_format.h"

namespace foretune::ftd {

inline constexpr std::size_t kRowsPerSegment = std::size_t{1} << 20U;

// The first row of `dataset`, after the definitions from `written` on.
std::vector<std::byte> encode_row(const Dataset& dataset, const Watermark& written);

struct SegmentOptions {
  bool keep_samples = true;
};
// Rows [first, first + count), after the definitions from `written` up to `defined`.
std::vector<std::byte> encode_segment(const Dataset& dataset, RowIndex first, std::size_t count,
                                      const Watermark& written, const Watermark& defined,
                                      const SegmentOptions& options);

// All baselines, after all definitions from `written` on.
std::vector<std::byte> encode_baselines(const Dataset& dataset, const Watermark& written);

// Adds what the block holds. The block's payload is known to be undamaged, but not to make sense.
Status decode_block(const Block& block, Dataset& dataset);

}  // namespace foretune::ftd
