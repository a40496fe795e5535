// Reads and writes the files that a payload store keeps in a folder of payloads, as text with a
// checksum in the last line (docs/reference/file-formats/payloads.md): the index, which holds the
// digest of each file as long as the file does not change, and the descriptor of one payload. Both
// can be computed again; a damaged file counts as missing. Internal to the module. Thread safety:
// free functions without state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/hash.h"
#include "foretune/base/result.h"
#include "foretune/problem/payload.h"

namespace foretune::problem_internal {

// The state of a file when its digest was computed. Times are nanoseconds since 1970.
struct FileStamp {
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;  // of the content; programs may set it
  std::int64_t changed_ns = 0;   // of content, owner, name or times; set by the system
  bool operator==(const FileStamp&) const = default;
};

struct IndexedPayload {
  std::string name;  // of the file, without its folder; no line feed
  FileStamp stamp;
  Digest digest;
  bool operator==(const IndexedPayload&) const = default;
};

std::filesystem::path payload_index_path(const std::filesystem::path& folder);
std::string payload_index_text(const std::vector<IndexedPayload>& payloads);
// Errors: kCorrupt, kUnsupported for another version.
Result<std::vector<IndexedPayload>> parse_payload_index(std::string_view text);

std::filesystem::path payload_descriptor_path(const std::filesystem::path& folder,
                                              const PayloadInfo& info, const Digest& payload);
std::string payload_descriptor_text(const PayloadDescriptor& descriptor);
// Errors: kCorrupt, kUnsupported for another version of the file or of its numbers, kMismatch for a
// descriptor of another payload.
Result<PayloadDescriptor> parse_payload_descriptor(std::string_view text, const PayloadInfo& info,
                                                   const Digest& payload);

}  // namespace foretune::problem_internal
