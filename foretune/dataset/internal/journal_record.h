// The records that writers of a journal append: the beginning of a file, and a row behind the
// definitions that it needs. Internal to the data set module.
// Thread safety: free functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "foretune/base/byte_io.h"
#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/measurement.h"

namespace foretune::dataset_internal {

// Counts the interned values of a data set that a file defines.
struct Defined {
  std::size_t metrics = 0;  // besides the common ones
  std::size_t problems = 0;
  std::size_t configs = 0;
  std::size_t contexts = 0;
  std::size_t reasons = 1;  // the first one is "none" and needs no definition

  static Defined all_of(const Dataset& dataset);
};

// Appends the preamble and the header.
void append_beginning(ByteWriter& out, const DatasetHeader& header);
// Returns true for a file that ends before its header is complete: nothing is lost by starting it
// again.
bool is_only_begun(std::span<const std::byte> file);
// Appends all definitions that `defined` lacks. Their order lets each refer to earlier ones.
void append_new_definitions(ByteWriter& out, const Dataset& dataset, const Defined& defined);
void append_baselines(ByteWriter& out, const Dataset& dataset);
void append_notes(ByteWriter& out, const Notes& notes);

// Checks that a row of the measurement can be added. Errors: kMismatch for a problem or config of
// another type or schema, kUnsupported for too many contexts or metrics, kInvalidArgument for names
// that cannot be stored.
Status check_measurement(const Dataset& tables, std::uint64_t schema_id,
                         const Measurement& measurement);
// Appends a row with its metrics and samples, behind the definitions that `defined` lacks. Errors:
// kInvalidArgument for a row or a metric that makes no sense; then nothing is appended.
Status append_row(ByteWriter& out, const Dataset& tables, RowIndex row, const Defined& defined);

// Fails unless measurements for a file with the header `wanted` may be appended to one with
// `in_file`. Errors: kMismatch.
Status check_same(const DatasetHeader& in_file, const DatasetHeader& wanted);

}  // namespace foretune::dataset_internal
