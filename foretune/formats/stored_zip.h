// Reads zip archives whose entries are stored uncompressed, as torch.save() writes them. Finds the
// entries through the central directory, never by searching for headers.
//
//   FORETUNE_TRY(const std::vector<StoredEntry> entries, read_stored_zip(bytes));
//
// Format: PKWARE's APPNOTE.TXT 6.3.10. Refuses, instead of guessing: compressed or encrypted
// entries, archives that need zip64 (65,535 entries, 4 GiB) or several disks. The zip64 records
// that torch adds to small archives, too, must agree with the others.
// Thread safety: free functions without state. Cost: linear in the archive; nothing is copied.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::formats {

// Both are views into the archive.
struct StoredEntry {
  std::string_view name;
  std::span<const std::byte> bytes;
};

// Returns true when the content is a zip archive; the name does not matter.
bool is_zip(std::span<const std::byte> bytes);
// Returns the entries in the order of the directory. Their names are distinct, their bytes do not
// overlap and their checksums are right. Errors: kCorrupt with the defect, kUnsupported as above.
Result<std::vector<StoredEntry>> read_stored_zip(std::span<const std::byte> bytes);

}  // namespace foretune::formats
