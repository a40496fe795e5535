// A search as a graph to look at: which schedules were measured, how fast they are, and which
// change led from one to the next.
//
//   write_text_file_atomically("search.dot", search_graph_dot(*space, trace, {.peak_gflops =
//   120})); dot -Tsvg search.dot > search.svg
//
// Thread safety: free functions. Cost: 50 to 200 microseconds for every measurement up to the
// fastest or the last node, whichever comes later.
#pragma once

#include <cstddef>
#include <string>

#include "foretune/autoschedule/schedule_search.h"
#include "foretune/loop/schedule_space.h"

namespace foretune::autoschedule {

struct GraphOptions {
  double peak_gflops = 0;      // top of the scale of colours; 0: the fastest of the search
  std::size_t max_steps = 10;  // actions of one change: moves of a cursor, and the one that changes
  std::size_t max_nodes = 2000;
};

// Graphviz's digraph: a node per measured schedule with its number in the search, its speed, and
// the second that it was known; filled by the speed, dashed and grey where it was refused. An edge
// comes from the schedule one change away that was measured first, and before; it is dashed from
// the start where there is none. The way to the fastest is red. Of more than `max_nodes` schedules
// these are the way to the fastest, whole in any case, and the first ones. The same text for the
// same search.
std::string search_graph_dot(const ScheduleSpace& space, const SearchTrace& trace,
                             const GraphOptions& options);

}  // namespace foretune::autoschedule
