// Data set files: whatever the bytes, a data set or a reason; what is read can be written again.
#include <cstring>

#include "foretune/base/hash.h"
#include "fuzz/dataset_fuzz.h"

namespace {

using foretune::fuzz::require;

// Lets the fuzzer past the checks of block heads and payloads: both are replaced by the right ones,
// block after block, as far as the lengths lead.
void repair_checksums(std::vector<std::byte>& bytes) {
  constexpr std::size_t kPreamble = 12;
  constexpr std::size_t kHead = 12;
  const auto put = [&](std::size_t offset, auto value) {
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
  };
  std::size_t at = kPreamble;
  while (at + kHead <= bytes.size()) {
    std::uint32_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof(length));
    const std::span<const std::byte> all(bytes);
    put(at + 6, static_cast<std::uint16_t>(foretune::crc32c(all.subspan(at, 6))));
    if (length > bytes.size() - at - kHead) {
      return;
    }
    put(at + 8,
        foretune::crc32c(all.subspan(at + kHead, length), foretune::crc32c(all.subspan(at, 8))));
    at += kHead + length;
  }
}

void try_dataset(std::span<const std::byte> bytes) {
  foretune::ReadReport report;
  const auto dataset = foretune::read_dataset_bytes(bytes, &report);
  if (foretune::fuzz::refused(dataset)) {
    return;
  }
  require(report.rows == dataset->size());
  require(report.torn_bytes <= bytes.size());
  foretune::fuzz::require_storable(*dataset);
  foretune::fuzz::require_mergeable(*dataset);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try_dataset(bytes);
  std::vector<std::byte> repaired(bytes.begin(), bytes.end());
  repair_checksums(repaired);
  // Where every checksum was right already, there is nothing new to read.
  if (!std::ranges::equal(repaired, bytes)) {
    try_dataset(repaired);
  }
  return 0;
}
