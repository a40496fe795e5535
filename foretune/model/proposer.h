// Proposes configs of a problem that are likely to be fast, without measuring any: what a model
// that builds configs step by step offers beside scores.
//
// Thread safety: one thread at a time. Errors: none; a proposer may have nothing left to propose.
#pragma once

#include <cstddef>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/space/config.h"

namespace foretune {

class ConfigProposer {
 public:
  virtual ~ConfigProposer() = default;
  // Returns at most `count` distinct legal configs in canonical form, most promising first. Every
  // call looks further, by random numbers of `rng`, and may repeat configs of earlier calls.
  virtual std::vector<Config> propose(std::size_t count, Rng& rng) = 0;
};

}  // namespace foretune
