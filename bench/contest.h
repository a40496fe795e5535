// Contenders timed in turn, for programs that compare our kernels with those of other libraries.
//
//   std::vector<Contender> contenders{{[&] { ours->run(); }, {}}, {peer, {}}};
//   time_in_turn(contenders, 9, false);
//   use(median(contenders[0].seconds));
//
// Thread safety: none; a contender may have threads of its own.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/model/scorer.h"
#include "foretune/space/config.h"

namespace foretune::bench {

struct Contender {
  std::function<void()> run;
  std::vector<double> seconds;  // of a run, one number a round
};

// Times every contender once a round, in windows of some milliseconds; each round begins with the
// next one. `has_threads` lets those of the contender before come to rest first.
void time_in_turn(std::span<Contender> contenders, int rounds, bool has_threads);

// Returns the best config that a search finds within `seconds`: a local one, or one by a scorer.
// Errors: those of tune_problem().
Result<Config> tuned_config(const std::shared_ptr<const Family>& family, const Problem& problem,
                            double seconds, const Scorer* scorer = nullptr);

// Prints the geometric mean of the ratios with its 95 % interval, and the least. `unit` names what
// they were counted over: "layers".
void print_ratios(const std::string& name, const std::vector<double>& ratios,
                  std::string_view unit = "layers");

}  // namespace foretune::bench
