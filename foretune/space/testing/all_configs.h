// Lists a space for tests. Thread safety: a free function.
#pragma once

#include <cstdint>
#include <vector>

#include "foretune/space/space.h"

namespace foretune {

inline std::vector<Config> all_configs(const EnumerableSpace& space) {
  std::vector<Config> configs;
  configs.reserve(space.count());
  for (std::uint64_t i = 0; i < space.count(); ++i) {
    configs.push_back(space.unrank(i));
  }
  return configs;
}

}  // namespace foretune
