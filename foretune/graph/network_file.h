// The file of a network (`.ftn`): operations, attributes and weights, with a checksum.
//
//   FORETUNE_TRY(const Network network, read_network("resnet20.ftn"));
//   FORETUNE_TRY_STATUS(write_network(network, "copy.ftn"));
//
// docs/reference/file-formats/networks.md gives the bytes. Thread safety: free functions. Cost: a
// file is read once and its weights are copied.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"

namespace foretune::graph {

inline constexpr std::string_view kNetworkExtension = ".ftn";

// Says whether bytes begin as the file of a network does.
[[nodiscard]] bool is_network(std::span<const std::byte> bytes);

// Errors: kCorrupt for bytes that are damaged or were never a network, kUnsupported for a newer
// version and for an operation that this build lacks.
Result<Network> parse_network(std::span<const std::byte> bytes);
[[nodiscard]] std::vector<std::byte> network_bytes(const Network& network);

// Errors: as parse_network(), and kNotFound, kIo for the file.
Result<Network> read_network(const std::filesystem::path& path);
// Replaces the file atomically.
Status write_network(const Network& network, const std::filesystem::path& path);

}  // namespace foretune::graph
