// Picks configs so that every value of every parameter, and every pair of values of two parameters,
// appears about equally often among the picked: greedy maximisation of a coverage function with
// diminishing returns. The function is submodular, so the lazy evaluation of Minoux (1978) yields
// exactly what evaluating all candidates before every pick would.
// Thread safety: one thread. Cost: about candidates * parameters^2 at the start, then little per
// pick.
#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <unordered_map>
#include <vector>

#include "foretune/space/config.h"

namespace foretune {

// Only single values of parameters beyond these count.
inline constexpr std::size_t kPairedPositions = 12;

class CoveragePicker {
 public:
  // Picks the first of equally good candidates: shuffle them for variety.
  explicit CoveragePicker(std::vector<Config> candidates);

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  // Returns the next config. There must be one.
  Config pick();
  // Returns the coverage that picking `config` would add now.
  [[nodiscard]] double gain(const Config& config) const;
  // Counts a config that was picked elsewhere.
  void count(const Config& config);

 private:
  struct Candidate {
    double gain;
    std::size_t index;
    bool operator<(const Candidate& other) const {
      return gain != other.gain ? gain < other.gain : index > other.index;
    }
  };
  std::vector<Config> candidates_;
  std::priority_queue<Candidate> heap_;
  std::unordered_map<std::uint64_t, std::uint32_t> counts_;
};

}  // namespace foretune
