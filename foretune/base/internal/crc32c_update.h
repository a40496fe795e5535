// The ways of computing CRC-32C that crc32c() of hash.h chooses from. Internal to the module.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace foretune {

// Advances a checksum, without the inversions before and after.
using Crc32cUpdate = std::uint32_t (*)(std::uint32_t crc, const std::byte* data, std::size_t size);

std::uint32_t crc32c_by_tables(std::uint32_t crc, const std::byte* data, std::size_t size);
// The CPU's own instruction: nullptr where this build or this CPU has none (SSE 4.2).
Crc32cUpdate crc32c_by_instruction();

}  // namespace foretune
