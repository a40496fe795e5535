#include "foretune/loop/gym/observation_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace foretune::loop::gym {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

loop::Computation named(std::string name, loop::Computation computation) {
  computation.name = std::move(name);
  return computation;
}

loop::Computation small_product() {
  return named(
      "product",
      loop::matmul({.m = 100, .n = 32, .k = 64, .epilogue = {.bias = true, .relu = true}}).value());
}

State state_of(const loop::Computation& computation, std::string_view text) {
  return parse_state(computation, text).value();
}

TEST(ObservationTexts, TheIrIsCanonical) {
  const auto computation = small_product();
  const State state = state_of(computation, "split m0 4, split m0 4, swap m2 @ n0");
  EXPECT_EQ(ir(computation, state), "product\nsplit m0 16, split m1 4, swap m2\n");
  EXPECT_EQ(ir(computation, state),
            ir(computation, state_of(computation, "split m0 16, split m1 4, swap m2 @ m0")));
  EXPECT_EQ(ir(computation, State::start(computation)), "product\n\n");
}

TEST(ObservationTexts, TheTreeMarksTheCursor) {
  const auto computation = small_product();
  EXPECT_EQ(loop_tree(computation,
                      state_of(computation, "split m0 16, pack b m1, block k0, unroll m1 @ m1")),
            "  for m0 in 100 by 16, remainder 4\n"
            "   pack b\n"
            ">  for m1 in 16 by 1, unroll\n"
            "    block\n"
            "    for k0 in 64 by 1\n"
            "     for n0 in 32 by 1\n");
}

TEST(ObservationTexts, TheOperationIsAFormula) {
  EXPECT_EQ(operation_text(small_product()), "c = max(add(reduce add(multiply(a, b)), bias), 0)");
  EXPECT_EQ(operation_text(loop::reduction(4, 4, loop::Op::kMax, false).value()),
            "out = reduce max(in)");
}

TEST(ObservationTexts, TheTreeIsAChainForGraphviz) {
  const auto computation = named("small", loop::matmul({.m = 8, .n = 4, .k = 2}).value());
  EXPECT_EQ(ir_tree_dot(computation, state_of(computation, "@ k0")),
            R"dot(digraph "small" {
  node [fontname="monospace"];
  "loop:m0" [shape=box, label="for m0 in 8 by 1"];
  "loop:k0" [shape=box, label="for k0 in 2 by 1", color=red, penwidth=2];
  "loop:n0" [shape=box, label="for n0 in 4 by 1"];
  "operation" [shape=hexagon, label="c = reduce add(multiply(a, b))"];
  "loop:m0" -> "loop:k0" [class="nest"];
  "loop:k0" -> "loop:n0" [class="nest"];
  "loop:n0" -> "operation" [class="nest"];
}
)dot");
}

TEST(ObservationTexts, TheTreeIsNestedAsJson) {
  const auto computation = loop::reduction(9, 4, loop::Op::kAdd, false).value();
  const State state = state_of(computation, "split r0 2, unroll c0 @ c0");
  EXPECT_EQ(
      ir_tree_json(computation, state),
      R"json({"id": "loop:r0", "kind": "loop", "label": "for r0 in 9 by 2, remainder 1", )json"
      R"json("variable": "r", "is_reduction": false, "covers": 9, "step": 2, "rounds": 5, )json"
      R"json("remainder": 1, "mark": "", "cursor": false, "children": [)json"
      R"json({"id": "loop:r1", "kind": "loop", "label": "for r1 in 2 by 1", "variable": "r", )json"
      R"json("is_reduction": false, "covers": 2, "step": 1, "rounds": 2, "remainder": 0, )json"
      R"json("mark": "", "cursor": false, "children": [)json"
      R"json({"id": "loop:c0", "kind": "loop", "label": "for c0 in 4 by 1, unroll", )json"
      R"json("variable": "c", "is_reduction": true, "covers": 4, "step": 1, )json"
      R"json("rounds": 4, "remainder": 0, "mark": "unroll", "cursor": true, "children": [)json"
      R"json({"id": "operation", "kind": "operation", "label": "out = reduce add(in)", )json"
      R"json("children": []}]}]}]})json");
}

TEST(ObservationTexts, TheGraphHasAccessesWithStrides) {
  const auto computation = named("sums", loop::reduction(9, 4, loop::Op::kAdd, false).value());
  const State state = state_of(computation, "split r0 2 @ r0");
  EXPECT_EQ(ir_graph_dot(computation, state),
            R"dot(digraph "sums" {
  node [fontname="monospace"];
  "loop:r0" [shape=box, label="for r0 in 9 by 2, remainder 1", color=red, penwidth=2];
  "loop:r1" [shape=box, label="for r1 in 2 by 1"];
  "loop:c0" [shape=box, label="for c0 in 4 by 1"];
  "operation" [shape=hexagon, label="out = reduce add(in)"];
  "tensor:out" [shape=ellipse, label="out"];
  "tensor:in" [shape=ellipse, label="in"];
  "loop:r0" -> "loop:r1" [class="nest"];
  "loop:r1" -> "loop:c0" [class="nest"];
  "loop:c0" -> "operation" [class="nest"];
  "loop:r0" -> "tensor:out" [style=dashed, color=gray, class="access", label="2"];
  "loop:r0" -> "tensor:in" [style=dashed, color=gray, class="access", label="8"];
  "loop:r1" -> "tensor:out" [style=dashed, color=gray, class="access", label="1"];
  "loop:r1" -> "tensor:in" [style=dashed, color=gray, class="access", label="4"];
  "loop:c0" -> "tensor:in" [style=dashed, color=gray, class="access", label="1"];
  "tensor:in" -> "operation" [color=blue, class="read"];
  "operation" -> "tensor:out" [color=blue, class="write"];
}
)dot");
}

TEST(ObservationTexts, TheGraphIsNodesAndEdgesAsJson) {
  const auto computation = small_product();
  const std::string text = ir_graph_json(computation, State::start(computation));
  EXPECT_THAT(text, HasSubstr(R"({"directed": true, "multigraph": false, "graph": {"name": )"
                              R"("product"}, "nodes": [{"id": "loop:m0")"));
  EXPECT_THAT(text, HasSubstr(R"({"id": "tensor:c", "kind": "tensor", "label": "c", )"
                              R"("is_output": true, "shape": [100, 32]})"));
  EXPECT_THAT(text, HasSubstr(R"({"source": "loop:k0", "target": "tensor:b", )"
                              R"("kind": "access", "stride": 32})"));
  EXPECT_THAT(text, HasSubstr(R"({"source": "tensor:bias", "target": "operation", )"
                              R"("kind": "read"})"));
  EXPECT_THAT(text, Not(HasSubstr(R"("source": "loop:k0", "target": "tensor:c")")));
}

// Names of computations come from anywhere; those of variables and tensors are checked.
TEST(ObservationTexts, NamesAreQuoted) {
  auto computation = loop::reduction(4, 4, loop::Op::kAdd, false).value();
  computation.name = "a \"name\" with \\ and\nlines \xff";
  const State state = State::start(computation);
  EXPECT_THAT(ir_tree_dot(computation, state),
              HasSubstr("digraph \"a \\\"name\\\" with \\\\ and lines \xef\xbf\xbd\" {\n"));
  EXPECT_THAT(ir_graph_json(computation, state),
              HasSubstr(R"("name": "a \"name\" with \\ and\nlines )"));
}

// A tensor may be called like a loop.
TEST(ObservationTexts, NodesOfTheSameNameStayApart) {
  auto computation = loop::matmul({.m = 8, .n = 4, .k = 2}).value();
  computation.inputs[0].name = "m0";
  computation.inputs[1].name = "operation";
  ASSERT_TRUE(computation.check());
  const std::string text = ir_graph_dot(computation, State::start(computation));
  EXPECT_THAT(text, HasSubstr(R"("loop:m0" -> "tensor:m0")"));
  EXPECT_THAT(text, HasSubstr(R"("tensor:operation" -> "operation")"));
}

}  // namespace
}  // namespace foretune::loop::gym
