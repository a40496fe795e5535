#include "foretune/measure/cache_evictor.h"

#include <algorithm>
#include <span>

namespace foretune {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kUnknownCachesBytes = 64 * kMiB;
constexpr std::size_t kMaxBytes = 512 * kMiB;
constexpr std::size_t kLineBytes = 64;

}  // namespace

std::size_t eviction_bytes(const Hardware& hardware) {
  const double cache_bytes =
      hardware.get(HardwareValue::kL2Bytes) * std::max(1.0, hardware.get(HardwareValue::kCores)) +
      hardware.get(HardwareValue::kL3Bytes);
  if (cache_bytes <= 0) {
    return kUnknownCachesBytes;
  }
  // Replacement is not strictly oldest-first: a quarter more than fits pushes the rest out.
  const double wanted = std::max(1.25 * cache_bytes, static_cast<double>(4 * kMiB));
  return static_cast<std::size_t>(std::min(wanted, static_cast<double>(kMaxBytes)));
}

void CacheEvictor::evict() {
  ++round_;
  // Volatile, because nothing ever reads these bytes.
  volatile std::uint8_t* const bytes = buffer_.data();
  for (std::size_t i = 0; i < buffer_.size(); i += kLineBytes) {
    bytes[i] = round_;
  }
}

}  // namespace foretune
