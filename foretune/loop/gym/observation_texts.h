// Observations of a state as text: for people, for Graphviz and for networkx.
//
//   Graphviz:  dot -Tsvg <<< ir_graph_dot(computation, state)
//   networkx:  networkx.tree_graph(json.loads(ir_tree_json(computation, state)))
//              networkx.node_link_graph(json.loads(ir_graph_json(...)), edges="edges")
//
// Nodes are named "loop:m0", "tensor:a" and "operation". Texts are UTF-8; invalid bytes of a
// computation's name become U+FFFD.
//
// Thread safety: free functions. Cost: some ten microseconds.
#pragma once

#include <string>

#include "foretune/loop/computation.h"
#include "foretune/loop/cursor_actions.h"

namespace foretune::loop::gym {

// Returns the computation's name and the canonical schedule, a line each. Equal nests of equal
// computations have the same text, and no others have it.
std::string ir(const loop::Computation& computation, const State& state);

// Returns loop::tree_text() with "> " before the loop of the cursor:
//
//   > for m0 in 192 by 4
//      for n0 in 96 by 1
std::string loop_tree(const loop::Computation& computation, const State& state);

// "c = max(add(reduce add(multiply(a, b)), bias), 0)"
std::string operation_text(const loop::Computation& computation);

// Return the loops, each around the next, and the operation inside of them. The JSON has an object
// per node with its children: {"id", "kind", "label", ..., "children": [...]}; loops also have
// "variable", "is_reduction", "covers", "step", "rounds", "remainder", "mark" and "cursor".
std::string ir_tree_dot(const loop::Computation& computation, const State& state);
std::string ir_tree_json(const loop::Computation& computation, const State& state);

// Return a graph with loops, tensors and the operation as nodes, and edges of the kinds
//   "nest"    from a loop to what is inside of it
//   "access"  from a loop to each tensor that it moves through, with "stride": elements a round
//   "read"    from an input to the operation
//   "write"   from the operation to the output
// As JSON {"directed", "multigraph", "graph", "nodes": [...], "edges": [{"source", "target",
// ...}]}.
std::string ir_graph_dot(const loop::Computation& computation, const State& state);
std::string ir_graph_json(const loop::Computation& computation, const State& state);

}  // namespace foretune::loop::gym
