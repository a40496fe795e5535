// Any bytes as a zip archive and as a checkpoint of torch-diode: read or refused with a reason, and
// what was read lies inside the bytes and can be folded, evaluated and read again.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/formats/stored_zip.h"
#include "foretune/formats/testing/zip_samples.h"
#include "foretune/interop/diode/diode_checkpoint.h"
#include "foretune/model/network/torch_layers.h"

namespace {

using foretune::formats::StoredEntry;

void read_zip(std::span<const std::byte> bytes) {
  const auto entries = foretune::formats::read_stored_zip(bytes);
  if (!entries) {
    FORETUNE_CHECK(!entries.error().message.empty());
    return;
  }
  for (const StoredEntry& entry : *entries) {
    FORETUNE_CHECK(entry.bytes.data() >= bytes.data() &&
                   entry.bytes.data() + entry.bytes.size() <= bytes.data() + bytes.size());
  }
}

void read_checkpoint(std::span<const std::byte> bytes) {
  const auto checkpoint = foretune::parse_diode_checkpoint(bytes);
  if (!checkpoint) {
    FORETUNE_CHECK(!checkpoint.error().message.empty());
    return;
  }
  FORETUNE_CHECK(foretune::parse_diode_checkpoint(bytes, checkpoint->kind).has_value());
  const auto folded = foretune::fold_layers(checkpoint->layers);
  if (folded) {
    // Weights may be large enough for sums that are no numbers.
    const std::vector<double> row(checkpoint->layers.front().inputs, 0.5);
    FORETUNE_CHECK(foretune::evaluate_layers(checkpoint->layers, row).size() == 1);
  }
}

// Lets the fuzzer past the checksums: each of the directory's entries gets the right one, as far as
// its numbers lead.
void repair_checksums(std::vector<std::byte>& bytes) {
  constexpr std::uint32_t kDirectoryEntry = 0x02014b50;
  constexpr std::size_t kDirectoryHeader = 46;
  constexpr std::size_t kLocalHeader = 30;
  const auto number = [&](std::size_t at, std::size_t size) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, size);
    return std::size_t{value};
  };
  for (std::size_t at = 0; at + kDirectoryHeader <= bytes.size(); ++at) {
    const std::size_t local = number(at + 42, 4);
    if (number(at, 4) != kDirectoryEntry || local + kLocalHeader > bytes.size()) {
      continue;
    }
    const std::size_t data = local + kLocalHeader + number(local + 26, 2) + number(local + 28, 2);
    const std::size_t size = number(at + 20, 4);
    if (data > bytes.size() || size > bytes.size() - data) {
      continue;
    }
    const std::uint32_t checksum =
        foretune::formats::sample_crc32({reinterpret_cast<const char*>(bytes.data()) + data, size});
    std::memcpy(bytes.data() + at + 16, &checksum, sizeof(checksum));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  read_zip(bytes);
  read_checkpoint(bytes);
  // Many entries of the same large data would take the repair long.
  constexpr std::size_t kMaxRepaired = std::size_t{1} << 16U;
  if (size <= kMaxRepaired) {
    std::vector<std::byte> repaired(bytes.begin(), bytes.end());
    repair_checksums(repaired);
    read_zip(repaired);
    read_checkpoint(repaired);
  }
  return 0;
}
