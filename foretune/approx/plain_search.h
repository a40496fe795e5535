// Searches for the trade-offs between loss and time by one of the core's strategies, which measures
// every network that it tries: what the models of quality have to beat.
//
//   const double volume = front_volume(ours, 3);
//   FORETUNE_TRY(const PlainSearch found,
//                search_plainly(problem, space, measure, {.most_loss = 3, .volume = volume}));
//   found.evaluations;  // that it took to get as far
//
// Thread safety: free functions; each call belongs to one thread. Cost: that of the measurements.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "foretune/base/result.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"
#include "foretune/space/space.h"

namespace foretune::approx {

struct LossAndTime {
  double loss = 0;  // in the metric's unit
  double time = 1;  // over that of the exact network
};

// Returns the area that the points dominate, up to a loss and the exact network's time; a gain of
// quality counts as no loss.
[[nodiscard]] double front_volume(std::span<const LossAndTime> points, double most_loss);

struct PlainSearchOptions {
  std::string strategy = "local";
  double most_loss = 1;
  double volume = 0;        // ends the search
  std::size_t most = 1000;  // evaluations
  std::uint64_t seed = 42;
};

struct PlainSearch {
  std::size_t evaluations = 0;
  double volume = 0;
  bool has_reached = false;  // options.volume
};

// Errors: those of the strategy and of `measure`.
Result<PlainSearch> search_plainly(const Problem& problem, const Space& space,
                                   const std::function<Result<LossAndTime>(const Config&)>& measure,
                                   const PlainSearchOptions& options);

}  // namespace foretune::approx
