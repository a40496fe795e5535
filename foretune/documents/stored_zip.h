// Zip archives whose entries are stored as they are, as torch.save() writes them: found through the
// central directory, never by searching for headers.
//
//   FORETUNE_TRY(const std::vector<StoredEntry> entries, read_stored_zip(bytes));
//
// Format: PKWARE's APPNOTE.TXT 6.3.10. Refused instead of guessed: compressed or encrypted entries,
// archives that need zip64 (65,535 entries, 4 GiB) or several disks. The zip64 records that torch
// adds to small archives, too, must agree with the others.
// Thread safety: free functions without state. Cost: linear in the archive; nothing is copied.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::documents {

// Both are views into the archive.
struct StoredEntry {
  std::string_view name;
  std::span<const std::byte> bytes;
};

// By content, not by name.
bool is_zip(std::span<const std::byte> bytes);
// The entries in the order of the directory; their names are distinct, their bytes apart from each
// other and their checksums right. Errors: kCorrupt with what is wrong, kUnsupported as above.
Result<std::vector<StoredEntry>> read_stored_zip(std::span<const std::byte> bytes);

}  // namespace foretune::documents
