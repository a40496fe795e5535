// Payloads as a type of problem has them, and what is known of one payload: a few named numbers
// that its bytes lead to, computed once and kept beside it (payload_store.h).
//
//   const double share = described_value(problem, position);  // NaN where nothing is known
//
// Thread safety: plain data. Cost: reading a number is two loads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/hash.h"
#include "foretune/base/result.h"
#include "foretune/problem/problem.h"

namespace foretune {

// The row of a type's payloads (ProblemTypeInfo::payload). Constant, and there until the program
// ends.
struct PayloadInfo {
  std::string_view name;      // one word, part of a file's name: "gemm-weights"
  std::uint32_t version = 1;  // of the numbers: another one when describe() gives others
  // Names of the numbers, one word each. All are finite.
  std::span<const std::string_view> values;
  // Refuses bytes that are no payload that the problem can have, as far as their beginning and
  // their length say. Errors: one sentence.
  Status (*check)(const Problem& problem, std::span<const std::byte> bytes) = nullptr;
  // Fills `out`, a number for each name. Errors: one sentence, for bytes that are no such payload.
  Status (*describe)(std::span<const std::byte> bytes, std::span<double> out) = nullptr;
};

struct PayloadDescriptor {
  const PayloadInfo* info = nullptr;
  Digest payload;
  std::vector<double> values;  // in the order of PayloadInfo::values
};

// The number at that position of what is known of a problem's payload; NaN where nothing is.
inline double described_value(const Problem& problem, std::size_t position) {
  const PayloadDescriptor* const descriptor = problem.descriptor();
  return descriptor == nullptr ? std::numeric_limits<double>::quiet_NaN()
                               : descriptor->values[position];
}

}  // namespace foretune
