// Convolutions beside oneDNN, timed in turn: which layers, which config of ours, and how long both
// take. Used by conv_vs_peers and conv_picks.
//
//   for (const ConvLayer& layer : choose_conv_layers(80)) {
//     FORETUNE_TRY(const ConvTimes times, compare_with_peer(family, problem, config, 9));
//   }
//
// Thread safety: none; oneDNN's threads are those of OpenMP.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/config.h"

namespace foretune::bench {

struct ConvLayer {
  ConvSizes sizes;  // forward, one image
  std::string of;   // its class
};

// Returns about `count` of the layers of all networks, as many of each class, evenly spaced within
// it, in the order of the sets.
std::vector<ConvLayer> choose_conv_layers(std::size_t count);

// Returns the sizes as one line: "64->128 28x28 f3x3 s2".
std::string text_of(const ConvSizes& sizes);

// Seconds of one run, medians over the rounds.
struct ConvTimes {
  double ours_s = 0;
  double peer_s = 0;
  double peer_whole_s = 0;  // with the reorders of inputs and outputs
};

// Checks both contenders against the definition, and times them in turn. Errors: kUnsupported where
// oneDNN does not run the problem, kInvalidArgument for a wrong result.
Result<ConvTimes> compare_with_peer(const Family& family, const ConvProblem& problem,
                                    const Config& config, int rounds);

}  // namespace foretune::bench
