// Describes the payloads of a type of problem, and holds the descriptor of one payload: a few named
// numbers that are computed once from its bytes and kept beside it (payload_store.h).
//
//   const double share = described_value(problem, position);  // NaN without a descriptor
//
// Thread safety: plain data. Cost: reading a number is two loads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/hash.h"
#include "foretune/base/result.h"
#include "foretune/problem/problem.h"

namespace foretune {

// The row of a type's payloads (ProblemTypeInfo::payload). Constant; lives until the program ends.
struct PayloadInfo {
  std::string_view name;      // one word, part of a file's name: "gemm-weights"
  std::uint32_t version = 1;  // of the numbers: another one when describe() computes others
  // Names of the numbers, one word each. All are finite.
  std::span<const std::string_view> values;
  // Refuses bytes that cannot be a payload of the problem, as far as their beginning and their
  // length show. Errors: one sentence.
  Status (*check)(const Problem& problem, std::span<const std::byte> bytes) = nullptr;
  // Fills `out`, one number per name. Errors: one sentence, for bytes that are not such a payload.
  Status (*describe)(std::span<const std::byte> bytes, std::span<double> out) = nullptr;
  // Returns the fields that follow from a file and its name, as a problem's text has them ("rows=3
  // columns=4"); nullptr where none do. Errors: one sentence.
  Result<std::string> (*fields)(std::string_view name, std::span<const std::byte> bytes) = nullptr;
};

struct PayloadDescriptor {
  const PayloadInfo* info = nullptr;
  Digest payload;
  std::vector<double> values;  // in the order of PayloadInfo::values
};

// Returns the number at that position of the payload's descriptor; NaN for a problem without one.
inline double described_value(const Problem& problem, std::size_t position) {
  const PayloadDescriptor* const descriptor = problem.descriptor();
  return descriptor == nullptr ? std::numeric_limits<double>::quiet_NaN()
                               : descriptor->values[position];
}

}  // namespace foretune
