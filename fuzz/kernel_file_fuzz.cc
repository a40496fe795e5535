// Any bytes as a file of compiled kernels: read or refused, and what was read is inside the bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "foretune/base/hash.h"
#include "foretune/cuda/kernel_file.h"

namespace {

void read(std::span<const std::byte> bytes) {
  const auto file = foretune::cuda::KernelFile::parse(bytes);
  if (!file) {
    return;
  }
  for (const foretune::cuda::CompiledKernel& kernel : (*file)->kernels()) {
    const auto image = (*file)->image(kernel);
    const bool is_inside =
        image.empty() || (image.data() >= bytes.data() &&
                          image.data() + image.size() <= bytes.data() + bytes.size());
    if (!is_inside || (*file)->find(kernel.key) == nullptr ||
        image.empty() == kernel.error.empty()) {
      std::abort();
    }
  }
}

// Lets the fuzzer past the checksums: each is replaced by the right one, as far as lengths lead.
void repair_checksums(std::vector<std::byte>& bytes) {
  constexpr std::size_t kMagic = 8;
  constexpr std::size_t kHead = 12;
  std::size_t at = kMagic;
  while (at + kHead <= bytes.size()) {
    std::uint32_t words = 0;
    std::uint32_t image = 0;
    std::memcpy(&words, bytes.data() + at, sizeof(words));
    std::memcpy(&image, bytes.data() + at + 4, sizeof(image));
    const std::size_t size = std::size_t{words} + image;
    if (size > bytes.size() - at - kHead) {
      return;
    }
    const std::uint32_t checksum =
        foretune::crc32c(std::span<const std::byte>(bytes).subspan(at + kHead, size));
    std::memcpy(bytes.data() + at + 8, &checksum, sizeof(checksum));
    at += kHead + size;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  read(bytes);
  std::vector<std::byte> repaired(bytes.begin(), bytes.end());
  repair_checksums(repaired);
  read(repaired);
  return 0;
}
