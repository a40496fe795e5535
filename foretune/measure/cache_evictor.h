// Empties the CPU caches of a problem's data by walking over a buffer larger than they are.
// Thread safety: one thread. Cost: memory of that size, and the time to write it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "foretune/hardware/hardware.h"

namespace foretune {

// Returns the bytes to walk over so that no earlier data is left in a machine's caches. 64 MiB when
// the caches are unknown, at most 512 MiB.
[[nodiscard]] std::size_t eviction_bytes(const Hardware& hardware);

class CacheEvictor {
 public:
  explicit CacheEvictor(std::size_t bytes) : buffer_(bytes) {}
  void evict();

 private:
  std::vector<std::uint8_t> buffer_;
  std::uint8_t round_ = 0;
};

}  // namespace foretune
