// A search as a graph to look at: which configs were measured, how fast they are, and which change
// led from one to the next.
//
//   write_text_file_atomically("search.dot",
//                              search_graph_dot(*space, trace, {.title = problem.text()}));
//   dot -Tsvg search.dot > search.svg
//
// Thread safety: free functions. Cost: 50 to 200 microseconds for every measurement up to the
// fastest or the last node, whichever comes later.
#pragma once

#include <cstddef>
#include <string>

#include "foretune/space/space.h"
#include "foretune/tune/strategy_contest.h"

namespace foretune {

struct GraphOptions {
  std::string title;
  std::string source = {};  // one line below the title: program, device, date
  std::string unit = "GFLOP/s";
  double peak = 0;             // top of the scale of colours; 0: the fastest of the search
  std::size_t max_steps = 10;  // actions of one change, those included that change nothing
  std::size_t max_nodes = 2000;
};

// Graphviz's digraph: a node per measured config with its number in the search, its speed, and the
// second that it was known; filled by the speed, dashed and grey where it failed. An edge comes
// from the config one change away that was measured first, and before; it is dashed from the start
// where there is none. The way to the fastest is red. With more than `max_nodes` configs the graph
// has the way to the fastest, whole in any case, and the first ones. The same text for the same
// search.
std::string search_graph_dot(const Space& space, const ContestTrace& trace,
                             const GraphOptions& options);

}  // namespace foretune
