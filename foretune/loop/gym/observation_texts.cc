#include "foretune/loop/gym/observation_texts.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "foretune/base/figures.h"
#include "foretune/base/text.h"
#include "foretune/loop/canonical_schedule.h"

namespace foretune::loop::gym {
namespace {

constexpr std::array<std::string_view, 4> kMarkNames = {"", "unroll", "vector", "parallel"};
constexpr std::string_view kOperation = "operation";

std::string loop_id(const loop::Computation& computation, const State& state, std::size_t level) {
  return concat("loop:", loop::loop_name(computation, state.nest, level));
}

std::string tensor_id(const loop::Tensor& tensor) { return concat("tensor:", tensor.name); }

std::string loop_label(const loop::Computation& computation, const State& state,
                       std::size_t level) {
  const loop::Nest& nest = state.nest;
  const std::int64_t rest = nest.remainder(computation, level);
  const std::string_view mark = kMarkNames[static_cast<std::size_t>(nest.loops[level].mark)];
  return concat("for ", loop::loop_name(computation, nest, level), " in ",
                nest.covers(computation, level), " by ", nest.loops[level].step,
                rest == 0 ? "" : concat(", remainder ", rest), mark.empty() ? "" : ", ", mark);
}

struct Edge {
  std::string source;
  std::string target;
  std::string_view kind;
  std::int64_t stride = 0;  // of an access
};

// The output, then the inputs.
std::vector<const loop::Tensor*> tensors_of(const loop::Computation& computation) {
  std::vector<const loop::Tensor*> out = {&computation.output};
  for (const loop::Tensor& input : computation.inputs) {
    out.push_back(&input);
  }
  return out;
}

std::vector<Edge> nest_edges(const loop::Computation& computation, const State& state) {
  std::vector<Edge> edges;
  const std::size_t count = state.nest.loops.size();
  for (std::size_t level = 0; level < count; ++level) {
    edges.push_back(
        {loop_id(computation, state, level),
         level + 1 < count ? loop_id(computation, state, level + 1) : std::string(kOperation),
         "nest"});
  }
  return edges;
}

std::vector<Edge> graph_edges(const loop::Computation& computation, const State& state) {
  std::vector<Edge> edges = nest_edges(computation, state);
  for (std::size_t level = 0; level < state.nest.loops.size(); ++level) {
    const loop::Loop& loop = state.nest.loops[level];
    for (const loop::Tensor* tensor : tensors_of(computation)) {
      if (const std::int64_t stride = tensor->stride_of(loop.var) * loop.step; stride != 0) {
        edges.push_back({loop_id(computation, state, level), tensor_id(*tensor), "access", stride});
      }
    }
  }
  for (const loop::Tensor& input : computation.inputs) {
    edges.push_back({tensor_id(input), std::string(kOperation), "read"});
  }
  edges.push_back({std::string(kOperation), tensor_id(computation.output), "write"});
  return edges;
}

// Graphviz.

std::string dot_loop(const loop::Computation& computation, const State& state, std::size_t level) {
  return concat("  ", dot_quoted(loop_id(computation, state, level)),
                " [shape=box, label=", dot_quoted(loop_label(computation, state, level)),
                level == state.cursor ? ", color=red, penwidth=2" : "", "];\n");
}

std::string dot_operation(const loop::Computation& computation) {
  return concat("  ", dot_quoted(kOperation),
                " [shape=hexagon, label=", dot_quoted(operation_text(computation)), "];\n");
}

std::string dot_edge(const Edge& edge) {
  std::string_view style;
  if (edge.kind == "access") {
    style = "style=dashed, color=gray, ";
  } else if (edge.kind != "nest") {
    style = "color=blue, ";
  }
  const std::string label =
      edge.kind == "access" ? concat(", label=", dot_quoted(concat(edge.stride))) : "";
  return concat("  ", dot_quoted(edge.source), " -> ", dot_quoted(edge.target), " [", style,
                "class=", dot_quoted(edge.kind), label, "];\n");
}

std::string dot_open(const loop::Computation& computation, const State& state) {
  std::string out =
      concat("digraph ", dot_quoted(computation.name), " {\n  node [fontname=\"monospace\"];\n");
  for (std::size_t level = 0; level < state.nest.loops.size(); ++level) {
    out += dot_loop(computation, state, level);
  }
  return out + dot_operation(computation);
}

// JSON.

std::string json_loop(const loop::Computation& computation, const State& state, std::size_t level) {
  const loop::Nest& nest = state.nest;
  const loop::Loop& loop = nest.loops[level];
  const loop::Var& var = computation.vars[loop.var];
  return concat(
      R"({"id": )", json_quoted(loop_id(computation, state, level)), R"(, "kind": "loop")",
      R"(, "label": )", json_quoted(loop_label(computation, state, level)), R"(, "variable": )",
      json_quoted(var.name), R"(, "is_reduction": )", var.is_reduction, R"(, "covers": )",
      nest.covers(computation, level), R"(, "step": )", loop.step, R"(, "rounds": )",
      nest.rounds(computation, level), R"(, "remainder": )", nest.remainder(computation, level),
      R"(, "mark": )", json_quoted(kMarkNames[static_cast<std::size_t>(loop.mark)]),
      R"(, "cursor": )", level == state.cursor);
}

std::string json_operation(const loop::Computation& computation) {
  return concat(R"({"id": )", json_quoted(kOperation), R"(, "kind": "operation", "label": )",
                json_quoted(operation_text(computation)));
}

std::string json_tensor(const loop::Tensor& tensor, bool is_output) {
  std::string sizes;
  for (const loop::Dimension& dimension : tensor.dimensions) {
    sizes += concat(sizes.empty() ? "" : ", ", dimension.size);
  }
  return concat(R"({"id": )", json_quoted(tensor_id(tensor)), R"(, "kind": "tensor", "label": )",
                json_quoted(tensor.name), R"(, "is_output": )", is_output, R"(, "shape": [)", sizes,
                "]}");
}

std::string json_edge(const Edge& edge) {
  return concat(R"({"source": )", json_quoted(edge.source), R"(, "target": )",
                json_quoted(edge.target), R"(, "kind": )", json_quoted(edge.kind),
                edge.kind == "access" ? concat(R"(, "stride": )", edge.stride) : "", "}");
}

std::string input_name(const loop::Computation& computation, const loop::Step& step) {
  return step.input < 0 ? concat(step.constant)
                        : computation.inputs[static_cast<std::size_t>(step.input)].name;
}

}  // namespace

std::string ir(const loop::Computation& computation, const State& state) {
  return concat(computation.name, "\n",
                loop::to_text(computation, schedule_of(computation, state.nest)), "\n");
}

std::string loop_tree(const loop::Computation& computation, const State& state) {
  const std::string tree = loop::tree_text(computation, state.nest);
  std::string out;
  std::size_t level = 0;
  for (const std::string_view line : split(tree, '\n')) {
    if (line.empty()) {
      continue;
    }
    const bool is_loop = trim(line).starts_with("for ");
    out += concat(is_loop && level == state.cursor ? "> " : "  ", line, "\n");
    level += is_loop ? 1 : 0;
  }
  return out;
}

std::string operation_text(const loop::Computation& computation) {
  std::string value = computation.inputs[0].name;
  if (computation.combined == 2) {
    value = concat(loop::to_string(computation.combine), "(", value, ", ",
                   computation.inputs[1].name, ")");
  }
  if (computation.has_reduction()) {
    value = concat("reduce ", loop::to_string(computation.reduce), "(", value, ")");
  }
  for (const loop::Step& step : computation.steps) {
    value = concat(loop::to_string(step.op), "(", value, ", ", input_name(computation, step), ")");
  }
  return concat(computation.output.name, " = ", value);
}

std::string ir_tree_dot(const loop::Computation& computation, const State& state) {
  std::string out = dot_open(computation, state);
  for (const Edge& edge : nest_edges(computation, state)) {
    out += dot_edge(edge);
  }
  return out + "}\n";
}

std::string ir_tree_json(const loop::Computation& computation, const State& state) {
  std::string out = json_operation(computation) + R"(, "children": []})";
  for (std::size_t level = state.nest.loops.size(); level-- > 0;) {
    out = concat(json_loop(computation, state, level), R"(, "children": [)", out, "]}");
  }
  return out;
}

std::string ir_graph_dot(const loop::Computation& computation, const State& state) {
  std::string out = dot_open(computation, state);
  for (const loop::Tensor* tensor : tensors_of(computation)) {
    out += concat("  ", dot_quoted(tensor_id(*tensor)),
                  " [shape=ellipse, label=", dot_quoted(tensor->name), "];\n");
  }
  for (const Edge& edge : graph_edges(computation, state)) {
    out += dot_edge(edge);
  }
  return out + "}\n";
}

std::string ir_graph_json(const loop::Computation& computation, const State& state) {
  std::vector<std::string> nodes;
  for (std::size_t level = 0; level < state.nest.loops.size(); ++level) {
    nodes.push_back(json_loop(computation, state, level) + "}");
  }
  nodes.push_back(json_operation(computation) + "}");
  for (const loop::Tensor* tensor : tensors_of(computation)) {
    nodes.push_back(json_tensor(*tensor, tensor == &computation.output));
  }
  std::vector<std::string> edges;
  for (const Edge& edge : graph_edges(computation, state)) {
    edges.push_back(json_edge(edge));
  }
  return concat(R"({"directed": true, "multigraph": false, "graph": {"name": )",
                json_quoted(computation.name), R"(}, "nodes": [)", join(nodes, ", "),
                R"(], "edges": [)", join(edges, ", "), "]}");
}

}  // namespace foretune::loop::gym
