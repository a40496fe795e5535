// Tables and plots of strategies that were compared (tune/strategy_contest.h).
//
//   write_text_file_atomically("results.csv", contest_csv(results));
//   write_text_file_atomically("bars.svg", bars_svg(results, source));
//
// Thread safety: free functions.
#pragma once

#include <string>
#include <string_view>

#include "foretune/space/space.h"
#include "foretune/tune/strategy_contest.h"

namespace foretune {

// CSV: a row per problem and strategy.
std::string contest_csv(const ContestResults& results);
// CSV: a row per measurement of one problem.
std::string contest_steps_csv(const ContestResult& result, const Space& space);

// SVG images with their own style, for a browser or a document. Empty where nothing can be drawn.
// The speed found on every problem by strategy, and the seconds that searching took, on a
// logarithmic scale. `source` is one line below each image: program, device, date.
std::string bars_svg(const ContestResults& results, std::string_view source);
// The distribution of the speed over the start's, by strategy, with medians and quartiles.
std::string violin_svg(const ContestResults& results, std::string_view source);
// Left: the speed after each action that builds what was found; right: the best so far by
// measurements. Geometric means over the problems, and every problem behind them.
std::string gain_svg(const ContestResults& results, std::string_view source);

}  // namespace foretune
