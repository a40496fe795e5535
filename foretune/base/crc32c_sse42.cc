#include "foretune/base/internal/crc32c_update.h"

#if defined(__SSE4_2__) && defined(__x86_64__)
#include <nmmintrin.h>

#include <cstring>

namespace foretune {
namespace {

std::uint32_t update(std::uint32_t crc, const std::byte* data, std::size_t size) {
  std::uint64_t wide = crc;
  for (; size >= 8; size -= 8, data += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, sizeof(word));
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (; size > 0; --size, ++data) {
    crc = _mm_crc32_u8(crc, static_cast<std::uint8_t>(*data));
  }
  return crc;
}

}  // namespace

Crc32cUpdate crc32c_by_instruction() {
  return __builtin_cpu_supports("sse4.2") != 0 ? &update : nullptr;
}

}  // namespace foretune
#else
namespace foretune {
Crc32cUpdate crc32c_by_instruction() { return nullptr; }
}  // namespace foretune
#endif
