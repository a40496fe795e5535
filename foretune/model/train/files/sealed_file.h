// The frame of a file with one body: magic, version, length, checksum. Readers of the files in this
// folder check it first, so that they refuse a damaged or foreign file before they use a byte of
// it.
//
//   u8[8] magic, u32 version, u32 CRC-32C of all bytes but these four, u64 length of the file, body
//
// Thread safety: free functions without state. Cost: a checksum over the file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"

namespace foretune {

struct FileSeal {
  std::array<std::uint8_t, 8> magic{};
  std::uint32_t version = 1;
  std::string_view name;  // for messages: "a file of training rows"
};

std::vector<std::byte> seal(const FileSeal& what, std::span<const std::byte> body);
// Returns the body of bytes that seal() made. Errors: kCorrupt; kUnsupported for a newer version.
Result<std::span<const std::byte>> unseal(const FileSeal& what, std::span<const std::byte> bytes);

}  // namespace foretune
