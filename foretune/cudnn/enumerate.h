// Lists the configs that the library accepts for a problem: every engine with every combination of
// its knobs, or a random part where there are too many.
//
// Thread safety: as Convolution. Cost: about 20 us of a thread for a combination.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cudnn/convolution.h"

namespace foretune::cudnn {

struct Enumeration {
  // Knobs that split a sum into parts have up to 2,048 values; only these are tried.
  std::vector<std::int32_t> splits{1, 2, 3, 4, 6, 8, 16, 32};
  // A random part is tried of the combinations of an engine that has more than this.
  std::uint64_t max_of_engine = 200'000;
  double seconds = 10;
  std::uint64_t seed = 1;
};

struct Listed {
  std::vector<CudnnConfig> configs;  // in random order, but the engines' own choices first
  std::uint64_t combinations = 0;    // of all engines, with the given splits
  std::uint64_t tried = 0;           // of these
};

// Uses a thread for every library. `enter` makes the device's context current in a thread. Errors:
// those of Convolution::engines(), kIo.
Result<Listed> enumerate(Convolution& convolution,
                         std::span<const std::shared_ptr<const Library>> libraries,
                         const Enumeration& options, const std::function<void()>& enter);

}  // namespace foretune::cudnn
